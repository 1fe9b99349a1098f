//! The curves behind the numbers: the trade-off curve, the privacy profile, and epsilon
//! against the number of steps. Each point has certified ends where the lens has them.

mod envelope;
mod figure;

pub use envelope::most_power;
pub use figure::figure;
use numerics::elementary::{exp, ln};

use crate::lenses::Lens;
use crate::{AccountingError, domain};
use numerics::special::normal_cdf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::{
    AtLeast, AtMost, Direction, Ends, Interval, LensName, NotCertified, Phase, Problem, Quoted,
    Run, Side, Standing, batches_per_pass,
};

type Result<T> = std::result::Result<T, AccountingError>;

/// Quantile of the outermost rates of a trade-off curve: 1e-5 and 1 - 1e-5.
const REACH: f64 = 4.264_890_793_922_825;

/// Which curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CurveKind {
    Tradeoff,
    Profile,
    Steps,
}

impl CurveKind {
    /// The end of an ordinate that may be quoted: misses from below, leakage from above.
    pub fn side(self) -> Side {
        match self {
            Self::Tradeoff => Side::Lower,
            Self::Profile | Self::Steps => Side::Upper,
        }
    }
}

/// The `dosimeter.curve/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    pub schema: String,
    pub kind: CurveKind,
    pub run: Run,
    /// Where epsilon is taken; for `steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// The first lens's line, so that the usual document is flat.
    #[serde(flatten)]
    pub line: CurveLine,
    /// The lines of further lenses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<CurveLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Curve {
    pub const SCHEMA: &'static str = "dosimeter.curve/1";

    /// All lines.
    pub fn lines(&self) -> impl Iterator<Item = &CurveLine> {
        std::iter::once(&self.line).chain(&self.others)
    }
}

/// One lens's curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveLine {
    pub lens: LensName,
    pub standing: Standing,
    pub direction: Direction,
    pub points: Vec<CurvePoint>,
}

/// A point, with its ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CurvePoint {
    Tradeoff { fpr: f64, fnr: f64, lower: f64, upper: f64 },
    Profile { epsilon: f64, delta: f64, lower: f64, upper: f64 },
    Steps { steps: u64, epsilon: Option<f64>, lower: Option<f64>, upper: Option<f64> },
}

impl CurvePoint {
    /// The point as coordinates; infinity where a number is.
    pub fn coordinates(&self) -> (f64, f64) {
        match *self {
            Self::Tradeoff { fpr, fnr, .. } => (fpr, fnr),
            Self::Profile { epsilon, delta, .. } => (epsilon, delta),
            Self::Steps { steps, epsilon, .. } => (steps as f64, epsilon.unwrap_or(f64::INFINITY)),
        }
    }

    /// The ordinate's lower and upper end; infinity where a number is.
    pub fn ends(&self) -> (AtLeast, AtMost) {
        let (lower, upper) = match *self {
            Self::Tradeoff { lower, upper, .. } | Self::Profile { lower, upper, .. } => {
                (lower, upper)
            }
            Self::Steps { lower, upper, .. } => {
                (lower.unwrap_or(f64::INFINITY), upper.unwrap_or(f64::INFINITY))
            }
        };
        (AtLeast::new(lower), AtMost::new(upper))
    }

    /// The end of the ordinate that may be quoted.
    pub fn quoted(&self) -> Quoted {
        let (lower, upper) = self.ends();
        match self {
            Self::Tradeoff { .. } => lower.into(),
            Self::Profile { .. } | Self::Steps { .. } => upper.into(),
        }
    }
}

/// What to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveRequest {
    pub kind: CurveKind,
    pub lenses: Vec<LensName>,
    pub direction: Direction,
    /// For `steps`.
    pub delta: Option<f64>,
    /// Abscissae (rates, epsilons or steps); chosen by `points` where empty.
    pub at: Vec<f64>,
    /// For `steps`: the fewest that `points` chooses.
    pub first: u64,
    pub points: usize,
}

/// Computes a curve for every lens asked for.
///
/// # Errors
/// `InvalidInput` for malformed requests, `Unsupported` for a lens that does not hold, and
/// those of the pairs.
pub fn curve(run: &Run, request: &CurveRequest) -> Result<Curve> {
    if !(2..=100_000).contains(&request.points) {
        let message = format!(
            "{} points are outside of 2 to 100000; give --points in that range",
            request.points
        );
        let problem = Problem::from(message).about("points", request.points, "[2, 100000]");
        return Err(AccountingError::InvalidInput(problem));
    }
    let mut lines = Vec::new();
    let mut warnings = Vec::new();
    for name in &request.lenses {
        let lens = Lens::named(*name);
        let line = match request.kind {
            CurveKind::Tradeoff => tradeoff(lens, run, request),
            CurveKind::Profile => profile(lens, run, request),
            CurveKind::Steps => steps(lens, run, request, &mut warnings),
        };
        lines.push(line.map_err(|error| error.of(*name))?);
    }
    let mut lines = lines.into_iter();
    let line = lines.next().ok_or_else(|| {
        AccountingError::InvalidInput(Problem::missing(
            "no lens was asked for; give --lens",
            "lens",
        ))
    })?;
    Ok(Curve {
        schema: Curve::SCHEMA.into(),
        kind: request.kind,
        run: run.clone(),
        delta: request.delta,
        line,
        others: lines.collect(),
        warnings,
    })
}

fn line(lens: &Lens, run: &Run, direction: Direction, points: Vec<CurvePoint>) -> CurveLine {
    CurveLine { lens: lens.name, standing: lens.standing(run), direction, points }
}

fn tradeoff(lens: &Lens, run: &Run, request: &CurveRequest) -> Result<CurveLine> {
    let view = lens.look(run)?;
    let rates: Vec<f64> = if request.at.is_empty() {
        // Even steps of the normal quantile: dense at both ends, where attacks are read off.
        let last = (request.points - 1) as f64;
        (0..request.points).map(|i| normal_cdf(REACH * (2.0 * i as f64 / last - 1.0))).collect()
    } else {
        request.at.clone()
    };
    let mut points = Vec::with_capacity(rates.len());
    for fpr in rates {
        let fnr = view.fnr(fpr, request.direction)?;
        points.push(CurvePoint::Tradeoff {
            fpr,
            fnr: fnr.value,
            lower: fnr.lower,
            upper: fnr.upper,
        });
    }
    Ok(line(lens, run, request.direction, points))
}

fn profile(lens: &Lens, run: &Run, request: &CurveRequest) -> Result<CurveLine> {
    let view = lens.look(run)?;
    let epsilons: Vec<f64> = if request.at.is_empty() {
        let farthest = view.epsilon(1e-10, request.direction)?.value;
        let last = (request.points - 1) as f64;
        (0..request.points).map(|i| farthest * i as f64 / last).collect()
    } else {
        request.at.clone()
    };
    let mut points = Vec::with_capacity(epsilons.len());
    for epsilon in epsilons {
        domain::check_epsilon(epsilon)?;
        let delta = view.delta(epsilon, request.direction)?;
        let (lower, upper) = (delta.lower, delta.upper);
        points.push(CurvePoint::Profile { epsilon, delta: delta.value, lower, upper });
    }
    Ok(line(lens, run, request.direction, points))
}

fn steps(
    lens: &Lens,
    run: &Run,
    request: &CurveRequest,
    warnings: &mut Vec<String>,
) -> Result<CurveLine> {
    let delta = request.delta.ok_or_else(|| {
        AccountingError::InvalidInput(Problem::missing(
            "epsilon needs a delta; give --delta, e.g. 1e-5",
            "delta",
        ))
    })?;
    domain::check_delta(delta)?;
    crate::calibrate::not_filtered(run, "it has no curve over steps")?;
    let (mut points, mut late) = (Vec::new(), Vec::new());
    // Few steps cost most: they are what a limit of time leaves out.
    for steps in step_counts(lens, run, request)?.into_iter().rev() {
        let shortened = first_steps(run, steps)?;
        let ask = || lens.look(&shortened).and_then(|view| view.epsilon(delta, request.direction));
        match crate::patience::within(f64::INFINITY, ask) {
            Some(Ok(epsilon)) => points.push(step_point(steps, epsilon)),
            Some(Err(AccountingError::NotCertified(reason))) => {
                warnings.push(format!("{} at {steps} steps is left out: {reason}", lens.name));
            }
            Some(Err(error)) => return Err(error),
            None => late.push(steps),
        }
    }
    points.reverse();
    if let (Some(fewest), Some(most)) = (late.iter().min(), late.iter().max()) {
        let what = format!("{} at {fewest} to {most} steps", lens.name);
        let reason = NotCertified::Time { what, seconds: None };
        if points.is_empty() {
            return Err(reason.into());
        }
        warnings.push(format!("the curve is not whole: {reason}"));
    }
    Ok(line(lens, run, request.direction, points))
}

fn step_point(steps: u64, epsilon: Interval) -> CurvePoint {
    let ends = Ends::from(epsilon);
    CurvePoint::Steps { steps, epsilon: ends.value, lower: ends.lower, upper: ends.upper }
}

fn step_counts(lens: &Lens, run: &Run, request: &CurveRequest) -> Result<Vec<u64>> {
    let total = run.steps();
    if request.at.is_empty() {
        let first = request.first.clamp(1, total) as f64;
        let (span, last) = (ln(total as f64 / first), (request.points - 1) as f64);
        let place = |i: usize| (first * exp(span * i as f64 / last)).round() as u64;
        let mut counts = Vec::new();
        for i in 0..request.points {
            let count = place(i).clamp(1, total);
            counts.push(match lens.supports(&first_steps(run, count)?) {
                Ok(()) => count,
                // Some ways to draw batches are proven for whole epochs alone.
                Err(_) => whole_epochs(run, count).min(total),
            });
        }
        counts.dedup();
        return Ok(counts);
    }
    request
        .at
        .iter()
        .map(|count| {
            if *count >= 1.0 && count.fract() == 0.0 && *count <= total as f64 {
                Ok(*count as u64)
            } else {
                Err(AccountingError::invalid(format!(
                    "step count {count} is not a whole number from 1 to the run's {total} steps"
                )))
            }
        })
        .collect()
}

/// At least so many steps, in whole epochs.
fn whole_epochs(run: &Run, steps: u64) -> u64 {
    let batches =
        run.phases().first().map_or(1, |phase| batches_per_pass(phase.sample_rate, false));
    steps.next_multiple_of(batches.max(1))
}

/// The run, stopped after some of its steps.
pub(crate) fn first_steps(run: &Run, steps: u64) -> Result<Run> {
    let mut left = steps;
    let mut phases: Vec<Phase> = Vec::new();
    for phase in run.phases() {
        let taken = phase.steps.min(left);
        if taken > 0 {
            phases.push(Phase { steps: taken, ..*phase });
        }
        left -= taken;
    }
    run.with_phases(phases).map_err(AccountingError::invalid)
}
