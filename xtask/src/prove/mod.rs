//! `cargo xtask prove --runs N --seed S --part K/N`: draws runs over the whole domain, asks the solver one
//! question about each in random company, and has both ends proven in ball arithmetic.
//!
//! Results are lines of JSON in `target/prove/seed-S/part-K-of-N.jsonl` (`--out DIR` for another folder), one
//! per run; `--work` limits a proof (units of about a millisecond), the same on every machine. `--seconds` limits one question
//! to the solver. After `--minutes` no further run is begun. `--only 3,17` takes these runs alone. A part that was broken off goes on where it stopped.
//! `--threads` is the number of cores unless it is given. The program needs nothing but `docs/data` beside it, so it can be copied to another machine;
//! `--build NAME` says there, where git does not, which commit it was compiled from.
//!
//! `--table` sums up all parts into docs/accuracy.md and keeps a short line of each run in docs/data/proofs-seed-S.csv
//! ([`kept`]); runs that are there are not proven again. `--retry` takes the runs that were not proven, and
//! that had less time or work or another build than this call gives them; the latest line of a run counts. `--outcome undecided` takes
//! only those of them that ended so.

mod draw;
mod kept;
mod table;

use accounting::{AccountingError, account};
use anyhow::{Context, Result, bail};
use prover::{Limit, Outcome, prove_within};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use vocabulary::Account;

struct Options {
    runs: u64,
    seed: u64,
    part: (u64, u64),
    threads: usize,
    table: bool,
    work: f64,
    minutes: f64,
    seconds: f64,
    only: Option<BTreeSet<u64>>,
    retry: bool,
    /// The outcome of the runs that are tried again; all but proven ones where it is empty.
    outcome: String,
    /// The commit that is compiled, and a plus sign where files differ from it.
    build: String,
    out: PathBuf,
}

/// The commit of the work tree, as it stands when the survey begins.
fn build() -> String {
    let git = |words: &[&str]| {
        let output = std::process::Command::new("git").args(words).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=7", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let clean = git(&["status", "--porcelain", "crates"]).is_none_or(|text| text.is_empty());
    if clean { commit } else { format!("{commit}+") }
}

fn options(rest: &[String]) -> Result<Options> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options {
        runs: 60,
        seed: 1,
        part: (1, 1),
        threads,
        table: false,
        work: 4000.0,
        minutes: f64::INFINITY,
        seconds: 4.0,
        only: None,
        retry: false,
        outcome: String::new(),
        build: String::new(),
        out: "target/prove".into(),
    };
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let mut number =
            || -> Result<&String> { words.next().with_context(|| format!("{word} needs a value")) };
        match word.as_str() {
            "--runs" => options.runs = number()?.parse()?,
            "--seed" => options.seed = number()?.parse()?,
            "--threads" => options.threads = number()?.parse()?,
            "--part" => {
                let text = number()?;
                let (k, n) = text.split_once('/').context("--part takes K/N, such as 2/8")?;
                options.part = (k.parse()?, n.parse()?);
                if options.part.0 == 0 || options.part.0 > options.part.1 {
                    bail!("--part {text}: K lies in 1..=N");
                }
            }
            "--work" => options.work = number()?.parse()?,
            "--seconds" => options.seconds = number()?.parse()?,
            "--minutes" => options.minutes = number()?.parse()?,
            "--only" => {
                let list = number()?.split(',').map(str::parse).collect::<Result<_, _>>()?;
                options.only = Some(list);
            }
            "--out" => options.out = number()?.into(),
            "--outcome" => options.outcome.clone_from(number()?),
            "--build" => options.build.clone_from(number()?),
            "--table" => options.table = true,
            "--retry" => options.retry = true,
            other => bail!("unknown option `{other}`"),
        }
    }
    if options.build.is_empty() {
        options.build = build();
    }
    Ok(options)
}

pub fn run(rest: &[String]) -> Result<ExitCode> {
    let options = options(rest)?;
    let folder = options.out.join(format!("seed-{}", options.seed));
    fs::create_dir_all(&folder)?;
    let short = kept::path(options.seed);
    let before = kept::all(&short, &folder)?;
    if options.table {
        kept::write(&short, &before)?;
        return table::write(&before, options.runs, options.seed);
    }
    let (part, parts) = options.part;
    let path = folder.join(format!("part-{part}-of-{parts}.jsonl"));
    let limits = (options.work, options.seconds, options.build.as_str());
    let wanted = |i: &u64| {
        let asked = options.only.as_ref().is_none_or(|only| only.contains(i));
        let open = match before.get(i) {
            None => !options.retry,
            Some(line) => {
                let fits = options.outcome.is_empty() || line.outcome == options.outcome;
                options.retry && fits && line.may_gain(limits)
            }
        };
        asked && open
    };
    let mine: Vec<u64> = (0..options.runs).filter(|i| i % parts == part - 1 && wanted(i)).collect();
    eprintln!(
        "{} runs to prove, {} done before, {} threads",
        mine.len(),
        before.len(),
        options.threads
    );
    let file = Mutex::new(OpenOptions::new().create(true).append(true).open(&path)?);
    let started = Instant::now();
    let next = AtomicU64::new(0);
    let wrong = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(|| {
                loop {
                    if started.elapsed().as_secs_f64() > 60.0 * options.minutes {
                        break;
                    }
                    let position = next.fetch_add(1, Ordering::Relaxed) as usize;
                    let Some(index) = mine.get(position) else { break };
                    // A panic is a bug of its own, and no reason to lose the other runs.
                    let silent = before.get(index).is_some_and(kept::Line::is_silent);
                    let proven = || one(&options, *index, silent);
                    let mut line = std::panic::catch_unwind(proven)
                        .unwrap_or_else(|_| json!({"index": index, "outcome": "panicked"}));
                    line["work"] = options.work.into();
                    line["seconds"] = options.seconds.into();
                    line["build"] = options.build.as_str().into();
                    if line["outcome"] == "wrong" || line["outcome"] == "panicked" {
                        wrong.fetch_add(1, Ordering::Relaxed);
                        eprintln!("{}: {line}", line["outcome"].as_str().unwrap_or(""));
                    }
                    if let Ok(mut file) = file.lock() {
                        // A line that cannot be written is proven again by the next call.
                        let _ = writeln!(file, "{line}");
                    }
                }
            });
        }
    });
    println!("{}", table::text(&kept::all(&short, &folder)?));
    Ok(ExitCode::from(if wrong.load(Ordering::Relaxed) > 0 { 3 } else { 0 }))
}

/// Draws, asks and proves one run. What was `silent` before, in company and alone, is asked alone.
fn one(options: &Options, index: u64, silent: bool) -> Value {
    let mut source = draw::Source::new(options.seed, index);
    let mut drawn = draw::draw(&mut source);
    // A survey asks thousands of times: what takes long is counted as not answered.
    drawn.questions.time_limit = Some(options.seconds);
    let asked = processor_seconds();
    let answer = (!silent).then(|| account(&drawn.run, &drawn.questions));
    let mut line = json!({
        "index": index, "kind": drawn.kind, "run": drawn.run, "lens": drawn.lens,
        "quantity": drawn.quantity,
    });
    let mut alone = false;
    let answered =
        |account: &Account| account.claims.iter().any(|claim| claim.quantity == drawn.quantity);
    let answer = match answer {
        Some(Ok(account)) if answered(&account) => Ok(account),
        // What counts is the question itself, not what its company met.
        _ => {
            alone = true;
            account(&drawn.run, &drawn.alone())
        }
    };
    let asked = processor_seconds() - asked;
    line["asked_s"] = rounded(asked).into();
    if alone {
        line["alone"] = true.into();
    }
    let (claims, warnings) = match answer {
        Ok(account) => (account.claims, account.warnings),
        Err(error) => {
            // The theorem says nothing about such a run, or the number could not be certified.
            let undefined = matches!(error, AccountingError::Unsupported(_));
            line["outcome"] = if undefined { "not defined" } else { "refused" }.into();
            line["reason"] = error.to_string().into();
            return line;
        }
    };
    let of_quantity: Vec<_> =
        claims.iter().filter(|claim| claim.quantity == drawn.quantity).collect();
    let Some(claim) = of_quantity.get(source.below(of_quantity.len().max(1) as u64) as usize)
    else {
        line["outcome"] = "unanswered".into();
        line["reason"] = warnings.join("; ").into();
        return line;
    };
    let started = processor_seconds();
    let proof = prove_within(&drawn.run, claim, Limit::Work(options.work));
    line["outcome"] = proof.outcome.as_str().into();
    line["proof_s"] = rounded(processor_seconds() - started).into();
    line["direction"] = json!(claim.direction);
    line["at"] = json!(claim.at);
    line["width"] = json!(claim.interval.relative_width());
    line["ends"] = json!([claim.interval.lower, claim.interval.upper]);
    if proof.outcome != Outcome::Proven {
        for (name, end) in [("lower", &proof.lower), ("upper", &proof.upper)] {
            if end.outcome != Outcome::Proven {
                line[name] = json!({
                    "outcome": end.outcome, "statement": end.statement, "path": end.path,
                });
            }
        }
    }
    line
}

/// Processor time of this thread, as Linux counts it.
fn processor_seconds() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let word = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    word.unwrap_or(0.0) * 1e-9
}

/// Seconds, to a tenth of a millisecond.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e4).round() * 1e-4
}
