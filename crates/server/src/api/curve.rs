//! `POST /api/curve`: the document of `dosimeter curve --format json`.

use super::run::{Several, bounded, lenses, resolve};
use super::{App, body, json};
use crate::error::ApiError;
use accounting::curve::{Curve, CurveKind, CurveRequest, curve};
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use vocabulary::{Direction, LensName};

/// Points of one line that may be asked for.
const MOST_POINTS: usize = 257;

/// The flags of the command, in snake case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CurveQuestion {
    kind: CurveKind,
    run: Value,
    #[serde(default)]
    lens: Several<String>,
    #[serde(default)]
    direction: Option<Direction>,
    #[serde(default)]
    points: Option<usize>,
    #[serde(default)]
    fpr: Several<f64>,
    #[serde(default)]
    epsilon: Several<f64>,
    #[serde(default)]
    delta: Option<f64>,
    /// Of `steps`: the fewest steps that are drawn.
    #[serde(default)]
    first: Option<u64>,
}

pub(super) async fn handle(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let question: CurveQuestion = body::question(&app, &headers, body).await?;
    let curve = app.work.run(move || answer(question)).await?;
    json(&curve)
}

fn answer(question: CurveQuestion) -> Result<Curve, ApiError> {
    let run = resolve(&question.run)?.run;
    let points = question.points.unwrap_or(65);
    if points > MOST_POINTS {
        return Err(ApiError::bad_input(format!(
            "{points} points are more than the {MOST_POINTS} that are computed for a page"
        )));
    }
    let mut chosen = lenses(question.lens)?;
    if chosen.is_empty() {
        chosen.push(LensName::Composition);
    }
    let (fpr, epsilon) = (bounded("fpr", question.fpr)?, bounded("epsilon", question.epsilon)?);
    let foreign = [
        ("fpr", !fpr.is_empty() && question.kind != CurveKind::Tradeoff),
        ("epsilon", !epsilon.is_empty() && question.kind != CurveKind::Profile),
        ("delta", question.delta.is_some() && question.kind != CurveKind::Steps),
        ("first", question.first.is_some() && question.kind != CurveKind::Steps),
    ];
    if let Some((name, _)) = foreign.iter().find(|(_, given)| *given) {
        return Err(ApiError::bad_input(format!("`{name}` belongs to another kind of curve")));
    }
    let request = CurveRequest {
        kind: question.kind,
        lenses: chosen,
        direction: question.direction.unwrap_or(Direction::Both),
        delta: question.delta,
        at: match question.kind {
            CurveKind::Tradeoff => fpr,
            CurveKind::Profile => epsilon,
            CurveKind::Steps => {
                question.first.map_or_else(Vec::new, |first| counts(first, run.steps(), points))
            }
        },
        points,
    };
    Ok(curve(&run, &request)?)
}

/// Whole numbers of steps from the first to the last, evenly on a logarithmic axis.
fn counts(first: u64, last: u64, points: usize) -> Vec<f64> {
    let (low, high) = (first.clamp(1, last) as f64, last as f64);
    let parts = points.max(2) - 1;
    let place = |part: usize| (low.ln() + (high / low).ln() * part as f64 / parts as f64).exp();
    let mut all: Vec<f64> = (0..=parts).map(|part| place(part).round().clamp(low, high)).collect();
    all.dedup();
    all
}
