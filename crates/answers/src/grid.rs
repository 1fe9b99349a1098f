//! `tune grid`: trains and measures every configuration of a file, and fills a table.

use crate::flags::word;
use crate::{PRECISIONS, Play, Refusal, Work, bad_language};
use clap::Args;
use experiments::Outcome;
use language::grid::{Grid, GridDescription, GridPoint};
use papers::audited_canaries;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use training::{Device, PrecisionName};
use vocabulary::Run;

/// A grid of trainings, and where its table goes.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(default)]
pub struct GridQuestion {
    /// The grid: [data], [model], [optimizer], [grid], [measure], and perhaps [canaries]
    #[arg(value_name = "GRID.toml")]
    pub file: PathBuf,
    /// Only say what would be trained
    #[arg(long)]
    pub dry_run: bool,
    /// Where to compute: auto, cpu or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = "The work")]
    pub device: Option<String>,
    /// f32, or tf32 or bf16 on an NVIDIA device
    #[arg(long, value_parser = word::<PrecisionName>(PRECISIONS), default_value = "f32", help_heading = "The work")]
    pub precision: PrecisionName,
    #[command(flatten)]
    #[serde(flatten)]
    pub work: Play,
}

/// What became of a grid.
#[derive(Clone, Debug)]
pub struct Gridded {
    /// Every training, in the order of the table.
    pub points: Vec<GridPoint>,
    pub delta: f64,
    /// The table and how far it is; a dry run has none.
    pub table: Option<(PathBuf, Outcome)>,
}

/// Trains what the file describes, or goes on with it.
///
/// # Errors
/// What is wrong with the file, a target that no noise meets, and those of the trainings.
pub fn grid(question: &GridQuestion, work: &dyn Work) -> Result<Gridded, Refusal> {
    let place = question.file.display();
    let text = std::fs::read_to_string(&question.file)
        .map_err(|error| Refusal::bad_input(format!("cannot read {place}: {error}")))?;
    let described =
        GridDescription::from_toml_str(&text).map_err(|error| bad_language(error).at(&place))?;
    let folder = question.file.parent().unwrap_or(Path::new(""));
    let device =
        Device::with_precision(question.device.as_deref().unwrap_or("auto"), question.precision)
            .map_err(|error| Refusal::bad_input(error.to_string()))?;
    let grid = Grid::new(described, folder, &noise_of_grid, &audited_canaries, &device)
        .map_err(bad_language)?;
    let mut found = Gridded { points: grid.points().to_vec(), delta: grid.delta(), table: None };
    if question.dry_run {
        return Ok(found);
    }
    let out = question.work.out.clone().ok_or_else(|| {
        Refusal::bad_input("no table is named").hint("give one with --out results.csv")
    })?;
    let mut play = question.work.clone();
    if device.record.kind != "cpu" {
        // One training has the device at a time.
        play.threads = Some(1);
    }
    let outcome = play.carry_out(&grid, &out, work)?;
    found.table = Some((out, outcome));
    Ok(found)
}

/// The noise of a training of a grid, in the six digits that its table keeps.
///
/// # Errors
/// A target that no noise meets, in words.
fn noise_of_grid(run: &Run, epsilon: f64, delta: f64) -> Result<f64, String> {
    let found = tuning::noise_of(run, epsilon, delta);
    found.map(|(noise, _)| tuning::in_six_digits(noise)).map_err(|error| error.to_string())
}
