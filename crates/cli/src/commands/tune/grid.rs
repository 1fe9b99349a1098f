//! `tune grid`: trains and measures every configuration, and fills the table.

use crate::args::{Format, OutputArgs};
use crate::commands::attack::narrate;
use crate::console::Console;
use crate::exit;
use crate::print::csv_line;
use crate::progress::Progress;
use answers::{GridQuestion, Gridded, Refusal};
use clap::Args;
use experiments::Outcome;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter tune grid grid.toml --dry-run
  dosimeter tune grid grid.toml --out results.csv
  dosimeter tune grid grid.toml --out results.csv --shard 2/4
  dosimeter tune grid grid.toml --out results.csv --device cuda:0 \\
      --precision bf16
  dosimeter tune rank results.csv --score air

grid.toml: [data], [model] and [optimizer] as for `train` (without
learning_rate), and
  [grid]
  batch_size = [256, 1024]
  steps = [50, 200]
  learning_rate = [1e-3, 3e-3]
  epsilon = [2, 8]
  seed = [1, 2]
  [measure]
  secrets = \"secrets.jsonl\"
  metrics = [\"air\", \"vmr\"]
  samples = 10

The same command again resumes; `dosimeter status results.csv` says how far it is.
")]
pub(super) struct GridArgs {
    #[command(flatten)]
    question: GridQuestion,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &GridArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Csv])?;
    let Gridded { points, delta, table } = answers::grid(&args.question, &Progress::new(console))?;
    let Some((out, outcome)) = table else {
        let mut text = csv_line([
            "epsilon",
            "batch_size",
            "steps",
            "learning_rate",
            "clip_norm",
            "seed",
            "noise_multiplier",
        ]);
        for p in &points {
            text.push_str(&csv_line([
                p.epsilon.to_string(),
                p.batch_size.to_string(),
                p.steps.to_string(),
                p.learning_rate.to_string(),
                p.clip_norm.to_string(),
                p.seed.to_string(),
                p.noise_multiplier.to_string(),
            ]));
        }
        console.answer(&text)?;
        console.note(&format!("{} trainings, delta {delta:.3e}", points.len()));
        return Ok(exit::ANSWERED);
    };
    let out = out.as_path();
    if matches!(outcome, Outcome::Complete { .. }) {
        if format == Format::Csv {
            let table = std::fs::read_to_string(out).map_err(|error| {
                Refusal::bad_input(format!("cannot read {}: {error}", out.display()))
            })?;
            console.answer(&table)?;
        } else {
            console.answer(&format!(
                "{} trainings: {}\nthe epsilon of a row is that of its training alone, not of the search over the grid\n",
                points.len(),
                out.display()
            ))?;
        }
        console.hint(&format!("dosimeter tune rank {}", out.display()));
    }
    narrate(&outcome, out, console);
    Ok(answers::exit_of(&outcome))
}
