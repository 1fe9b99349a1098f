//! `tune grid`: trains and measures every configuration, and fills the table.

use crate::args::{Format, OutputArgs, word};
use crate::commands::attack::narrate;
use crate::console::Console;
use crate::exit;
use crate::print::csv_line;
use crate::progress::Progress;
use answers::{PRECISIONS, Play, Refusal};
use clap::Args;
use experiments::Outcome;
use language::grid::{Grid, GridDescription};
use papers::audited_canaries;
use std::path::{Path, PathBuf};
use training::{Device, PrecisionName};

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
    /// The grid: [data], [model], [optimizer], [grid], [measure], and perhaps [canaries]
    #[arg(value_name = "GRID.toml")]
    file: PathBuf,
    /// Only say what would be trained
    #[arg(long)]
    dry_run: bool,
    /// Where to compute: auto, cpu or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = "The work")]
    device: String,
    /// f32, or tf32 or bf16 on an NVIDIA device
    #[arg(long, value_parser = word::<PrecisionName>(PRECISIONS), default_value = "f32", help_heading = "The work")]
    precision: PrecisionName,
    #[command(flatten)]
    work: Play,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &GridArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Csv])?;
    let place = args.file.display();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| Refusal::bad_input(format!("cannot read {place}: {error}")))?;
    let described = GridDescription::from_toml_str(&text)
        .map_err(|error| answers::bad_language(error).at(&place))?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let device = Device::with_precision(&args.device, args.precision)
        .map_err(|error| Refusal::bad_input(error.to_string()))?;
    let grid = Grid::new(described, folder, &answers::noise_of_grid, &audited_canaries, &device)
        .map_err(answers::bad_language)?;
    if args.dry_run {
        let mut text = csv_line([
            "epsilon",
            "batch_size",
            "steps",
            "learning_rate",
            "clip_norm",
            "seed",
            "noise_multiplier",
        ]);
        for p in grid.points() {
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
        console.note(&format!("{} trainings, delta {:.3e}", grid.points().len(), grid.delta()));
        return Ok(exit::ANSWERED);
    }
    let Some(out) = &args.work.out else {
        return Err(Refusal::bad_input("no table is named").hint("give one with --out results.csv"));
    };
    let mut work = args.work.clone();
    if device.record.kind != "cpu" {
        // One training has the device at a time.
        work.threads = Some(1);
    }
    let outcome = work.carry_out(&grid, out, &Progress::new(console))?;
    if matches!(outcome, Outcome::Complete { .. }) {
        if format == Format::Csv {
            let table = std::fs::read_to_string(out).map_err(|error| {
                Refusal::bad_input(format!("cannot read {}: {error}", out.display()))
            })?;
            console.answer(&table)?;
        } else {
            console.answer(&format!(
                "{} trainings: {}\nthe epsilon of a row is that of its training alone, not of the search over the grid\n",
                grid.points().len(),
                out.display()
            ))?;
        }
        console.hint(&format!("dosimeter tune rank {}", out.display()));
    }
    narrate(&outcome, out, console);
    Ok(answers::exit_of(&outcome))
}
