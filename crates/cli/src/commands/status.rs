//! `status`: an experiment folder, what is done and what is not.

use super::attack::failure;
use crate::args::{Format, OutputArgs};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use clap::Args;
use experiments::{ChunkState, Status};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter status scores.csv
  dosimeter status scores.csv.work --format json
")]
pub struct StatusArgs {
    /// An output file or its work folder
    #[arg(value_name = "DIR")]
    path: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &StatusArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let status = experiments::status(&args.path).map_err(failure)?;
    let done = status.count(|state| *state == ChunkState::Done);
    let missing = status.count(|state| *state == ChunkState::Missing);
    let failed = status.count(|state| matches!(state, ChunkState::Failed(_)));
    let unusable = status.count(|state| matches!(state, ChunkState::Unusable(_)));
    let seconds = status.time_left.map(|left| left.as_secs_f64());
    if format == Format::Json {
        console.json(&json!({
            "schema": "dosimeter.status/1",
            "kind": status.plan.kind,
            "parameters": status.plan.parameters,
            "seed": status.plan.seed,
            "trials": status.plan.trials,
            "chunks": {
                "all": status.plan.chunks(), "done": done, "missing": missing,
                "failed": failed, "unusable": unusable,
            },
            "merged": status.merged,
            "seconds_left": seconds,
            "problems": problems(&status),
        }))?;
    } else {
        let mut text = format!(
            "{}, seed {}, {} trials\n{done} of {} chunks done, {missing} missing, {failed} failed, {unusable} unusable\n",
            status.plan.kind,
            status.plan.seed,
            status.plan.trials,
            status.plan.chunks()
        );
        match (status.merged, seconds) {
            (true, _) => text.push_str("the output is complete\n"),
            (false, Some(seconds)) if done < status.plan.chunks() => {
                text.push_str(&format!("about {seconds:.0} s left at the rate so far\n"));
            }
            _ => text.push_str("the output is not written yet\n"),
        }
        for problem in problems(&status) {
            text.push_str(&format!("{problem}\n"));
        }
        console.answer(&text)?;
    }
    Ok(if status.merged { exit::ANSWERED } else { exit::INCOMPLETE })
}

fn problems(status: &Status) -> Vec<String> {
    let chunks = status.chunks.iter().enumerate();
    chunks
        .filter_map(|(index, state)| match state {
            ChunkState::Failed(reason) => Some(format!("chunk {index} failed: {reason}")),
            ChunkState::Unusable(reason) => Some(reason.clone()),
            ChunkState::Done | ChunkState::Missing => None,
        })
        .collect()
}
