//! Bodies, bounded in size and time.

use super::App;
use crate::error::ApiError;
use answers::Kind;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;
use std::time::Duration;

/// The text of a JSON question.
pub(super) async fn question(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<String, ApiError> {
    // Of the types that a foreign page may send without asking first, this is none.
    if media_type(headers) != Some("application/json") {
        return Err(unsupported("send the question as application/json"));
    }
    let bytes = read(headers, body, app.limits.question_bytes, app.limits.question_time).await?;
    let text = String::from_utf8(bytes)
        .map_err(|_| ApiError::bad_input("the question cannot be read: it is not UTF-8"))?;
    small_enough(&text)?;
    Ok(text)
}

/// Numbers of one kind that a question may hold; more would be a way to buy time.
const MOST_ENTRIES: usize = 64;

/// The largest values of keys that cost time in proportion.
const MOST: &[(&str, u64)] =
    &[("points", 257), ("candidates", 10_000), ("monte_carlo", 1_000_000), ("bootstrap", 1_000)];

/// Refuses what a page has no use for and would hold a thread for long. What is no object is
/// refused where it is read.
pub(super) fn small_enough(text: &str) -> Result<(), ApiError> {
    let Ok(Value::Object(keys)) = serde_json::from_str(text) else { return Ok(()) };
    for (key, value) in &keys {
        let entries = value.as_array().map_or(0, Vec::len);
        if entries > MOST_ENTRIES {
            return Err(ApiError::bad_input(format!(
                "`{key}` has {entries} entries; ask for at most {MOST_ENTRIES} at a time"
            )));
        }
        let most = MOST.iter().find(|(name, _)| name == key).map(|(_, most)| *most);
        if let (Some(most), Some(asked)) = (most, value.as_u64())
            && asked > most
        {
            return Err(ApiError::bad_input(format!(
                "`{key}` {asked} is more than the {most} that are computed for a page; the command \
                 line has no such limit"
            )));
        }
    }
    Ok(())
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
            Kind::BadInput,
            format!("the body did not arrive within {} s", time.as_secs()),
        )),
    }
}

pub(super) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(text.split(';').next().unwrap_or(text).trim())
}

pub(super) fn unsupported(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Kind::BadInput, message)
}
