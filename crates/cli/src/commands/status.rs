//! `status`: an experiment folder, what is done and what is not.

use super::show;
use crate::args::{Format, OutputArgs};
use crate::console::Console;
use crate::print::with_commas;
use crate::progress::duration;
use answers::{Chunks, ExperimentStatus, Refusal};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter status scores.csv
  dosimeter status scores.csv.work --format json
")]
pub struct StatusArgs {
    /// An output file or its work folder
    #[arg(value_name = "OUT|OUT.work")]
    path: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &StatusArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    show(&answers::status(&args.path)?, format, console, human)
}

fn human(status: &ExperimentStatus) -> String {
    let Chunks { all, done, missing, failed, unusable } = status.chunks;
    let mut text = format!(
        "{}, seed {}, {} trials\n{done} of {all} chunks done, {missing} missing, {failed} failed, {unusable} unusable\n",
        status.kind,
        status.seed,
        with_commas(status.trials),
    );
    match (status.merged, status.seconds_left) {
        (true, _) => text.push_str("the output is complete\n"),
        (false, Some(seconds)) if done < all => {
            text.push_str(&format!("about {} left at the rate so far\n", duration(seconds)));
        }
        _ => text.push_str("the output is not written yet\n"),
    }
    for problem in &status.problems {
        text.push_str(&format!("{problem}\n"));
    }
    text
}
