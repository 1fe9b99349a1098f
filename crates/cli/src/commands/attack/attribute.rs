//! `attack attribute`: gradient sensitivities to a secret attribute along a training, the Bayes
//! security that follows, and the game of guessing it.

use super::{WorkArgs, narrate};
use crate::args::{Format, OutputArgs, RunArgs, integer, nonnegative_integer, word};
use crate::commands::show;
use crate::console::Console;
use crate::print::claims;
use crate::progress::Progress;
use accounting::bayes_security::attribute::Mode;
use answers::{
    AttributeAnswer, AttributeGuessed, AttributeMeasured, AttributeQuestion, Document, Ended, Kind,
    Refusal,
};
use attacks::attribute::Diameter;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use vocabulary::Observe;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack attribute adult.toml --attribute age --sensitivity age.csv
  dosimeter attack attribute adult.toml --attribute age --mode batch \\
      --diameter approximate
  dosimeter attack attribute adult.toml --attribute age --record 12 \\
      --secrets 17,90 --observe all --trials 100 --out guesses.csv
  dosimeter attack attribute adult.toml --candidate-records 12,13,14 \\
      --trials 100 --out guesses.csv
  dosimeter account adult.toml --attribute-sensitivity age.csv \\
      --attribute-mode record

Without --out, it trains once and measures the attribute's Bayes security. With
--out, it plays the game: one of the candidates is in the data, and an attacker
guesses which.
")]
pub(super) struct AttributeGameArgs {
    /// The training: [run], [data], [model], [optimizer]
    #[arg(value_name = "RUN.toml")]
    file: PathBuf,
    /// The secret attribute: a numeric or categorical column of the data set
    #[arg(
        long,
        value_name = "COLUMN",
        required_unless_present = "candidate_records",
        help_heading = "The secret"
    )]
    attribute: Option<String>,
    /// Values it could have, 17..90 or Female,Male [default: all; of numbers, those that occur]
    #[arg(
        long,
        value_name = "LIST",
        requires = "attribute",
        allow_hyphen_values = true,
        help_heading = "The secret"
    )]
    values: Option<String>,
    /// Instead of an attribute, guess which of these records is in the data
    #[arg(
        long,
        value_name = "N,N,…",
        value_delimiter = ',',
        conflicts_with = "attribute",
        requires = "out",
        help_heading = "The secret"
    )]
    candidate_records: Vec<u32>,
    /// Worst case over: one record, all records, or the sampled batch (as in the paper)
    #[arg(long, value_parser = word::<Mode>(["batch", "dataset", "record"]), default_value = "record", help_heading = "The bound")]
    mode: Mode,
    /// Number of records to examine (drawn by the seed), or `all`; not for --mode batch
    #[arg(long, value_name = "N", default_value = "100", help_heading = "The bound")]
    records: String,
    /// Compare all pairs of values, or bound the distance by the centroid (larger, so on the safe
    /// side)
    #[arg(long, value_enum, default_value_t = DiameterArg::Full, help_heading = "The bound")]
    diameter: DiameterArg,
    /// File for the sensitivities, which `account` and `calibrate` read with
    /// --attribute-sensitivity
    #[arg(long, value_name = "FILE", conflicts_with = "out", help_heading = "The bound")]
    sensitivity: Option<PathBuf>,
    /// The record whose attribute is guessed
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value = "0", help_heading = "The game")]
    record: u64,
    /// The values to tell apart, or `all` [default: the first and the last]
    #[arg(
        long,
        value_name = "LIST",
        requires = "attribute",
        allow_hyphen_values = true,
        help_heading = "The game"
    )]
    secrets: Option<String>,
    /// What the attacker sees: the released model, or every noisy sum
    #[arg(long, value_parser = word::<Observe>(["last", "all"]), default_value = "last", help_heading = "The game")]
    observe: Observe,
    /// Number of trainings with each candidate
    #[arg(long, value_name = "N", value_parser = integer, default_value = "100", help_heading = "The game")]
    trials: u64,
    /// Seed of all randomness [default: the file's]
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer)]
    seed: Option<u64>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DiameterArg {
    Full,
    Approximate,
}

pub(super) fn run(args: &AttributeGameArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let question = AttributeQuestion {
        file: args.file.clone(),
        run: args.run.description().into(),
        attribute: args.attribute.clone(),
        values: args.values.clone(),
        candidate_records: args.candidate_records.clone(),
        mode: args.mode,
        records: args.records.clone(),
        diameter: match args.diameter {
            DiameterArg::Full => Diameter::Full,
            DiameterArg::Approximate => Diameter::Approximate,
        },
        sensitivity: args.sensitivity.clone(),
        record: args.record,
        secrets: args.secrets.clone(),
        observe: args.observe,
        trials: args.trials,
        seed: args.seed,
        play: args.work.play(),
    };
    let ended = answers::attribute(&question, &Progress::new(console))?;
    let Ended::Answered(answer) = ended else {
        let sentence = "interrupted; the same command starts over";
        return Err(Refusal::new(Kind::Interrupted, sentence));
    };
    let nothing = match &answer {
        AttributeAnswer::Measured(_) => false,
        AttributeAnswer::Guessed(found) => found.lines.is_empty() && format != Format::Json,
    };
    let code = if nothing {
        answer.exit_code()
    } else {
        show(&answer, format, console, |answer| match answer {
            AttributeAnswer::Measured(found) => measured(found, args),
            AttributeAnswer::Guessed(found) => guessed(found, args),
        })?
    };
    match &answer {
        AttributeAnswer::Measured(found) => {
            if let Some(record) = &found.worst {
                console.hint(&format!(
                    "the most sensitive of these records is {record}; --record {record} \
                     --observe all --out guesses.csv plays the game against it"
                ));
            }
        }
        AttributeAnswer::Guessed(found) => {
            if let Some(outcome) = &found.played.outcome {
                narrate(outcome, question.play.out()?, console);
            }
        }
    }
    Ok(code)
}

fn measured(found: &AttributeMeasured, args: &AttributeGameArgs) -> String {
    let AttributeMeasured { attribute, data, values, steps, .. } = found;
    let mut text = format!("`{attribute}` of {data}: {values} values, {steps} steps\n\n");
    text.push_str(&claims::table(&found.claims));
    text.push_str(&claims::footer(&found.claims, &[]));
    if let Some(path) = &args.sensitivity {
        text.push_str(&format!("\n{}\n", path.display()));
    }
    text
}

fn guessed(found: &AttributeGuessed, args: &AttributeGameArgs) -> String {
    let seen = match found.observe {
        Observe::Last => "the released model, guessing by the loss",
        Observe::All => "every noisy sum, guessing by the likelihood",
    };
    let mut text = format!("{} candidates, the attacker sees {seen}\n\n", found.candidates);
    for (what, shown) in &found.lines {
        text.push_str(&format!("  {what:<34} {shown}\n"));
    }
    if found.is_bounded {
        text.push_str("\nThe bounds are for an attacker who sees every step of the training.\n");
    }
    if let Some(out) = &args.work.out {
        text.push_str(&format!("\n{}\n", out.display()));
    }
    text
}
