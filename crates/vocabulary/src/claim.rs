//! Claims: a quantity, a threat, a value with its ends, and a standing.

use crate::{Adjacency, AtLeast, BadField, Interval, LensName, Method, NotCovered, Quoted, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

    /// What the attacker is assumed to see, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::AllIterates => "all iterates",
            Self::LastIterate => "last iterate",
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

impl Secret {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Membership => "membership",
            Self::Attribute => "attribute",
            Self::Reconstruction => "reconstruction",
        }
    }
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
    pub const ALL: [Self; 8] = [
        Self::Epsilon,
        Self::Delta,
        Self::Mu,
        Self::Tpr,
        Self::Advantage,
        Self::BayesSecurity,
        Self::Reconstruction,
        Self::AttackAccuracy,
    ];

    /// The quantity of a name, if there is one.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quantity| quantity.as_str() == name)
    }

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

    /// How a limit of the quantity is called, and its sign.
    pub fn limit(self) -> (&'static str, &'static str) {
        if self.is_leakage() { ("at most", "<=") } else { ("at least", ">=") }
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

impl Side {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upper => "upper",
            Self::Lower => "lower",
            Self::Neither => "neither",
        }
    }

    /// The sign of a number of which this end is known.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Upper => "<=",
            Self::Lower => ">=",
            Self::Neither => "~",
        }
    }

    /// The same as it is written in mathematics.
    pub const fn mathematical_sign(self) -> &'static str {
        match self {
            Self::Upper => "\u{2264}",
            Self::Lower => "\u{2265}",
            Self::Neither => "\u{2248}",
        }
    }
}

/// One statement about a run: who makes it, about what, how large, and how far to trust it.
///
/// In documents the interval is flat (`value`, `lower`, `upper`), an infinite number is `null`
/// with a `reason` beside it, and `shown` is the text of the end that may be quoted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ClaimDocument", into = "ClaimDocument")]
pub struct Claim {
    pub source: Source,
    pub release: Release,
    pub secret: Secret,
    pub direction: Direction,
    /// Which data sets count as neighbours: a number without it cannot be compared.
    pub adjacency: Adjacency,
    pub quantity: Quantity,
    pub at: At,
    pub standing: Standing,
    pub side: Side,
    pub interval: Interval,
    /// Where the interval is that of an upper bound on the worst case: what the worst case is
    /// proven to be at least.
    pub at_least: Option<f64>,
    /// Present for measured claims.
    pub confidence: Option<f64>,
    /// What checked the ends again, where something did.
    pub certificate: Option<String>,
    /// Why a number is infinite, when one is.
    pub reason: Option<String>,
    pub assumptions: Vec<String>,
}

impl Claim {
    /// The end that may be quoted.
    pub fn quoted(&self) -> Quoted {
        Quoted::end_of(self.interval, self.side)
    }

    /// The end that may be quoted, as text: `<= 1.829`.
    pub fn shown(&self) -> String {
        self.quoted().shown()
    }

    /// What the worst case is at least, where that is known apart from the ends.
    pub fn worst_case(&self) -> Option<AtLeast> {
        self.at_least.map(AtLeast::new)
    }

    /// What the worst case is at least, as text: `>= 7.064`.
    pub fn at_least_shown(&self) -> Option<String> {
        self.worst_case().map(AtLeast::shown)
    }

    /// Whether it bounds anything: an estimate has no side.
    pub fn is_bound(&self) -> bool {
        self.side != Side::Neither
    }
}

/// A lens that does not hold for a run, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unsupported {
    pub lens: LensName,
    pub reason: String,
    /// What of the run it is about, and what is covered, where it is about one field.
    #[serde(flatten)]
    pub field: Option<BadField>,
}

impl Unsupported {
    /// A lens that does not hold.
    pub fn new(lens: LensName, reason: &NotCovered) -> Self {
        Self { lens, reason: reason.to_string(), field: reason.field() }
    }

    /// A lens that holds, and whose numbers could not be had.
    pub fn refused(lens: LensName, error: &impl std::fmt::Display) -> Self {
        Self { lens, reason: format!("refused: {error}"), field: None }
    }
}

/// A number that is not a claim about the run as described, shown beside the claims so that a
/// reader sees what a mismatch would cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "AsideDocument", into = "AsideDocument")]
pub struct Aside {
    /// What it is, e.g. `shuffle-lower-bound` or `if-poisson`.
    pub name: String,
    pub quantity: Quantity,
    pub at: At,
    pub standing: Standing,
    pub side: Side,
    pub ends: Ends,
    pub note: String,
}

impl Aside {
    /// The end that may be quoted.
    pub fn quoted(&self) -> Quoted {
        Quoted::end_of(self.ends.into(), self.side)
    }

    /// The end that may be quoted, as text.
    pub fn shown(&self) -> String {
        self.quoted().shown()
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Aside")]
struct AsideDocument {
    /// What it is, e.g. `shuffle-lower-bound` or `if-poisson`.
    name: String,
    quantity: Quantity,
    at: At,
    standing: Standing,
    side: Side,
    #[serde(flatten)]
    ends: Ends,
    /// The end that may be quoted, rounded towards its side, with its sign.
    #[serde(default)]
    shown: String,
    note: String,
}

impl From<Aside> for AsideDocument {
    fn from(aside: Aside) -> Self {
        let shown = aside.shown();
        let Aside { name, quantity, at, standing, side, ends, note } = aside;
        Self { name, quantity, at, standing, side, ends, shown, note }
    }
}

impl From<AsideDocument> for Aside {
    fn from(document: AsideDocument) -> Self {
        let AsideDocument { name, quantity, at, standing, side, ends, shown: _, note } = document;
        Self { name, quantity, at, standing, side, ends, note }
    }
}

/// The three numbers of an interval as documents spell them; infinity is `null`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ends {
    pub value: Option<f64>,
    pub lower: Option<f64>,
    pub upper: Option<f64>,
}

impl Ends {
    /// The end that a side names.
    pub fn quoted(self, side: Side) -> Quoted {
        Quoted::end_of(self.into(), side)
    }
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
    /// The lens that makes the claim; a claim has a lens or a method, or is stated by whoever asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lens: Option<LensName>,
    /// The audit method that makes the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<Method>,
    release: Release,
    secret: Secret,
    direction: Direction,
    adjacency: Adjacency,
    quantity: Quantity,
    at: At,
    standing: Standing,
    side: Side,
    #[serde(flatten)]
    ends: Ends,
    /// The end that may be quoted, rounded towards its side, with its sign.
    #[serde(default)]
    shown: String,
    /// What the worst case is proven to be at least, where the ends are those of an upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_least: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_least_shown: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    /// What checked the ends again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    assumptions: Vec<String>,
}

impl From<Claim> for ClaimDocument {
    fn from(claim: Claim) -> Self {
        let infinite = !(claim.interval.value.is_finite() && claim.interval.upper.is_finite());
        let (shown, at_least_shown) = (claim.shown(), claim.at_least_shown());
        let (lens, method) = match claim.source {
            Source::Lens(lens) => (Some(lens), None),
            Source::Method(method) => (None, Some(method)),
            Source::Stated => (None, None),
        };
        Self {
            lens,
            method,
            release: claim.release,
            secret: claim.secret,
            direction: claim.direction,
            adjacency: claim.adjacency,
            quantity: claim.quantity,
            at: claim.at,
            standing: claim.standing,
            side: claim.side,
            ends: claim.interval.into(),
            shown,
            at_least: claim.at_least,
            at_least_shown,
            confidence: claim.confidence,
            certificate: claim.certificate,
            reason: claim
                .reason
                .or_else(|| infinite.then(|| "the number is infinite: no bound is known".into())),
            assumptions: claim.assumptions,
        }
    }
}

impl TryFrom<ClaimDocument> for Claim {
    type Error = &'static str;

    fn try_from(document: ClaimDocument) -> Result<Self, Self::Error> {
        let source = match (document.lens, document.method) {
            (Some(lens), None) => Source::Lens(lens),
            (None, Some(method)) => Source::Method(method),
            (None, None) => Source::Stated,
            (Some(_), Some(_)) => return Err("a claim has a `lens` or a `method`, not both"),
        };
        Ok(Self {
            source,
            release: document.release,
            secret: document.secret,
            direction: document.direction,
            adjacency: document.adjacency,
            quantity: document.quantity,
            at: document.at,
            standing: document.standing,
            side: document.side,
            interval: document.ends.into(),
            at_least: document.at_least,
            confidence: document.confidence,
            certificate: document.certificate,
            reason: document.reason,
            assumptions: document.assumptions,
        })
    }
}

impl JsonSchema for Aside {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        AsideDocument::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        AsideDocument::json_schema(generator)
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
    /// What may be signed; absent where no lens proves anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<crate::Sign>,
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
