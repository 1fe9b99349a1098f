//! `translate`: Bayes security, epsilon and delta, mu, attack accuracy and true positive rates in
//! terms of each other, each with its direction.

use super::answer;
use crate::args::{Format, OutputArgs, RunArgs, read_files, real};
use crate::console::Console;
use crate::failure::Failure;
use crate::print::{Align, Table, wrap};
use answers::{TranslateQuestion, TranslatedNumber, Translation};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter translate --epsilon 2 --delta 1e-5 --fpr 0.01
  dosimeter translate --mu 1 --delta 1e-5
  dosimeter translate --tpr 0.05 --fpr 0.01 --delta 1e-5
  dosimeter translate run.toml --delta 1e-5

Each number is read in two ways: of any mechanism, and of one with a Gaussian trade-off
curve. A run besides is read by itself, which says most.
")]
pub struct TranslateArgs {
    /// A run (TOML) or ledger (JSON) to read in the same terms; or the flags of a run
    #[arg(value_name = "RUN.toml|LEDGER.json")]
    files: Vec<PathBuf>,
    /// From: Bayes security, 1 = no leakage
    #[arg(long, value_name = "B", value_parser = real, allow_hyphen_values = true, group = "from")]
    bayes_security: Option<f64>,
    /// From: the membership advantage, TPR - FPR of the best attack
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true, group = "from")]
    advantage: Option<f64>,
    /// From: epsilon (with --delta)
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true, group = "from")]
    epsilon: Option<f64>,
    /// From: Gaussian mu
    #[arg(long, value_name = "M", value_parser = real, allow_hyphen_values = true, group = "from")]
    mu: Option<f64>,
    /// From: the most accurate attacker that is acceptable, at --prior
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true, group = "from")]
    attack_accuracy: Option<f64>,
    /// From: the largest true positive rate that is acceptable, at --fpr
    #[arg(long, value_name = "P", value_parser = real, allow_hyphen_values = true, group = "from")]
    tpr: Option<f64>,
    /// Prior of one of two secrets
    #[arg(long, value_name = "PRIOR", value_parser = real, allow_hyphen_values = true, default_value = "0.5")]
    prior: f64,
    /// False positive rate
    #[arg(long, value_name = "FPR", value_parser = real, allow_hyphen_values = true, default_value = "0.01")]
    fpr: f64,
    /// Delta of epsilon and mu
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true)]
    delta: Option<f64>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &TranslateArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let question = TranslateQuestion {
        bayes_security: args.bayes_security,
        advantage: args.advantage,
        epsilon: args.epsilon,
        mu: args.mu,
        attack_accuracy: args.attack_accuracy,
        tpr: args.tpr,
        prior: Some(args.prior),
        fpr: Some(args.fpr),
        delta: args.delta,
        files: read_files(&args.files)?,
        run: (!args.run.is_empty()).then(|| args.run.description().into()),
    };
    let code = answer(&question, format, console, human)?;
    if args.delta.is_none() && format == Format::Human {
        console.hint("give --delta (well below 1/n) for epsilon");
    }
    Ok(code)
}

fn human(answer: &Translation) -> String {
    let mut text = format!("{}\n", answer.from);
    for reading in &answer.readings {
        let head = format!("{} ({})", reading.words, reading.standing.as_str());
        text.push_str(&format!("\n{}{}", wrap(&head, "", 2, 80), table(&reading.entries)));
    }
    if !answer.enough.is_empty() {
        let head = "\nenough to keep it, each alone:\n";
        text.push_str(&format!("{head}{}", table(&answer.enough)));
    }
    text
}

fn table(entries: &[TranslatedNumber]) -> String {
    let mut table = Table::new([("", Align::Left), ("", Align::Right)]);
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
        text.push_str(&wrap(reason, "  ", 2, 80));
    }
    text
}
