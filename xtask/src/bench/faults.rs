//! Mistakes in trainings, found through the command line alone: `plan` says how many trainings refute a mistake,
//! `attack gradient` makes as many, and `audit` ends with exit code 3.

use super::bars::Bar;
use super::measure::Bench;
use super::page::Page;
use crate::process::root;
use anyhow::{Context, Result, bail};
use formats::csv::row;
use serde_json::Value;
use std::fs::{create_dir_all, remove_dir_all, write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Seeds for each training.
const SEEDS: u64 = 20;
/// The claimed run.
const NOISE: f64 = 0.8;
const STEPS: u64 = 50;

/// What is really trained, and the attack that the plan assumes.
struct Training {
    name: &'static str,
    noise: f64,
    steps: u64,
    fault: Option<&'static str>,
    assumed: &'static [&'static str],
    assumed_in_words: &'static str,
    /// That the plan is asked for.
    power: &'static str,
}

const HALF: &[&str] = &["-s", "0.4", "-q", "0.1", "-T", "50"];
const TWICE: &[&str] = &["-s", "0.8", "-q", "0.1", "-T", "100"];

fn trainings() -> Vec<Training> {
    let plain = Training {
        name: "nothing wrong",
        noise: NOISE,
        steps: STEPS,
        fault: None,
        assumed: TWICE,
        assumed_in_words: "as for twice the steps",
        power: "0.995",
    };
    let half = "the best attack at noise 0.4";
    let fault = |name, fault| Training {
        name,
        fault: Some(fault),
        assumed: HALF,
        assumed_in_words: half,
        ..plain
    };
    vec![
        fault("half the noise", "half-noise"),
        Training { name: "no noise", noise: 1e-3, assumed: HALF, assumed_in_words: half, ..plain },
        fault("no clipping (gradients of four clip norms)", "no-clipping"),
        Training {
            name: "the same batch at every step",
            fault: Some("repeated-batch"),
            // One coin decides about all steps: a tenth of the members are far above everybody else.
            assumed: &["--attack-fpr", "1e-4", "--attack-tpr", "0.1"],
            assumed_in_words: "TPR 0.1 at FPR 1e-4",
            // More takes a plan of more than two seconds.
            power: "0.99",
            ..plain
        },
        Training {
            name: "twice the steps",
            steps: 2 * STEPS,
            assumed_in_words: "the best attack on 100 steps",
            ..plain
        },
        plain,
    ]
}

pub fn faults(bench: &Bench, page: &mut Page) -> Result<()> {
    page.heading(
        "Mistakes are found within the plan",
        &format!(
            "The claim is DP-SGD at noise {NOISE}, sample rate 0.1 and {STEPS} steps, a linear classifier on 60 points; the gradients of the other records are zero. \
             `dosimeter plan --claim run.toml --delta 1e-5 --method composition --power …` with the assumed attack says how many \
             trainings per side; `attack gradient run.toml --rest zero --observe all` makes them, with the mistake planted; `audit --claim \
             run.toml --method composition` has to end with exit code 3, or, where nothing is wrong, with 0. {SEEDS} seeds each."
        ),
    );
    let folder = root().join("target/bench/faults");
    create_dir_all(&folder)?;
    let place = Place { folder, dosimeter: bench.program().to_owned() };
    place.write_run("run.toml", NOISE, STEPS)?;
    place.write_points()?;
    page.line("| what was done | assumed attack | power | planned per side | refuted |");
    page.line("|---|---|--:|--:|--:|");
    let (mut found, mut alarms) = (SEEDS, 0);
    for training in trainings() {
        let planned = place.plan(training.assumed, training.power)?;
        place.write_run("trained.toml", training.noise, training.steps)?;
        let mut refuted = 0;
        for seed in 0..SEEDS {
            refuted += u64::from(place.refuted(&training, planned, seed)?);
        }
        eprintln!("{}: {refuted} of {SEEDS} with {planned} per side", training.name);
        page.line(format!(
            "| {} | {} | {} | {planned} | {refuted} of {SEEDS} |",
            training.name, training.assumed_in_words, training.power
        ));
        match training.name {
            "nothing wrong" => alarms = refuted,
            _ => found = found.min(refuted),
        }
    }
    let promise = "mistakes in trainings: refuted in all of 20 seeds, the least of five mistakes";
    page.bar(Bar::at_least(promise, SEEDS as f64, Some(found as f64)).plain());
    let promise = "a healthy training: refuted in at most 1 of 20 seeds";
    page.bar(Bar::at_most(promise, 1.0, Some(alarms as f64)).plain());
    remove_dir_all(&place.folder)?;
    Ok(())
}

struct Place {
    folder: PathBuf,
    dosimeter: PathBuf,
}

impl Place {
    fn write_run(&self, name: &str, noise: f64, steps: u64) -> Result<()> {
        let text = format!(
            "[run]\nnoise_multiplier = {noise}\nsample_rate = 0.1\nsteps = {steps}\n\
             [data]\npath = \"points.csv\"\nclasses = [\"in\", \"out\"]\ntest = \"points.csv\"\n\
             [model]\nkind = \"softmax\"\n[optimizer]\nkind = \"sgd\"\nlearning_rate = 0.5\n"
        );
        Ok(write(self.folder.join(name), text)?)
    }

    /// Two classes that a line separates.
    fn write_points(&self) -> Result<()> {
        let mut table = String::from("x,y,class\n");
        for i in 0..60 {
            let (a, b) = ((f64::from(i) * 0.7).sin(), (f64::from(i) * 1.3).cos());
            let class = if a + 0.3 * b > 0.1 { "in" } else { "out" };
            row(&mut table, &[&format_args!("{a:.4}"), &format_args!("{b:.4}"), &class]);
        }
        Ok(write(self.folder.join("points.csv"), table)?)
    }

    /// Standard output and the exit code.
    fn ask(&self, arguments: &[&str]) -> Result<(Vec<u8>, i32)> {
        let mut command = Command::new(&self.dosimeter);
        command.args(arguments).current_dir(&self.folder).stderr(Stdio::piped());
        let output = command.output().context("dosimeter does not start")?;
        let code = output.status.code().unwrap_or(-1);
        if code != 0 && code != 3 {
            bail!("dosimeter {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok((output.stdout, code))
    }

    fn plan(&self, assumed: &[&str], power: &str) -> Result<u64> {
        let question = [
            "plan",
            "--claim",
            "run.toml",
            "--delta",
            "1e-5",
            "--method",
            "composition",
            "--power",
            power,
            "--format",
            "json",
        ];
        let (answer, _) = self.ask(&[&question[..], assumed].concat())?;
        let answer: Value = serde_json::from_slice(&answer)?;
        answer["needed"]["runs_per_side"].as_u64().context("a plan without a number")
    }

    fn refuted(&self, training: &Training, planned: u64, seed: u64) -> Result<bool> {
        let (trials, seed) = (planned.to_string(), seed.to_string());
        let mut game = vec![
            "attack",
            "gradient",
            "trained.toml",
            "--device",
            "cpu",
            "--rest",
            "zero",
            "--observe",
            "all",
            "--trials",
            &trials,
            "--seed",
            &seed,
            "--out",
            "scores.csv",
            "--force",
        ];
        if let Some(fault) = training.fault {
            game.extend(["--fault", fault]);
        }
        self.ask(&game)?;
        // What was trained is another run than the claim where the mistake is in the run itself.
        let question = [
            "audit",
            "scores.csv",
            "--delta",
            "1e-5",
            "--claim",
            "run.toml",
            "--other-run",
            "--method",
            "composition",
            "--primary",
            "composition",
        ];
        let (_, code) = self.ask(&question)?;
        let _ = remove(&self.folder.join("scores.csv"));
        Ok(code == 3)
    }
}

/// Scores, and what lies beside them.
fn remove(scores: &Path) -> std::io::Result<()> {
    std::fs::remove_file(scores)?;
    remove_dir_all(scores.with_extension("csv.work"))
}
