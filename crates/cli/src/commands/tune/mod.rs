//! `tune`: hyper-parameters and empirical privacy, on a table of results.

mod csv;
#[cfg(feature = "language")]
mod grid;
mod human;

use crate::args::{Format, OutputArgs, integer, real, word};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use answers::{
    Document, ProfilesQuestion, RankQuestion, RegressQuestion, SearchQuestion, SelectQuestion,
    TuneQuestion, Tuned,
};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use tuning::regression::{Errors, Unit};
use tuning::search::Trials;

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
    /// What one observation is: a configuration (the mean over its seeds) or a run
    #[arg(long, value_parser = word::<Unit>(["configurations", "runs"]), default_value = "configurations")]
    unit: Unit,
    /// How errors are estimated; default hc3 for configurations, clustered by configuration for runs
    #[arg(long, value_parser = word::<Errors>(["classical", "hc1", "hc3", "configuration", "seed"]))]
    errors: Option<Errors>,
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
    #[arg(long, value_parser = word::<Trials>(["geometric", "logarithmic", "poisson"]), default_value = "geometric")]
    trials: Trials,
    /// Delta of the search; default: the table's
    #[arg(long, value_name = "D", value_parser = real, allow_hyphen_values = true)]
    delta: Option<f64>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &TuneArgs, console: &mut Console) -> Result<u8, Failure> {
    let (question, table, output) = match &args.question {
        Question::Regress(args) => (regress(args), &args.table.table, &args.output),
        Question::Rank(args) => (rank(args), &args.table.table, &args.output),
        Question::Select(args) => (select(args), &args.table.table, &args.output),
        Question::Profiles(args) => (profiles(args), &args.table.table, &args.output),
        Question::Search(args) => (search(args), &args.table, &args.output),
        #[cfg(feature = "language")]
        Question::Grid(args) => return grid::run(args, console),
        #[cfg(not(feature = "language"))]
        Question::Grid(args) => {
            return super::absent::run(args, console, "`tune grid`", "language");
        }
    };
    let all = [Format::Human, Format::Json, Format::Csv, Format::Svg];
    // A search is one number: it has no rows and no picture.
    let some = if matches!(question, TuneQuestion::Search(_)) { &all[..2] } else { &all[..] };
    let format = output.among(some)?;
    let table = answers::read_trainings(table)?;
    if !table.ignored.is_empty() {
        console.note(&format!("columns that are not read: {}", table.ignored.join(", ")));
    }
    let found = answers::tune(&question, &table)?;
    match format {
        Format::Json => console.json(&found)?,
        Format::Svg => {
            let figure = found.figure()?;
            console.answer(&figures::to_svg(&figure, &figures::Options::default()))?;
        }
        Format::Csv => console.answer(&match &found {
            Tuned::Regression(found) => csv::regression(found),
            Tuned::Ranking(found) => csv::ranking(found),
            Tuned::Selection(found) => csv::selection(found),
            Tuned::Profiles(found) => csv::profiles(found),
            Tuned::Search(_) => String::new(),
        })?,
        Format::Human => console.answer(&match &found {
            Tuned::Regression(found) => human::regression(found),
            Tuned::Ranking(found) => human::ranking(found),
            Tuned::Selection(found) => human::selection(found),
            Tuned::Profiles(found) => human::profiles(found),
            Tuned::Search(found) => human::search(found),
        })?,
    }
    for warning in found.warnings() {
        console.warn(&warning);
    }
    Ok(exit::ANSWERED)
}

fn regress(args: &RegressArgs) -> TuneQuestion {
    TuneQuestion::Regress(RegressQuestion {
        score: args.table.score.clone(),
        epsilon: args.table.epsilon,
        unit: args.unit,
        errors: args.errors,
        confidence: Some(args.confidence),
        log_base: Some(args.log_base),
        standardize: args.standardize,
    })
}

fn rank(args: &RankArgs) -> TuneQuestion {
    TuneQuestion::Rank(RankQuestion {
        score: args.table.score.clone(),
        epsilon: args.table.epsilon,
        confidence: Some(args.confidence),
    })
}

fn select(args: &SelectArgs) -> TuneQuestion {
    TuneQuestion::Select(SelectQuestion {
        score: args.table.score.clone(),
        epsilon: args.table.epsilon,
        min_utility: args.min_utility.clone().into(),
        lower_utility_is_better: args.lower_utility_is_better,
    })
}

fn profiles(args: &ProfilesArgs) -> TuneQuestion {
    TuneQuestion::Profiles(ProfilesQuestion {
        score: args.table.score.clone(),
        epsilon: args.table.epsilon,
        dataset_size: args.dataset_size,
    })
}

fn search(args: &SearchArgs) -> TuneQuestion {
    TuneQuestion::Search(SearchQuestion {
        epsilon: args.epsilon,
        dataset_size: args.dataset_size,
        expected_trials: args.expected_trials,
        trials: args.trials,
        delta: args.delta,
    })
}
