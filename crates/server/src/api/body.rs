//! Bodies, bounded in size and time.

use super::App;
use crate::error::ApiError;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A JSON question.
pub(super) async fn question<T: DeserializeOwned>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, ApiError> {
    // Of the types that a foreign page may send without asking first, this is none.
    if media_type(headers) != Some("application/json") {
        return Err(unsupported("send the question as application/json"));
    }
    let bytes = read(headers, body, app.limits.question_bytes, app.limits.question_time).await?;
    parse(&bytes)
}

/// Reads a question from JSON text.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::bad_input(format!("the question cannot be read: {error}")))
}

/// The bytes of a body, no more than `limit` and no longer than `time`.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    time: Duration,
) -> Result<Vec<u8>, ApiError> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(ApiError::too_large(limit));
    }
    let collected = tokio::time::timeout(time, Limited::new(body, limit).collect()).await;
    match collected {
        Ok(Ok(bytes)) => Ok(bytes.to_bytes().into()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::too_large(limit)),
        Ok(Err(_)) => Err(ApiError::bad_input("the body broke off")),
        Err(_) => Err(ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            2,
            format!("the body did not arrive within {} s", time.as_secs()),
        )),
    }
}

pub(super) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(text.split(';').next().unwrap_or(text).trim())
}

pub(super) fn unsupported(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, 2, message)
}
