//! `translate`: Bayes security, epsilon and delta, mu, attack accuracy and true positive rates in
//! terms of each other, each with its direction.

use super::answer;
use crate::args::{Format, LimitArgs, OutputArgs, RunArgs, read_files};
use crate::console::Console;
use crate::print::{Align, TextTable, WIDTH, wrap};
use answers::{Refusal, TranslateQuestion, TranslatedNumber, Translation};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter translate --epsilon 2 --delta 1e-5 --fpr 0.01
  dosimeter translate --mu 1 --delta 1e-5
  dosimeter translate --tpr 0.05 --fpr 0.01 --delta 1e-5
  dosimeter translate run.toml --delta 1e-5

Each number is converted twice: for any mechanism, and for one with a Gaussian
trade-off curve. A run that is given besides has numbers of its own, which are
sharper.
")]
pub struct TranslateArgs {
    /// A run (TOML) or ledger (JSON) whose own numbers are printed in the same terms
    #[arg(value_name = "RUN.toml|LEDGER.json")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    question: TranslateQuestion,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &TranslateArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let question = TranslateQuestion {
        time_limit: args.limit.time_limit,
        files: read_files(&args.files)?,
        run: (!args.run.is_empty()).then(|| args.run.description().into()),
        ..args.question.clone()
    };
    let code = answer(&question, format, console, human)?;
    if args.question.delta.is_none() && format == Format::Human {
        console.hint("give --delta (well below 1/n) for epsilon");
    }
    Ok(code)
}

fn human(answer: &Translation) -> String {
    let mut text = format!("{}\n", answer.from);
    for reading in &answer.readings {
        let head = format!("{} ({})", reading.words, reading.standing.as_str());
        text.push_str(&format!("\n{}{}", wrap(&head, "", 2, WIDTH), table(&reading.entries)));
    }
    if !answer.enough.is_empty() {
        let head = "\nenough to keep it, each alone:\n";
        text.push_str(&format!("{head}{}", table(&answer.enough)));
    }
    text
}

fn table(entries: &[TranslatedNumber]) -> String {
    let mut table = TextTable::new([("", Align::Left), ("", Align::Right)]);
    for entry in entries {
        table.row([entry.label.clone(), entry.shown.clone()]);
    }
    let mut text = table.render(2).trim_start_matches('\n').to_owned();
    let mut reasons: Vec<&str> = Vec::new();
    for reason in entries.iter().filter_map(|entry| entry.reason.as_deref()) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    for reason in reasons {
        text.push_str(&wrap(reason, "  ", 2, WIDTH));
    }
    text
}
