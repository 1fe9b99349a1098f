//! What the primary bound says about a claimed epsilon.

use crate::words;
use schemars::JsonSchema;
use serde::Serialize;
use vocabulary::Side;
use vocabulary::rounding::{DIGITS, rounded};

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The bound is below the claim, and the scores could have shown otherwise.
    Consistent,
    /// The bound exceeds the proven claim.
    Contradiction,
    /// These scores could not have decided.
    Inconclusive,
}

/// An outcome with its reason in words.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    pub status: Status,
    pub reason: String,
    /// The largest epsilon that the claim allows; `null` where it allows any.
    pub claimed_epsilon: Option<f64>,
    /// The bound that scores of these sizes could at most have given.
    pub reach: Option<f64>,
}

/// What a claim says at the primary bound's delta: certified ends of the proven epsilon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClaimedEpsilon {
    pub lower: f64,
    pub upper: f64,
}

/// Compares a bound with a claim. `reach` is the largest bound that scores of these sizes could
/// have given under the same rule, with every member above every non-member.
pub fn verdict(
    bound: f64,
    confidence: f64,
    delta: f64,
    claim: ClaimedEpsilon,
    reach: f64,
    family: Option<&str>,
) -> Verdict {
    let (status, reason) = judge(bound, confidence, delta, claim, reach, family);
    let finite = |value: f64| value.is_finite().then_some(value);
    Verdict { status, reason, claimed_epsilon: finite(claim.upper), reach: finite(reach) }
}

fn judge(
    bound: f64,
    confidence: f64,
    delta: f64,
    claim: ClaimedEpsilon,
    reach: f64,
    family: Option<&str>,
) -> (Status, String) {
    let at = words::delta(delta);
    let percent = (confidence * 1000.0).floor() / 10.0;
    let within = family.map_or_else(String::new, |family| format!(", if the training is {family}"));
    if bound > claim.upper {
        let reason = format!(
            "the scores show epsilon at least {} at delta {at} with {percent} % confidence{within}, but at most {} is claimed as proven: the training, its noise or the accounting is not what was stated",
            down(bound),
            up(claim.upper)
        );
        return (Status::Contradiction, reason);
    }
    let inconclusive = |reason: String| (Status::Inconclusive, reason);
    if claim.upper == f64::INFINITY {
        return inconclusive(format!(
            "the claim bounds nothing at delta {at} (its epsilon is infinite there); ask at a delta above 0"
        ));
    }
    if reach <= claim.upper {
        return inconclusive(format!(
            "with this many scores even a perfect attack could only have shown {}, which is below the claimed {}; more scores are needed to test the claim (`dosimeter plan` says how many)",
            down(reach),
            up(claim.upper)
        ));
    }
    if bound > claim.lower {
        return inconclusive(format!(
            "the bound {} lies between the certified ends {} and {} of the claim",
            down(bound),
            down(claim.lower),
            up(claim.upper)
        ));
    }
    if bound <= 0.0 {
        return inconclusive(
            "the attack shows no leakage; a stronger attack might, so this neither supports nor contradicts the claim"
                .to_owned(),
        );
    }
    let reason = format!(
        "the scores show epsilon at least {} at delta {at}{within}, below the claimed {}",
        down(bound),
        up(claim.upper)
    );
    (Status::Consistent, reason)
}

fn down(value: f64) -> String {
    rounded(value, DIGITS, Side::Lower)
}

fn up(value: f64) -> String {
    rounded(value, DIGITS, Side::Upper)
}
