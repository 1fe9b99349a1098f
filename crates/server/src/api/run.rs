//! A run as a question carries it: the keys of a TOML run, as JSON.

use crate::error::ApiError;
use serde::Deserialize;
use serde_json::Value;
use vocabulary::{Document, LensName, Resolved, RunDescription};

/// The description, checked for unknown keys as a file is.
pub(super) fn describe(run: &Value) -> Result<RunDescription, ApiError> {
    if !run.is_object() {
        return Err(ApiError::bad_input("`run` must be an object with the keys of a [run] table"));
    }
    let text = serde_json::json!({ "run": run }).to_string();
    Ok(Document::from_json_str(&text)?.run)
}

pub(super) fn resolve(run: &Value) -> Result<Resolved, ApiError> {
    Ok(describe(run)?.resolve()?)
}

/// One item, or a list of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Several<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Several<T> {
    pub(super) fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(item) => vec![item],
            Self::Many(items) => items,
        }
    }
}

impl<T> Default for Several<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

/// Numbers of one kind that a question may hold; more would be a way to buy time.
const MOST: usize = 64;

pub(super) fn bounded<T>(name: &str, several: Several<T>) -> Result<Vec<T>, ApiError> {
    let items = several.into_vec();
    if items.len() > MOST {
        return Err(ApiError::bad_input(format!(
            "`{name}` has {} entries; ask for at most {MOST} at a time",
            items.len()
        )));
    }
    Ok(items)
}

pub(super) fn lenses(several: Several<String>) -> Result<Vec<LensName>, ApiError> {
    bounded("lens", several)?
        .iter()
        .map(|name| {
            LensName::parse(name).ok_or_else(|| {
                let known = LensName::ALL.map(LensName::as_str).join(", ");
                ApiError::bad_input(format!("there is no such lens; choose one of {known}"))
            })
        })
        .collect()
}
