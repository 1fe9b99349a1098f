//! The report as data: the `dosimeter.report/1` document.

use crate::{Assumption, Cover, SearchSection, Training};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::{Account, Audit, Claim, Ends, Figure, Quoted, Run, Side, Standing, Verdict};

/// Everything a report shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// `dosimeter.report/1`.
    pub schema: String,
    /// Of the program that made it.
    pub version: String,
    /// Title, owner and date, as they were given.
    #[serde(default, skip_serializing_if = "Cover::is_empty")]
    pub cover: Cover,
    /// Whether everything computed from records was left out.
    pub public: bool,
    pub delta: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    pub verdict: Verdict,
    pub assumptions: Vec<Assumption>,
    /// Paragraphs, ready to paste.
    pub statement: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// Accuracy of the best attacker, who knows the prior; one claim per lens and prior.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attack_accuracy: Vec<Claim>,
    /// What scores show. Not private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// What the ledger says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Training>,
    /// Other settings on the same records. Not private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    pub figures: Vec<Shown>,
    /// What could not be shown, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    pub provenance: Provenance,
}

impl Report {
    pub const SCHEMA: &'static str = "dosimeter.report/1";

    /// A report with nothing but its verdict.
    pub fn new(
        version: impl Into<String>,
        delta: f64,
        verdict: Verdict,
        provenance: Provenance,
    ) -> Self {
        Self {
            schema: Self::SCHEMA.into(),
            version: version.into(),
            cover: Cover::default(),
            public: false,
            delta,
            run: None,
            verdict,
            assumptions: Vec::new(),
            statement: Vec::new(),
            account: None,
            attack_accuracy: Vec::new(),
            audit: None,
            training: None,
            search: None,
            changes: Vec::new(),
            figures: Vec::new(),
            left_out: Vec::new(),
            provenance,
        }
    }

    /// The figure of a name.
    pub fn figure(&self, id: &str) -> Option<&Shown> {
        self.figures.iter().find(|shown| shown.id == id)
    }
}

/// The claimed epsilon if one thing were different.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    pub name: String,
    /// The name in a few letters, for a figure.
    pub label: String,
    /// What it means, in a sentence.
    pub note: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    pub side: Side,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<Ends>,
    /// The delta at which it is taken.
    pub delta: f64,
    /// Relative to the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Why there is no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Change {
    /// The end of the number that may be quoted; infinite where it is unbounded.
    pub fn quoted(&self) -> Option<Quoted> {
        self.epsilon.map(|ends| ends.quoted(self.side))
    }
}

/// A figure with its place in the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    /// A plain name, unique in the report.
    pub id: String,
    /// Whether it is computed from records without privacy.
    pub not_private: bool,
    pub figure: Figure,
}

/// Where everything comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Commands that make the same report, in order.
    pub commands: Vec<String>,
    pub inputs: Vec<Input>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<Seed>,
    /// How the numbers were made, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    pub name: String,
    /// `run`, `ledger`, `scores` or `results`.
    pub role: String,
    pub sha256: String,
}

/// A root of randomness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Seed {
    pub purpose: String,
    pub seed: u64,
}
