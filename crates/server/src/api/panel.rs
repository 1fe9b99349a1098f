//! `POST /api/panel`: the profile and the trade-off curve of several lenses, fast enough to
//! follow a slider.
//!
//! One sweep of delta over a common grid of epsilons serves both: the trade-off curve is the
//! envelope of the tangents that the profile gives ([`accounting::curve::most_power`]), an
//! upper bound on any attack that is within a percent of the exact curve. Numbers that people
//! quote come from `account` and `curve`; this is what is drawn.

use super::run::{Several, lenses, resolve};
use super::{App, body, json};
use crate::error::ApiError;
use accounting::AccountingError;
use accounting::curve::most_power;
use accounting::lenses::Lens;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use vocabulary::{Direction, LensName, Run, Standing};

/// The smallest delta that is drawn.
const LEAST_DELTA: f64 = 1e-8;
/// Rates per decade of the trade-off curve, which has five.
const RATES: i32 = 8;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PanelQuestion {
    run: Value,
    #[serde(default)]
    lens: Several<String>,
    /// Steps of the grid of epsilons.
    #[serde(default)]
    points: Option<usize>,
}

/// The answer: upper ends only, because that is what is drawn.
#[derive(Debug, Serialize)]
struct Panel {
    schema: &'static str,
    run: Run,
    epsilon: Vec<f64>,
    fpr: Vec<f64>,
    lines: Vec<Line>,
    unsupported: Vec<Missing>,
}

#[derive(Debug, Serialize)]
struct Line {
    lens: LensName,
    standing: Standing,
    delta: Vec<f64>,
    tpr: Vec<f64>,
}

#[derive(Debug, Serialize)]
struct Missing {
    lens: LensName,
    reason: String,
}

pub(super) async fn handle(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let question: PanelQuestion = body::question(&app, &headers, body).await?;
    let panel = app.work.run(move || answer(question)).await?;
    json(&panel)
}

fn answer(question: PanelQuestion) -> Result<Panel, ApiError> {
    let run = resolve(&question.run)?.run;
    let mut chosen = lenses(question.lens)?;
    if chosen.is_empty() {
        chosen = vec![LensName::Composition, LensName::LastIterate];
    }
    let points = question.points.unwrap_or(48);
    if !(8..=256).contains(&points) {
        return Err(ApiError::bad_input(format!("{points} points are outside of 8 to 256")));
    }
    let mut farthest = None;
    let mut epsilon = Vec::new();
    let (mut lines, mut unsupported) = (Vec::new(), Vec::new());
    for name in chosen {
        let line = Lens::named(name).and_then(|lens| {
            let view = lens.look(&run)?;
            if farthest.is_none() {
                let end = view.epsilon(LEAST_DELTA, Direction::Both)?.upper;
                let end = if end.is_finite() { end.max(1e-6) } else { 50.0 };
                farthest = Some(end);
                let step = end / points as f64;
                epsilon = (0..=points).map(|part| step * part as f64).collect();
            }
            let delta = epsilon
                .iter()
                .map(|epsilon| Ok(view.delta(*epsilon, Direction::Both)?.upper.min(1.0)))
                .collect::<Result<Vec<f64>, AccountingError>>()?;
            Ok((lens.standing(&run), delta))
        });
        match line {
            Ok((standing, delta)) => {
                lines.push(Line { lens: name, standing, delta, tpr: Vec::new() });
            }
            Err(error) => unsupported.push(Missing { lens: name, reason: error.to_string() }),
        }
    }
    let fpr: Vec<f64> =
        (-5 * RATES..=0).map(|part| 10_f64.powf(f64::from(part) / f64::from(RATES))).collect();
    for line in &mut lines {
        let profile: Vec<(f64, f64)> =
            epsilon.iter().copied().zip(line.delta.iter().copied()).collect();
        line.tpr = fpr.iter().map(|fpr| most_power(&profile, *fpr)).collect();
    }
    Ok(Panel { schema: "dosimeter.panel/1", run, epsilon, fpr, lines, unsupported })
}
