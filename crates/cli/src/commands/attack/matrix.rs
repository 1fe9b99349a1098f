//! `attack lira` and `attack rmia`: scores from a matrix of losses that somebody's models have.

use crate::args::{Format, OutputArgs, integer, nonnegative_integer, real};
use crate::commands::show;
use crate::console::{Console, write_file};
use crate::print::audit::interval;
use crate::print::{Align, TextTable};
use answers::{MembershipAttack, MembershipDocument, MembershipQuestion, Refusal};
use clap::Args;
use std::path::PathBuf;
use vocabulary::Measured;

#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack lira losses.npy members.npy --out scores.csv
  dosimeter attack lira losses.npy members.npy --offline --fixed-variance \\
      --target 3 --out scores.csv
  dosimeter audit scores.csv --delta 1e-5

Both files have one row per model and one column per record: the loss -ln p of
the right answer, and 1 where the model was trained on the record, else 0. One
model is attacked; the others are references. The table of records at risk uses
all models.
")]
pub(super) struct LiraArgs {
    #[command(flatten)]
    matrix: MatrixArgs,
    /// Use one variance for all records; better with fewer than a few dozen reference models
    #[arg(long)]
    fixed_variance: bool,
}

#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack rmia losses.npy members.npy --out scores.csv
  dosimeter attack rmia losses.npy members.npy --offline --a 0.3 --gamma 1 \\
      --out scores.csv

Both files have one row per model and one column per record: the loss -ln p of
the right answer, and 1 where the model was trained on the record, else 0. One
model is attacked; the others are references.
")]
pub(super) struct RmiaArgs {
    #[command(flatten)]
    matrix: MatrixArgs,
    /// A member has to be this many times likelier than another record
    #[arg(long, value_name = "G", value_parser = real, allow_hyphen_values = true, default_value = "2")]
    gamma: f64,
    /// With --offline: how far the probability over references is moved towards 1, from 0
    /// (half of the way) to 1 (not at all)
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true, default_value = "0.3")]
    a: f64,
}

#[derive(Clone, Debug, Args)]
struct MatrixArgs {
    /// Losses of models (rows) on records (columns)
    #[arg(value_name = "LOSSES.npy")]
    losses: PathBuf,
    /// 1 where the model was trained on the record, else 0
    #[arg(value_name = "MEMBERS.npy")]
    members: PathBuf,
    /// The first file has logits ln(p / (1 - p)) in place of losses
    #[arg(long)]
    logits: bool,
    /// Use references without the record only
    #[arg(long)]
    offline: bool,
    /// The model that is attacked, from 0
    #[arg(long, value_name = "MODEL", value_parser = nonnegative_integer, default_value = "0")]
    target: u64,
    /// Delta of the bounds on single records
    #[arg(short = 'd', long, value_name = "D", value_parser = real, allow_hyphen_values = true, default_value = "0")]
    delta: f64,
    /// Confidence of the intervals; those of single records hold together
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value = "0.95")]
    confidence: f64,
    /// Report the attack's true positive rate at these false positive rates; repeatable [default:
    /// 0.001, 0.01]
    #[arg(long, value_name = "F", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    fpr: Vec<f64>,
    /// Records in the table of those at risk
    #[arg(long, value_name = "N", value_parser = integer, default_value = "10")]
    top: u64,
    /// File for the scores of the target
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn lira(args: &LiraArgs, console: &mut Console) -> Result<u8, Refusal> {
    let fixed_variance = args.fixed_variance;
    run(&args.matrix, MembershipAttack::Lira, console, |question| MembershipQuestion {
        fixed_variance,
        ..question
    })
}

pub(super) fn rmia(args: &RmiaArgs, console: &mut Console) -> Result<u8, Refusal> {
    let (gamma, a) = (Some(args.gamma), Some(args.a));
    run(&args.matrix, MembershipAttack::Rmia, console, |question| MembershipQuestion {
        gamma,
        a,
        ..question
    })
}

fn run(
    args: &MatrixArgs,
    attack: MembershipAttack,
    console: &mut Console,
    own: impl FnOnce(MembershipQuestion) -> MembershipQuestion,
) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let document = answers::membership(&own(MembershipQuestion {
        attack,
        losses: args.losses.clone(),
        members: args.members.clone(),
        logits: args.logits,
        offline: args.offline,
        fixed_variance: false,
        gamma: None,
        a: None,
        target: size(args.target),
        delta: args.delta,
        confidence: Some(args.confidence),
        fpr: args.fpr.clone(),
        top: Some(size(args.top)),
    }))?;
    if let Some(out) = &args.out {
        write_file(out, document.scores.clone())?;
    }
    let code = show(&document, format, console, human)?;
    if let Some(out) = &args.out {
        console.hint(&format!("dosimeter audit {} --delta 1e-5", out.display()));
    }
    Ok(code)
}

fn human(document: &MembershipDocument) -> String {
    let MembershipDocument { attack, models, records, target, members, .. } = document;
    let mut text = format!(
        "{attack}: model {target} of {models} on {records} records, {members} of them its own\n\n"
    );
    let mut table = TextTable::new([
        ("the attack", Align::Left),
        ("value", Align::Right),
        ("from", Align::Right),
        ("to", Align::Right),
    ]);
    let mut row = |name: String, one: &Measured| {
        let [value, lower, upper] = interval(one);
        table.row([name, value, lower, upper]);
    };
    row("AUROC".to_owned(), &document.auroc);
    for one in &document.tpr {
        row(format!("TPR at FPR {}", one.fpr), &one.measured);
    }
    text.push_str(&table.render(2));
    text.push_str("  intervals take the records for independent\n");
    text.push_str(&format!(
        "\nRecords most at risk, over all models (delta {}; the whole table holds together)\n",
        crate::print::plain(document.delta)
    ));
    let mut table = TextTable::new([
        ("record", Align::Right),
        ("epsilon", Align::Right),
        ("advantage", Align::Right),
        ("from", Align::Right),
        ("to", Align::Right),
    ]);
    for one in &document.at_risk {
        let [value, lower, upper] = interval(&one.advantage);
        table.row([one.record.to_string(), one.shown.clone(), value, lower, upper]);
    }
    text.push_str(&table.render(2));
    text
}
