//! What claims and measurements say together.

use crate::{Claim, Finding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a measurement compares with a claim.
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

    /// What it means, beside the scores that it is about.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Consistent => {
                "Consistent: the scores could have contradicted the claim and did not"
            }
            Self::Contradiction => "Contradiction: the scores show more leakage than is claimed",
            Self::Inconclusive => "Inconclusive: these scores could not have decided",
            Self::ClaimOnly | Self::MeasuredOnly | Self::Nothing => self.badge(),
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

/// An outcome with its reason in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    pub status: Status,
    /// The verdict in one sentence, where a page shows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub headline: String,
    pub reason: String,
    /// The largest epsilon that the claim allows; `null` where it allows any.
    pub claimed_epsilon: Option<f64>,
    /// The bound that this rule could at most have given with scores of these sizes; `null` where
    /// that is infinite, or there are no scores.
    pub could_show: Option<f64>,
    /// Where that is not above the claim: this many scores in all (or canaries), of which a perfect
    /// attack could have refuted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores_needed: Option<u64>,
    /// The strongest number with a proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The same under the last-iterate heuristic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heuristic: Option<Claim>,
    /// The headline of the audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Finding>,
}

impl Verdict {
    /// A status with its reason, and nothing beside it.
    pub fn new(status: Status, reason: impl Into<String>) -> Self {
        Self {
            status,
            headline: String::new(),
            reason: reason.into(),
            claimed_epsilon: None,
            could_show: None,
            scores_needed: None,
            claim: None,
            heuristic: None,
            measured: None,
        }
    }

    /// Neither a claim nor a measurement.
    pub fn nothing(reason: impl Into<String>) -> Self {
        let headline = "Nothing can be claimed about this run".into();
        Self { headline, ..Self::new(Status::Nothing, reason) }
    }
}
