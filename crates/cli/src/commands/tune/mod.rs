//! `tune`: hyper-parameters and empirical privacy, on a table of results.

#[cfg(feature = "language")]
mod grid;
mod human;

use crate::args::{Format, OutputArgs, integer, real};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use crate::print::csv_line;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use tuning::regression::{Errors, Options, Unit};
use tuning::search::Trials;
use tuning::selection::Better;
use tuning::{Group, Table, TuningError};
use vocabulary::{Figure, Run};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter tune rank results.csv --score vmr
  dosimeter tune regress results.csv --score vmr
  dosimeter tune select results.csv --score vmr --min-utility 0.8
  dosimeter tune profiles results.csv --score vmr --dataset-size 33508
  dosimeter tune search results.csv --dataset-size 33508 --expected-trials 20
  dosimeter tune grid grid.toml --out results.csv

One row per training; CSV, JSONL or Parquet with the columns
  batch_size,steps,learning_rate,clip_norm,epsilon,delta,seed,score_*,utility,audit_epsilon
Scores measure memorisation: larger is worse.
")]
pub struct TuneArgs {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    /// Which hyper-parameters explain memorisation: regression on log b, log T, log eta
    Regress(RegressArgs),
    /// How much memorisation varies at one epsilon, and how often the heuristics are right
    Rank(RankArgs),
    /// Choose a configuration, and what the choice costs against the oracle
    Select(SelectArgs),
    /// What accounting says of the same configurations: profiles and last-iterate epsilons
    Profiles(ProfilesArgs),
    /// The epsilon of a search with a random number of trials
    Search(SearchArgs),
    /// Train a grid of configurations of a language model, measure each, and write the table
    #[cfg(feature = "language")]
    Grid(grid::GridArgs),
    /// Train a grid of configurations of a language model (not part of this build)
    #[cfg(not(feature = "language"))]
    Grid(super::absent::AbsentArgs),
}

#[derive(Debug, Args)]
struct TableArgs {
    /// Results: CSV, JSONL or Parquet, one row per training
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// Which score; needed if there are several score_* columns
    #[arg(long, value_name = "NAME")]
    score: Option<String>,
    /// Only the runs at this epsilon
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    epsilon: Option<f64>,
}

#[derive(Debug, Args)]
struct RegressArgs {
    #[command(flatten)]
    table: TableArgs,
    /// One observation a configuration (mean over seeds) or a run
    #[arg(long, value_enum, default_value_t = UnitName::Configurations)]
    unit: UnitName,
    /// How errors are estimated; default hc3 for configurations, clustered by configuration for runs
    #[arg(long, value_enum)]
    errors: Option<ErrorsName>,
    /// Base of the logarithms
    #[arg(long, value_name = "BASE", value_parser = real, default_value_t = std::f64::consts::E, hide_default_value = true, allow_hyphen_values = true)]
    log_base: f64,
    /// Regressors and score in units of their standard deviation
    #[arg(long)]
    standardize: bool,
    #[arg(long, value_name = "C", value_parser = real, default_value = "0.95", allow_hyphen_values = true)]
    confidence: f64,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
struct RankArgs {
    #[command(flatten)]
    table: TableArgs,
    #[arg(long, value_name = "C", value_parser = real, default_value = "0.95", allow_hyphen_values = true)]
    confidence: f64,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
struct SelectArgs {
    #[command(flatten)]
    table: TableArgs,
    /// Candidates have at least this utility (at most, with --lower-utility-is-better);
    /// default: the median
    #[arg(long, value_name = "U", value_parser = real, value_delimiter = ',', allow_hyphen_values = true)]
    min_utility: Vec<f64>,
    /// Utility is a loss or a perplexity
    #[arg(long)]
    lower_utility_is_better: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
struct ProfilesArgs {
    #[command(flatten)]
    table: TableArgs,
    /// Records in the training data
    #[arg(long, value_name = "N", value_parser = integer)]
    dataset_size: u64,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
struct SearchArgs {
    /// Results, or a plan with the same columns and an empty score: the configurations to draw from
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// Only the configurations at this epsilon
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    epsilon: Option<f64>,
    /// Records in the training data
    #[arg(long, value_name = "N", value_parser = integer)]
    dataset_size: u64,
    /// Mean of the random number of trials
    #[arg(long, value_name = "M", value_parser = real, allow_hyphen_values = true)]
    expected_trials: f64,
    /// How the number of trials is drawn
    #[arg(long, value_enum, default_value_t = TrialsName::Geometric)]
    trials: TrialsName,
    /// Delta of the search; default: the table's
    #[arg(long, value_name = "D", value_parser = real, allow_hyphen_values = true)]
    delta: Option<f64>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum UnitName {
    Configurations,
    Runs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ErrorsName {
    Classical,
    Hc1,
    Hc3,
    Configuration,
    Seed,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TrialsName {
    Geometric,
    Logarithmic,
    Poisson,
}

pub(super) fn run(args: &TuneArgs, console: &mut Console) -> Result<u8, Failure> {
    match &args.question {
        Question::Regress(args) => regress(args, console),
        Question::Rank(args) => rank(args, console),
        Question::Select(args) => select(args, console),
        Question::Profiles(args) => profiles(args, console),
        Question::Search(args) => search(args, console),
        #[cfg(feature = "language")]
        Question::Grid(args) => grid::run(args, console),
        #[cfg(not(feature = "language"))]
        Question::Grid(args) => super::absent::run(args, console, "`tune grid`", "language"),
    }
}

const ALL: [Format; 4] = [Format::Human, Format::Json, Format::Csv, Format::Svg];

fn regress(args: &RegressArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&ALL)?;
    let (score, groups) = load(&args.table, console)?;
    let options = Options {
        unit: match args.unit {
            UnitName::Configurations => Unit::Configurations,
            UnitName::Runs => Unit::Runs,
        },
        errors: args.errors.map(|errors| match errors {
            ErrorsName::Classical => Errors::Classical,
            ErrorsName::Hc1 => Errors::Hc1,
            ErrorsName::Hc3 => Errors::Hc3,
            ErrorsName::Configuration => Errors::Configuration,
            ErrorsName::Seed => Errors::Seed,
        }),
        confidence: args.confidence,
        log_base: args.log_base,
        standardise: args.standardize,
    };
    let found = tuning::regression::regress(&groups, &score, &options).map_err(failure)?;
    match format {
        Format::Json => console.json(&found)?,
        Format::Svg => svg(&tuning::figures::regression(&found), console)?,
        Format::Csv => {
            let head =
                ["name", "estimate", "standard_error", "statistic", "p_value", "lower", "upper"];
            let mut text = csv_line(head);
            for e in found.coefficients.iter().chain(&found.contrasts) {
                let numbers =
                    [e.estimate, e.standard_error, e.statistic, e.p_value, e.lower, e.upper];
                let cells = numbers.iter().map(f64::to_string);
                text.push_str(&csv_line(std::iter::once(e.name.clone()).chain(cells)));
            }
            console.answer(&text)?;
        }
        Format::Human => console.answer(&human::regression(&found))?,
    }
    warn(&found.warnings, console);
    Ok(exit::ANSWERED)
}

fn rank(args: &RankArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&ALL)?;
    let (score, groups) = load(&args.table, console)?;
    let found = tuning::rank(&groups, &score, args.confidence).map_err(failure)?;
    match format {
        Format::Json => console.json(&found)?,
        Format::Svg => svg(&tuning::figures::ranking(&found), console)?,
        Format::Csv => {
            let head = [
                "epsilon",
                "delta",
                "batch_size",
                "steps",
                "learning_rate",
                "clip_norm",
                "runs",
                "score",
                "utility",
                "audit_epsilon",
            ];
            let mut text = csv_line(head);
            let optional = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
            for group in &found.groups {
                for c in &group.configurations {
                    text.push_str(&csv_line([
                        group.epsilon.to_string(),
                        group.delta.to_string(),
                        c.batch_size.to_string(),
                        c.steps.to_string(),
                        c.learning_rate.to_string(),
                        optional(c.clip_norm),
                        c.run_scores.len().to_string(),
                        c.score.to_string(),
                        optional(c.utility),
                        optional(c.audit_epsilon),
                    ]));
                }
            }
            console.answer(&text)?;
        }
        Format::Human => console.answer(&human::ranking(&found))?,
    }
    warn(&found.warnings, console);
    Ok(exit::ANSWERED)
}

fn select(args: &SelectArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&ALL)?;
    let (score, groups) = load(&args.table, console)?;
    let better = if args.lower_utility_is_better { Better::Lower } else { Better::Higher };
    let found =
        tuning::selection::select(&groups, &score, &args.min_utility, better).map_err(failure)?;
    match format {
        Format::Json => console.json(&found)?,
        Format::Svg => svg(&tuning::figures::selection(&found, one(&groups)?), console)?,
        Format::Csv => {
            let head = [
                "epsilon",
                "threshold",
                "candidates",
                "chooser",
                "configuration",
                "utility",
                "score",
                "excess",
                "normalised",
            ];
            let mut text = csv_line(head);
            let optional = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
            for group in &found.groups {
                for at in &group.at {
                    for choice in &at.choices {
                        text.push_str(&csv_line([
                            group.epsilon.to_string(),
                            at.threshold.to_string(),
                            at.candidates.to_string(),
                            choice.chooser.as_str().to_owned(),
                            choice.name.clone().unwrap_or_default(),
                            optional(choice.utility),
                            choice.score.to_string(),
                            optional(choice.excess),
                            choice.normalised.to_string(),
                        ]));
                    }
                }
            }
            console.answer(&text)?;
        }
        Format::Human => console.answer(&human::selection(&found))?,
    }
    warn(&found.warnings, console);
    Ok(exit::ANSWERED)
}

fn profiles(args: &ProfilesArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&ALL)?;
    let (score, groups) = load(&args.table, console)?;
    let found = tuning::profiles::profiles(&groups, &score, args.dataset_size).map_err(failure)?;
    match format {
        Format::Json => console.json(&found)?,
        Format::Svg => svg(&tuning::figures::profiles(&found, one(&groups)?), console)?,
        Format::Csv => {
            let head = [
                "epsilon",
                "delta",
                "batch_size",
                "steps",
                "noise_multiplier",
                "last_iterate",
                "last_iterate_max",
                "advantage",
                "tpr_at_fpr_0.01",
                "score",
            ];
            let mut text = csv_line(head);
            for group in &found.groups {
                for m in &group.mechanisms {
                    let numbers = [
                        m.noise_multiplier,
                        m.last_iterate,
                        m.last_iterate_max,
                        m.advantage,
                        m.tpr,
                        m.score,
                    ];
                    let start = [
                        m.epsilon.to_string(),
                        group.delta.to_string(),
                        m.batch_size.to_string(),
                        m.steps.to_string(),
                    ];
                    let cells = start.into_iter().chain(numbers.iter().map(f64::to_string));
                    text.push_str(&csv_line(cells));
                }
            }
            console.answer(&text)?;
        }
        Format::Human => console.answer(&human::profiles(&found))?,
    }
    warn(&found.warnings, console);
    Ok(exit::ANSWERED)
}

fn search(args: &SearchArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let table = Table::read(&args.table).map_err(failure)?;
    let mut runs: Vec<Run> = Vec::new();
    let mut deltas: Vec<f64> = Vec::new();
    // Rows that differ by learning rate or seed are one mechanism: solved for once.
    let mut solved: Vec<([f64; 4], f64)> = Vec::new();
    for row in &table.rows {
        if args.epsilon.is_some_and(|epsilon| epsilon != row.epsilon) {
            continue;
        }
        let rate = row.batch_size / args.dataset_size as f64;
        if rate > 1.0 {
            return Err(Failure::bad_input(format!(
                "batch size {} is larger than the data set of {}",
                row.batch_size, args.dataset_size
            )));
        }
        let noise = match row.noise_multiplier {
            Some(noise) => noise,
            None => {
                let key = [rate, row.steps as f64, row.epsilon, row.delta];
                match solved.iter().find(|(known, _)| *known == key) {
                    Some((_, noise)) => *noise,
                    None => {
                        let noise = calibrated(rate, row.steps, row.epsilon, row.delta)?;
                        solved.push((key, noise));
                        noise
                    }
                }
            }
        };
        let run = Run::builder().phase(noise, rate, row.steps).build()?;
        if !runs.contains(&run) {
            runs.push(run);
        }
        if !deltas.contains(&row.delta) {
            deltas.push(row.delta);
        }
    }
    let delta = match (args.delta, &deltas[..]) {
        (Some(delta), _) => delta,
        (None, [delta]) => *delta,
        (None, []) => {
            return Err(Failure::bad_input("no row has this epsilon").hint("drop --epsilon"));
        }
        (None, _) => {
            return Err(Failure::bad_input("the rows have several deltas")
                .hint("give the delta of the search with --delta"));
        }
    };
    let trials = match args.trials {
        TrialsName::Geometric => Trials::Geometric,
        TrialsName::Logarithmic => Trials::Logarithmic,
        TrialsName::Poisson => Trials::Poisson,
    };
    let found =
        tuning::search::search(&runs, args.expected_trials, trials, delta).map_err(failure)?;
    match format {
        Format::Json => console.json(&found)?,
        _ => console.answer(&human::search(&found, runs.len()))?,
    }
    Ok(exit::ANSWERED)
}

/// The noise multiplier that meets (epsilon, delta).
fn calibrated(rate: f64, steps: u64, epsilon: f64, delta: f64) -> Result<f64, Failure> {
    use accounting::{Solution, Target, Unknown, calibrate};
    let run = Run::builder().phase(1.0, rate, steps).build()?;
    let target = Target::Epsilon { epsilon, delta };
    let lens = vocabulary::LensName::Composition;
    match calibrate(&run, Unknown::NoiseMultiplier, &target, lens, &[])?.solution {
        Solution::NoiseMultiplier(noise) => Ok(noise),
        other => Err(Failure::new(exit::BUG, format!("calibration answered {other:?}"))),
    }
}

/// The score's name and the groups asked for.
fn load(args: &TableArgs, console: &mut Console) -> Result<(String, Vec<Group>), Failure> {
    let table = Table::read(&args.table).map_err(failure)?;
    if !table.ignored.is_empty() {
        console.note(&format!("columns that are not read: {}", table.ignored.join(", ")));
    }
    let score = table.score(args.score.as_deref()).map_err(failure)?;
    let mut groups = tuning::groups(&table, score).map_err(failure)?;
    if let Some(epsilon) = args.epsilon {
        let known: Vec<String> = groups.iter().map(|g| g.epsilon.to_string()).collect();
        groups.retain(|group| group.epsilon == epsilon);
        if groups.is_empty() {
            return Err(Failure::bad_input(format!(
                "no run has epsilon {epsilon}; the table has {}",
                known.join(", ")
            )));
        }
    }
    Ok((table.scores[score].clone(), groups))
}

/// The only group, for a figure of one (epsilon, delta).
fn one(groups: &[Group]) -> Result<usize, Failure> {
    match groups {
        [_] => Ok(0),
        several => {
            let known: Vec<String> = several.iter().map(|g| g.epsilon.to_string()).collect();
            Err(Failure::bad_input("this figure shows one epsilon")
                .hint(format!("choose one with --epsilon: {}", known.join(", "))))
        }
    }
}

fn svg(figure: &Figure, console: &mut Console) -> Result<(), Failure> {
    console.answer(&figures::to_svg(figure, &figures::Options::default()))
}

fn warn(warnings: &[String], console: &mut Console) {
    for warning in warnings {
        console.warn(warning);
    }
}

fn failure(error: TuningError) -> Failure {
    match error {
        TuningError::Accounting(error) => error.into(),
        TuningError::Run(error) => error.into(),
        TuningError::TooLittle(message) => Failure::refused(message),
        TuningError::Read { .. } => Failure::bad_input(error.to_string())
            .hint("give a CSV, JSONL or Parquet table of results, one row per training"),
        other => Failure::bad_input(other.to_string()),
    }
}
