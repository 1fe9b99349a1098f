//! The dispatch table: one variant and one file per command.

#[cfg(not(feature = "full"))]
mod absent;
mod account;
mod attack;
mod audit;
mod calibrate;
mod check;
mod compare;
mod completions;
mod curve;
mod data;
mod explain;
mod manual;
#[cfg(feature = "language")]
mod memorize;
mod plan;
mod prove;
mod report;
#[cfg(feature = "papers")]
mod reproduce;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod status;
mod train;
mod translate;
mod tune;

use crate::args::Format;
use crate::console::Console;
use answers::{Ask, Document, Refusal};
use clap::{Parser, Subcommand};

/// Measures what a DP-SGD training run really leaks: the proven epsilon, what an attacker can do
/// with it, and what an audit shows. Every number says whether it is proven, heuristic, an estimate
/// or measured, and is rounded to its safe side.
#[derive(Debug, Parser)]
#[command(
    name = "dosimeter",
    version,
    before_help = EXAMPLES,
    after_help = EXIT_CODES,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = crate::print::WIDTH
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  dosimeter account --noise-multiplier 1 --sample-rate 0.01 --steps 1000 \\
      --delta 1e-5
  dosimeter calibrate --target-epsilon 2 --delta 1e-5 --sample-rate 0.01 \\
      --steps 1000
  dosimeter check run.toml --max-epsilon 8 --delta 1e-5
";

const EXIT_CODES: &str = "\
Exit codes: 0 answered, 1 bug, 2 bad input, 3 a check failed, 4 incomplete (run
again), 5 refused (the number cannot be certified), 130 interrupted";

/// What can be asked, in the order of the README's table.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what a DP-SGD run leaks: its epsilon, and what an attacker can do
    Account(account::AccountArgs),
    /// Find the noise, batch size, sample rate, steps or epochs that meet a target
    Calibrate(calibrate::CalibrateArgs),
    /// Convert between epsilon, mu, attack rates, advantage and Bayes security
    Translate(translate::TranslateArgs),
    /// Print trade-off curves, privacy profiles, or epsilon against steps
    Curve(curve::CurveArgs),
    /// Put several runs, or all lenses of one run, side by side
    Compare(compare::CompareArgs),
    /// Check a run against a policy, for continuous integration: exit 3 when it fails
    Check(check::CheckArgs),
    /// Verify every certified end in ball arithmetic: exit 3 when one is wrong
    Prove(prove::ProveArgs),
    /// Turn membership scores into lower bounds on epsilon, and test a claim
    Audit(audit::AuditArgs),
    /// Say how many trainings or canaries an audit needs
    Plan(plan::PlanArgs),
    /// Train or simulate with and without a canary, and write membership scores
    Attack(attack::AttackArgs),
    /// Train one model with DP-SGD or DP-Adam, and write its ledger
    Train(train::TrainArgs),
    /// Show how far an experiment is: done, missing, failed, time left
    Status(status::StatusArgs),
    /// Compare hyper-parameters by how much their models memorise at one epsilon
    Tune(tune::TuneArgs),
    /// Measure how many secrets a language model gives away
    #[cfg(feature = "language")]
    Memorize(memorize::MemorizeArgs),
    /// Measure how many secrets a language model gives away (not part of this build)
    #[cfg(not(feature = "language"))]
    Memorize(absent::AbsentArgs),
    /// Compute a figure or table of the papers again, with its data
    #[cfg(feature = "papers")]
    Reproduce(reproduce::ReproduceArgs),
    /// Compute a figure or table of the papers again, with its data (not part of this build)
    #[cfg(not(feature = "papers"))]
    Reproduce(absent::AbsentArgs),
    /// Write one document for the person who signs; without arguments, about a built-in example
    Report(report::ReportArgs),
    /// Open the interactive page, for this machine only
    #[cfg(feature = "serve")]
    Serve(serve::ServeArgs),
    /// Open the interactive page, for this machine only (not part of this build)
    #[cfg(not(feature = "serve"))]
    Serve(absent::AbsentArgs),
    /// List known data sets, verify their files, or describe a CSV of your own
    Data(data::DataArgs),
    /// Print the JSON schemas of the documents
    Schema(schema::SchemaArgs),
    /// Print shell completions, or write man pages
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Runs the command; the number is the exit code.
    ///
    /// # Errors
    /// With the exit code, the sentence and the hint to print.
    pub fn run(&self, console: &mut Console) -> Result<u8, Refusal> {
        match self {
            Self::Account(args) => account::run(args, console),
            Self::Calibrate(args) => calibrate::run(args, console),
            Self::Curve(args) => curve::run(args, console),
            Self::Compare(args) => compare::run(args, console),
            Self::Check(args) => check::run(args, console),
            Self::Prove(args) => prove::run(args, console),
            Self::Audit(args) => audit::run(args, console),
            Self::Plan(args) => plan::run(args, console),
            Self::Attack(args) => attack::run(args, console),
            Self::Report(args) => report::run(args, console),
            #[cfg(feature = "serve")]
            Self::Serve(args) => serve::run(args, console),
            #[cfg(not(feature = "serve"))]
            Self::Serve(args) => absent::run(args, console, "`serve`", "serve"),
            Self::Status(args) => status::run(args, console),
            #[cfg(feature = "language")]
            Self::Memorize(args) => memorize::run(args, console),
            #[cfg(not(feature = "language"))]
            Self::Memorize(args) => absent::run(args, console, "`memorize`", "language"),
            Self::Tune(args) => tune::run(args, console),
            #[cfg(feature = "papers")]
            Self::Reproduce(args) => reproduce::run(args, console),
            #[cfg(not(feature = "papers"))]
            Self::Reproduce(args) => absent::run(args, console, "`reproduce`", "papers"),
            Self::Train(args) => train::run(args, console),
            Self::Data(args) => data::run(args, console),
            Self::Translate(args) => translate::run(args, console),
            Self::Completions(args) => completions::run(args, console),
            Self::Schema(args) => schema::run(args, console),
        }
    }
}

/// Asks, shows the answer and its warnings; the number is the exit code.
fn answer<Q: Ask>(
    question: &Q,
    format: Format,
    console: &mut Console,
    shown: impl FnOnce(&Q::Answer) -> String,
) -> Result<u8, Refusal> {
    show(&question.ask()?, format, console, shown)
}

/// Shows an answer and its warnings; the number is the exit code.
fn show<D: Document>(
    document: &D,
    format: Format,
    console: &mut Console,
    shown: impl FnOnce(&D) -> String,
) -> Result<u8, Refusal> {
    let text = if format == Format::Json { document.text() } else { shown(document) };
    console.answer(&text)?;
    for warning in document.warnings() {
        console.warn(&warning);
    }
    Ok(document.exit_code())
}
