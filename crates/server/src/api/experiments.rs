//! `GET /api/experiments`, `GET /api/experiments/{id}`, `POST /api/experiments/{id}/audit`: the
//! experiments of one folder. An id is looked up among those that the scan found; it is never
//! part of a path.

use super::audit::{self, Asked};
use super::{App, json, json_text};
use crate::error::ApiError;
use crate::experiment_list::{ExperimentList, Found};
use ::audit::Table;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde_json::{Value, json as document};
use std::sync::Arc;

/// Problems shown of one experiment.
const MOST_PROBLEMS: usize = 20;
/// Chunks whose state is shown.
const MOST_STATES: usize = 4096;

fn folder(app: &App) -> Result<ExperimentList, ApiError> {
    app.experiments.clone().ok_or_else(|| ApiError::not_found("no folder is served"))
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let list = folder(&app)?;
    let all = app
        .work
        .run(move || Ok(list.scan().iter().map(|found| summary(found, false)).collect::<Vec<_>>()))
        .await?;
    Ok(json(&document!({ "schema": "dosimeter.experiments/1", "experiments": all })))
}

pub(super) async fn one(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let list = folder(&app)?;
    let found = app.work.run(move || find(&list, &id).map(|found| summary(&found, true))).await?;
    Ok(json(&found))
}

pub(super) async fn audit(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    let list = folder(&app)?;
    let mut upload = audit::question(asked)?;
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
            upload.of_file(&output, &found.name)?;
            audit::answer(table, &upload)
        })
        .await?;
    Ok(json_text(audited))
}

fn find(list: &ExperimentList, id: &str) -> Result<Found, ApiError> {
    list.scan()
        .into_iter()
        .find(|found| found.id == id)
        .ok_or_else(|| ApiError::not_found("there is no such experiment"))
}

/// The document of `dosimeter status`, with the experiment's name.
fn summary(found: &Found, chunks: bool) -> Value {
    // Where the folder lies is nobody's business.
    let unplaced = |text: &str| text.replace(&found.folder.display().to_string(), &found.name);
    let mut all = match answers::status(&found.folder) {
        Ok(mut status) => {
            status.problems.truncate(MOST_PROBLEMS);
            for problem in &mut status.problems {
                *problem = unplaced(problem);
            }
            let mut all = document!(status);
            all["results"] = Value::from(found.output().is_some() && status.merged);
            if chunks {
                all["states"] = Value::from(status.letters(MOST_STATES));
            }
            all
        }
        Err(refusal) => document!({
            "schema": answers::ExperimentStatus::SCHEMA,
            "error": unplaced(&refusal.message),
        }),
    };
    all["id"] = Value::from(found.id.as_str());
    all["name"] = Value::from(found.name.as_str());
    all
}
