//! Completions as JSONL: `prompt`, `target`, `completion`, and where known `secret` (a name),
//! `attribute` (a text, or a list of accepted ones), `seed` (of the training).

use crate::LanguageError;
use crate::error::shown;
use serde_json::{Map, Value};
use std::path::Path;

/// One answer of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    pub prompt: String,
    pub target: String,
    pub completion: String,
    /// The name of the secret; prompt and target, where none was given.
    pub secret: String,
    /// Accepted attributes; the target, where none was given.
    pub attributes: Vec<String>,
    pub seed: Option<String>,
}

/// A file of completions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    pub rows: Vec<Completion>,
}

impl Completions {
    /// Reads a JSONL file.
    ///
    /// # Errors
    /// Names the file, the line and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, LanguageError> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| LanguageError::Read { place: place.clone(), source })?;
        Self::from_jsonl(&text, &place)
    }

    /// Reads JSONL.
    ///
    /// ```
    /// let line = r#"{"prompt":"Ada's number is","target":" 42","completion":" 42."}"#;
    /// let found = language::memorization::Completions::from_jsonl(line, "c.jsonl").unwrap();
    /// assert_eq!(found.rows[0].attributes, [" 42"]);
    /// ```
    ///
    /// # Errors
    /// As [`Completions::read`].
    pub fn from_jsonl(text: &str, place: &str) -> Result<Self, LanguageError> {
        let mut rows = Vec::new();
        for (number, object) in formats::jsonl::objects(text) {
            let here = format!("{place}, row {number}");
            let object = object.map_err(|problem| LanguageError::file(&here, problem))?;
            rows.push(row(&object, &here)?);
        }
        if rows.is_empty() {
            return Err(LanguageError::file(
                place,
                "holds no completion; one JSON object per line with prompt, target and completion is needed",
            ));
        }
        Ok(Self { rows })
    }

    /// As JSONL, one line per completion.
    pub fn to_jsonl(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let mut line = serde_json::json!({
                "prompt": row.prompt, "target": row.target, "completion": row.completion,
                "secret": row.secret, "attribute": row.attributes,
            });
            if let (Some(seed), Some(object)) = (&row.seed, line.as_object_mut()) {
                object.insert("seed".into(), Value::String(seed.clone()));
            }
            text.push_str(&line.to_string());
            text.push('\n');
        }
        text
    }
}

fn row(object: &Map<String, Value>, here: &str) -> Result<Completion, LanguageError> {
    let text = |name: &str| needed(object, name, here);
    let (prompt, target, completion) = (text("prompt")?, text("target")?, text("completion")?);
    if target.is_empty() {
        return Err(LanguageError::file(
            here,
            "the target is empty, so that everything matches it",
        ));
    }
    let attributes = match object.get("attribute") {
        None | Some(Value::Null) => vec![target.clone()],
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(all)) => all
            .iter()
            .map(|value| value.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| {
                LanguageError::file(
                    here,
                    "attribute is a list that holds more than \
                                                      texts",
                )
            })?,
        Some(other) => {
            let problem = format!("attribute {} is not a text", shown(&other.to_string()));
            return Err(LanguageError::file(here, problem));
        }
    };
    if attributes.is_empty() || attributes.iter().any(|attribute| attribute.trim().is_empty()) {
        return Err(LanguageError::file(
            here,
            "an attribute is empty, so that everything matches it",
        ));
    }
    let label = |name: &str| match object.get(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => Some(other.to_string()),
    };
    let secret = label("secret").unwrap_or_else(|| format!("{prompt}{target}"));
    Ok(Completion { prompt, target, completion, secret, attributes, seed: label("seed") })
}

fn needed(object: &Map<String, Value>, name: &str, here: &str) -> Result<String, LanguageError> {
    match object.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(LanguageError::file(here, format!("{name} is not a text"))),
        None => Err(LanguageError::file(here, format!("there is no `{name}`"))),
    }
}
