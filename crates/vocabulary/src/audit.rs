//! Everything an audit has to say: the `dosimeter.audit/1` document.

use crate::claim::{At, Claim, Direction, Quantity, Release, Secret, Side, Standing};
use crate::{Adjacency, AtLeast, AtMost, Design, Interval, Method, Run, Source, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An audit: claims from scores, how good the attack was, and what was decided before looking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    /// `dosimeter.audit/1`
    pub schema: String,
    pub design: Design,
    pub members: u64,
    pub nonmembers: u64,
    pub bounds: Vec<Finding>,
    /// Methods that do not hold for these scores.
    pub not_valid: Vec<NotValid>,
    pub auroc: Measured,
    /// max over thresholds of TPR - FPR
    pub advantage: Measured,
    pub tpr: Vec<PowerAt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<Bootstrap>,
    /// Only with a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Whether the bounds are one statement.
    pub joint: bool,
    pub warnings: Vec<String>,
    /// What was decided before looking.
    pub plan: PlanDocument,
    pub hashes: Hashes,
}

impl Audit {
    pub const SCHEMA: &'static str = "dosimeter.audit/1";

    /// The headline.
    pub fn primary(&self) -> Option<&Finding> {
        self.bounds.iter().find(|bound| bound.primary)
    }
}

/// A method that does not hold here, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotValid {
    pub method: Method,
    pub reason: String,
}

/// A measured number with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    pub value: f64,
    pub lower: f64,
    pub upper: f64,
}

impl Measured {
    /// The lower end at the stated confidence.
    pub const fn at_least(&self) -> AtLeast {
        AtLeast::new(self.lower)
    }

    /// The upper end at the stated confidence.
    pub const fn at_most(&self) -> AtMost {
        AtMost::new(self.upper)
    }
}

/// Power at a false positive rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PowerAt {
    pub fpr: f64,
    #[serde(flatten)]
    pub measured: Measured,
}

/// Percentile intervals from resamples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bootstrap {
    pub rounds: usize,
    pub auroc: Measured,
    pub tpr: Vec<PowerAt>,
}

/// SHA-256 of the inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hashes {
    /// Of the sorted scores, whatever file and order they came in.
    pub scores: String,
    /// Of the plan's document.
    pub plan: String,
}

/// What was decided before the scores were seen; its hash is the plan's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanDocument {
    /// `dosimeter.audit-plan/1`
    pub schema: String,
    pub design: Design,
    pub methods: Vec<Method>,
    pub deltas: Vec<f64>,
    pub confidence: f64,
    pub threshold_rule: String,
    pub direction: String,
    pub primary: Method,
    pub joint: bool,
    pub seed: u64,
    pub sample_rate: Option<f64>,
    pub steps: Option<u64>,
    pub min_count: u64,
    pub fprs: Vec<f64>,
    pub bootstrap: usize,
    pub claim: Option<Run>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_epsilon: Option<f64>,
}

/// A claim from scores, with the test behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "FindingDocument", into = "FindingDocument")]
pub struct Finding {
    pub claim: Claim,
    /// The rule really used (a credible interval cannot use a simultaneous band).
    pub threshold_rule: Option<String>,
    /// What the same test could at most show, where the method has it: the attack's own epsilon
    /// at this threshold is at most this with the same confidence.
    pub epsilon_upper: Option<f64>,
    /// In place of the claim's confidence, for `bayes`.
    pub credibility: Option<f64>,
    /// The family's parameter: mu at least, or noise multiplier at most.
    pub mu_lower: Option<f64>,
    pub noise_multiplier_upper: Option<f64>,
    /// The mechanisms that the claim holds for.
    pub valid_for: String,
    pub primary: bool,
    pub tests: Vec<TestAt>,
}

/// Of every bound that nothing else is to be said about.
const FROM_BELOW: &str = "scores bound epsilon from below only";
/// What an upper limit of the test is where there is none.
const AT_ZERO: &str =
    "at delta 0 every mechanism of this family with any leakage has infinite epsilon";

impl Finding {
    /// What a method shows at a delta. Scores bound epsilon from below, whatever the attacker saw:
    /// a bound on what the last iterate leaks is one on what all iterates leak.
    pub fn new(
        method: Method,
        adjacency: Adjacency,
        delta: f64,
        epsilon: f64,
        level: f64,
        valid_for: impl Into<String>,
    ) -> Self {
        let valid_for = valid_for.into();
        let estimate = method.is_estimate();
        let mut assumptions = vec![format!("holds for {valid_for}")];
        if method.is_credible() {
            assumptions.push("a credible interval under its prior, not a confidence bound".into());
        }
        let (standing, side) = if estimate {
            (Standing::Estimate, Side::Neither)
        } else {
            (Standing::Measured, Side::Lower)
        };
        let upper = if estimate { epsilon } else { f64::INFINITY };
        let interval = Interval { lower: epsilon, value: epsilon, upper };
        let claim = Claim {
            side,
            confidence: method.is_confidence_bound().then_some(level),
            reason: (!estimate).then(|| FROM_BELOW.into()),
            assumptions,
            ..Claim::epsilon(method.into(), adjacency, standing, delta, interval)
        };
        Self {
            claim,
            threshold_rule: None,
            epsilon_upper: None,
            credibility: method.is_credible().then_some(level),
            mu_lower: None,
            noise_multiplier_upper: None,
            valid_for,
            primary: false,
            tests: Vec::new(),
        }
    }

    /// With a reason why epsilon is infinite, or zero, where there is one.
    #[must_use]
    pub fn because(mut self, reason: Option<String>) -> Self {
        self.claim.reason = reason.or(self.claim.reason);
        self
    }

    /// Why epsilon is infinite, or zero, where that needs words.
    pub fn reason(&self) -> Option<&str> {
        self.claim.reason.as_deref().filter(|reason| *reason != FROM_BELOW)
    }

    /// Lower bound, credible lower end, or estimate, according to the method.
    pub fn epsilon(&self) -> f64 {
        self.claim.interval.value
    }

    /// What the same test could show at most, where the method has it.
    pub fn test_at_most(&self) -> Option<AtMost> {
        self.epsilon_upper.map(AtMost::new)
    }

    pub fn delta(&self) -> f64 {
        self.claim.at.delta.unwrap_or(0.0)
    }

    /// The confidence, or the credibility; none for an estimate.
    pub fn level(&self) -> Option<f64> {
        self.claim.confidence.or(self.credibility)
    }

    /// The method that makes the claim.
    pub fn method(&self) -> Method {
        match self.claim.source {
            Source::Method(method) => method,
            // No other source makes findings.
            _ => Method::CLAIMS_LEAST,
        }
    }

    /// The name of the number in documents.
    pub fn quantity(&self) -> &'static str {
        if self.method().is_estimate() { "epsilon_estimate" } else { "epsilon_lower" }
    }
}

/// A threshold, or guesses, with what was counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TestAt {
    Threshold {
        #[serde(serialize_with = "written", deserialize_with = "read")]
        #[schemars(with = "Threshold")]
        threshold: f64,
        false_positives: u64,
        nonmembers: u64,
        false_negatives: u64,
        members: u64,
    },
    Guesses {
        guessed_in: u64,
        guessed_out: u64,
        right: u64,
        canaries: u64,
        strategies: usize,
    },
}

/// A score, or "inf" or "-inf" where nobody or everybody is called a member.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Threshold {
    Score(f64),
    End(String),
}

fn written<S: Serializer>(threshold: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if threshold.is_finite() {
        serializer.serialize_f64(*threshold)
    } else {
        serializer.serialize_str(if *threshold > 0.0 { "inf" } else { "-inf" })
    }
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    match Threshold::deserialize(deserializer)? {
        Threshold::Score(score) => Ok(score),
        Threshold::End(end) if end == "inf" => Ok(f64::INFINITY),
        Threshold::End(end) if end == "-inf" => Ok(f64::NEG_INFINITY),
        Threshold::End(end) => Err(serde::de::Error::custom(format!("{end} is not a threshold"))),
    }
}

/// One bound or estimate: a claim from a method, with what the audit says beside it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Finding")]
struct FindingDocument {
    #[serde(flatten)]
    claim: Claim,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threshold_rule: Option<String>,
    #[serde(default)]
    delta: f64,
    /// Epsilon is at least this; `null` is infinity, with a reason. Not for estimates.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    epsilon_lower: Option<Option<f64>>,
    /// In place of a bound, for `grid` and `gaussian-pair`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    epsilon_estimate: Option<Option<f64>>,
    /// The same test's own epsilon is at most this, with the same confidence.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    epsilon_upper: Option<Option<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epsilon_upper_reason: Option<String>,
    /// In place of a confidence, for `bayes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credibility: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    mu_lower: Option<Option<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    noise_multiplier_upper: Option<Option<f64>>,
    /// The mechanisms that the bound holds for.
    valid_for: String,
    primary: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tests: Vec<TestAt>,
}

/// A key that is there, even as `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<f64>>, D::Error> {
    Option::<f64>::deserialize(deserializer).map(Some)
}

impl From<Finding> for FindingDocument {
    fn from(finding: Finding) -> Self {
        let finite = |value: f64| value.is_finite().then_some(value);
        let (method, delta) = (finding.method(), finding.delta());
        let (estimate, epsilon) = (method.is_estimate(), finite(finding.epsilon()));
        let family = method.is_of_family();
        let unbounded = finding.epsilon_upper == Some(f64::INFINITY);
        Self {
            delta,
            epsilon_lower: (!estimate).then_some(epsilon),
            epsilon_estimate: estimate.then_some(epsilon),
            epsilon_upper: finding.epsilon_upper.map(finite),
            epsilon_upper_reason: unbounded.then(|| {
                if delta == 0.0 && family {
                    AT_ZERO.into()
                } else {
                    "no error was seen that would bound this test from above".into()
                }
            }),
            credibility: finding.credibility,
            mu_lower: finding.mu_lower.map(finite),
            noise_multiplier_upper: finding.noise_multiplier_upper.map(finite),
            valid_for: finding.valid_for,
            primary: finding.primary,
            tests: finding.tests,
            threshold_rule: finding.threshold_rule,
            claim: finding.claim,
        }
    }
}

impl From<FindingDocument> for Finding {
    fn from(document: FindingDocument) -> Self {
        let number = |value: Option<f64>| value.unwrap_or(f64::INFINITY);
        Self {
            claim: document.claim,
            threshold_rule: document.threshold_rule,
            epsilon_upper: document.epsilon_upper.map(number),
            credibility: document.credibility,
            mu_lower: document.mu_lower.map(number),
            noise_multiplier_upper: document.noise_multiplier_upper.map(number),
            valid_for: document.valid_for,
            primary: document.primary,
            tests: document.tests,
        }
    }
}

impl JsonSchema for Finding {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        FindingDocument::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        FindingDocument::json_schema(generator)
    }
}

impl Claim {
    /// A number that whoever asks states, to be tested.
    pub fn stated(adjacency: Adjacency, delta: f64, epsilon: f64) -> Self {
        let interval = Interval::exact(epsilon);
        Self::epsilon(Source::Stated, adjacency, Standing::Proven, delta, interval)
    }

    /// A claim about epsilon at a delta, of an attacker who sees every iterate, in both orders; the
    /// upper end may be quoted.
    pub fn epsilon(
        source: Source,
        adjacency: Adjacency,
        standing: Standing,
        delta: f64,
        interval: Interval,
    ) -> Self {
        Self {
            source,
            release: Release::AllIterates,
            secret: Secret::Membership,
            direction: Direction::Both,
            adjacency,
            quantity: Quantity::Epsilon,
            at: At { delta: Some(delta), ..At::default() },
            standing,
            side: Side::Upper,
            interval,
            at_least: None,
            confidence: None,
            certificate: None,
            reason: None,
            assumptions: Vec::new(),
        }
    }
}
