//! What was promised about speed, and whether this run kept it.

use super::format::{ratio, seconds, three_digits};

pub struct Bar {
    promise: String,
    measured: Option<f64>,
    kept: bool,
    unit: Unit,
}

enum Unit {
    Times,
    Megabytes,
    Seconds,
    Nothing,
}

impl Bar {
    /// A ratio that has to be at least `least`; `None` when one side was not measured.
    pub fn at_least(promise: impl Into<String>, least: f64, measured: Option<f64>) -> Self {
        let kept = measured.is_some_and(|value| value >= least);
        Self { promise: promise.into(), measured, kept, unit: Unit::Times }
    }

    /// A ratio that may be at most `most`.
    pub fn at_most(promise: impl Into<String>, most: f64, measured: Option<f64>) -> Self {
        let kept = measured.is_some_and(|value| value <= most);
        Self { promise: promise.into(), measured, kept, unit: Unit::Times }
    }

    pub fn megabytes_below(promise: impl Into<String>, most: f64, measured: Option<f64>) -> Self {
        let kept = measured.is_some_and(|value| value < most);
        Self { promise: promise.into(), measured, kept, unit: Unit::Megabytes }
    }

    pub fn seconds_below(promise: impl Into<String>, most: f64, measured: Option<f64>) -> Self {
        let kept = measured.is_some_and(|value| value < most);
        Self { promise: promise.into(), measured, kept, unit: Unit::Seconds }
    }

    /// The same, of a number that is no ratio.
    pub fn plain(self) -> Self {
        Self { unit: Unit::Nothing, ..self }
    }

    pub fn promise(&self) -> &str {
        &self.promise
    }

    pub fn kept(&self) -> bool {
        self.kept
    }

    pub fn row(&self) -> String {
        let measured = match (self.measured, &self.unit) {
            (None, _) => "not measured".to_owned(),
            (Some(value), Unit::Times) => ratio(value),
            (Some(value), Unit::Nothing) => format!("{value:.2}"),
            (Some(value), Unit::Seconds) => seconds(value),
            (Some(value), Unit::Megabytes) => format!("{} MB", three_digits(value)),
        };
        let verdict = match (self.measured, self.kept) {
            (None, _) => "—",
            (_, true) => "pass",
            (_, false) => "**fail**",
        };
        format!("| {} | {measured} | {verdict} |\n", self.promise)
    }
}
