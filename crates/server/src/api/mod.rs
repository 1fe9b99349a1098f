//! What can be asked, and the routes to it.

mod account;
mod audit;
mod body;
mod calibrate;
mod curve;
mod experiments;
mod map;
mod panel;
mod run;

use crate::Settings;
use crate::assets;
use crate::error::ApiError;
use crate::experiment_list::ExperimentList;
use crate::guard::{self, Guard};
use crate::limits::Limits;
use crate::work::Work;
use axum::Router;
use axum::http::{HeaderValue, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;

/// What all handlers share.
pub(crate) struct App {
    work: Work,
    uploads: Semaphore,
    experiments: Option<ExperimentList>,
    limits: Limits,
}

pub(crate) fn router(settings: &Settings, address: SocketAddr) -> Router {
    let limits = settings.limits;
    let app = Arc::new(App {
        work: Work::new(limits),
        uploads: Semaphore::new(limits.uploads),
        experiments: settings.folder.clone().map(ExperimentList::new),
        limits,
    });
    let guard = Arc::new(Guard::new(address, settings.token.clone()));
    Router::new()
        .route("/", get(assets::page))
        .route("/app.js", get(assets::script))
        .route("/app.css", get(assets::style))
        .route("/icon.svg", get(assets::icon))
        .route("/api/version", get(version))
        .route("/api/account", post(account::handle))
        .route("/api/calibrate", post(calibrate::handle))
        .route("/api/curve", post(curve::handle))
        .route("/api/panel", post(panel::handle))
        .route("/api/map", post(map::handle))
        .route("/api/audit", post(audit::handle))
        .route("/api/experiments", get(experiments::list))
        .route("/api/experiments/{id}", get(experiments::one))
        .route("/api/experiments/{id}/audit", post(experiments::audit))
        .fallback(async || ApiError::not_found("there is nothing under this address"))
        .with_state(app)
        .layer(CatchPanicLayer::custom(|_| ApiError::bug().into_response()))
        .layer(from_fn_with_state(guard, guard::check))
}

async fn version() -> Response {
    json(&serde_json::json!({
        "schema": "dosimeter.version/1",
        "version": env!("CARGO_PKG_VERSION"),
    }))
    .unwrap_or_else(IntoResponse::into_response)
}

/// A document as a response.
fn json(document: &impl Serialize) -> Result<Response, ApiError> {
    let bytes = serde_json::to_vec(document).map_err(|_| ApiError::bug())?;
    Ok(json_bytes(bytes))
}

fn json_bytes(bytes: Vec<u8>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], bytes).into_response()
}
