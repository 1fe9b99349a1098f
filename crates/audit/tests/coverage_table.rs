//! The table of `docs/auditing.md`: the share of "95 % lower bounds" above the truth, ours
//! measured here with fixed seeds, the peers' from `docs/data`.
//! `UPDATE_DOCS=1 cargo test --release -p dosimeter-audit --test all coverage_table` measures it and writes the page and
//! `docs/data/audit_coverage_own.csv`, which has what the first quarter of the trials gave for each cell. The test
//! holds that the page is that of the file, and that the first quarter of the trials gives the same in this version.

use crate::common;

use audit::one_run::{OneRunStatistic, one_run_bound};
use audit::sequential::Sequential;
use audit::{AttackDirection, Design, Scores, Statistic, ThresholdRule, gaussian_epsilon};
use common::{Mechanism, Rng, allowed, summary, tally};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::PathBuf;

const LEVEL: f64 = 0.05;
const DELTA: f64 = 1e-5;
const BEGIN: &str = "<!-- coverage: begin -->\n";
const END: &str = "<!-- coverage: end -->\n";

/// Share above the truth, and the mean bound.
#[derive(Clone, Copy)]
struct Cell {
    share: f64,
    mean: Option<f64>,
    trials: usize,
    /// The mechanism is not of the family that the bound holds for.
    wrong_family: bool,
}

/// Cells in the order in which they are asked for: measured, or those of the file with a quarter measured.
struct Measure {
    /// Share and mean of all trials, and of the first quarter.
    known: Option<Vec<[f64; 4]>>,
    found: RefCell<Vec<[f64; 4]>>,
}

impl Measure {
    fn new() -> Self {
        let update = std::env::var_os("UPDATE_DOCS").is_some();
        let known = (!update).then(|| {
            let text = std::fs::read_to_string(own()).unwrap();
            let line = |line: &str| -> [f64; 4] {
                let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
                cells.try_into().unwrap()
            };
            text.lines().skip(1).map(line).collect()
        });
        Self { known, found: RefCell::default() }
    }

    fn cell(&self, trials: usize, truth: f64, bound: impl Fn(u64) -> f64 + Sync) -> Cell {
        let mut found = self.found.borrow_mut();
        let quarter = trials / 4;
        let one = match &self.known {
            None => {
                let values = tally(trials, bound);
                let (all, first) = (summary(&values, truth), summary(&values[..quarter], truth));
                [all.0, all.1, first.0, first.1]
            }
            Some(known) => {
                let one = known.get(found.len()).copied().expect("the file has this cell");
                let (share, mean) = summary(&tally(quarter, bound), truth);
                assert!(
                    share == one[2] && (mean - one[3]).abs() <= 1e-6 * (1.0 + mean.abs()),
                    "cell {} of {} is {share}, {mean} now; see the head of this file for the command",
                    found.len() + 1,
                    own().display()
                );
                one
            }
        };
        found.push(one);
        Cell { share: one[0], mean: Some(one[1]), trials, wrong_family: false }
    }

    fn write(&self) {
        let mut text = String::from("share,mean,share_first_quarter,mean_first_quarter\n");
        for [a, b, c, d] in self.found.borrow().iter() {
            let _ = writeln!(text, "{a},{b},{c},{d}");
        }
        std::fs::write(own(), text).unwrap();
    }
}

fn own() -> PathBuf {
    root().join("docs/data/audit_coverage_own.csv")
}

impl Cell {
    fn text(self) -> String {
        let share = format!("{:.3}", self.share);
        // More than chance leaves to a valid bound.
        let share = if self.share > allowed(self.trials) { format!("**{share}**") } else { share };
        let mean = self.mean.map_or_else(String::new, |mean| format!(" ({mean:.2})"));
        let family = if self.wrong_family { ", not its family" } else { "" };
        format!("{share}{mean}{family}")
    }
}

fn row(table: &mut String, name: &str, cells: &[Option<Cell>]) {
    let cells: Vec<String> =
        cells.iter().map(|cell| cell.map_or_else(|| "–".to_owned(), Cell::text)).collect();
    let _ = writeln!(table, "| {name} | {} |", cells.join(" | "));
}

const RUNS: [(Mechanism, f64); 3] = [
    (Mechanism::Null, 0.0),
    (Mechanism::Laplace { epsilon: 1.0 }, 1.0),
    (Mechanism::Gaussian { mu: 1.0 }, f64::INFINITY),
];

fn rules(threshold: f64) -> [ThresholdRule; 5] {
    [
        ThresholdRule::Union,
        ThresholdRule::Dkw,
        ThresholdRule::Holdout,
        ThresholdRule::KFold,
        ThresholdRule::Fixed(threshold),
    ]
}

fn many_runs(measure: &Measure) -> String {
    let mut table = String::from(
        "500 trainings per side, 300 trials. Gaussian scores have no finite epsilon at delta 0; \
         bounds for their family are at delta 1e-5, where the truth is 4.377.\n\n\
         | estimator | no leakage | Laplace, epsilon 1 | Gaussian, mu 1 |\n|---|---|---|---|\n",
    );
    let draw = |mechanism: &Mechanism, trial: u64| -> Scores {
        mechanism.scores(500, &mut Rng::new(500_000 + trial))
    };
    for rule in rules(1.0) {
        let cells = RUNS.map(|(mechanism, truth)| {
            let statistic = Statistic::Epsilon { delta: 0.0, direction: AttackDirection::Both };
            Some(measure.cell(300, truth, |trial| {
                let scores = draw(&mechanism, trial);
                rule.lower_bound(&scores, &statistic, LEVEL, trial).unwrap().value
            }))
        });
        row(&mut table, &format!("**dosimeter clopper-pearson, {}**", name(&rule)), &cells);
    }
    for rule in rules(1.0) {
        let cells = RUNS.map(|(mechanism, truth)| {
            let truth = if truth == f64::INFINITY { gaussian_epsilon(1.0, DELTA) } else { truth };
            let cell = measure.cell(300, truth, |trial| {
                let scores = draw(&mechanism, trial);
                let mu = rule.lower_bound(&scores, &Statistic::GaussianMu, LEVEL, trial).unwrap();
                gaussian_epsilon(mu.value, DELTA)
            });
            Some(Cell { wrong_family: matches!(mechanism, Mechanism::Laplace { .. }), ..cell })
        });
        row(&mut table, &format!("**dosimeter gdp, {}**", name(&rule)), &cells);
    }
    peers(&mut table, "audit_coverage_peers.csv", &["null", "Laplace", "Gaussian"]);
    table
}

fn one_run(measure: &Measure) -> String {
    let mut table = String::from(
        "\nOne run, 200 canaries, each in by a fair coin, delta 0; ours 1000 trials, the others' 100 \
         to 150.\n\n\
         | estimator | no leakage | randomised response, epsilon 1 | Laplace, epsilon 1 |\n\
         |---|---|---|---|\n",
    );
    let mechanisms = [
        (Mechanism::Null, 0.0),
        (Mechanism::RandomisedResponse { epsilon: 1.0 }, 1.0),
        (Mechanism::Laplace { epsilon: 1.0 }, 1.0),
    ];
    for rule in rules(0.5).into_iter().filter(|rule| *rule != ThresholdRule::Dkw) {
        let cells = mechanisms.map(|(mechanism, truth)| {
            Some(measure.cell(1000, truth, |trial| {
                let scores = mechanism.canaries(200, &mut Rng::new(6200 + trial));
                let statistic = OneRunStatistic::Epsilon { delta: 0.0 };
                one_run_bound(
                    &scores,
                    &rule,
                    &statistic,
                    audit::AttackDirection::Both,
                    LEVEL,
                    trial,
                )
                .unwrap()
                .value
            }))
        });
        row(&mut table, &format!("**dosimeter one-run, {}**", name(&rule)), &cells);
    }
    let order = ["null", "randomised response", "Laplace"];
    peers(&mut table, "audit_coverage_one_run_peers.csv", &order);
    table
}

/// The share of misses at the default seed and over random ones.
fn seeds(measure: &Measure) -> String {
    let mut table = String::from(
        "\nAt the default seed and at random ones: randomised response with epsilon 1, whose scores have two values, \
         and scores that are all the same. 100 trainings per side or 200 canaries, delta 0, 200 trials. \
         Rules without a part that is dealt do not read the seed.\n\n\
         | estimator | two values, default seed | two values, random seeds | constant, default seed | constant, random seeds |\n\
         |---|---|---|---|---|\n",
    );
    const TRIALS: usize = 200;
    let response = Mechanism::RandomisedResponse { epsilon: 1.0 };
    let constant = |scores: Scores| {
        let flat = |side: &[f64]| vec![0.0; side.len()];
        Scores::new(Design::Runs, flat(scores.members()), flat(scores.nonmembers())).unwrap()
    };
    let direction = AttackDirection::Both;
    let columns = [(false, true), (false, false), (true, true), (true, false)];
    for rule in rules(0.5) {
        let statistic = Statistic::Epsilon { delta: 0.0, direction };
        let cells = columns.map(|(flat, default)| {
            Some(measure.cell(TRIALS, if flat { 0.0 } else { 1.0 }, |trial| {
                let mut scores = response.scores(100, &mut Rng::new(810_000 + trial));
                if flat {
                    scores = constant(scores);
                }
                let seed = if default { 0 } else { 1 + trial };
                rule.lower_bound(&scores, &statistic, LEVEL, seed).unwrap().value
            }))
        });
        row(&mut table, &format!("**dosimeter clopper-pearson, {}**", name(&rule)), &cells);
    }
    for rule in rules(0.5).into_iter().filter(|rule| *rule != ThresholdRule::Dkw) {
        let statistic = OneRunStatistic::Epsilon { delta: 0.0 };
        let cells = columns.map(|(flat, default)| {
            Some(measure.cell(TRIALS, if flat { 0.0 } else { 1.0 }, |trial| {
                let mut scores = response.canaries(200, &mut Rng::new(820_000 + trial));
                if flat {
                    scores = constant(scores);
                }
                let seed = if default { 0 } else { 1 + trial };
                one_run_bound(&scores, &rule, &statistic, direction, LEVEL, seed).unwrap().value
            }))
        });
        row(&mut table, &format!("**dosimeter one-run, {}**", name(&rule)), &cells);
    }
    table
}

/// Randomised response with one random strength for all canaries: exactly 1-Gaussian in every canary.
fn shared_strength(rng: &mut Rng) -> Scores {
    let right = 1.0 / (1.0 + (-(rng.normal() + 0.5).abs()).exp());
    told(1000, right, 0.0, rng)
}

/// (1, 1e-3)-private in every canary: randomised response, and with probability 0.02 ten bits are told.
fn told_together(rng: &mut Rng) -> Scores {
    told(200, 1.0 / (1.0 + (-1.0_f64).exp()), 0.02, rng)
}

fn told(canaries: usize, right: f64, leak: f64, rng: &mut Rng) -> Scores {
    let leaks = rng.bernoulli(leak);
    let (mut members, mut nonmembers) = (Vec::new(), Vec::new());
    // Canaries are alike, so the first ten stand for any ten.
    for canary in 0..canaries {
        let (member, keep) = (rng.bernoulli(0.5), rng.bernoulli(right));
        let score = match (leaks && canary < 10, member) {
            (true, true) => 2.0,
            (true, false) => -1.0,
            _ => f64::from(u8::from(member == keep)),
        };
        if member { members.push(score) } else { nonmembers.push(score) }
    }
    Scores::new(Design::Runs, members, nonmembers).unwrap()
}

/// One-run bounds where canaries are correlated, at the default seed.
fn correlated(measure: &Measure) -> String {
    let mut table = String::from(
        "\nOne run with canaries that share randomness, at the default seed. One strength for all: 1000 canaries, bits told by \
         randomised response whose strength is one random number, exactly 1-Gaussian in every canary, delta 1e-5, where the truth is 4.377. \
         Told together: 200 canaries, randomised response with epsilon 1, and with probability 0.02 ten bits are told exactly, which is \
         (1, 0.001)-private in every canary. 150 trials, the others' 100.\n\n\
         | estimator | one strength for all | told together |\n|---|---|---|\n",
    );
    const TRIALS: usize = 150;
    let direction = AttackDirection::Both;
    for rule in rules(0.5).into_iter().filter(|rule| *rule != ThresholdRule::Dkw) {
        let bound = |scores: &Scores, delta: f64| {
            let statistic = OneRunStatistic::Epsilon { delta };
            one_run_bound(scores, &rule, &statistic, direction, LEVEL, 0).unwrap().value
        };
        let cells = [
            measure.cell(TRIALS, gaussian_epsilon(1.0, DELTA), |trial| {
                bound(&shared_strength(&mut Rng::new(830_000 + trial)), DELTA)
            }),
            measure.cell(TRIALS, 1.0, |trial| {
                bound(&told_together(&mut Rng::new(840_000 + trial)), 1e-3)
            }),
        ];
        row(&mut table, &format!("**dosimeter one-run, {}**", name(&rule)), &cells.map(Some));
    }
    let gaussian = measure.cell(TRIALS, gaussian_epsilon(1.0, DELTA), |trial| {
        let scores = shared_strength(&mut Rng::new(830_000 + trial));
        let (rule, statistic) = (ThresholdRule::Union, OneRunStatistic::GaussianMu);
        let mu = one_run_bound(&scores, &rule, &statistic, direction, LEVEL, 0).unwrap().value;
        gaussian_epsilon(mu, DELTA)
    });
    row(&mut table, "**dosimeter one-run-gdp, union**", &[Some(gaussian), None]);
    stress_peers(&mut table, &["shared strength", "told together"]);
    table
}

/// True claims refuted at some look.
fn stopping(measure: &Measure) -> String {
    let mut table = String::from(
        "\nLooking again and again: scores without leakage, a trial with and one without the canary in turn. Share of audits in which \
         the true claim of epsilon 0 is refuted at some look. The sequential audit is looked at after every trial up to 1000; \
         the others are for a size fixed before and are looked at after every 50 trials, which they do not allow. 60 audits, the others' 100.\n\n\
         | estimator | refuted at some look |\n|---|---|\n",
    );
    const AUDITS: usize = 60;
    let sequential = measure.cell(AUDITS, 0.0, |trial| {
        let mut rng = Rng::new(850_000 + trial);
        let mut audit = Sequential::new(0.0, AttackDirection::Both, 1.0 - LEVEL).unwrap();
        let refuted = (0..1000).any(|trial| {
            audit.add(rng.normal(), trial % 2 == 0).unwrap();
            audit.refutes(0.0)
        });
        f64::from(u8::from(refuted))
    });
    row(&mut table, "**dosimeter audit --sequential**", &[Some(Cell { mean: None, ..sequential })]);
    for rule in [ThresholdRule::Union, ThresholdRule::Fixed(1.0)] {
        let looked = measure.cell(AUDITS, 0.0, |trial| {
            let mut rng = Rng::new(850_000 + trial);
            let sides: [Vec<f64>; 2] =
                std::array::from_fn(|_| (0..500).map(|_| rng.normal()).collect());
            let statistic = Statistic::Epsilon { delta: 0.0, direction: AttackDirection::Both };
            let refuted = (25..=500).step_by(25).any(|size| {
                let side = |side: usize| sides[side][..size].to_vec();
                let scores = Scores::new(Design::Runs, side(0), side(1)).unwrap();
                rule.lower_bound(&scores, &statistic, LEVEL, 0).unwrap().value > 0.0
            });
            f64::from(u8::from(refuted))
        });
        let label = format!("dosimeter clopper-pearson, {}, for a fixed size", name(&rule));
        row(&mut table, &label, &[Some(Cell { mean: None, ..looked })]);
    }
    stress_peers(&mut table, &["looks"]);
    table
}

/// The rows of `audit_coverage_stress_peers.csv` about these settings.
fn stress_peers(table: &mut String, settings: &[&str]) {
    let path = root().join("docs/data/audit_coverage_stress_peers.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Vec<String>> = text.lines().skip(1).map(fields).collect();
    let mut names: Vec<&String> = Vec::new();
    for one in rows.iter().filter(|one| settings.contains(&one[0].as_str())) {
        if !names.contains(&&one[1]) {
            names.push(&one[1]);
        }
    }
    for peer in names {
        let cells: Vec<Option<Cell>> = settings
            .iter()
            .map(|setting| {
                let found = rows.iter().find(|one| one[0] == *setting && one[1] == *peer)?;
                Some(Cell {
                    share: found[3].parse().unwrap(),
                    mean: (*setting != "looks").then(|| found[4].parse().unwrap()),
                    trials: found[2].parse().unwrap(),
                    wrong_family: false,
                })
            })
            .collect();
        row(table, peer, &cells);
    }
}

fn name(rule: &ThresholdRule) -> String {
    match rule {
        ThresholdRule::Fixed(_) => "fixed threshold".to_owned(),
        other => other.to_string(),
    }
}

/// A row for each estimator of a file, in its order; columns by how the mechanism's name begins.
fn peers(table: &mut String, file: &str, mechanisms: &[&str]) {
    let path = root().join("docs/data").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let mut found: Vec<(String, Vec<Option<Cell>>)> = Vec::new();
    for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
        let fields = fields(line);
        let Some(column) = mechanisms.iter().position(|start| fields[0].starts_with(start)) else {
            panic!("{file}: the mechanism `{}` has no column", fields[0]);
        };
        let family = fields[1].contains("GDP") && fields[0].starts_with("Laplace");
        let cell = Cell {
            share: fields[5].parse().unwrap(),
            mean: fields[6].parse().ok(),
            trials: fields[3].parse().unwrap(),
            wrong_family: family,
        };
        let place = found.iter().position(|(name, _)| *name == fields[1]).unwrap_or_else(|| {
            found.push((fields[1].clone(), vec![None; mechanisms.len()]));
            found.len() - 1
        });
        found[place].1[column] = Some(cell);
    }
    for (name, cells) in &found {
        row(table, name, cells);
    }
}

/// The fields of a line of CSV; quotes only around whole fields.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(letter),
        }
    }
    fields
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_page_shows_the_coverage_of_this_version() {
    let path = root().join("docs/auditing.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let start = page.find(BEGIN).expect("the page has a place for the table") + BEGIN.len();
    let end = start + page[start..].find(END).expect("the place has an end");
    let measure = Measure::new();
    let parts = [many_runs, one_run, seeds, correlated, stopping];
    let table = parts.map(|part| part(&measure)).concat();
    if measure.known.is_none() {
        measure.write();
        std::fs::write(path, format!("{}{table}{}", &page[..start], &page[end..])).unwrap();
        return;
    }
    assert_eq!(
        &page[start..end],
        table,
        "docs/auditing.md is not of this version; see the head of this file for the command"
    );
}
