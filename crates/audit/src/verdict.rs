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
    /// The bound that this rule could have given with scores of these sizes: the largest one, or for a DP-SGD
    /// family up to the claim's at five sixths of its noise; `null` where that is infinite.
    pub could_show: Option<f64>,
    /// Where that is not above the claim: so many scores in all (or canaries), of which a perfect attack could have
    /// refuted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scores_needed: Option<u64>,
}

/// What the rule could have shown with these numbers of scores, and how many scores would have
/// been enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    pub could_show: f64,
    pub scores_needed: Option<u64>,
    /// The largest number of scores that was tried.
    pub searched: u64,
}

/// What a claim says at the primary bound's delta: certified ends of the proven epsilon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClaimedEpsilon {
    pub lower: f64,
    pub upper: f64,
}

/// Compares a bound with a claim. `reach` is what scores of these sizes could have given under the same
/// rule, with its split of the error, its hold-out and its delta terms, if every member had been above
/// every non-member. *Consistent* is only said where that is above the claim.
pub fn verdict(
    bound: f64,
    confidence: f64,
    delta: f64,
    claim: ClaimedEpsilon,
    reach: Reach,
    family: Option<&str>,
) -> Verdict {
    let (status, reason) = judge(bound, confidence, delta, claim, reach, family);
    let finite = |value: f64| value.is_finite().then_some(value);
    Verdict {
        status,
        reason,
        claimed_epsilon: finite(claim.upper),
        could_show: finite(reach.could_show),
        scores_needed: reach.scores_needed,
    }
}

fn judge(
    bound: f64,
    confidence: f64,
    delta: f64,
    claim: ClaimedEpsilon,
    reach: Reach,
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
    if reach.could_show <= claim.upper {
        let needed = reach.scores_needed.map_or_else(
            || {
                format!(
                    "no number of scores up to {} is enough for this rule at this delta",
                    reach.searched
                )
            },
            |needed| {
                format!(
                    "at least {needed} scores in all are needed to test the claim, and more for an attack that is not perfect (`dosimeter plan` says how many)"
                )
            },
        );
        return inconclusive(format!(
            "with this many scores even a perfect attack could only have shown {}, which is not above the claimed {}; {needed}",
            down(reach.could_show),
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
