//! Audits, beside the tools that people use for them. Their packages need versions of NumPy and
//! scikit-learn of their own, so they have an environment of their own.

use super::bars::Bar;
use super::format::{answer, ratio, seconds, three_digits};
use super::measure::{Bench, Measured, install, take, virtual_environment};
use super::page::Page;
use super::tightness::tightness;
use crate::process::root;
use anyhow::Result;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installed in order; the second without its dependencies, which name TensorFlow and a NumPy of
/// 2021 although the one module that is measured needs neither (scikit-learn 1.8 took away a
/// function that it uses).
const INSTALLS: &[&[&str]] = &[
    &["jax-privacy==2.0.0", "privacy-estimates==0.1.0.post1"],
    &["--no-deps", "tensorflow-empirical-privacy==0.1.0"],
    &["scikit-learn<1.8", "immutabledict"],
];

pub fn audits(bench: &Bench, page: &mut Page) {
    page.heading(
        "Audits",
        "Scores N(1, 1) of members against N(0, 1) of non-members, delta 1e-5, 95 % confidence. \
         Times are CPU seconds over all threads. jax-privacy: `CanaryScoreAuditor(…)\
         .epsilon_clopper_pearson`, its CSV read by pandas. \
         Dosimeter: the whole process, its start included, from the file to the JSON of a `clopper-pearson` bound over \
         all thresholds, with AUROC, power, advantage and the hashes of scores and plan, which the \
         other column does not have.",
    );
    let folder = root().join("target/bench/scores");
    if let Err(error) = std::fs::create_dir_all(&folder) {
        page.line(format!("Not measured: {error}"));
        return;
    }
    let peers = Peers::prepare();
    page.line(format!("Peers of this section: {}.\n", peers.versions()));
    files(bench, page, &peers, &folder);
    estimators(bench, page, &peers, &folder);
    together(bench, page, &folder);
    tightness(bench, page, &peers);
}

/// File in, JSON out.
fn files(bench: &Bench, page: &mut Page, peers: &Peers, folder: &Path) {
    page.line("| file | scores per side | Dosimeter, whole process | wall | memory | jax-privacy, without import | with import | memory | faster without import | with |");
    page.line("|---|---|---|---|---|---|---|---|---|---|");
    for count in [100_000, 1_000_000] {
        write_scores(bench, folder, count);
        let (inside, outside, table) = names(folder, count);
        let from_npy = ["--members", &inside, "--nonmembers", &outside].map(str::to_owned);
        for (kind, ours, theirs) in [
            (".npy", from_npy.to_vec(), peers.take("jax-npy", &[&inside, &outside])),
            ("CSV", vec![table.clone()], peers.take("jax-csv", &[&table])),
        ] {
            let mut arguments = vec!["audit".to_owned()];
            arguments.extend(ours);
            arguments.extend(
                ["--design", "runs", "--delta", "1e-5", "--format", "json"].map(str::to_owned),
            );
            let mine = bench.large(&arguments);
            let with = theirs.seconds().zip(theirs.number("import_cpu_s")).map(|(a, b)| a + b);
            let times = |slow: Option<f64>| slow.zip(mine.seconds()).map(|(a, b)| a / b);
            page.line(format!(
                "| {kind} | {count} | {} | {} | {} | {} | {} | {} | {} | {} |",
                text(mine.seconds(), seconds),
                text(mine.number("wall_s"), seconds),
                megabytes(&mine),
                text(theirs.seconds(), seconds),
                text(with, seconds),
                megabytes(&theirs),
                text(times(theirs.seconds()), ratio),
                text(times(with), ratio),
            ));
            if count == 1_000_000 {
                page.bar(Bar::at_least(
                    format!(
                        "audit from {kind}, 1e6 per side: at least 5× jax-privacy without its import"
                    ),
                    5.0,
                    times(theirs.seconds()),
                ));
                page.bar(Bar::at_least(
                    format!(
                        "audit from {kind}, 1e6 per side: at least 20× jax-privacy with its import"
                    ),
                    20.0,
                    times(with),
                ));
            }
        }
    }
}

/// One estimator each, on scores in memory.
fn estimators(bench: &Bench, page: &mut Page, peers: &Peers, folder: &Path) {
    page.line("\nSingle estimators on scores in memory, sorting included. The numbers differ where the bounds do: tensorflow-empirical-privacy takes the largest over all thresholds without paying for it, jax-privacy guesses on one side only.\n");
    page.line("| estimator | scores | Dosimeter | | peer | | | faster |");
    page.line("|---|---|---|---|---|---|---|---|");
    // 1e5 canaries are 5e4 per side.
    let canaries = 100_000;
    write_scores(bench, folder, canaries / 2);
    write_scores(bench, folder, 1000);
    let one_run = probe(bench, &["one-run", &canaries.to_string()]);
    let half = names(folder, canaries / 2);
    let few = names(folder, 1000);
    let fixed = probe(bench, &["fixed", "1000"]);
    let part = |measured: &Measured, key: &str, field: &str| match measured {
        Measured::Answer(object) => object[key][field].as_f64(),
        Measured::Nothing(_) => None,
    };
    for (name, key, peer, bar) in [
        ("one-run, any mechanism", "one-run", "epsilon_one_run", true),
        ("one-run, Gaussian family", "one-run-gdp", "epsilon_one_run_fdp", false),
    ] {
        let theirs = peers.take("jax-call", &[peer, &half.0, &half.1]);
        let (value, cost) = (part(&one_run, key, "value"), part(&one_run, key, "cpu_s"));
        let times = theirs.seconds().zip(cost).map(|(slow, fast)| slow / fast);
        row(page, name, "1e5 canaries", (value, cost), "jax-privacy", &theirs, times);
        if bar {
            let promise = "one-run audit of 1e5 canaries: at least 200× jax-privacy";
            page.bar(Bar::at_least(promise, 200.0, times));
        }
    }
    let value = |key: &str| match &fixed {
        Measured::Answer(object) => object[key].as_f64(),
        Measured::Nothing(_) => None,
    };
    for (name, key, method) in [
        ("Clopper-Pearson, one threshold", "clopper-pearson", "beta"),
        ("joint credible interval, one threshold", "bayes", "joint-beta"),
    ] {
        let theirs = peers.take("estimates", &[method, &few.0, &few.1]);
        let cost = part(&fixed, "seconds", key);
        let times = theirs.seconds().zip(cost).map(|(slow, fast)| slow / fast);
        row(page, name, "1e3 per side", (value(key), cost), "privacy-estimates", &theirs, times);
    }
    let large = names(folder, 100_000);
    let all = probe(bench, &["union", "100000"]);
    let theirs = peers.take("tensorflow", &["CLOPPER_PEARSON", &large.0, &large.1]);
    let (mine, cost) = (all.number("value"), all.seconds());
    let times = theirs.seconds().zip(cost).map(|(slow, fast)| slow / fast);
    let name = "Clopper-Pearson, all thresholds";
    row(page, name, "1e5 per side", (mine, cost), "tensorflow-empirical-privacy", &theirs, times);
}

fn row(
    page: &mut Page,
    name: &str,
    size: &str,
    mine: (Option<f64>, Option<f64>),
    peer: &str,
    theirs: &Measured,
    times: Option<f64>,
) {
    page.line(format!(
        "| {name} | {size} | {} | {} | {peer} | {} | {} | {} |",
        text(mine.0, answer),
        text(mine.1, seconds),
        text(theirs.number("value"), answer),
        text(theirs.seconds(), seconds),
        text(times, ratio)
    ));
}

/// Everything at once, and memory.
fn together(bench: &Bench, page: &mut Page, folder: &Path) {
    page.line("\nEverything together, whole processes from .npy to JSON (`--method all`, bootstrap apart; the DP-SGD families with sample rate 0.1 and 50 steps), and the most memory.\n");
    page.line("| command | scores per side | CPU | wall | memory |");
    page.line("|---|---|---|---|---|");
    let mut sum = Some(0.0);
    let mut most: Option<f64> = None;
    let line = |page: &mut Page, name: &str, count: usize, extra: &[&str]| {
        let (inside, outside, _) = names(folder, count);
        let mut arguments: Vec<String> =
            ["audit", "--members", &inside, "--nonmembers", &outside, "--format", "json"]
                .map(str::to_owned)
                .to_vec();
        arguments.extend(extra.iter().map(|&word| word.to_owned()));
        let measured = bench.large(&arguments);
        page.line(format!(
            "| {name} | {count} | {} | {} | {} |",
            text(measured.seconds(), seconds),
            text(measured.number("wall_s"), seconds),
            megabytes(&measured)
        ));
        measured
    };
    let runs = [
        "--design",
        "runs",
        "--method",
        "all",
        "--delta",
        "1e-5",
        "--sample-rate",
        "0.1",
        "--steps",
        "50",
    ];
    let canaries = ["--design", "one-run", "--method", "all", "--delta", "1e-5"];
    for (name, extra) in
        [("all methods for runs", &runs[..]), ("all methods for one run", &canaries)]
    {
        let measured = line(page, name, 1_000_000, extra);
        sum = sum.zip(measured.seconds()).map(|(sum, one)| sum + one);
        most = most.into_iter().chain(measured.number("peak_mb")).reduce(f64::max);
    }
    page.bar(Bar::at_least(
        "all estimators on 1e6 per side: 1 s over the CPU time taken",
        1.0,
        sum.map(|sum| 1.0 / sum),
    ));
    page.bar(Bar::megabytes_below("all estimators on 1e6 per side: below 200 MB", 200.0, most));
    write_scores(bench, folder, 10_000_000);
    let measured =
        line(page, "Clopper-Pearson", 10_000_000, &["--design", "runs", "--delta", "1e-5"]);
    let promise = "audit of 1e7 per side: below 500 MB";
    page.bar(Bar::megabytes_below(promise, 500.0, measured.number("peak_mb")));
    let _ = std::fs::remove_dir_all(folder);
}

fn probe(bench: &Bench, arguments: &[&str]) -> Measured {
    let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
    bench.example("audit_probe", &arguments)
}

fn write_scores(bench: &Bench, folder: &Path, count: usize) {
    let folder = folder.display().to_string();
    if let Measured::Nothing(why) = probe(bench, &["write", &count.to_string(), &folder]) {
        eprintln!("scores could not be written: {why}");
    }
}

fn names(folder: &Path, count: usize) -> (String, String, String) {
    let name = |start: &str, end: &str| {
        folder.join(format!("{start}_{count}.{end}")).display().to_string()
    };
    (name("in", "npy"), name("out", "npy"), name("scores", "csv"))
}

fn text(value: Option<f64>, write: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "—".to_owned(), write)
}

fn megabytes(measured: &Measured) -> String {
    text(measured.number("peak_mb"), |value| format!("{} MB", three_digits(value)))
}

/// The interpreter with the auditing packages, where they could be installed.
pub(super) struct Peers(Option<PathBuf>);

impl Peers {
    pub(super) fn prepare() -> Self {
        match environment() {
            Ok(python) => Self(Some(python)),
            Err(error) => {
                eprintln!("peers of audits are left out: {error:#}");
                Self(None)
            }
        }
    }

    pub(super) fn take(&self, what: &str, arguments: &[&str]) -> Measured {
        let Some(python) = &self.0 else {
            return Measured::Nothing("not installed".to_owned());
        };
        let mut command = Command::new(python);
        command.arg(root().join("xtask/bench/audit_peers.py")).arg(what).args(arguments);
        take(command, &format!("{what} {}", arguments.join(" ")))
    }

    pub(super) fn versions(&self) -> String {
        let Measured::Answer(object) = self.take("versions", &[]) else {
            return "none could be installed".to_owned();
        };
        let Value::Object(versions) = *object else { return String::new() };
        let named: Vec<String> = versions
            .iter()
            .filter(|(name, _)| *name != "peak_mb")
            .map(|(name, version)| {
                format!("{name} {}", version.as_str().unwrap_or("not installed"))
            })
            .collect();
        named.join(", ")
    }
}

fn environment() -> Result<PathBuf> {
    let python = virtual_environment("audit-venv")?;
    for packages in INSTALLS {
        if !install(&python, packages)? {
            eprintln!("{} cannot be installed", packages.join(" "));
        }
    }
    Ok(python)
}
