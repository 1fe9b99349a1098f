//! `report`: one document for the person who signs; without arguments the built-in example.

use crate::args::{LimitArgs, RunArgs};
use crate::console::Console;
use crate::print::{WIDTH, wrap};
use crate::progress::Progress;
use answers::{Document, Ended, Refusal, ReportQuestion};
use clap::Args;
use report::Report;
use std::path::Path;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter report
  dosimeter report run.toml --delta 1e-6 --out report.html
  dosimeter report run.toml scores.csv --delta 1e-5
  dosimeter report run.toml scores.csv --delta 1e-5 --sequential
  dosimeter report ledger.json scores.csv results.csv --delta 1e-5
  dosimeter report ledger.json --delta 1e-5 --out report.pdf --title 'Model 7' \\
      --owner 'Team B'
  dosimeter report ledger.json --delta 1e-5 --public --format card --out card.md
  dosimeter report --noise-multiplier 1 --sample-rate 0.01 --steps 1000 \\
      --delta 1e-5

Without a run and without scores, it trains a built-in example on UCI Adult with
and without a canary, audits it and reports. That takes a minute or two on two
cores; run the command again to resume.
")]
pub struct ReportArgs {
    #[command(flatten)]
    question: ReportQuestion,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    limit: LimitArgs,
}

pub(super) fn run(args: &ReportArgs, console: &mut Console) -> Result<u8, Refusal> {
    let work = Progress::new(console);
    let ended = answers::report(&args.question(), &work)?;
    drop(work);
    let done = match ended {
        Ended::Answered(done) => done,
        Ended::Stopped(code) => {
            console.hint("run the same command again to resume");
            return Ok(code);
        }
    };
    if done.out.as_os_str() == "-" {
        console.bytes(&done.bytes)?;
    } else {
        done.write()?;
        console.answer(&ending(&done.report, &done.out))?;
    }
    Ok(done.report.exit_code())
}

impl ReportArgs {
    fn question(&self) -> ReportQuestion {
        ReportQuestion {
            time_limit: self.limit.time_limit,
            run: self.run.description().into(),
            ..self.question.clone()
        }
    }
}

/// The verdict in words and the path, last.
fn ending(report: &Report, out: &Path) -> String {
    let verdict = &report.verdict;
    let headline = format!("{}. {}.", verdict.status.badge(), verdict.headline);
    format!(
        "{}{}\nreport: {}\n",
        wrap(&headline, "", 0, WIDTH),
        wrap(&verdict.reason, "", 0, WIDTH),
        out.display()
    )
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
        --stopped on-output --max-steps 2000 --renyi-order 8 --renyi-budget 2.5 --trials 12 --delta 1e-7 --confidence 0.99 --design one-run \
        --sequential --other-run --public --title title --owner owner --date 2026-11-17 --format md \
        --out a.md --time-limit 20";

    #[test]
    fn the_command_is_read_back_as_the_same_question() {
        let mut given = Only::parse_from(GIVEN.split_whitespace()).args;
        given.run.unit = Some("-one user's $data".into());
        given.question.title = Some("Model \"7\" & more".into());
        let question = given.question();
        let all = question.words().unwrap();
        // None is forgotten, also none that is added later; a report on coefficients of a file names no command.
        let unnamed = ["help", "version", "toeplitz", "uses", "separation"];
        for flag in Only::command().get_arguments().filter(|flag| !flag.is_hide_set()) {
            if let Some(long) = flag.get_long().filter(|long| !unnamed.contains(long)) {
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
        let line = format!("printf '%s\\n' {}", question.command().unwrap());
        let said = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert_eq!(said.lines().collect::<Vec<_>>(), all);
    }
}
