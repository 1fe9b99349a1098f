//! `report`: one document for the person who signs; without arguments the built-in example.

use super::attack::{WorkArgs, exit_code};
use super::report_format::{DocumentArgs, document};
use super::trained::train;
use crate::args::{RunArgs, integer, read_files, real};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use crate::print::plain;
use crate::reporting::{Subject, assemble, example, ledger};
use audit::{Design, Scores, Table};
use clap::Args;
use experiments::{Experiment, Outcome};
use report::{Input, Origin, Provenance, Report, Seed, Status};
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use vocabulary::{Resolved, RunDescription};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter report
  dosimeter report run.toml --delta 1e-6 --out report.html
  dosimeter report run.toml scores.csv --delta 1e-5
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
    #[arg(long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true)]
    delta: Option<f64>,
    /// Confidence of what is measured
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value = "0.95")]
    confidence: f64,
    /// How the scores came about: `runs` or `one-run` [default: what the file says, else runs]
    #[arg(long, value_name = "DESIGN")]
    design: Option<Design>,
    /// Trainings with the canary in the built-in example, and as many without [default: 4000]
    #[arg(long, value_name = "N", value_parser = integer)]
    trials: Option<u64>,
    /// Leave out what is computed from records without privacy
    #[arg(long)]
    public: bool,
    #[command(flatten)]
    document: DocumentArgs,
}

/// Where the example keeps its work.
const WORK: &str = ".dosimeter";

pub(super) fn run(args: &ReportArgs, console: &mut Console) -> Result<u8, Failure> {
    let (format, out) = args.document.settled()?;
    let cover = args.document.cover()?;
    let subject = if args.files.is_empty() && args.run.is_empty() {
        match built_in(args, console)? {
            Ok(subject) => subject,
            Err(code) => return Ok(code),
        }
    } else if args.trials.is_some() {
        return Err(Failure::bad_input("--trials is the size of the built-in example")
            .hint("leave it out, or leave out the files and the run"));
    } else {
        given(args, &out)?
    };
    if let (Some((scores, _)), false) = (&subject.scores, args.public) {
        let count = scores.members().len() + scores.nonmembers().len();
        console.note(&format!("auditing {count} scores and drawing the curves"));
    }
    let mut report = assemble(subject)?;
    report.cover = cover;
    let bytes = document(&report, format, console)?;
    if out.as_os_str() == "-" {
        console.bytes(&bytes)?;
    } else {
        write(&out, &bytes)?;
        console.answer(&ending(&report, &out))?;
    }
    Ok(match report.verdict.status {
        Status::Contradiction => exit::CHECK_FAILED,
        _ => exit::ANSWERED,
    })
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
fn built_in(args: &ReportArgs, console: &mut Console) -> Result<Result<Subject, u8>, Failure> {
    let trials = args.trials.unwrap_or(example::TRIALS);
    let example = example::Example::new()?;
    let game = example.game(trials).map_err(|error| Failure::bad_input(error.to_string()))?;
    // The folder carries the plan's name, so that another version's example is not in the way.
    let folder = Path::new(WORK).join(format!("example-{}", &game.plan().digest()[..12]));
    std::fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
    write(&folder.join("training.toml"), example::TRAINING)?;
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
    let mut table = Table::default();
    table.add_file(&path)?;
    let scores = scores(table, args.design)?;
    let ledger_path = folder.join("model").join("ledger.json");
    let ledger = json(&ledger_path)?;
    let run = resolve(args, std::slice::from_ref(&ledger_path), std::slice::from_ref(&ledger))?;
    let input = |name: &str, role: &str, path: &Path| -> Result<Input, Failure> {
        Ok(Input { name: name.into(), role: role.into(), sha256: sha256(path)? })
    };
    let provenance = Provenance {
        commands: vec![command(args)],
        inputs: vec![
            input("ledger.json", "ledger", &ledger_path)?,
            input("scores.csv", "scores", &path)?,
        ],
        seeds: vec![Seed { purpose: "training and attack".into(), seed: example.seed() }],
        notes: vec![
            format!("The scores are those of: {}", example::attack_command(trials)),
            "Every score is a training of its own, with its own batches and noise, on the same \
             records. The canary is a gradient of the clip norm along one coordinate of the model \
             that hardly moves otherwise; the attacker sees the first and the last iterate. Such a \
             gradient is stronger than a real record\u{2019}s, so what is measured is about the \
             mechanism and not about one of Adult\u{2019}s people."
                .into(),
        ],
    };
    let delta = args.delta.unwrap_or(example::DELTA);
    Ok(Ok(subject(args, Some(run), Some(scores), (Some(ledger), None), delta, provenance)))
}

/// What files and flags describe.
fn given(args: &ReportArgs, out: &Path) -> Result<Subject, Failure> {
    let mut inputs = Vec::new();
    let (mut runs, mut table) = (Vec::new(), None::<Table>);
    let (mut ledgers, mut results) = (Vec::new(), None);
    for path in &args.files {
        if same_file(path, out) {
            return Err(Failure::bad_input(format!(
                "{} is an input and would be overwritten; choose another --out",
                path.display()
            )));
        }
        let role = role(path)?;
        match role {
            "scores" => table.get_or_insert_default().add_file(path)?,
            "results" if results.is_some() => {
                return Err(Failure::bad_input("two tables of results were given; join them"));
            }
            "results" => {
                let read = tuning::Table::read(path);
                results = Some(read.map_err(|error| Failure::bad_input(error.to_string()))?);
            }
            _ => runs.push(path.clone()),
        }
        if role == "ledger" {
            ledgers.push(json(path)?);
        }
        if !matches!(role, "scores" | "results") || !args.public {
            let name = path.display().to_string();
            inputs.push(Input { name, role: role.into(), sha256: sha256(path)? });
        }
    }
    let described = !runs.is_empty() || !args.run.is_empty();
    let run = if described { Some(resolve(args, &runs, &ledgers)?) } else { None };
    let scores = table.map(|table| scores(table, args.design)).transpose()?;
    if args.public && run.is_none() {
        return Err(Failure::bad_input(
            "a public report leaves out what is computed from scores, so nothing would be left",
        )
        .hint("describe the run as well: RUN.toml, LEDGER.json, or flags"));
    }
    let Some(delta) = args.delta else {
        return Err(Failure::bad_input("a report needs a delta")
            .hint("give --delta, well below one over the number of records, e.g. 1e-6"));
    };
    let provenance = Provenance { commands: vec![command(args)], inputs, ..Provenance::default() };
    // Of several trainings composed, the record of one would be mistaken for all.
    let ledger = if ledgers.len() == 1 { ledgers.pop() } else { None };
    Ok(subject(args, run, scores, (ledger, results), delta, provenance))
}

fn subject(
    args: &ReportArgs,
    run: Option<(Resolved, Origin)>,
    scores: Option<(Scores, Design)>,
    (ledger, results): (Option<serde_json::Value>, Option<tuning::Table>),
    delta: f64,
    mut provenance: Provenance,
) -> Subject {
    if args.public {
        provenance.inputs.retain(|input| !matches!(input.role.as_str(), "scores" | "results"));
        provenance.seeds.clear();
        provenance.notes.clear();
    }
    Subject {
        run,
        scores,
        ledger,
        results,
        delta,
        confidence: args.confidence,
        public: args.public,
        provenance,
    }
}

fn scores(table: Table, asked: Option<Design>) -> Result<(Scores, Design), Failure> {
    let table = table.settle()?;
    if let (Some(asked), Some(stated)) = (asked, table.design())
        && asked != stated
    {
        return Err(Failure::bad_input(format!(
            "--design {asked} was asked for, but the scores say `design: {stated}`"
        ))
        .hint("leave --design out, or correct the file if it is wrong"));
    }
    let design = asked.or(table.design()).unwrap_or(Design::Runs);
    Ok((table.into_scores()?, design))
}

/// The run and who says what about it.
fn resolve(
    args: &ReportArgs,
    files: &[PathBuf],
    ledgers: &[serde_json::Value],
) -> Result<(Resolved, Origin), Failure> {
    let files = read_files(files)?;
    let loaded = answers::load(&files, &args.run.description().into())?;
    let mut written: Vec<RunDescription> = vec![args.run.description()];
    for file in &files {
        written.push(file.document()?.run);
    }
    let stated = |told: fn(&RunDescription) -> bool| written.iter().any(told);
    let mut origin = Origin {
        ledger: !ledgers.is_empty() && ledgers.len() == files.len() && args.run.is_empty(),
        sampling_stated: stated(|run| run.sampling.is_some()),
        clip_stated: stated(|run| run.clip_norm.is_some()),
        adjacency_stated: stated(|run| run.adjacency.is_some()),
        ..Origin::default()
    };
    // Every part must vouch; one ledger speaks for itself.
    if let [only] = ledgers {
        ledger::vouched(only, &mut origin);
    }
    Ok((loaded.resolved, origin))
}

/// What a file is, by its name; a JSON file by its schema.
fn role(path: &Path) -> Result<&'static str, Failure> {
    let extension = path.extension().and_then(|text| text.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "toml" => Ok("run"),
        "csv" | "jsonl" | "ndjson" if is_results(path)? => Ok("results"),
        "csv" | "jsonl" | "ndjson" | "parquet" => Ok("scores"),
        "json" => {
            let ledger = json(path)?.get("schema").and_then(serde_json::Value::as_str)
                == Some("dosimeter.ledger/1");
            Ok(if ledger { "ledger" } else { "run" })
        }
        _ => Err(Failure::bad_input(format!(
            "{} is neither a run (.toml, .json) nor scores (.csv, .jsonl, .parquet)",
            path.display()
        ))
        .hint("rename it, or convert scores to CSV with the header `score,member`")),
    }
}

/// A JSON file; nothing where it is none, which whoever reads it will say.
fn json(path: &Path) -> Result<serde_json::Value, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

/// Whether a table holds results of trainings (learning rates) and not scores of an attack.
fn is_results(path: &Path) -> Result<bool, Failure> {
    let file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut lines = BufReader::new(file.take(1 << 16)).lines();
    let first = lines.find_map(|line| line.ok().filter(|line| !line.starts_with('#')));
    Ok(first.is_some_and(|line| line.contains("learning_rate") && line.contains("epsilon")))
}

fn sha256(path: &Path) -> Result<String, Failure> {
    let mut file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut hasher = Sha256::new();
    std::io::copy(&mut file, &mut hasher).map_err(|error| unreadable(path, &error))?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whole or not at all: a reader of the old report never sees half of the new one.
pub(super) fn write(out: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut name = out.file_name().map(std::ffi::OsStr::to_os_string).ok_or_else(|| {
        Failure::bad_input(format!("{} is not the name of a file", out.display()))
    })?;
    name.push(".partial");
    let partial = out.with_file_name(name);
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, out))
        .inspect_err(|_| drop(std::fs::remove_file(&partial)))
        .map_err(|error| unwritable(out, &error))
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::bad_input(format!("cannot read {}: {error}", path.display()))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::bad_input(format!("cannot write {}: {error}", path.display()))
        .hint("choose another place with --out, or run in a folder you may write to")
}

/// The command line that makes the same report.
fn command(args: &ReportArgs) -> String {
    let mut words: Vec<String> = vec!["dosimeter".into(), "report".into()];
    for path in &args.files {
        words.push(quoted(&path.display().to_string()));
    }
    let mut flag = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.push(format!("--{name}"));
            words.push(quoted(&value));
        }
    };
    let run = &args.run;
    flag("noise-multiplier", run.noise_multiplier.map(plain));
    flag("sample-rate", run.sample_rate.map(plain));
    flag("dataset-size", run.dataset_size.map(|size| size.to_string()));
    flag("batch-size", run.batch_size.map(|size| size.to_string()));
    flag("steps", run.steps.map(|steps| steps.to_string()));
    flag("epochs", run.epochs.map(plain));
    flag("clip-norm", run.clip_norm.map(plain));
    flag("sampling", run.sampling.map(|scheme| scheme.as_str().into()));
    flag("adjacency", run.adjacency.map(|relation| relation.as_str().into()));
    flag("group-size", run.group_size.map(|size| size.to_string()));
    flag("trials", args.trials.map(|trials| trials.to_string()));
    flag("delta", args.delta.map(plain));
    flag("confidence", (args.confidence != 0.95).then(|| plain(args.confidence)));
    flag("design", args.design.map(|design| design.to_string()));
    for (name, value) in args.document.flags() {
        flag(name, value);
    }
    if args.public {
        words.push("--public".into());
    }
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
