//! `audit`: membership scores in, valid lower bounds out.

use super::show;
use crate::args::{Format, LimitArgs, OutputArgs, RunArgs, claimed};
use crate::console::Console;
use crate::print::audit as print;
use answers::{AuditQuestion, Refusal, read_scores, runs_beside};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter audit scores.csv --delta 1e-5
  dosimeter audit scores.csv --delta 1e-5 --claim run.toml
  dosimeter audit scores.csv --delta 1e-5 --noise-multiplier 1 \\
      --sample-rate 0.01 --steps 1000
  dosimeter audit scores.csv --delta 1e-5 --claim-epsilon 8 --sequential
  dosimeter audit --members in.npy --nonmembers out.npy --method all \\
      --sample-rate 0.01 --steps 1000 --delta 1e-5
  dosimeter audit canaries.csv --design one-run --delta 1e-5
  dosimeter audit scores.csv --figure roc --format svg > roc.svg
  dosimeter audit --plan-only --delta 1e-5 --primary gdp

A larger score means more likely a member. CSV and JSONL have the columns score
and member (1 or 0). A file SCORES.run.json beside SCORES names the run that
made them.
To test a claim, give --claim, --claim-epsilon, or flags of the claimed run with
--noise-multiplier. --sample-rate and --steps alone are no claim: the methods
composition and last-iterate need them.
")]
pub struct AuditArgs {
    /// Score files: CSV with header `score,member`, JSONL, or Parquet
    #[arg(value_name = "SCORES")]
    files: Vec<PathBuf>,
    /// A file with scores of members only (.npy, or one per line); repeatable
    #[arg(long, value_name = "FILE")]
    members: Vec<PathBuf>,
    /// A file with scores of non-members only; repeatable
    #[arg(long, value_name = "FILE")]
    nonmembers: Vec<PathBuf>,
    #[command(flatten)]
    question: AuditQuestion,
    /// The claimed run; the verdict compares its proven epsilon with the primary bound
    #[arg(long, value_name = "RUN.toml")]
    claim: Option<PathBuf>,
    /// Print the plan of the audit and its hash, to publish before there are scores; reads no
    /// scores
    #[arg(long)]
    plan_only: bool,
    /// Which figure `--format svg` prints [default: roc]
    #[arg(long, value_enum)]
    figure: Option<Picture>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The figures of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Picture {
    /// True against false positive rate, with its confidence band and the claimed run's curve
    Roc,
    /// Both samples with the threshold
    Histogram,
    /// All bounds against the claim
    Ladder,
}

impl AuditArgs {
    fn question(&self) -> Result<AuditQuestion, Refusal> {
        Ok(AuditQuestion {
            time_limit: self.limit.time_limit,
            claim: claimed(self.claim.as_deref())?,
            run: Some(self.run.description().into()),
            made_by: runs_beside(&self.files)?,
            ..self.question.clone()
        })
    }
}

pub(super) fn run(args: &AuditArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json, Format::Csv, Format::Svg])?;
    if args.figure.is_some() && format != Format::Svg {
        return Err(Refusal::bad_input(
            "--figure says what --format svg prints; add that or drop it",
        ));
    }
    let question = args.question()?;
    if args.plan_only {
        let (plan, commitment) = answers::commit(&question)?;
        return show(&commitment, format, console, |one| print::commitment(&plan, &one.hash));
    }
    if question.sequential {
        let format = args.output.among(&[Format::Human, Format::Json, Format::Svg])?;
        let table = read_scores(&args.files, &args.members, &args.nonmembers)?;
        let stated = question.design.is_some() || table.design().is_some();
        let audited = answers::sequential(&question, table)?;
        let code = show(&audited, format, console, |audited| match format {
            Format::Svg => {
                figures::to_svg(&answers::over_time(audited), &figures::Options::default())
            }
            _ => print::sequential(audited),
        })?;
        if !stated {
            console.hint(
                "each row is taken as a separate training; canaries of one training are audited \
                 without --sequential, with --design one-run",
            );
        }
        return Ok(code);
    }
    let audited =
        answers::audit(&question, read_scores(&args.files, &args.members, &args.nonmembers)?)?;
    let figure = match (format, args.figure.unwrap_or(Picture::Roc)) {
        (Format::Svg, Picture::Roc) => Some(audited.figure(answers::Picture::Roc)?),
        (Format::Svg, Picture::Histogram) => Some(audited.figure(answers::Picture::Histogram)?),
        (Format::Svg, Picture::Ladder) => Some(audited.figure(answers::Picture::Ladder)?),
        _ => None,
    };
    let code = show(&audited, format, console, |audited| match (&figure, format) {
        (Some(figure), _) => figures::to_svg(figure, &figures::Options::default()),
        (None, Format::Csv) => print::csv(&audited.analysis),
        _ => print::human(&audited.analysis),
    })?;
    if let Some(hint) = audited.hint {
        console.hint(hint);
    }
    if question.delta.is_empty() && format == Format::Human {
        console.hint("the bounds are at delta 0; give --delta for the delta of a claim");
    }
    Ok(code)
}
