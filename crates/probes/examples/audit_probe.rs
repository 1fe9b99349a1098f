//! Times the estimators on synthetic Gaussian scores and prints one JSON object:
//! `cargo run --release -p probes --example audit_probe -- all 1000000`; or writes such scores as
//! .npy and CSV: `… -- write 1000000 FOLDER`; or times the one-run bounds: `… -- one-run 100000`.
#![allow(clippy::print_stdout)]

use audit::one_run::{OneRunStatistic, one_run_bound};
use audit::{
    AttackDirection, AuditError, Design, Family, Scores, Statistic, ThresholdRule, bayes,
    family_points, gaussian_epsilon, grid, hash, quality,
};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

/// Independent N(mean, 1) in no order: sorted input would flatter the sort.
fn normals(count: usize, mean: f64, seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed;
    (0..count).map(move |_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        let uniform = ((word >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        mean + numerics::special::inverse_normal_cdf(uniform)
    })
}

fn write(count: usize, folder: &Path) -> std::io::Result<()> {
    let mut table = BufWriter::new(File::create(folder.join(format!("scores_{count}.csv")))?);
    writeln!(table, "score,member")?;
    for (name, mean, member) in [("in", 1.0, 1), ("out", 0.0, 0)] {
        let scores: Vec<f64> = normals(count, mean, 1 + member).collect();
        let path = folder.join(format!("{name}_{count}.npy"));
        std::fs::write(path, formats::npy::doubles(&[count], &scores))?;
        for score in scores {
            writeln!(table, "{score},{member}")?;
        }
    }
    table.flush()
}

/// CPU time of this thread where the kernel tells it, wall time elsewhere.
struct Cpu(Option<u64>, Instant);

impl Cpu {
    fn now() -> Self {
        Self(nanoseconds(), Instant::now())
    }

    fn seconds(&self) -> f64 {
        match (self.0, nanoseconds()) {
            (Some(before), Some(after)) if after > before => (after - before) as f64 * 1e-9,
            _ => self.1.elapsed().as_secs_f64(),
        }
    }
}

fn nanoseconds() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

struct Clock(Map<String, Value>);

impl Clock {
    fn time<T>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<T, AuditError>,
    ) -> Result<T, AuditError> {
        let start = Cpu::now();
        let answer = black_box(work()?);
        self.0.insert(name.to_owned(), start.seconds().into());
        Ok(answer)
    }

    /// All together.
    fn total(&self) -> f64 {
        self.0.values().filter_map(Value::as_f64).sum()
    }
}

fn scores(count: usize) -> Result<Scores, AuditError> {
    Scores::new(Design::Runs, normals(count, 1.0, 2).collect(), normals(count, 0.0, 1).collect())
}

/// Every estimator and every rule, bootstrap apart.
fn all(count: usize) -> Result<Value, AuditError> {
    let (members, nonmembers) =
        (normals(count, 1.0, 2).collect::<Vec<_>>(), normals(count, 0.0, 1).collect::<Vec<_>>());
    let mut clock = Clock(Map::new());
    let scores = clock.time("sort", || Scores::new(Design::Runs, members, nonmembers))?;
    let epsilon = Statistic::Epsilon { delta: 1e-5, direction: AttackDirection::Both };
    for rule in [
        ThresholdRule::Union,
        ThresholdRule::Dkw,
        ThresholdRule::Holdout,
        ThresholdRule::KFold,
        ThresholdRule::Fixed(1.0),
    ] {
        clock.time(&format!("clopper-pearson {rule}"), || {
            rule.lower_bound(&scores, &epsilon, 0.05, 0)
        })?;
    }
    let union = ThresholdRule::Union;
    clock.time("gdp", || union.lower_bound(&scores, &Statistic::GaussianMu, 0.05, 0))?;
    let composition = Family::Composition { sample_rate: 0.1, steps: 50 };
    let last_iterate = Family::LastIterate { sample_rate: 0.1, steps: 50 };
    for (name, family) in
        [("composition", composition.clone()), ("last-iterate", last_iterate.clone())]
    {
        clock.time(name, || {
            let points = family_points(&union, &scores, 0.05, 0)?;
            let noise = family.least_violated_noise(&points)?;
            noise.map_or(Ok(0.0), |noise| family.epsilon(noise, 1e-5))
        })?;
    }
    clock.time("grid", || grid::grid_estimate(&scores, &composition, 1e-5, 10))?;
    let errors = scores.errors_at(1.0);
    clock.time("bayes", || {
        Ok(bayes::credible_epsilon(&errors, 1e-5, 0.95, AttackDirection::Both))
    })?;
    for (name, statistic) in [
        ("one-run", OneRunStatistic::Epsilon { delta: 1e-5 }),
        ("one-run-gdp", OneRunStatistic::GaussianMu),
    ] {
        clock.time(name, || {
            one_run_bound(&scores, &union, &statistic, AttackDirection::Both, 0.05, 0)
        })?;
    }
    clock.time("quality", || {
        Ok((
            quality::auroc(&scores, 0.95),
            quality::advantage(&scores, 0.95),
            quality::tpr_at(&scores, 0.001, 0.95),
        ))
    })?;
    clock.time("hash", || Ok(hash::scores(&scores)))?;
    Ok(json!({ "scores_per_side": count, "cpu_s": clock.total(), "seconds": clock.0 }))
}

/// Each one-run bound on `count` canaries, copying and sorting included. The kernel counts a thread's time some hundred times per second, so a measurement is
/// many calls.
fn one_run(count: usize) -> Result<Value, AuditError> {
    const CALLS: usize = 100;
    let members: Vec<f64> = normals(count / 2, 1.0, 2).collect();
    let nonmembers: Vec<f64> = normals(count / 2, 0.0, 1).collect();
    let mut answers = Map::new();
    for (name, statistic) in [
        ("one-run", OneRunStatistic::Epsilon { delta: 1e-5 }),
        ("one-run-gdp", OneRunStatistic::GaussianMu),
    ] {
        let mut seconds = Vec::new();
        let mut value = 0.0;
        for _ in 0..5 {
            let start = Cpu::now();
            for _ in 0..CALLS {
                let scores = Scores::new(
                    Design::Runs,
                    black_box(members.clone()),
                    black_box(nonmembers.clone()),
                )?;
                value = one_run_bound(
                    &scores,
                    &ThresholdRule::Union,
                    &statistic,
                    AttackDirection::Both,
                    0.05,
                    0,
                )?
                .value;
            }
            seconds.push(start.seconds() / CALLS as f64);
        }
        seconds.sort_by(f64::total_cmp);
        if name == "one-run-gdp" {
            value = gaussian_epsilon(value, 1e-5);
        }
        answers.insert(name.to_owned(), json!({ "value": value, "cpu_s": seconds[2] }));
    }
    Ok(Value::Object(answers))
}

/// One call at a threshold fixed beforehand, and one credible interval, on sorted scores.
fn fixed(count: usize) -> Result<Value, AuditError> {
    let scores = scores(count)?;
    let epsilon = Statistic::Epsilon { delta: 1e-5, direction: AttackDirection::Both };
    let mut clock = Clock(Map::new());
    let bound = clock.time("clopper-pearson", || {
        ThresholdRule::Fixed(1.0).lower_bound(&scores, &epsilon, 0.05, 0)
    })?;
    let credible = clock.time("bayes", || {
        let errors = scores.errors_at(1.0);
        Ok(bayes::credible_epsilon(&errors, 1e-5, 0.95, AttackDirection::Both))
    })?;
    Ok(json!({ "clopper-pearson": bound.value, "bayes": credible.lower, "seconds": clock.0 }))
}

/// The bound over all thresholds, sorting included.
fn union(count: usize) -> Result<Value, AuditError> {
    let (members, nonmembers) =
        (normals(count, 1.0, 2).collect::<Vec<_>>(), normals(count, 0.0, 1).collect::<Vec<_>>());
    let epsilon = Statistic::Epsilon { delta: 0.0, direction: AttackDirection::Both };
    let start = Cpu::now();
    let scores = Scores::new(Design::Runs, members, nonmembers)?;
    let bound = ThresholdRule::Union.lower_bound(&scores, &epsilon, 0.05, 0)?;
    Ok(json!({ "value": bound.value, "cpu_s": start.seconds() }))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let count = words.get(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let answer = match words.first().map(String::as_str) {
        Some("write") => {
            write(count, Path::new(words.get(2).map_or(".", String::as_str)))?;
            json!({ "written": count })
        }
        Some("one-run") => one_run(count)?,
        Some("fixed") => fixed(count)?,
        Some("union") => union(count)?,
        _ => all(count)?,
    };
    println!("{answer}");
    Ok(())
}
