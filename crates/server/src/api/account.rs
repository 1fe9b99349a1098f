//! `POST /api/account`: the document of `dosimeter account --format json`.

use super::run::{Several, bounded, lenses, resolve};
use super::{App, body, json};
use crate::error::ApiError;
use accounting::Questions;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use vocabulary::{Account, Quantity};

/// The flags of the command, in snake case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccountQuestion {
    run: Value,
    #[serde(default)]
    delta: Several<f64>,
    #[serde(default)]
    epsilon: Several<f64>,
    #[serde(default)]
    fpr: Several<f64>,
    #[serde(default)]
    prior: Several<f64>,
    #[serde(default)]
    directions: bool,
    #[serde(default)]
    lens: Several<String>,
    #[serde(default)]
    quantity: Several<Quantity>,
}

pub(super) async fn handle(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let question: AccountQuestion = body::question(&app, &headers, body).await?;
    let account = app.work.run(move || answer(question)).await?;
    json(&account)
}

fn answer(question: AccountQuestion) -> Result<Account, ApiError> {
    let resolved = resolve(&question.run)?;
    let questions = Questions {
        deltas: bounded("delta", question.delta)?,
        epsilons: bounded("epsilon", question.epsilon)?,
        fprs: bounded("fpr", question.fpr)?,
        priors: bounded("prior", question.prior)?,
        directions: question.directions,
        lenses: lenses(question.lens)?,
        quantities: bounded("quantity", question.quantity)?,
        notes: resolved.notes,
    };
    Ok(accounting::account(&resolved.run, &questions)?)
}
