//! `audit`: membership scores in, valid lower bounds out.

use super::show;
use crate::args::{Format, OutputArgs, RunArgs, claimed, nonnegative_integer, real};
use crate::console::Console;
use crate::failure::Failure;
use crate::print::audit as print;
use answers::{AuditQuestion, read_scores, runs_beside};
use audit::{Design, Method};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter audit scores.csv --delta 1e-5
  dosimeter audit scores.csv --delta 1e-5 --claim run.toml
  dosimeter audit scores.csv --delta 1e-5 --noise-multiplier 1 --sample-rate 0.01 --steps 1000
  dosimeter audit scores.csv --delta 1e-5 --claim-epsilon 8 --sequential
  dosimeter audit --members in.npy --nonmembers out.npy --method all \\
      --sample-rate 0.01 --steps 1000 --delta 1e-5
  dosimeter audit canaries.csv --design one-run --delta 1e-5
  dosimeter audit scores.csv --figure roc --format svg > roc.svg
  dosimeter audit --plan-only --delta 1e-5 --primary gdp

Larger scores mean more likely a member. CSV and JSONL have the columns score and member (1 or 0).
Flags of a run with --noise-multiplier are a claim; --sample-rate and --steps alone tell the DP-SGD
families about the training. Scores with SCORES.run.json beside them are of that run.
")]
pub struct AuditArgs {
    /// Score files: CSV with header `score,member`, JSONL, or Parquet
    #[arg(value_name = "SCORES")]
    files: Vec<PathBuf>,
    /// Scores of members alone (.npy, or one per line); repeatable
    #[arg(long, value_name = "FILE")]
    members: Vec<PathBuf>,
    /// Scores of non-members alone; repeatable
    #[arg(long, value_name = "FILE")]
    nonmembers: Vec<PathBuf>,
    /// `runs`: each row is a training of its own; `one-run`: rows are canaries of one training,
    /// each in with probability 1/2 [default: what the file says, else runs]
    #[arg(long, value_name = "DESIGN")]
    design: Option<Design>,
    /// Delta of the bounds; repeatable, the first is the headline's [default: 0]
    #[arg(short = 'd', long, value_name = "D", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    delta: Vec<f64>,
    /// Confidence of each bound
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value = "0.95")]
    confidence: f64,
    /// clopper-pearson, gdp, composition, last-iterate, bayes, grid, one-run, one-run-gdp,
    /// one-run-independent, gaussian-pair, or all
    #[arg(long, value_name = "METHOD", value_delimiter = ',')]
    method: Vec<String>,
    /// union, holdout, k-fold, dkw, or fixed:V (V chosen before seeing the scores)
    #[arg(long, value_name = "RULE", default_value = "union")]
    threshold: audit::ThresholdRule,
    /// forward, mirror, or both (the larger; costs no confidence)
    #[arg(long, value_name = "DIRECTION", default_value = "both")]
    direction: audit::AttackDirection,
    /// The bound of the headline and the verdict [default: clopper-pearson, or one-run]
    #[arg(long, value_name = "METHOD")]
    primary: Option<Method>,
    /// One statement about all bounds together: splits the confidence
    #[arg(long)]
    joint: bool,
    /// The run that is claimed; its proven epsilon is compared with the primary bound
    #[arg(long, value_name = "RUN.toml")]
    claim: Option<PathBuf>,
    /// In place of --claim: the claimed epsilon at the (first) --delta
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true, conflicts_with = "claim")]
    claim_epsilon: Option<f64>,
    /// Audit scores of another run than the claimed one
    #[arg(long)]
    other_run: bool,
    /// Rows are trials in their order: a bound that holds at any stopping time
    #[arg(long)]
    sequential: bool,
    /// False positive rates at which the power is reported; repeatable [default: 0.001, 0.01]
    #[arg(long, value_name = "F", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    fpr: Vec<f64>,
    /// Errors of either kind below which `grid` ignores a threshold
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value = "10")]
    min_count: u64,
    /// Bootstrap rounds for AUROC and power
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value = "0")]
    bootstrap: u64,
    /// Seed that deals the parts of holdout and k-fold
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, default_value = "0")]
    seed: u64,
    /// Print the plan and its hash, to be published before there are scores, and read none
    #[arg(long)]
    plan_only: bool,
    /// Which figure `--format svg` prints
    #[arg(long, value_enum, default_value_t = Picture::Roc)]
    figure: Picture,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The figures of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Picture {
    /// True against false positive rate, with the band and the claimed run's curve
    Roc,
    /// Both samples with the threshold
    Histogram,
    /// All bounds against the claim
    Ladder,
}

impl AuditArgs {
    fn question(&self) -> Result<AuditQuestion, Failure> {
        Ok(AuditQuestion {
            design: self.design,
            delta: self.delta.clone().into(),
            confidence: Some(self.confidence),
            method: self.method.clone().into(),
            all_methods: false,
            threshold: Some(self.threshold),
            direction: Some(self.direction),
            primary: self.primary,
            joint: self.joint,
            claim: claimed(self.claim.as_deref())?,
            claim_epsilon: self.claim_epsilon,
            run: Some(self.run.description().into()),
            made_by: runs_beside(&self.files)?,
            other_run: self.other_run,
            claim_made_by: false,
            sequential: self.sequential,
            budget: None,
            sample_rate: None,
            steps: None,
            fpr: self.fpr.clone().into(),
            min_count: Some(self.min_count),
            bootstrap: Some(self.bootstrap),
            seed: Some(self.seed),
        })
    }
}

pub(super) fn run(args: &AuditArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json, Format::Csv, Format::Svg])?;
    let question = args.question()?;
    if args.plan_only {
        let (plan, commitment) = answers::commit(&question)?;
        return show(&commitment, format, console, |one| print::commitment(&plan, &one.hash));
    }
    if args.sequential {
        let format = args.output.among(&[Format::Human, Format::Json, Format::Svg])?;
        let table = read_scores(&args.files, &args.members, &args.nonmembers)?;
        let audited = answers::sequential(&question, table)?;
        return show(&audited, format, console, |audited| match format {
            Format::Svg => {
                figures::to_svg(&answers::over_time(audited), &figures::Options::default())
            }
            _ => print::sequential(audited),
        });
    }
    let audited =
        answers::audit(&question, read_scores(&args.files, &args.members, &args.nonmembers)?)?;
    let figure = match (format, args.figure) {
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
    if args.delta.is_empty() && format == Format::Human {
        console.hint("the bounds are at delta 0; give --delta for the delta of a claim");
    }
    Ok(code)
}
