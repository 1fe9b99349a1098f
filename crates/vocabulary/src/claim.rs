//! Claims: a quantity, a threat, a value with its ends, and a standing.

use crate::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The lenses, by the names users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LensName {
    Composition,
    LastIterate,
    LastIterateMax,
    FullBatch,
    Renyi,
    GaussianClt,
    AdvancedComposition,
    ClosedForm,
    ClosedFormClt,
    ClosedFormCertified,
}

/// What the attacker sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Release {
    AllIterates,
    LastIterate,
}

/// What the attacker wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Secret {
    Membership,
    Attribute,
    Reconstruction,
}

/// Which order of the pair: `Remove` has the record first (with it, then without it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    Both,
    Add,
    Remove,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    Epsilon,
    Delta,
    Mu,
    Tpr,
    Advantage,
    BayesSecurity,
    Reconstruction,
}

/// Where the quantity is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct At {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fpr: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<f64>,
}

/// How far a number can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// A theorem covers it.
    Proven,
    /// True under a named assumption that training does not satisfy.
    Heuristic,
    /// An approximation without a side.
    Estimate,
    /// Observed, with a confidence.
    Measured,
}

/// The end of the interval that a person may quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    Upper,
    Lower,
    Neither,
}

/// One statement about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub lens: LensName,
    pub release: Release,
    pub secret: Secret,
    pub direction: Direction,
    pub quantity: Quantity,
    pub at: At,
    pub standing: Standing,
    pub side: Side,
    pub interval: Interval,
    /// Present for measured claims.
    pub confidence: Option<f64>,
    /// Why a number is infinite, when one is.
    pub reason: Option<String>,
    pub assumptions: Vec<String>,
}

/// A lens that does not hold for a run, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unsupported {
    pub lens: LensName,
    pub reason: String,
}

/// Everything `account` has to say about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    pub run: crate::Run,
    pub claims: Vec<Claim>,
    pub unsupported: Vec<Unsupported>,
    pub warnings: Vec<String>,
}
