//! `translate`: Bayes security, epsilon and delta, mu, attack accuracy and true positive rates in
//! terms of each other, each with its direction.

use crate::args::{Format, OutputArgs, real};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use crate::print::{Align, Table, plain, rounded};
use accounting::AccountingError;
use accounting::bayes_security::translate as by;
use accounting::domain;
use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::Side;

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

/// One number in other terms: the `dosimeter.translate/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Translation {
    pub schema: String,
    pub from: String,
    /// What holds because of it.
    pub entries: Vec<Entry>,
}

/// A number with the side on which it bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Entry {
    pub quantity: String,
    /// Absent when infinite.
    pub value: Option<f64>,
    pub side: Side,
    pub note: String,
}

impl Translation {
    pub(crate) const SCHEMA: &'static str = "dosimeter.translate/1";
}

pub(super) fn run(args: &TranslateArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let answer = translated(args)?;
    match format {
        Format::Json => console.json(&answer)?,
        _ => console.answer(&human(&answer))?,
    }
    Ok(exit::ANSWERED)
}

fn translated(args: &TranslateArgs) -> Result<Translation, Failure> {
    domain::check_probability("prior", args.prior)?;
    domain::check_probability("false positive rate", args.fpr)?;
    if let Some(delta) = args.delta {
        domain::check_delta(delta)?;
    }
    let mut entries = Vec::new();
    let (from, security) = source(args)?;
    let mut put = |quantity: String, value: f64, side: Side, note: &str| {
        let value = decimal(value);
        entries.push(Entry {
            quantity,
            value: value.is_finite().then_some(value),
            side,
            note: note.into(),
        });
    };
    put(
        "Bayes security".into(),
        security,
        Side::Lower,
        match () {
            () if args.bayes_security.is_some() => "as given",
            () if args.epsilon.is_some() => "2 (1 - delta)/(e^epsilon + 1); randomised response",
            () if args.mu.is_some() => "2 Phi(-mu/2); the Gaussian mechanism",
            () => "enough for the target; `calibrate` finds the noise",
        },
    );
    put("advantage".into(), 1.0 - security, Side::Upper, "TPR - FPR of any attack");
    put(
        format!("attack accuracy @ prior {}", plain(args.prior)),
        by::attack_accuracy(security, args.prior),
        Side::Upper,
        if args.prior == 0.5 { "1 - beta/2" } else { "the curve may say less" },
    );
    put(
        format!("TPR @ FPR {}", plain(args.fpr)),
        by::tpr(security, args.fpr),
        Side::Upper,
        "FPR + advantage; the curve (account, curve) says less",
    );
    if let (Some(delta), None) = (args.delta, args.epsilon) {
        put(
            format!("epsilon @ delta {}", plain(delta)),
            by::least_epsilon(security, delta),
            Side::Lower,
            "no smaller epsilon can hold if the security is no larger; loose",
        );
    }
    Ok(Translation { schema: Translation::SCHEMA.into(), from, entries })
}

/// The short decimal that a sum of decimals was meant to be: 1 - 0.95 is 0.05, not a bit more.
fn decimal(value: f64) -> f64 {
    let short = format!("{value:.11e}").parse().unwrap_or(value);
    if (value - short).abs() <= 2.0 * f64::EPSILON { short } else { value }
}

/// What was given, in words, and the Bayes security that it guarantees (or needs).
fn source(args: &TranslateArgs) -> Result<(String, f64), Failure> {
    if let Some(beta) = args.bayes_security {
        if !(0.0..=1.0).contains(&beta) {
            return Err(Failure::bad_input(format!("Bayes security {beta} is outside [0, 1]")));
        }
        return Ok((format!("Bayes security {}", plain(beta)), beta));
    }
    if let Some(epsilon) = args.epsilon {
        domain::check_epsilon(epsilon)?;
        let delta = args
            .delta
            .ok_or_else(|| Failure::bad_input("--epsilon needs a delta; add --delta, e.g. 1e-5"))?;
        let from = format!("epsilon {} at delta {}", plain(epsilon), plain(delta));
        return Ok((from, by::security_of_epsilon(epsilon, delta)));
    }
    if let Some(mu) = args.mu {
        if !(mu >= 0.0 && mu.is_finite()) {
            return Err(Failure::bad_input(format!(
                "mu {mu} is not a finite number of at least 0"
            )));
        }
        return Ok((format!("mu {}", plain(mu)), by::security_of_mu(mu)));
    }
    let (from, needed) = if let Some(accuracy) = args.attack_accuracy {
        let from = format!("attack accuracy {} at prior {}", plain(accuracy), plain(args.prior));
        (from, by::security_for_accuracy(accuracy, args.prior))
    } else if let Some(tpr) = args.tpr {
        let from = format!("TPR {} at FPR {}", plain(tpr), plain(args.fpr));
        (from, by::security_for_tpr(tpr, args.fpr))
    } else {
        return Err(Failure::bad_input("there is nothing to translate")
            .hint("give one of --bayes-security, --epsilon, --mu, --attack-accuracy, --tpr"));
    };
    if !(0.0..1.0).contains(&needed) {
        return Err(AccountingError::InvalidInput(format!(
            "{from} would need Bayes security {needed}, which is outside [0, 1); guessing already \
             does as well, or everything meets it"
        ))
        .into());
    }
    Ok((from, needed))
}

fn human(answer: &Translation) -> String {
    let mut table = Table::new([("", Align::Left), ("", Align::Right), ("", Align::Left)]);
    for entry in &answer.entries {
        let sign = if entry.side == Side::Upper { "<=" } else { ">=" };
        let number = match entry.value {
            Some(value) => format!("{sign} {}", rounded(value, 4, entry.side)),
            None => "infinite".into(),
        };
        table.row([entry.quantity.clone(), number, entry.note.clone()]);
    }
    format!("{}\n{}", answer.from, table.render(2))
}
