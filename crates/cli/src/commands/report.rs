//! `report`: one document for the person who signs; without arguments the built-in example.

use super::attack::{WorkArgs, exit_code};
use super::report_example::{self as example, Example};
use super::report_format::{DocumentArgs, document};
use super::trained::train;
use crate::args::{RunArgs, flag, integer, real};
use crate::console::{Console, write_file};
use crate::exit;
use crate::failure::Failure;
use crate::print::plain;
use answers::{Document, Inputs, ReportQuestion};
use audit::Design;
use clap::Args;
use experiments::{Experiment, Outcome};
use report::{Report, Seed};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter report
  dosimeter report run.toml --delta 1e-6 --out report.html
  dosimeter report run.toml scores.csv --delta 1e-5
  dosimeter report run.toml scores.csv --delta 1e-5 --sequential
  dosimeter report ledger.json scores.csv results.csv --delta 1e-5
  dosimeter report ledger.json --delta 1e-5 --out report.pdf --title 'Model 7' --owner 'Team B'
  dosimeter report ledger.json --delta 1e-5 --public --format card --out card.md
  dosimeter report --noise-multiplier 1 --sample-rate 0.01 --steps 1000 --delta 1e-5

Without a run and without scores it trains the built-in example on UCI Adult, with and without a
canary, audits it and reports: a minute or two on two cores, resumable.
")]
pub struct ReportArgs {
    /// Runs (TOML), ledgers (JSON; several are composed in order), scores and results of other
    /// settings (CSV, JSONL, Parquet; told apart by their columns)
    #[arg(value_name = "RUN.toml|LEDGER.json|SCORES.csv|RESULTS.csv")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    /// The delta of every epsilon; well below 1/n [default of the example: 1e-5]
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true)]
    delta: Option<f64>,
    /// Confidence of what is measured
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value = "0.95")]
    confidence: f64,
    /// How the scores came about: `runs` or `one-run` [default: what the file says, else runs]
    #[arg(long, value_name = "DESIGN")]
    design: Option<Design>,
    /// Scores are trials in their order, stopped at any time: the report draws the evidence over time
    #[arg(long)]
    sequential: bool,
    /// Audit scores of another run than the described one
    #[arg(long)]
    other_run: bool,
    /// Trainings with the canary in the built-in example, and as many without [default: 4000]
    #[arg(long, value_name = "N", value_parser = integer)]
    trials: Option<u64>,
    /// Leave out what is computed from records without privacy
    #[arg(long)]
    public: bool,
    /// Inputs are gone when the report is read: name no command that makes it again
    #[arg(long, hide = true)]
    no_command: bool,
    #[command(flatten)]
    document: DocumentArgs,
}

/// Where the example keeps its work.
const WORK: &str = ".dosimeter";

pub(super) fn run(args: &ReportArgs, console: &mut Console) -> Result<u8, Failure> {
    let (format, out) = args.document.settled()?;
    let mut question = args.question();
    question.cover()?;
    let inputs = if args.files.is_empty() && args.run.is_empty() {
        question.delta = question.delta.or(Some(example::DELTA));
        match built_in(args, console)? {
            Ok(inputs) => inputs,
            Err(code) => return Ok(code),
        }
    } else if args.trials.is_some() {
        return Err(Failure::bad_input("--trials is the size of the built-in example")
            .hint("leave it out, or leave out the files and the run"));
    } else {
        given(args, &out)?
    };
    if inputs.scores() > 0 && !args.public {
        console.note(&format!("auditing {} scores and drawing the curves", inputs.scores()));
    }
    let report = answers::report(&question, inputs)?;
    let bytes = document(&report, format, console)?;
    if out.as_os_str() == "-" {
        console.bytes(&bytes)?;
    } else {
        write_file(&out, &bytes)?;
        console.answer(&ending(&report, &out))?;
    }
    Ok(report.exit_code())
}

impl ReportArgs {
    fn question(&self) -> ReportQuestion {
        ReportQuestion {
            run: self.run.description().into(),
            delta: self.delta,
            confidence: Some(self.confidence),
            design: self.design,
            sequential: self.sequential,
            other_run: self.other_run,
            public: self.public,
            title: self.document.title.clone(),
            owner: self.document.owner.clone(),
            date: self.document.date.clone(),
            command: (!self.no_command).then(|| command(self)),
        }
    }
}

/// The verdict in words and the path, last.
fn ending(report: &Report, out: &Path) -> String {
    let verdict = &report.verdict;
    format!(
        "{}. {}.\n{}\nreport: {}\n",
        verdict.status.badge(),
        verdict.headline,
        crate::print::wrap(&verdict.reason, "", 0, 96),
        out.display()
    )
}

/// Plays the example (or finds it played) and takes its ledger and scores; an exit code where it is
/// not finished.
fn built_in(args: &ReportArgs, console: &mut Console) -> Result<Result<Inputs, u8>, Failure> {
    let trials = args.trials.unwrap_or(example::TRIALS);
    let example = Example::new()?;
    let game = example.game(trials).map_err(|error| Failure::bad_input(error.to_string()))?;
    // The folder carries the plan's name, so that another version's example is not in the way.
    let folder = Path::new(WORK).join(format!("example-{}", &game.plan().digest()[..12]));
    std::fs::create_dir_all(&folder).map_err(|error| Failure::unwritable(&folder, &error))?;
    write_file(&folder.join("training.toml"), example::TRAINING)?;
    console.note("training a small network on UCI Adult with DP-SGD, for its ledger");
    if !example.train(&folder.join("model"), &console.stop_flag())? {
        console.hint("run the same command again to resume");
        return Ok(Err(exit::INTERRUPTED));
    }
    console.note(&format!(
        "attacking it: {trials} trainings with a canary and as many without, a minute or two on two \
         cores"
    ));
    let path = folder.join("scores.csv");
    let work = WorkArgs { out: None, threads: None, shard: None, force: false };
    let outcome = train(&game, &path, &work, console)?;
    if !matches!(outcome, Outcome::Complete { .. }) {
        console.hint("run the same command again to resume");
        return Ok(Err(exit_code(&outcome)));
    }
    let mut inputs = Inputs::default();
    inputs.seeds.push(Seed { purpose: "training and attack".into(), seed: example.seed() });
    inputs.notes.push(format!("The scores are those of: {}", example::attack_command(trials)));
    inputs.notes.push(
        "Every score is a training of its own, with its own batches and noise, on the same \
         records. The canary is a gradient of the clip norm along one coordinate of the model that \
         hardly moves otherwise; the attacker sees the first and the last iterate. Such a gradient \
         is stronger than a real record\u{2019}s, so what is measured is about the mechanism and \
         not about one of Adult\u{2019}s people."
            .into(),
    );
    inputs.add(&folder.join("model").join("ledger.json"), "ledger.json")?;
    inputs.add(&path, "scores.csv")?;
    Ok(Ok(inputs))
}

/// What files and flags describe.
fn given(args: &ReportArgs, out: &Path) -> Result<Inputs, Failure> {
    let mut inputs = Inputs::default();
    for path in &args.files {
        if same_file(path, out) {
            return Err(Failure::bad_input(format!(
                "{} is an input and would be overwritten; choose another --out",
                path.display()
            )));
        }
        inputs.add(path, &path.display().to_string())?;
    }
    Ok(inputs)
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// The words of the command line that makes the same report.
fn words(args: &ReportArgs) -> Vec<String> {
    let mut words: Vec<String> = vec!["dosimeter".into(), "report".into()];
    words.extend(args.files.iter().map(|path| path.display().to_string()));
    words.extend(args.run.words());
    words.extend(flag("trials", args.trials.map(|trials| trials.to_string())));
    words.extend(flag("delta", args.delta.map(plain)));
    words.extend(flag("confidence", (args.confidence != 0.95).then(|| plain(args.confidence))));
    words.extend(flag("design", args.design.map(|design| design.to_string())));
    for (name, value) in args.document.flags() {
        words.extend(flag(name, value));
    }
    for (name, given) in [
        ("--sequential", args.sequential),
        ("--other-run", args.other_run),
        ("--public", args.public),
    ] {
        if given {
            words.push(name.into());
        }
    }
    words
}

/// The command line that makes the same report.
fn command(args: &ReportArgs) -> String {
    let words: Vec<String> = words(args).iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        args: ReportArgs,
    }

    /// Every flag there is, although no run has all of them.
    const GIVEN: &str = "report run.toml scores.csv --noise-multiplier 1.1 --sample-rate 1e-3 \
        --dataset-size 50000 --batch-size 256 --steps 1000 --epochs 2.5 --clip-norm 0.3 \
        --sampling cyclic-poisson --adjacency zero-out --group-size 3 --unit unit --permutation kept \
        --replacement --max-batch-size 300 --cycle-length 7 --uses-per-epoch 2 --count-noise 4.5 \
        --stopped on-output --max-steps 2000 --trials 12 --delta 1e-7 --confidence 0.99 --design one-run \
        --sequential --other-run --public --title title --owner owner --date 2026-11-17 --format md \
        --out a.md";

    #[test]
    fn the_command_is_read_back_as_the_same_question() {
        let mut given = Only::parse_from(GIVEN.split_whitespace()).args;
        given.run.unit = Some("-one user's $data".into());
        given.document.title = Some("Model \"7\" & more".into());
        let all = words(&given);
        // None is forgotten, also none that is added later.
        for flag in Only::command().get_arguments().filter(|flag| !flag.is_hide_set()) {
            if let Some(long) = flag.get_long().filter(|long| !["help", "version"].contains(long)) {
                let named = |word: &String| {
                    word.strip_prefix("--").is_some_and(|word| word.split('=').next() == Some(long))
                };
                assert!(all.iter().any(named), "--{long} is missing: {all:?}");
            }
        }
        let again = Only::parse_from(&all[1..]).args;
        assert_eq!(again.run.description(), given.run.description());
        // All other flags, as they are written.
        assert_eq!(format!("{again:?}"), format!("{given:?}"));
        // A shell reads the same words.
        let line = format!("printf '%s\\n' {}", command(&given));
        let said = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert_eq!(said.lines().collect::<Vec<_>>(), all);
    }
}
