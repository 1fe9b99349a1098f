//! `translate`: Bayes security, epsilon and delta, mu, attack accuracy and true positive rates in
//! terms of each other, each with its direction.

use super::answer;
use crate::args::{Format, OutputArgs, real};
use crate::console::Console;
use crate::failure::Failure;
use crate::print::{Align, Table};
use answers::{TranslateQuestion, Translation};
use clap::Args;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter translate --bayes-security 0.9
  dosimeter translate --epsilon 2 --delta 1e-5 --fpr 0.01
  dosimeter translate --attack-accuracy 0.55
")]
pub struct TranslateArgs {
    /// From: Bayes security, 1 = no leakage
    #[arg(long, value_name = "B", value_parser = real, allow_hyphen_values = true, group = "from")]
    bayes_security: Option<f64>,
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
    /// Delta of epsilon
    #[arg(long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true)]
    delta: Option<f64>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &TranslateArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let question = TranslateQuestion {
        bayes_security: args.bayes_security,
        epsilon: args.epsilon,
        mu: args.mu,
        attack_accuracy: args.attack_accuracy,
        tpr: args.tpr,
        prior: Some(args.prior),
        fpr: Some(args.fpr),
        delta: args.delta,
    };
    answer(&question, format, console, human)
}

fn human(answer: &Translation) -> String {
    let mut table = Table::new([("", Align::Left), ("", Align::Right), ("", Align::Left)]);
    for entry in &answer.entries {
        let number = match entry.value {
            Some(_) => entry.shown.clone(),
            None => "infinite".into(),
        };
        table.row([entry.quantity.clone(), number, entry.note.clone()]);
    }
    format!("{}\n{}", answer.from, table.render(2))
}
