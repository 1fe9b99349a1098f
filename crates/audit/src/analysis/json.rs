//! The JSON form of an answer, `dosimeter.audit/1`. Infinity is `null` with a reason.

use super::many_runs::INFINITE_AT_ZERO;
use super::{Analysis, Bound, Hashes, NotValid, TestAt};
use crate::quality::Measured;
use crate::verdict::Verdict;
use crate::{Design, Method, PlanDocument};
use schemars::JsonSchema;
use serde::Serialize;
use vocabulary::{
    Adjacency, At, Claim, Direction, Interval, Quantity, Release, Run, Secret, Side, Standing,
};

/// An audit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AuditDocument {
    /// `dosimeter.audit/1`
    schema: &'static str,
    design: Design,
    members: u64,
    nonmembers: u64,
    bounds: Vec<BoundDocument>,
    /// Methods that do not hold for these scores.
    not_valid: Vec<NotValid>,
    auroc: Measured,
    /// max over thresholds of TPR - FPR
    advantage: Measured,
    tpr: Vec<PowerDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bootstrap: Option<BootstrapDocument>,
    /// Only with a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    /// Whether the bounds are one statement.
    joint: bool,
    warnings: Vec<String>,
    /// What was decided before looking.
    plan: PlanDocument,
    hashes: Hashes,
}

/// One bound or estimate: a claim from a method, with what the audit says beside it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct BoundDocument {
    #[serde(flatten)]
    claim: Claim,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold_rule: Option<String>,
    delta: f64,
    /// Epsilon is at least this; `null` is infinity, with a reason. Not for estimates.
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon_lower: Option<Option<f64>>,
    /// In place of a bound, for `grid` and `gaussian-pair`.
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon_estimate: Option<Option<f64>>,
    /// The same test's own epsilon is at most this, with the same confidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon_upper: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon_upper_reason: Option<&'static str>,
    /// In place of a confidence, for `bayes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    credibility: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mu_lower: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise_multiplier_upper: Option<Option<f64>>,
    /// The mechanisms that the bound speaks about.
    valid_for: String,
    primary: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tests: Vec<TestDocument>,
}

/// What was counted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum TestDocument {
    Threshold {
        threshold: Threshold,
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum Threshold {
    Score(f64),
    End(&'static str),
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct PowerDocument {
    fpr: f64,
    value: f64,
    lower: f64,
    upper: f64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct BootstrapDocument {
    rounds: usize,
    auroc: Measured,
    tpr: Vec<PowerDocument>,
}

impl AuditDocument {
    pub const SCHEMA: &'static str = "dosimeter.audit/1";
}

impl Analysis {
    /// The document of the interface as a JSON value.
    pub fn to_json(&self) -> serde_json::Value {
        // Every field is a number, a text or a list of them: there is nothing that can fail.
        serde_json::to_value(self.document()).unwrap_or_default()
    }

    /// The document of the interface.
    pub fn document(&self) -> AuditDocument {
        AuditDocument {
            schema: AuditDocument::SCHEMA,
            design: self.design,
            members: self.counts.members,
            nonmembers: self.counts.nonmembers,
            bounds: self.bounds.iter().map(|bound| bound.document(self.adjacency())).collect(),
            not_valid: self.not_valid.clone(),
            auroc: self.auroc,
            advantage: self.advantage,
            tpr: self.tpr.iter().map(|power| at_fpr(power.fpr, &power.measured)).collect(),
            bootstrap: self.bootstrap.as_ref().map(|bootstrap| BootstrapDocument {
                rounds: self.plan.bootstrap,
                auroc: bootstrap.auroc,
                tpr: bootstrap.tpr.iter().map(|(fpr, tpr)| at_fpr(*fpr, tpr)).collect(),
            }),
            verdict: self.verdict.clone(),
            joint: self.plan.joint,
            warnings: self.warnings.clone(),
            plan: self.plan.document(),
            hashes: self.hashes.clone(),
        }
    }
}

impl Analysis {
    /// Which data sets the scores tell apart: those of the claimed run, else one record more.
    pub fn adjacency(&self) -> Adjacency {
        self.plan.claim.as_ref().map_or(Adjacency::AddRemove, Run::adjacency)
    }
}

impl Bound {
    /// The bound as a claim. Scores bound epsilon from below, whatever the attacker saw: a bound
    /// on what the last iterate leaks is one on what all iterates leak.
    pub fn claim(&self, adjacency: Adjacency) -> Claim {
        let estimate = self.method.is_estimate();
        let (standing, side) = if estimate {
            (Standing::Estimate, Side::Neither)
        } else {
            (Standing::Measured, Side::Lower)
        };
        let upper = if estimate { self.epsilon } else { f64::INFINITY };
        let mut assumptions = vec![format!("holds for {}", self.valid_for)];
        if self.method == Method::Bayes {
            assumptions.push("a credible interval under its prior, not a confidence bound".into());
        }
        Claim {
            source: self.method.source(),
            release: Release::AllIterates,
            secret: Secret::Membership,
            direction: Direction::Both,
            adjacency,
            quantity: Quantity::Epsilon,
            at: At { delta: Some(self.delta), ..At::default() },
            standing,
            side,
            interval: Interval { lower: self.epsilon, value: self.epsilon, upper },
            at_least: None,
            confidence: self.method.is_confidence_bound().then_some(self.confidence),
            certificate: None,
            reason: self
                .reason
                .clone()
                .or_else(|| (!estimate).then(|| "scores bound epsilon from below only".into())),
            assumptions,
        }
    }

    fn document(&self, adjacency: Adjacency) -> BoundDocument {
        let epsilon = finite(self.epsilon);
        let family = matches!(self.method, Method::Gdp | Method::Composition | Method::LastIterate);
        let unbounded = self.epsilon_upper == Some(f64::INFINITY);
        BoundDocument {
            claim: self.claim(adjacency),
            threshold_rule: self.threshold_rule.map(|rule| rule.to_string()),
            delta: self.delta,
            epsilon_lower: (!self.method.is_estimate()).then_some(epsilon),
            epsilon_estimate: self.method.is_estimate().then_some(epsilon),
            epsilon_upper: self.epsilon_upper.map(finite),
            epsilon_upper_reason: unbounded.then_some(if self.delta == 0.0 && family {
                INFINITE_AT_ZERO
            } else {
                "no error was seen that would bound this test from above"
            }),
            credibility: (self.method == Method::Bayes).then_some(self.confidence),
            mu_lower: self.mu_lower.map(finite),
            noise_multiplier_upper: self.noise_multiplier_upper.map(finite),
            valid_for: self.valid_for.clone(),
            primary: self.primary,
            tests: self.tests.iter().copied().map(TestAt::document).collect(),
        }
    }
}

impl TestAt {
    fn document(self) -> TestDocument {
        match self {
            Self::Threshold { threshold, errors } => TestDocument::Threshold {
                threshold: match threshold {
                    f64::INFINITY => Threshold::End("inf"),
                    f64::NEG_INFINITY => Threshold::End("-inf"),
                    score => Threshold::Score(score),
                },
                false_positives: errors.false_positives,
                nonmembers: errors.nonmembers,
                false_negatives: errors.false_negatives,
                members: errors.members,
            },
            Self::Guesses { guessed_in, guessed_out, right, canaries, strategies } => {
                TestDocument::Guesses { guessed_in, guessed_out, right, canaries, strategies }
            }
        }
    }
}

fn at_fpr(fpr: f64, measured: &Measured) -> PowerDocument {
    PowerDocument { fpr, value: measured.value, lower: measured.lower, upper: measured.upper }
}

/// Infinity is null.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
