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
mod data_describe;
mod explain;
#[cfg(feature = "language")]
mod finetune;
mod manual;
#[cfg(feature = "language")]
mod memorize;
mod plan;
mod prove;
mod report;
mod report_example;
mod report_format;
#[cfg(feature = "papers")]
mod reproduce;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod status;
mod train;
mod trained;
mod translate;
mod tune;

use crate::args::Format;
use crate::console::Console;
use crate::failure::Failure;
use answers::{Ask, Document};
use clap::{Parser, Subcommand};

/// Measures what a DP-SGD training run really leaks: what is proven, what is expected, what an
/// attack measured, each number with its standing and on its safe side.
#[derive(Debug, Parser)]
#[command(
    name = "dosimeter",
    version,
    before_help = EXAMPLES,
    after_help = EXIT_CODES,
    arg_required_else_help = false,
    disable_help_subcommand = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  dosimeter account --noise-multiplier 1 --sample-rate 0.01 --steps 1000 --delta 1e-5
  dosimeter calibrate --target-epsilon 2 --delta 1e-5 --sample-rate 0.01 --steps 1000
  dosimeter check run.toml --max-epsilon 8 --delta 1e-5
";

const EXIT_CODES: &str = "\
Exit codes: 0 answered, 1 bug, 2 bad input, 3 a check failed, 4 incomplete (run again),
5 refused (outside of the domain or cannot be certified), 130 interrupted";

/// What can be asked.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What does this DP-SGD run leak, under every lens
    Account(account::AccountArgs),
    /// Which noise, batch size, rate, steps or epochs meets a target
    Calibrate(calibrate::CalibrateArgs),
    /// The curves behind the numbers
    Curve(curve::CurveArgs),
    /// Several runs, or all lenses of one, side by side
    Compare(compare::CompareArgs),
    /// Gate for continuous integration: exit 3 when the run breaks the policy
    Check(check::CheckArgs),
    /// Check every certified end again, in ball arithmetic: exit 3 when one is wrong
    Prove(prove::ProveArgs),
    /// Membership scores in, valid lower bounds out
    Audit(audit::AuditArgs),
    /// How many runs or canaries an audit needs
    Plan(plan::PlanArgs),
    /// Play a game and write its scores
    Attack(attack::AttackArgs),
    /// One document for the person who signs; without arguments the built-in example
    Report(report::ReportArgs),
    /// The interactive page on loopback
    #[cfg(feature = "serve")]
    Serve(serve::ServeArgs),
    /// The interactive page on loopback (not part of this build)
    #[cfg(not(feature = "serve"))]
    Serve(absent::AbsentArgs),
    /// An experiment folder: done, missing, failed, time left
    Status(status::StatusArgs),
    /// Memorisation of secrets by a language model
    #[cfg(feature = "language")]
    Memorize(memorize::MemorizeArgs),
    /// Memorisation of secrets by a language model (not part of this build)
    #[cfg(not(feature = "language"))]
    Memorize(absent::AbsentArgs),
    /// Hyper-parameters and empirical privacy: regression, ranking, selection on a table of results
    Tune(tune::TuneArgs),
    /// A figure or table of the papers, with its data
    #[cfg(feature = "papers")]
    Reproduce(reproduce::ReproduceArgs),
    /// A figure or table of the papers, with its data (not part of this build)
    #[cfg(not(feature = "papers"))]
    Reproduce(absent::AbsentArgs),
    /// One DP-SGD or DP-Adam run, with its ledger
    Train(train::TrainArgs),
    /// Known data sets: where to get them, licence, checksum; verifies files
    Data(data::DataArgs),
    /// Epsilon, mu, attack terms and Bayes security, each in terms of the others
    Translate(translate::TranslateArgs),
    /// Completions for a shell, and man pages
    Completions(completions::CompletionsArgs),
    /// JSON schemas of the documents
    Schema(schema::SchemaArgs),
}

impl Command {
    /// Runs the command; the number is the exit code.
    ///
    /// # Errors
    /// With the exit code, the sentence and the hint to print.
    pub fn run(&self, console: &mut Console) -> Result<u8, Failure> {
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
) -> Result<u8, Failure> {
    show(&question.ask()?, format, console, shown)
}

/// Shows an answer and its warnings; the number is the exit code.
fn show<D: Document>(
    document: &D,
    format: Format,
    console: &mut Console,
    shown: impl FnOnce(&D) -> String,
) -> Result<u8, Failure> {
    let text = if format == Format::Json { document.text() } else { shown(document) };
    console.answer(&text)?;
    for warning in document.warnings() {
        console.warn(&warning);
    }
    Ok(document.exit_code())
}
