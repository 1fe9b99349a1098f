//! Epsilon of the last iterate against the standard analysis and against full batches, over a
//! grid of sample rates and steps (Steinke et al. 2025, figure 1 as a map).

use crate::lenses::Lens;
use crate::{AccountingError, Target, Unknown, calibrate, domain};
use numerics::elementary::{exp, ln};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::figure::{Axis, ColourScale, Figure, Heat, Mark, Ramp, Series};
use vocabulary::{Direction, LensName, Run};

type Result<T> = std::result::Result<T, AccountingError>;

/// How the noise of each cell is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MapNoise {
    /// The same noise multiplier everywhere.
    NoiseMultiplier(f64),
    /// The noise at which composition has this epsilon.
    StandardEpsilon(f64),
}

/// The grid.
#[derive(Clone, Debug, PartialEq)]
pub struct MapRequest {
    pub noise: MapNoise,
    pub delta: f64,
    pub sample_rates: Vec<f64>,
    pub steps: Vec<u64>,
}

/// One cell; numbers are upper ends, absent where no number can be given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    pub sample_rate: f64,
    pub steps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// Composition, proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard: Option<f64>,
    /// Last iterate, heuristic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heuristic: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_batch: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heuristic_over_standard: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heuristic_over_full_batch: Option<f64>,
    /// Why a number is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The `dosimeter.map/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Map {
    pub schema: String,
    pub noise: MapNoise,
    pub delta: f64,
    pub cells: Vec<Cell>,
}

impl Map {
    pub const SCHEMA: &'static str = "dosimeter.map/1";
}

/// Computes the map; a cell without a number says why.
///
/// # Errors
/// `InvalidInput` for malformed requests.
pub fn map(request: &MapRequest) -> Result<Map> {
    domain::check_delta(request.delta)?;
    let mut cells = Vec::with_capacity(request.sample_rates.len() * request.steps.len());
    for sample_rate in &request.sample_rates {
        for steps in &request.steps {
            cells.push(cell(request, *sample_rate, *steps)?);
        }
    }
    Ok(Map { schema: Map::SCHEMA.into(), noise: request.noise, delta: request.delta, cells })
}

fn cell(request: &MapRequest, sample_rate: f64, steps: u64) -> Result<Cell> {
    let mut cell = Cell {
        sample_rate,
        steps,
        noise_multiplier: None,
        standard: None,
        heuristic: None,
        full_batch: None,
        heuristic_over_standard: None,
        heuristic_over_full_batch: None,
        reason: None,
    };
    let noise = match request.noise {
        MapNoise::NoiseMultiplier(noise) => noise,
        MapNoise::StandardEpsilon(_) => 1.0,
    };
    let run = Run::builder()
        .phase(noise, sample_rate, steps)
        .build()
        .map_err(AccountingError::invalid)?;
    let filled = (|| {
        let run = match request.noise {
            MapNoise::NoiseMultiplier(_) => run,
            MapNoise::StandardEpsilon(epsilon) => {
                let target = Target::Epsilon { epsilon, delta: request.delta };
                let unknown = Unknown::NoiseMultiplier;
                calibrate(&run, unknown, &target, LensName::SIGNED, &[])?.run
            }
        };
        let epsilon = |lens: LensName| -> Result<f64> {
            Ok(Lens::named(lens).look(&run)?.epsilon(request.delta, Direction::Both)?.upper)
        };
        cell.noise_multiplier = Some(run.phases()[0].noise_multiplier);
        cell.standard = Some(epsilon(LensName::SIGNED)?);
        cell.heuristic = Some(epsilon(LensName::BESIDE)?);
        cell.full_batch = Some(epsilon(LensName::UNSAMPLED)?);
        Ok(())
    })();
    match filled {
        Err(AccountingError::InvalidInput(message)) => {
            return Err(AccountingError::invalid(message));
        }
        Err(error) => cell.reason = Some(error.to_string()),
        Ok(()) => {}
    }
    let ratio = |above: Option<f64>, below: Option<f64>| match (above, below) {
        (Some(a), Some(b)) if b > 0.0 => Some(a / b),
        _ => None,
    };
    cell.heuristic_over_standard = ratio(cell.heuristic, cell.standard);
    cell.heuristic_over_full_batch = ratio(cell.heuristic, cell.full_batch);
    Ok(cell)
}

/// The map of heuristic/standard as a figure.
pub fn map_figure(map: &Map) -> Figure {
    let mut rates: Vec<f64> = map.cells.iter().map(|cell| cell.sample_rate).collect();
    let mut steps: Vec<u64> = map.cells.iter().map(|cell| cell.steps).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    steps.sort_unstable();
    steps.dedup();
    let value = |rate: f64, count: u64| {
        let cell = map.cells.iter().find(|cell| cell.sample_rate == rate && cell.steps == count);
        cell.and_then(|cell| cell.heuristic_over_standard)
    };
    let heat = Heat {
        x_edges: edges(&steps.iter().map(|count| *count as f64).collect::<Vec<_>>()),
        y_edges: edges(&rates),
        values: rates
            .iter()
            .map(|rate| steps.iter().map(|count| value(*rate, *count)).collect())
            .collect(),
        colours: ColourScale {
            label: "last-iterate / composition".into(),
            ramp: Ramp::Sequential,
            log: false,
            domain: None,
        },
        // Lines would run through the printed values.
        contours: if map.cells.len() <= 100 { Vec::new() } else { vec![0.25, 0.5, 0.75] },
        print_values: map.cells.len() <= 100,
    };
    let noise = match map.noise {
        MapNoise::NoiseMultiplier(noise) => format!("noise multiplier {noise}"),
        MapNoise::StandardEpsilon(epsilon) => format!("noise for standard epsilon {epsilon}"),
    };
    Figure::new(
        "How much smaller the last-iterate heuristic is than the proven epsilon",
        "Dark cells: the heuristic is close to the standard analysis; light cells: far below it.",
    )
    .subtitle(format!("{noise}, delta {:e}", map.delta))
    .x(Axis::log("steps"))
    .y(Axis::log("sample rate"))
    .with(Series::new("heuristic / standard", Mark::Heat(heat)))
}

/// Edges halfway between neighbours on a logarithmic axis.
fn edges(values: &[f64]) -> Vec<f64> {
    let logarithms: Vec<f64> = values.iter().map(|value| ln(*value)).collect();
    let half = |a: f64, b: f64| exp(0.5 * (a + b));
    match logarithms.as_slice() {
        [] => Vec::new(),
        [only] => vec![exp(only - 0.5), exp(only + 0.5)],
        [first, second, ..] => {
            let last = logarithms[logarithms.len() - 1];
            let before = logarithms[logarithms.len() - 2];
            let mut edges = vec![exp(first - 0.5 * (second - first))];
            edges.extend(logarithms.windows(2).map(|pair| half(pair[0], pair[1])));
            edges.push(exp(last + 0.5 * (last - before)));
            edges
        }
    }
}
