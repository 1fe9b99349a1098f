//! What a ledger says about the training, and what a search over settings showed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A training as its ledger records it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Training {
    /// What was done; depends on no record.
    pub facts: Vec<Fact>,
    /// How it went: computed from records, covered by no guarantee.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<Fact>,
}

/// One line: a name, and a number or words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The number as a person reads it (then it begins the line), or the words.
    pub text: String,
    /// What it means, where that needs saying.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Fact {
    pub fn words(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), value: None, text: text.into(), note: None }
    }

    pub fn number(name: impl Into<String>, value: f64, text: impl Into<String>) -> Self {
        Self { name: name.into(), value: Some(value), text: text.into(), note: None }
    }

    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// Trainings with other settings on the same records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchSection {
    /// Which score measured memorisation; larger is worse.
    pub score: String,
    pub groups: Vec<SearchGroup>,
    /// What must be said about any search.
    pub statement: String,
}

/// All settings with one (epsilon, delta).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchGroup {
    pub epsilon: f64,
    pub delta: f64,
    pub configurations: usize,
    pub runs: usize,
    /// The least and the most that a configuration memorised.
    pub smallest: f64,
    pub largest: f64,
    /// Standard deviation between configurations, seed noise removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<f64>,
    /// Standard deviation between seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_noise: Option<f64>,
    /// That all configurations memorise alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The settings that memorised least.
    pub least: String,
}
