//! The answer; its JSON form is in [`super::json`].

use crate::quality::{Bootstrap, Measured};
use crate::verdict::Verdict;
use crate::{Design, Errors, Method, Plan, ThresholdRule};
use schemars::JsonSchema;
use serde::Serialize;

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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hashes {
    /// Of the sorted scores, whatever file and order they came in.
    pub scores: String,
    /// Of the plan's document.
    pub plan: String,
}

impl Analysis {
    /// The headline.
    pub fn primary(&self) -> Option<&Bound> {
        self.bounds.iter().find(|bound| bound.primary)
    }
}

impl Bound {
    /// The name of the number in JSON.
    pub fn quantity(&self) -> &'static str {
        if self.method.is_estimate() { "epsilon_estimate" } else { "epsilon_lower" }
    }
}
