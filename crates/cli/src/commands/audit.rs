//! `audit`: membership scores in, valid lower bounds out.

use crate::args::{Format, OutputArgs, load_file, nonnegative_integer, real};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use crate::print::audit as print;
use accounting::{AccountingError, Questions, pairs};
use audit::verdict::{ClaimedEpsilon, Status};
use audit::{
    Analysis, AuditError, Design, Method, Plan, PlanDocument, Scores, Table, analyse, figures,
};
use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use vocabulary::{LensName, Quantity, Run, Standing};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter audit scores.csv --delta 1e-5
  dosimeter audit scores.csv --delta 1e-5 --claim run.toml
  dosimeter audit --members in.npy --nonmembers out.npy --method all \\
      --sample-rate 0.01 --steps 1000 --delta 1e-5
  dosimeter audit canaries.csv --design one-run --delta 1e-5
  dosimeter audit scores.csv --figure roc --format svg > roc.svg
  dosimeter audit --plan-only --delta 1e-5 --primary gdp

Larger scores mean more likely a member. CSV and JSONL have the columns score and member (1 or 0).
")]
pub struct AuditArgs {
    /// Score files: CSV with header `score,member`, JSONL, or Parquet
    #[arg(value_name = "SCORES")]
    files: Vec<PathBuf>,
    /// Scores of members alone (.npy, or one a line); repeatable
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
    #[arg(long, value_name = "D", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
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
    /// Sample rate of the training, for the DP-SGD families [default: the claim's]
    #[arg(long, value_name = "Q", value_parser = real, allow_hyphen_values = true)]
    sample_rate: Option<f64>,
    /// Steps of the training, for the DP-SGD families [default: the claim's]
    #[arg(long, value_name = "T", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    steps: Option<u64>,
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

pub(super) fn run(args: &AuditArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json, Format::Csv, Format::Svg])?;
    let claimed = match &args.claim {
        Some(path) => Some(load_file(path)?.run.resolve()?.run),
        None => None,
    };
    if args.plan_only {
        return commit(&plan(args, None, claimed.as_ref())?, format, console);
    }
    let (scores, stated) = read(args)?;
    let plan = plan(args, stated, claimed.as_ref())?;
    let epsilon = |delta: f64| match &claimed {
        Some(run) => proven(run, delta),
        None => Ok(ClaimedEpsilon { lower: 0.0, upper: f64::INFINITY }),
    };
    let claims: Option<audit::Claims<'_>> = if claimed.is_some() { Some(&epsilon) } else { None };
    let analysis = analyse(&scores, &plan, claims)?;
    match format {
        Format::Json => console.json(&analysis.document())?,
        Format::Csv => console.answer(&print::csv(&analysis))?,
        Format::Svg => {
            let figure = draw(args.figure, &scores, &analysis, claimed.as_ref())?;
            console.answer(&::figures::to_svg(&figure, &::figures::Options::default()))?;
        }
        Format::Human => console.answer(&print::human(&analysis))?,
    }
    for warning in &analysis.warnings {
        console.warn(warning);
    }
    if args.design.is_none() && stated.is_none() {
        console.hint(
            "each row is taken for a training of its own; for canaries of one training give --design one-run",
        );
    }
    if args.delta.is_empty() && format == Format::Human {
        console.hint("the bounds are at delta 0; give --delta for the delta of a claim");
    }
    let contradiction =
        analysis.verdict.as_ref().is_some_and(|verdict| verdict.status == Status::Contradiction);
    Ok(if contradiction { exit::CHECK_FAILED } else { exit::ANSWERED })
}

fn read(args: &AuditArgs) -> Result<(Scores, Option<Design>), Failure> {
    if args.files.is_empty() && args.members.is_empty() && args.nonmembers.is_empty() {
        return Err(Failure::bad_input("there are no scores to audit").hint(
            "give SCORES.csv with the header `score,member`, or --members and --nonmembers",
        ));
    }
    let mut table = Table::default();
    for path in &args.files {
        table.add_file(path)?;
    }
    table.add_sides(&args.members, &args.nonmembers)?;
    table.settle_design()?;
    for (side, empty) in
        [("member", table.members.is_empty()), ("non-member", table.nonmembers.is_empty())]
    {
        if empty {
            let files: Vec<String> = args
                .files
                .iter()
                .chain(&args.members)
                .chain(&args.nonmembers)
                .map(|path| path.display().to_string())
                .collect();
            return Err(Failure::bad_input(format!(
                "{}: there is no {side} score; an audit compares members with non-members",
                files.join(", ")
            )));
        }
    }
    let design = table.design;
    Ok((table.into_scores()?, design))
}

/// A plan with its hash: the proof, once published, that the analysis was fixed beforehand.
#[derive(Serialize, JsonSchema)]
pub(super) struct Commitment {
    /// `dosimeter.audit-commitment/1`
    schema: &'static str,
    plan: PlanDocument,
    /// SHA-256 of the plan as one line of JSON; an audit under this plan prints the same.
    hash: String,
}

impl Commitment {
    pub(super) const SCHEMA: &'static str = "dosimeter.audit-commitment/1";
}

fn commit(plan: &Plan, format: Format, console: &mut Console) -> Result<u8, Failure> {
    let commitment = Commitment {
        schema: Commitment::SCHEMA,
        plan: plan.document(),
        hash: audit::hash::plan(plan)?,
    };
    if format == Format::Json {
        console.json(&commitment)?;
    } else {
        console.answer(&print::commitment(plan, &commitment.hash))?;
    }
    Ok(exit::ANSWERED)
}

fn plan(args: &AuditArgs, stated: Option<Design>, claimed: Option<&Run>) -> Result<Plan, Failure> {
    if let (Some(asked), Some(stated)) = (args.design, stated)
        && asked != stated
    {
        return Err(Failure::bad_input(format!(
            "--design {asked} was asked for, but the file says that the design is {stated}"
        ))
        .hint("leave --design out, or correct the file if it is wrong"));
    }
    let design = args.design.or(stated).unwrap_or(Design::Runs);
    let all_methods = args.method.iter().any(|name| name == "all");
    let mut plan = Plan::new(design);
    if !args.method.is_empty() && !all_methods {
        plan.methods = args
            .method
            .iter()
            .map(|name| name.parse::<Method>())
            .collect::<Result<_, AuditError>>()?;
    }
    plan.all_methods = all_methods;
    if !args.delta.is_empty() {
        plan.deltas.clone_from(&args.delta);
    }
    plan.confidence = args.confidence;
    plan.threshold = args.threshold;
    plan.direction = args.direction;
    plan.primary = args.primary.unwrap_or(plan.primary);
    plan.joint = args.joint;
    plan.seed = args.seed;
    let phase = claimed.and_then(|run| match run.phases() {
        [phase] => Some(*phase),
        _ => None,
    });
    let sample_rate = args.sample_rate.or(phase.map(|phase| phase.sample_rate));
    let steps = args.steps.or(phase.map(|phase| phase.steps));
    plan.training = sample_rate.zip(steps);
    plan.claim = claimed.cloned();
    plan.claim_epsilon = args.claim_epsilon;
    plan.min_count = args.min_count;
    if !args.fpr.is_empty() {
        plan.fprs.clone_from(&args.fpr);
    }
    plan.bootstrap = usize::try_from(args.bootstrap).unwrap_or(usize::MAX);
    Ok(plan.check()?)
}

/// The smallest proven epsilon of the claimed run at delta.
fn proven(run: &Run, delta: f64) -> Result<ClaimedEpsilon, AuditError> {
    if delta <= 0.0 {
        return Ok(ClaimedEpsilon { lower: f64::INFINITY, upper: f64::INFINITY });
    }
    let questions = Questions {
        deltas: vec![delta],
        lenses: vec![LensName::Composition],
        ..Questions::default()
    };
    let account = accounting::account(run, &questions)?;
    account
        .claims
        .iter()
        .filter(|claim| {
            claim.quantity == Quantity::Epsilon
                && claim.standing == Standing::Proven
                && claim.at.delta == Some(delta)
        })
        .map(|claim| ClaimedEpsilon { lower: claim.interval.lower, upper: claim.interval.upper })
        .reduce(|best, next| if next.upper < best.upper { next } else { best })
        .ok_or_else(|| {
            AuditError::Accounting(AccountingError::Unsupported(
                "no proven epsilon is known for the claimed run, so there is nothing to compare with"
                    .to_owned(),
            ))
        })
}

fn draw(
    picture: Picture,
    scores: &Scores,
    analysis: &Analysis,
    claimed: Option<&Run>,
) -> Result<vocabulary::Figure, Failure> {
    Ok(match picture {
        Picture::Roc => {
            let pair = claimed.map(pairs::Composed::for_run).transpose()?;
            let pair = pair.as_ref().map(|pair| pair as &dyn accounting::Pair);
            figures::roc(scores, analysis, pair)?
        }
        Picture::Histogram => figures::histogram(scores, analysis),
        Picture::Ladder => {
            let delta = analysis.primary().map(|bound| bound.delta);
            let epsilon = claimed.zip(delta).map(|(run, delta)| proven(run, delta)).transpose()?;
            let claimed = epsilon.map(|epsilon| epsilon.upper).or(analysis.plan.claim_epsilon);
            figures::ladder(analysis, claimed)
        }
    })
}

impl From<AuditError> for Failure {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Accounting(error) => error.into(),
            other => Self::bad_input(other.to_string()),
        }
    }
}
