//! How much the bounds show: `cargo run --release -p probes --example audit_tightness -- FOLDER` draws data
//! sets for each setting, writes them for the peers, and our bounds on them to `bounds.json`; without a
//! folder it prints the means. A setting's data are two matrices of trials by rows, `NAME.scores.npy`
//! and `NAME.members.npy`.
#![allow(clippy::print_stdout)]

#[path = "../../audit/tests/common/mod.rs"]
mod common;

use audit::one_run::{OneRunStatistic, one_run_bound, one_run_epsilon};
use audit::{
    AttackDirection, Design, Scores, Simultaneous, Statistic, ThresholdRule, best_threshold,
};
use common::{Mechanism, Rng};
use serde_json::json;
use std::path::Path;

const LEVEL: f64 = 0.05;

/// What is drawn.
#[derive(Clone, Copy)]
enum Law {
    Known(Mechanism),
    /// An event with probability 0.02 without the canary and e^epsilon times that with it.
    Rare {
        epsilon: f64,
    },
    /// Members above non-members, always.
    Perfect,
}

impl Law {
    fn draw(self, member: bool, rng: &mut Rng) -> f64 {
        match self {
            Self::Known(mechanism) => mechanism.draw(member, rng),
            Self::Rare { epsilon } => {
                let rate = 0.02 * if member { epsilon.exp() } else { 1.0 };
                f64::from(u8::from(rng.bernoulli(rate)))
            }
            Self::Perfect => rng.normal() + if member { 100.0 } else { 0.0 },
        }
    }
}

/// Which peers and which of our rules are asked.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Trainings; the threshold is chosen from the scores.
    Runs,
    /// Trainings; the threshold was fixed before.
    Fixed(f64),
    /// Canaries of one training.
    OneRun,
}

struct Setting {
    name: &'static str,
    text: &'static str,
    law: Law,
    kind: Kind,
    /// Scores per side, or canaries.
    size: usize,
    delta: f64,
    trials: usize,
}

fn settings() -> Vec<Setting> {
    let gaussian = |mu| Law::Known(Mechanism::Gaussian { mu });
    let laplace = Law::Known(Mechanism::Laplace { epsilon: 1.0 });
    let response = Law::Known(Mechanism::RandomisedResponse { epsilon: 1.0 });
    let runs = |name, text, law, size| Setting {
        name,
        text,
        law,
        kind: Kind::Runs,
        size,
        delta: 0.0,
        trials: 300,
    };
    let fixed = |name, text, law, threshold| Setting {
        kind: Kind::Fixed(threshold),
        ..runs(name, text, law, 100)
    };
    let one = |name, text, law, size, delta, trials| Setting {
        kind: Kind::OneRun,
        delta,
        trials,
        ..runs(name, text, law, size)
    };
    vec![
        runs("laplace-500", "Laplace, epsilon 1, 500 per side", laplace, 500),
        runs("laplace-100", "Laplace, epsilon 1, 100 per side", laplace, 100),
        runs("rare-1000", "rare event, epsilon 2, 1000 per side", Law::Rare { epsilon: 2.0 }, 1000),
        runs("gaussian-1-100", "Gaussian, mu 1, 100 per side", gaussian(1.0), 100),
        runs("gaussian-2-1000", "Gaussian, mu 2, 1000 per side", gaussian(2.0), 1000),
        Setting {
            trials: 100,
            ..runs("laplace-3000", "Laplace, epsilon 1, 3000 per side", laplace, 3000)
        },
        Setting {
            trials: 100,
            ..runs("gaussian-1-3000", "Gaussian, mu 1, 3000 per side", gaussian(1.0), 3000)
        },
        Setting {
            trials: 4,
            ..runs("separated-100", "fully separated, 100 per side", Law::Perfect, 100)
        },
        fixed(
            "response-100-fixed",
            "randomised response, epsilon 1, 100 per side, fixed threshold",
            response,
            0.5,
        ),
        fixed(
            "laplace-100-fixed",
            "Laplace, epsilon 1, 100 per side, fixed threshold",
            laplace,
            1.0,
        ),
        one("one-laplace-200", "Laplace, epsilon 1, 200 canaries", laplace, 200, 0.0, 300),
        one("one-gaussian-3-200", "Gaussian, mu 3, 200 canaries", gaussian(3.0), 200, 0.0, 300),
        one("one-gaussian-3-1000", "Gaussian, mu 3, 1000 canaries", gaussian(3.0), 1000, 0.0, 200),
        one(
            "one-gaussian-4-10000",
            "Gaussian, mu 4, 10,000 canaries, delta 1e-5",
            gaussian(4.0),
            10_000,
            1e-5,
            30,
        ),
        one(
            "one-perfect-10000",
            "perfect attack, 10,000 canaries, delta 1e-5",
            Law::Perfect,
            10_000,
            1e-5,
            4,
        ),
        one(
            "one-perfect-1000",
            "perfect attack, 1000 canaries, delta 1e-5",
            Law::Perfect,
            1000,
            1e-5,
            4,
        ),
        one(
            "one-perfect-100000",
            "perfect attack, 100,000 canaries, delta 1e-5",
            Law::Perfect,
            100_000,
            1e-5,
            4,
        ),
    ]
}

struct Drawn {
    scores: Vec<f64>,
    members: Vec<f64>,
}

impl Setting {
    fn draw(&self, trial: usize) -> Drawn {
        let seed = self
            .name
            .bytes()
            .fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut rng = Rng::new(seed.wrapping_add(trial as u64));
        let rows = if self.kind == Kind::OneRun { self.size } else { 2 * self.size };
        let (mut scores, mut members) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        for row in 0..rows {
            let member = match self.kind {
                Kind::OneRun => rng.bernoulli(0.5),
                _ => row < self.size,
            };
            scores.push(self.law.draw(member, &mut rng));
            members.push(f64::from(u8::from(member)));
        }
        Drawn { scores, members }
    }

    /// Our bound, and the one of two bands with half of the error each, where that is a rule.
    fn bounds(&self, drawn: &Drawn, seed: u64) -> (f64, Option<f64>) {
        let side = |wanted: f64| -> Vec<f64> {
            let rows = drawn.scores.iter().zip(&drawn.members);
            rows.filter(|(_, member)| **member == wanted).map(|(score, _)| *score).collect()
        };
        let scores = Scores::new(Design::Runs, side(1.0), side(0.0)).unwrap();
        let direction = AttackDirection::Both;
        let statistic = Statistic::Epsilon { delta: self.delta, direction };
        match self.kind {
            Kind::Runs => {
                let rule = ThresholdRule::Union;
                let ours = rule.lower_bound(&scores, &statistic, LEVEL, seed).unwrap().value;
                let n = self.size as u64;
                let band = Simultaneous::martingale(n, n, LEVEL);
                let old = best_threshold(&scores, &statistic, &|errors| band.at(errors)).value;
                (ours, Some(old))
            }
            Kind::Fixed(threshold) => {
                let rule = ThresholdRule::Fixed(threshold);
                (rule.lower_bound(&scores, &statistic, LEVEL, seed).unwrap().value, None)
            }
            Kind::OneRun => {
                let rule = ThresholdRule::Union;
                let statistic = OneRunStatistic::Epsilon { delta: self.delta };
                let found = one_run_bound(&scores, &rule, &statistic, direction, LEVEL, seed);
                (found.unwrap().value, None)
            }
        }
    }
}

/// The most that one strategy without an error could show, on the number of canaries that is best for it.
fn most(canaries: usize, delta: f64) -> f64 {
    let parts = (0..400).map(|step| (canaries as f64 * 0.98_f64.powi(step)) as u64);
    parts.map(|part| one_run_epsilon(part, part, part, LEVEL, delta)).fold(0.0, f64::max)
}

fn write(path: &Path, rows: &[Vec<f64>]) -> std::io::Result<()> {
    let columns = rows.first().map_or(0, Vec::len);
    std::fs::write(path, formats::npy::doubles(&[rows.len(), columns], &rows.concat()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1);
    let mut answers = Vec::new();
    for setting in settings() {
        let drawn: Vec<Drawn> = (0..setting.trials).map(|trial| setting.draw(trial)).collect();
        // The default seed.
        let bounds: Vec<(f64, Option<f64>)> =
            drawn.iter().map(|one| setting.bounds(one, 0)).collect();
        let ours: Vec<f64> = bounds.iter().map(|(ours, _)| *ours).collect();
        let old: Option<Vec<f64>> = bounds.iter().map(|(_, old)| *old).collect();
        let Some(folder) = &folder else {
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let old = old.map_or_else(String::new, |old| format!(", two bands {:.4}", mean(&old)));
            println!("{}: {:.4}{old}", setting.name, mean(&ours));
            continue;
        };
        let path = |part: &str| Path::new(folder).join(format!("{}.{part}.npy", setting.name));
        let part = |part: fn(&Drawn) -> &Vec<f64>| -> Vec<Vec<f64>> {
            drawn.iter().map(|one| part(one).clone()).collect()
        };
        write(&path("scores"), &part(|one| &one.scores))?;
        write(&path("members"), &part(|one| &one.members))?;
        let (kind, threshold) = match setting.kind {
            Kind::Runs => ("runs", None),
            Kind::Fixed(threshold) => ("fixed", Some(threshold)),
            Kind::OneRun => ("one-run", None),
        };
        let perfect = setting.kind == Kind::OneRun && matches!(setting.law, Law::Perfect);
        answers.push(json!({
            "name": setting.name,
            "text": setting.text,
            "kind": kind,
            "threshold": threshold,
            "delta": setting.delta,
            "ours": ours,
            "two_bands": old,
            "most": perfect.then(|| most(setting.size, setting.delta)),
        }));
    }
    if let Some(folder) = folder {
        let text = serde_json::to_string(&answers)?;
        std::fs::write(Path::new(&folder).join("bounds.json"), text)?;
        println!("{}", json!({ "settings": answers.len() }));
    }
    Ok(())
}
