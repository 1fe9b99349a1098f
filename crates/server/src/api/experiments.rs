//! `GET /api/experiments`, `GET /api/experiments/{id}`, `POST /api/experiments/{id}/audit`: the
//! experiments of one folder. An id is looked up among those that the scan found; it is never
//! part of a path.

use super::audit::{self, Asked};
use super::{App, json};
use crate::error::ApiError;
use crate::experiment_list::{ExperimentList, Found};
use ::audit::Table;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use experiments::{ChunkState, Status};
use serde_json::{Value, json as document};
use std::sync::Arc;

/// Problems shown of one experiment.
const MOST_PROBLEMS: usize = 20;

fn folder(app: &App) -> Result<ExperimentList, ApiError> {
    app.experiments.clone().ok_or_else(|| ApiError::not_found("no folder is served"))
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let list = folder(&app)?;
    let all = app
        .work
        .run(move || Ok(list.scan().iter().map(|found| summary(found, false)).collect::<Vec<_>>()))
        .await?;
    json(&document!({ "schema": "dosimeter.experiments/1", "experiments": all }))
}

pub(super) async fn one(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let list = folder(&app)?;
    let found = app.work.run(move || find(&list, &id).map(|found| summary(&found, true))).await?;
    json(&found)
}

pub(super) async fn audit(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    let list = folder(&app)?;
    let question = audit::question(asked)?;
    let limit = app.limits.upload_bytes as u64;
    let audited = app
        .work
        .run(move || {
            let found = find(&list, &id)?;
            let output = found
                .output()
                .ok_or_else(|| ApiError::not_found("the experiment has no output yet"))?;
            if std::fs::metadata(&output).map_or(0, |data| data.len()) > limit {
                return Err(ApiError::bad_input(
                    "the scores are too many for a page; use `dosimeter audit`",
                ));
            }
            let mut table = Table::default();
            table.add_file(&output)?;
            audit::answer(table, question)
        })
        .await?;
    json(&audited)
}

fn find(list: &ExperimentList, id: &str) -> Result<Found, ApiError> {
    list.scan()
        .into_iter()
        .find(|found| found.id == id)
        .ok_or_else(|| ApiError::not_found("there is no such experiment"))
}

/// The document of `dosimeter status`, with the experiment's name.
fn summary(found: &Found, chunks: bool) -> Value {
    match experiments::status(&found.folder) {
        Ok(status) => {
            let mut all = status_document(&status, chunks);
            all["id"] = Value::from(found.id.as_str());
            all["name"] = Value::from(found.name.as_str());
            all["results"] = Value::from(found.output().is_some() && status.merged);
            all
        }
        Err(error) => document!({
            "schema": "dosimeter.status/1",
            "id": found.id,
            "name": found.name,
            "error": error.to_string().replace(&found.folder.display().to_string(), &found.name),
        }),
    }
}

fn status_document(status: &Status, chunks: bool) -> Value {
    let count = |wanted: fn(&ChunkState) -> bool| status.count(wanted);
    let problems: Vec<String> = status
        .chunks
        .iter()
        .enumerate()
        .filter_map(|(index, state)| match state {
            ChunkState::Failed(reason) => Some(format!("chunk {index} failed: {reason}")),
            ChunkState::Unusable(_) => Some(format!("chunk {index} is unusable")),
            ChunkState::Done | ChunkState::Missing => None,
        })
        .take(MOST_PROBLEMS)
        .collect();
    let mut all = document!({
        "schema": "dosimeter.status/1",
        "kind": status.plan.kind,
        "parameters": status.plan.parameters,
        "seed": status.plan.seed,
        "trials": status.plan.trials,
        "chunks": {
            "all": status.plan.chunks(),
            "done": count(|state| *state == ChunkState::Done),
            "missing": count(|state| *state == ChunkState::Missing),
            "failed": count(|state| matches!(state, ChunkState::Failed(_))),
            "unusable": count(|state| matches!(state, ChunkState::Unusable(_))),
        },
        "merged": status.merged,
        "seconds_left": status.time_left.map(|left| left.as_secs_f64()),
        "problems": problems,
    });
    if chunks {
        // A letter each: done, missing, failed, unusable.
        let states: String = status
            .chunks
            .iter()
            .take(4096)
            .map(|state| match state {
                ChunkState::Done => 'd',
                ChunkState::Missing => 'm',
                ChunkState::Failed(_) => 'f',
                ChunkState::Unusable(_) => 'u',
            })
            .collect();
        all["states"] = Value::from(states);
    }
    all
}
