//! The table of `docs/auditing.md`: the share of "95 % lower bounds" above the truth, ours
//! measured here with fixed seeds, the peers' from `docs/data`. The test holds that the page shows
//! what this version does; `UPDATE_DOCS=1 cargo test --release -p audit --test all coverage_table`
//! writes it anew.

use crate::common;

use audit::one_run::{OneRunStatistic, one_run_bound};
use audit::{AttackDirection, Scores, Statistic, ThresholdRule, gaussian_epsilon};
use common::{Mechanism, Rng, allowed, summary, tally};
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
    /// The mechanism is not of the family that the bound speaks about.
    wrong_family: bool,
}

impl Cell {
    fn measure(trials: usize, truth: f64, bound: impl Fn(u64) -> f64 + Sync) -> Self {
        let (share, mean) = summary(&tally(trials, bound), truth);
        Self { share, mean: Some(mean), trials, wrong_family: false }
    }

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

fn many_runs() -> String {
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
            Some(Cell::measure(300, truth, |trial| {
                let scores = draw(&mechanism, trial);
                rule.lower_bound(&scores, &statistic, LEVEL, trial).unwrap().value
            }))
        });
        row(&mut table, &format!("**dosimeter clopper-pearson, {}**", name(&rule)), &cells);
    }
    for rule in rules(1.0) {
        let cells = RUNS.map(|(mechanism, truth)| {
            let truth = if truth == f64::INFINITY { gaussian_epsilon(1.0, DELTA) } else { truth };
            let cell = Cell::measure(300, truth, |trial| {
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

fn one_run() -> String {
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
            Some(Cell::measure(1000, truth, |trial| {
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
    let table = format!("{}{}", many_runs(), one_run());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{}{table}{}", &page[..start], &page[end..])).unwrap();
        return;
    }
    assert_eq!(
        &page[start..end],
        table,
        "docs/auditing.md is not of this version; see the head of this file for the command"
    );
}
