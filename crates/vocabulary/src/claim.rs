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
    HiddenState,
    HiddenStateRenyi,
}

impl LensName {
    /// Every lens, in the order in which they are shown.
    pub const ALL: [Self; 12] = [
        Self::Composition,
        Self::LastIterate,
        Self::LastIterateMax,
        Self::FullBatch,
        Self::Renyi,
        Self::GaussianClt,
        Self::AdvancedComposition,
        Self::ClosedForm,
        Self::ClosedFormClt,
        Self::ClosedFormCertified,
        Self::HiddenState,
        Self::HiddenStateRenyi,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Composition => "composition",
            Self::LastIterate => "last-iterate",
            Self::LastIterateMax => "last-iterate-max",
            Self::FullBatch => "full-batch",
            Self::Renyi => "renyi",
            Self::GaussianClt => "gaussian-clt",
            Self::AdvancedComposition => "advanced-composition",
            Self::ClosedForm => "closed-form",
            Self::ClosedFormClt => "closed-form-clt",
            Self::ClosedFormCertified => "closed-form-certified",
            Self::HiddenState => "hidden-state",
            Self::HiddenStateRenyi => "hidden-state-renyi",
        }
    }

    /// The lens of a name, if there is one.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lens| lens.as_str() == name)
    }
}

impl std::fmt::Display for LensName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// What the attacker sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Release {
    AllIterates,
    LastIterate,
}

impl Release {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllIterates => "all-iterates",
            Self::LastIterate => "last-iterate",
        }
    }
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

impl Direction {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Add => "add",
            Self::Remove => "remove",
        }
    }
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
    /// Of the best attacker who tells two secrets apart, one of which has the stated prior.
    AttackAccuracy,
}

impl Quantity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Epsilon => "epsilon",
            Self::Delta => "delta",
            Self::Mu => "mu",
            Self::Tpr => "tpr",
            Self::Advantage => "advantage",
            Self::BayesSecurity => "bayes-security",
            Self::Reconstruction => "reconstruction",
            Self::AttackAccuracy => "attack-accuracy",
        }
    }

    /// Whether a smaller number is the more private one (all but Bayes security).
    pub fn is_leakage(self) -> bool {
        self != Self::BayesSecurity
    }
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

impl Standing {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Heuristic => "heuristic",
            Self::Estimate => "estimate",
            Self::Measured => "measured",
        }
    }
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
///
/// In documents the interval is flat (`value`, `lower`, `upper`) and an infinite number is
/// `null`, with a `reason` beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "ClaimDocument", into = "ClaimDocument")]
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

/// A number that is not a claim about the run as described, shown beside the claims so that a
/// reader sees what a mismatch would cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Aside {
    /// What it is, e.g. `shuffle-lower-bound` or `if-poisson`.
    pub name: String,
    pub quantity: Quantity,
    pub at: At,
    pub standing: Standing,
    pub side: Side,
    #[serde(flatten)]
    pub ends: Ends,
    pub note: String,
}

/// The three numbers of an interval as documents spell them; infinity is `null`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ends {
    pub value: Option<f64>,
    pub lower: Option<f64>,
    pub upper: Option<f64>,
}

impl From<Interval> for Ends {
    fn from(interval: Interval) -> Self {
        let finite = |number: f64| number.is_finite().then_some(number);
        Self {
            value: finite(interval.value),
            lower: finite(interval.lower),
            upper: finite(interval.upper),
        }
    }
}

impl From<Ends> for Interval {
    fn from(ends: Ends) -> Self {
        Self {
            lower: ends.lower.unwrap_or(f64::INFINITY),
            value: ends.value.unwrap_or(f64::INFINITY),
            upper: ends.upper.unwrap_or(f64::INFINITY),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Claim")]
struct ClaimDocument {
    lens: LensName,
    release: Release,
    secret: Secret,
    direction: Direction,
    quantity: Quantity,
    at: At,
    standing: Standing,
    side: Side,
    #[serde(flatten)]
    ends: Ends,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    assumptions: Vec<String>,
}

impl From<Claim> for ClaimDocument {
    fn from(claim: Claim) -> Self {
        let infinite = !(claim.interval.value.is_finite() && claim.interval.upper.is_finite());
        Self {
            lens: claim.lens,
            release: claim.release,
            secret: claim.secret,
            direction: claim.direction,
            quantity: claim.quantity,
            at: claim.at,
            standing: claim.standing,
            side: claim.side,
            ends: claim.interval.into(),
            confidence: claim.confidence,
            reason: claim
                .reason
                .or_else(|| infinite.then(|| "the number is infinite: no bound is known".into())),
            assumptions: claim.assumptions,
        }
    }
}

impl From<ClaimDocument> for Claim {
    fn from(document: ClaimDocument) -> Self {
        Self {
            lens: document.lens,
            release: document.release,
            secret: document.secret,
            direction: document.direction,
            quantity: document.quantity,
            at: document.at,
            standing: document.standing,
            side: document.side,
            interval: document.ends.into(),
            confidence: document.confidence,
            reason: document.reason,
            assumptions: document.assumptions,
        }
    }
}

impl JsonSchema for Claim {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        ClaimDocument::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        ClaimDocument::json_schema(generator)
    }
}

/// Everything `account` has to say about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// `dosimeter.account/1`.
    pub schema: String,
    pub run: crate::Run,
    pub claims: Vec<Claim>,
    pub unsupported: Vec<Unsupported>,
    /// Numbers about other runs than this one, each labelled; empty for most runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asides: Vec<Aside>,
    pub warnings: Vec<String>,
}

impl Account {
    pub const SCHEMA: &'static str = "dosimeter.account/1";
}
