//! The answer, and its JSON form (`dosimeter.audit/1`).

use crate::quality::{Bootstrap, Measured};
use crate::verdict::Verdict;
use crate::{Design, Errors, Method, Plan, ThresholdRule};
use serde_json::{Map, Value, json};

/// Everything an audit has to say.
#[derive(Clone, Debug)]
pub struct Analysis {
    pub design: Design,
    pub counts: Counts,
    pub bounds: Vec<Bound>,
    pub not_valid: Vec<NotValid>,
    pub auroc: Measured,
    pub advantage: Measured,
    pub tpr: Vec<PowerAt>,
    pub bootstrap: Option<Bootstrap>,
    pub verdict: Option<Verdict>,
    pub warnings: Vec<String>,
    pub hashes: Hashes,
    pub plan: Plan,
}

/// Scores on each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub members: u64,
    pub nonmembers: u64,
}

/// One bound or estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    pub method: Method,
    /// The rule really used (a credible interval cannot use a simultaneous band).
    pub threshold_rule: Option<ThresholdRule>,
    pub delta: f64,
    /// Lower bound, credible lower end, or estimate, according to the method.
    pub epsilon: f64,
    /// Why epsilon is infinite, or zero, where that needs words.
    pub reason: Option<String>,
    /// What the same test could at most show, where the method has it: the attack's own epsilon
    /// at this threshold is at most this with the same confidence.
    pub epsilon_upper: Option<f64>,
    /// The error left to this bound is 1 - this.
    pub confidence: f64,
    pub valid_for: String,
    pub primary: bool,
    /// The family's parameter: mu at least, or noise multiplier at most.
    pub mu_lower: Option<f64>,
    pub noise_multiplier_upper: Option<f64>,
    pub tests: Vec<TestAt>,
}

/// A threshold with what was counted there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TestAt {
    Threshold { threshold: f64, errors: Errors },
    Guesses { guessed_in: u64, guessed_out: u64, right: u64, canaries: u64, strategies: usize },
}

/// A method that does not hold here, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct NotValid {
    pub method: Method,
    pub reason: String,
}

/// Power at a false positive rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerAt {
    pub fpr: f64,
    pub measured: Measured,
}

/// SHA-256 of the inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashes {
    pub scores: String,
    pub plan: String,
}

impl Analysis {
    /// The headline.
    pub fn primary(&self) -> Option<&Bound> {
        self.bounds.iter().find(|bound| bound.primary)
    }

    /// The document of the interface.
    pub fn to_json(&self) -> Value {
        let mut document = json!({
            "schema": "dosimeter.audit/1",
            "design": self.design,
            "members": self.counts.members,
            "nonmembers": self.counts.nonmembers,
            "bounds": self.bounds.iter().map(Bound::to_json).collect::<Vec<_>>(),
            "not_valid": self.not_valid.iter().map(|entry| json!({
                "method": entry.method, "reason": entry.reason,
            })).collect::<Vec<_>>(),
            "auroc": self.auroc,
            "advantage": self.advantage,
            "tpr": self.tpr.iter().map(|power| with_fpr(power.fpr, &power.measured)).collect::<Vec<_>>(),
            "joint": self.plan.joint,
            "warnings": self.warnings,
            "plan": self.plan.document(),
            "hashes": { "scores": self.hashes.scores, "plan": self.hashes.plan },
        });
        if let Value::Object(fields) = &mut document {
            if let Some(verdict) = &self.verdict {
                fields.insert("verdict".to_owned(), json!(verdict));
            }
            if let Some(bootstrap) = &self.bootstrap {
                let tpr: Vec<Value> =
                    bootstrap.tpr.iter().map(|(fpr, measured)| with_fpr(*fpr, measured)).collect();
                let value = json!({
                    "rounds": self.plan.bootstrap, "auroc": bootstrap.auroc, "tpr": tpr,
                });
                fields.insert("bootstrap".to_owned(), value);
            }
        }
        document
    }
}

fn with_fpr(fpr: f64, measured: &Measured) -> Value {
    json!({ "fpr": fpr, "value": measured.value, "lower": measured.lower, "upper": measured.upper })
}

impl Bound {
    /// The name of the number in JSON.
    pub fn quantity(&self) -> &'static str {
        if self.method == Method::Grid { "epsilon_estimate" } else { "epsilon_lower" }
    }

    fn to_json(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("method".to_owned(), json!(self.method));
        if let Some(rule) = &self.threshold_rule {
            fields.insert("threshold_rule".to_owned(), json!(rule.to_string()));
        }
        fields.insert("delta".to_owned(), json!(self.delta));
        // Infinity is null with a reason.
        fields.insert(self.quantity().to_owned(), finite(self.epsilon));
        if let Some(reason) = &self.reason {
            fields.insert("reason".to_owned(), json!(reason));
        }
        if let Some(upper) = self.epsilon_upper {
            fields.insert("epsilon_upper".to_owned(), finite(upper));
            if upper == f64::INFINITY {
                let reason = "no error was seen that would bound this test from above";
                fields.insert("epsilon_upper_reason".to_owned(), json!(reason));
            }
        }
        match self.method {
            Method::Bayes => fields.insert("credibility".to_owned(), json!(self.confidence)),
            Method::Grid => None,
            _ => fields.insert("confidence".to_owned(), json!(self.confidence)),
        };
        if let Some(mu) = self.mu_lower {
            fields.insert("mu_lower".to_owned(), finite(mu));
        }
        if let Some(noise) = self.noise_multiplier_upper {
            fields.insert("noise_multiplier_upper".to_owned(), finite(noise));
        }
        fields.insert("valid_for".to_owned(), json!(self.valid_for));
        fields.insert("primary".to_owned(), json!(self.primary));
        let tests: Vec<Value> = self.tests.iter().copied().map(TestAt::to_json).collect();
        if !tests.is_empty() {
            fields.insert("tests".to_owned(), Value::Array(tests));
        }
        Value::Object(fields)
    }
}

impl TestAt {
    fn to_json(self) -> Value {
        match self {
            Self::Threshold { threshold, errors } => json!({
                "threshold": finite_or_text(threshold),
                "false_positives": errors.false_positives,
                "nonmembers": errors.nonmembers,
                "false_negatives": errors.false_negatives,
                "members": errors.members,
            }),
            Self::Guesses { guessed_in, guessed_out, right, canaries, strategies } => json!({
                "guessed_in": guessed_in,
                "guessed_out": guessed_out,
                "right": right,
                "canaries": canaries,
                "strategies": strategies,
            }),
        }
    }
}

fn finite(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { Value::Null }
}

/// A threshold may be infinite (nobody, or everybody, is called a member).
fn finite_or_text(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(if value > 0.0 { "inf" } else { "-inf" }) }
}
