//! The report as data: the `dosimeter.report/1` document.

use crate::{Assumption, Cover, Search, Training};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vocabulary::rounding::quoted_end;
use vocabulary::{Account, Claim, Ends, Figure, Interval, Run, Side, Standing};

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
    /// Accuracy of the best attacker, who knows the prior; one claim a lens and prior.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attack_accuracy: Vec<Claim>,
    /// The `dosimeter.audit/1` document. Not private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Value>,
    /// What the ledger says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Training>,
    /// Other settings on the same records. Not private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
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

/// How the measurement compares with the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The measurement could have contradicted the claim and did not.
    Consistent,
    /// The measurement exceeds what is claimed as proven.
    Contradiction,
    /// The measurement could not have decided.
    Inconclusive,
    /// A claim without a measurement.
    ClaimOnly,
    /// A measurement without a claim.
    MeasuredOnly,
    /// Neither.
    Nothing,
}

impl Status {
    /// One or two words for a badge.
    pub fn badge(self) -> &'static str {
        match self {
            Self::Consistent => "Consistent",
            Self::Contradiction => "Contradiction",
            Self::Inconclusive => "Inconclusive",
            Self::ClaimOnly => "Claim only",
            Self::MeasuredOnly => "Measured only",
            Self::Nothing => "Nothing claimed",
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::Contradiction => "contradiction",
            Self::Inconclusive => "inconclusive",
            Self::ClaimOnly => "claim-only",
            Self::MeasuredOnly => "measured-only",
            Self::Nothing => "nothing",
        }
    }
}

/// The answer in a box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    pub status: Status,
    /// The verdict in one sentence.
    pub headline: String,
    pub reason: String,
    /// The strongest number with a proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The same under the last-iterate heuristic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heuristic: Option<Claim>,
    /// The primary bound of the audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

impl Verdict {
    /// Neither a claim nor a measurement.
    pub fn nothing(reason: impl Into<String>) -> Self {
        Self {
            status: Status::Nothing,
            headline: "Nothing can be claimed about this run".into(),
            reason: reason.into(),
            claim: None,
            heuristic: None,
            evidence: None,
        }
    }
}

/// A measured lower bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    pub method: String,
    pub delta: f64,
    /// Infinity is `null`.
    pub epsilon_lower: Option<f64>,
    pub confidence: f64,
    pub valid_for: String,
    pub members: u64,
    pub nonmembers: u64,
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
    pub fn quoted_end(&self) -> Option<f64> {
        Some(quoted_end(Interval::from(self.epsilon?), self.side))
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
