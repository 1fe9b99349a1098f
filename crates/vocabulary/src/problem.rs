//! What is wrong with an input: a sentence, and for programs the field, its value and what was
//! expected of it.

use crate::RunError;
use crate::rounding::plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The field that is wrong, as documents and Python spell it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BadField {
    /// Such as `sample_rate`.
    pub field: String,
    /// What was given; absent where nothing was, or no JSON number is it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Such as `(0, 1]`, or `a finite number above 0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

/// A sentence, with the field it is about where it is about one.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    message: String,
    field: Option<Box<BadField>>,
}

impl Problem {
    /// `sample rate 1.3 is outside (0, 1]`.
    ///
    /// ```
    /// use vocabulary::Problem;
    /// let problem = Problem::outside("false positive rate", 2.0, "(0, 1)").and("give 0.01");
    /// assert_eq!(problem.to_string(), "false positive rate 2 is outside (0, 1); give 0.01");
    /// assert_eq!(problem.field().unwrap().field, "fpr");
    /// assert_eq!(problem.field().unwrap().expected.as_deref(), Some("(0, 1)"));
    /// let tiny = Problem::outside("delta", -1e-9, "(0, 1)");
    /// assert_eq!(tiny.to_string(), "delta -1e-9 is outside (0, 1)");
    /// ```
    pub fn outside<T>(name: &str, value: T, range: &str) -> Self
    where
        T: fmt::Display + Copy + Into<Value>,
    {
        Self::from(format!("{name} {} is outside {range}", typed(value))).about(name, value, range)
    }

    /// `epsilon -1 is not a finite number of at least 0`.
    pub fn is_not<T>(name: &str, value: T, expected: &str) -> Self
    where
        T: fmt::Display + Copy + Into<Value>,
    {
        Self::from(format!("{name} {} is not {expected}", typed(value)))
            .about(name, value, expected)
    }

    /// `sample rate is missing; give --sample-rate`.
    pub fn missing(message: impl Into<String>, name: &str) -> Self {
        let mut problem = Self::from(message.into());
        let field = BadField { field: key(name), value: None, expected: None };
        problem.field = Some(Box::new(field));
        problem
    }

    /// Says which field a sentence is about.
    #[must_use]
    pub fn about(mut self, name: &str, value: impl Into<Value>, expected: &str) -> Self {
        self.field = Some(Box::new(BadField {
            field: key(name),
            value: Some(value.into()).filter(|value| !value.is_null()),
            expected: (!expected.is_empty()).then(|| expected.to_owned()),
        }));
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn and(mut self, advice: &str) -> Self {
        self.message = format!("{}; {advice}", self.message);
        self
    }

    /// Adds a sentence.
    #[must_use]
    pub fn then(mut self, sentence: &str) -> Self {
        self.message = format!("{}. {sentence}", self.message);
        self
    }

    pub fn field(&self) -> Option<&BadField> {
        self.field.as_deref()
    }
}

/// A number as a person would type it, not with all its zeros.
fn typed(value: impl fmt::Display + Into<Value> + Copy) -> String {
    match value.into() {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(|| value.to_string(), plain)
        }
        _ => value.to_string(),
    }
}

/// The key of what people call by these words.
fn key(name: &str) -> String {
    match name {
        "false positive rate" => "fpr".into(),
        "true positive rate" => "tpr".into(),
        "target true positive rate" => "target_tpr".into(),
        "claimed epsilon" => "claim_epsilon".into(),
        "data set size" => "dataset_size".into(),
        _ => name.to_lowercase().replace([' ', '-'], "_"),
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { message, field: None }
    }
}

impl From<&str> for Problem {
    fn from(message: &str) -> Self {
        Self::from(message.to_owned())
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        let above_0 = "a finite number above 0";
        let problem = Self::from(error.to_string());
        match error {
            RunError::NoiseMultiplier(value) => problem.about("noise multiplier", value, above_0),
            RunError::SampleRate(value) => problem.about("sample rate", value, "(0, 1]"),
            RunError::Steps(value) => problem.about("steps", value, "at least 1"),
            RunError::ClipNorm(value) => problem.about("clip norm", value, above_0),
            RunError::GroupSize(value) => problem.about("group size", value, "[1, 1000]"),
            RunError::DatasetSize(value) => problem.about("data set size", value, "at least 1"),
            RunError::FullBatchRate(value) => problem.about("sample rate", value, "1"),
            RunError::BatchSize(value) => problem.about("batch size", value, "at least 1"),
            RunError::Epochs(value) => problem.about("epochs", value, above_0),
            RunError::Missing(_, give) => {
                let flag = give.split(' ').next().unwrap_or_default();
                Self::missing(problem.message, flag.trim_matches(['-', '`']))
            }
            RunError::WrongType { key, expected, found } => problem.about(&key, found, expected),
            RunError::Choice { key, value, allowed } => problem.about(&key, value, &allowed),
            RunError::UnknownKey { key, .. } => Self::missing(problem.message, &key),
            RunError::Misplaced(key) => Self::missing(problem.message, &key),
            RunError::Schema(value) => problem.about("schema", value, ""),
            RunError::TotalSteps | RunError::NoPhase => Self::missing(problem.message, "steps"),
            RunError::Contradiction(_)
            | RunError::NoRunTable
            | RunError::NoRunKey
            | RunError::Syntax { .. }
            | RunError::Scheme(..) => problem,
        }
    }
}
