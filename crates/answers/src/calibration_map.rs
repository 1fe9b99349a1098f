//! Epsilon over noise and steps, around a run.
//!
//! The window snaps to powers, so that it stands still while a slider moves inside it. Cells
//! are computed from the run outwards until the time is up; what is missing is `null`.

use crate::Refusal;
use crate::run::Described;
use accounting::domain;
use accounting::lenses::Lens;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use vocabulary::{Direction, LensName, Phase, Run, Standing};

/// What is drawn around a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationMapQuestion {
    #[serde(default)]
    pub run: Described,
    pub delta: f64,
    pub lens: Option<LensName>,
    /// Columns (noise) and rows (steps).
    pub columns: Option<usize>,
    pub rows: Option<usize>,
    /// Milliseconds after which no further cell is begun.
    pub milliseconds: Option<u64>,
    /// Seconds of processor time that the answer may take [default: 10].
    pub time_limit: Option<f64>,
}

/// The `dosimeter.calibration-map/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CalibrationMap {
    pub schema: &'static str,
    pub lens: LensName,
    pub standing: Standing,
    pub delta: f64,
    pub noise_multiplier: Vec<f64>,
    pub steps: Vec<u64>,
    /// One row for each number of steps; upper ends; `null` where there is none.
    pub epsilon: Vec<Vec<Option<f64>>>,
    /// Whether the time was up before all cells were.
    pub incomplete: bool,
}

impl CalibrationMap {
    pub const SCHEMA: &'static str = "dosimeter.calibration-map/1";
}

pub(crate) fn ask(question: &CalibrationMapQuestion) -> Result<CalibrationMap, Refusal> {
    let run = question.run.run()?;
    let [phase] = run.phases() else {
        return Err(Refusal::bad_input("a map needs a run with one phase"));
    };
    domain::check_delta(question.delta)?;
    domain::check_run(&run)?;
    let (columns, rows) = (question.columns.unwrap_or(17), question.rows.unwrap_or(13));
    if !(2..=64).contains(&columns) || !(2..=64).contains(&rows) {
        return Err(Refusal::bad_input("columns and rows are outside of 2 to 64"));
    }
    let until =
        Instant::now() + Duration::from_millis(question.milliseconds.unwrap_or(2_000).min(20_000));
    let lens = Lens::named(question.lens.unwrap_or(LensName::SIGNED));
    lens.look(&run)?;
    let (noise_multiplier, steps) = window(*phase, columns, rows);
    let mut map = CalibrationMap {
        schema: CalibrationMap::SCHEMA,
        lens: lens.name,
        standing: lens.standing(&run),
        delta: question.delta,
        epsilon: vec![vec![None; noise_multiplier.len()]; steps.len()],
        noise_multiplier,
        steps,
        incomplete: false,
    };
    for (row, column) in outwards(*phase, &map.noise_multiplier, &map.steps) {
        if Instant::now() > until {
            map.incomplete = true;
            break;
        }
        let cell = Phase {
            noise_multiplier: map.noise_multiplier[column],
            steps: map.steps[row],
            ..*phase
        };
        map.epsilon[row][column] = epsilon(&run, cell, lens, question.delta);
    }
    Ok(map)
}

fn epsilon(run: &Run, phase: Phase, lens: &Lens, delta: f64) -> Option<f64> {
    let run = run.with_phases(vec![phase]).ok()?;
    let end = lens.look(&run).ok()?.epsilon(delta, Direction::Both).ok()?.upper;
    end.is_finite().then_some(end)
}

/// Two octaves of noise either way of a power of the square root of two, and three decades of
/// steps around the run's own.
fn window(phase: Phase, columns: usize, rows: usize) -> (Vec<f64>, Vec<u64>) {
    let (least, most) = domain::NOISE_MULTIPLIER;
    let centre = phase.noise_multiplier.log2().round();
    let low = (centre - 1.0).exp2().clamp(least, most / 4.0);
    let high = 4.0 * low;
    let spaced = |from: f64, to: f64, count: usize| {
        let last = (count - 1) as f64;
        (0..count).map(move |i| (from.ln() + (to / from).ln() * i as f64 / last).exp())
    };
    let noise = spaced(low, high, columns).collect();
    let decade = (phase.steps as f64).log10().round();
    let first = 10_f64.powf((decade - 1.0).clamp(0.0, 6.0));
    let mut steps: Vec<u64> = spaced(first, 1e3_f64.min(1e9 / first) * first, rows)
        .map(|count| count.round() as u64)
        .collect();
    steps.dedup();
    (noise, steps)
}

/// All cells, the ones next to the run first.
fn outwards(phase: Phase, noise: &[f64], steps: &[u64]) -> Vec<(usize, usize)> {
    let distance = |row: usize, column: usize| {
        let wide = (noise[column] / phase.noise_multiplier).log2();
        let high = (steps[row] as f64 / phase.steps as f64).log10();
        wide * wide + high * high
    };
    let mut cells: Vec<(usize, usize)> = (0..steps.len())
        .flat_map(|row| (0..noise.len()).map(move |column| (row, column)))
        .collect();
    cells.sort_by(|a, b| distance(a.0, a.1).total_cmp(&distance(b.0, b.1)));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_holds_the_run_and_stands_still_around_it() {
        for noise in [0.2, 0.21, 0.5, 1.0, 7.3, 99.0, 100.0] {
            for count in [1, 9, 100, 1000, 123_456, 1_000_000_000] {
                let phase = Phase { noise_multiplier: noise, sample_rate: 0.01, steps: count };
                let (columns, rows) = window(phase, 9, 7);
                assert!(
                    columns[0] <= noise * 1.000_001 && noise <= columns[8] * 1.000_001,
                    "{noise}: {columns:?}"
                );
                assert!(rows[0] <= count && count <= *rows.last().unwrap(), "{count}: {rows:?}");
                assert_eq!(outwards(phase, &columns, &rows).len(), columns.len() * rows.len());
            }
        }
        let of =
            |noise| window(Phase { noise_multiplier: noise, sample_rate: 0.01, steps: 1000 }, 9, 7);
        assert_eq!(of(0.9), of(1.1));
    }
}
