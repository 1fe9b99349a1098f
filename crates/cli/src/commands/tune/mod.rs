//! `tune`: hyper-parameters and empirical privacy, on a table of results.

mod csv;
#[cfg(feature = "language")]
mod grid;
mod human;

use crate::args::{Format, OutputArgs};
use crate::console::Console;
use crate::exit;
use answers::{
    Document, ProfilesQuestion, RankQuestion, Refusal, RegressQuestion, SearchQuestion,
    SelectQuestion, TuneQuestion, Tuned,
};
use clap::{Args, Subcommand};
use std::path::PathBuf;

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
  batch_size, steps, learning_rate, clip_norm, epsilon, delta, seed,
  score_*, utility, audit_epsilon
Scores measure memorisation: larger is worse.
")]
pub struct TuneArgs {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    /// Which hyper-parameters explain memorisation: regression on the logarithms of batch size,
    /// steps and learning rate
    Regress(Asked<RegressQuestion>),
    /// How much memorisation varies at one epsilon, and how often simple rules rank it right
    Rank(Asked<RankQuestion>),
    /// Choose a configuration, and compare the choice with the best one in hindsight
    Select(Asked<SelectQuestion>),
    /// Privacy profiles and last-iterate epsilons of the same configurations
    Profiles(Asked<ProfilesQuestion>),
    /// The epsilon of a whole search with a random number of trials
    Search(SearchArgs),
    /// Train a grid of configurations of a language model, measure each, and write the table
    #[cfg(feature = "language")]
    Grid(grid::GridArgs),
    /// Train a grid of configurations of a language model (not part of this build)
    #[cfg(not(feature = "language"))]
    Grid(super::absent::AbsentArgs),
}

/// A question about a table.
#[derive(Debug, Args)]
struct Asked<Q: Args> {
    /// Results: CSV, JSONL or Parquet, one row per training
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    #[command(flatten)]
    question: Q,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(override_usage = "\
dosimeter tune search [OPTIONS] --dataset-size <N>
                             --expected-trials <M> <TABLE>")]
struct SearchArgs {
    /// Results, or a plan with the same columns and an empty score: the configurations to draw from
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    #[command(flatten)]
    question: SearchQuestion,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &TuneArgs, console: &mut Console) -> Result<u8, Refusal> {
    let (question, table, output) = match &args.question {
        Question::Regress(args) => {
            (TuneQuestion::Regress(args.question.clone()), &args.table, &args.output)
        }
        Question::Rank(args) => {
            (TuneQuestion::Rank(args.question.clone()), &args.table, &args.output)
        }
        Question::Select(args) => {
            (TuneQuestion::Select(args.question.clone()), &args.table, &args.output)
        }
        Question::Profiles(args) => {
            (TuneQuestion::Profiles(args.question.clone()), &args.table, &args.output)
        }
        Question::Search(args) => {
            (TuneQuestion::Search(args.question.clone()), &args.table, &args.output)
        }
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
