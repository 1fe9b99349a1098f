//! What can be asked, and the routes to it.

mod audit;
mod body;
mod experiments;

use crate::Settings;
use crate::assets;
use crate::error::ApiError;
use crate::experiment_list::ExperimentList;
use crate::guard::{self, Guard};
use crate::limits::Limits;
use crate::work::Work;
use answers::Question;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
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
    let mut router = Router::new();
    for kind in Question::KINDS {
        let answer = |State(app): State<Arc<App>>, headers: HeaderMap, body: Body| {
            ask(kind, app, headers, body)
        };
        router = router.route(&format!("/api/{kind}"), post(answer));
    }
    router
        .route("/", get(assets::page))
        .route("/app.js", get(assets::script))
        .route("/app.css", get(assets::style))
        .route("/icon.svg", get(assets::icon))
        .route("/api/version", get(version))
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
}

/// Any question: what the command line answers, to the byte.
async fn ask(
    kind: &'static str,
    app: Arc<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let text = body::question(&app, &headers, body).await?;
    let question = Question::read(kind, &text)?;
    let answer = app.work.run(move || Ok(question.answer()?)).await?;
    Ok(json_text(answer.text))
}

/// A document as a response.
fn json(document: &impl Serialize) -> Response {
    json_text(answers::text(document))
}

fn json_text(text: String) -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
