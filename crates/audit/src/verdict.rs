//! What the primary bound says about a claimed epsilon.

use crate::{analysis, words};
use vocabulary::rounding::with_commas;
use vocabulary::{AtLeast, Claim, Finding, Status, Verdict};

/// What the rule could have shown with these numbers of scores, and how many scores would have
/// been enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    pub could_show: f64,
    pub scores_needed: Option<u64>,
    /// The largest number of scores that was tried.
    pub searched: u64,
}

/// Compares a bound with a claim. `reach` is what scores of these sizes could have given under the same
/// rule, with its split of the error, its hold-out and its delta terms, if every member had been above
/// every non-member. *Consistent* is only said where that is above the claim.
///
/// What is claimed is the upper end. The lower one tells how far the accounting may be from the truth: it is 0 where only an upper
/// bound is proven, and a bound above it refutes nothing.
pub fn verdict(measured: &Finding, confidence: f64, claim: &Claim, reach: Reach) -> Verdict {
    let (status, reason) = judge(measured, confidence, claim, reach);
    let finite = |value: f64| value.is_finite().then_some(value);
    Verdict {
        claimed_epsilon: finite(claim.interval.upper),
        could_show: finite(reach.could_show),
        scores_needed: reach.scores_needed,
        ..Verdict::new(status, reason)
    }
}

/// What trials that may be stopped at any time say about a claim.
pub(crate) fn of_trials(claim: &Claim, refuted_at: Option<u64>) -> Verdict {
    let claimed = claim.interval.at_most();
    let (status, reason) = match refuted_at {
        Some(trial) => (
            Status::Contradiction,
            format!("the claimed {claimed} was refuted after {trial} trials, and stays refuted"),
        ),
        None => (
            Status::Inconclusive,
            format!("the claimed {claimed} is not refuted by these trials; more may refute it"),
        ),
    };
    let claimed_epsilon = Some(claim.interval.upper);
    Verdict { claimed_epsilon, ..Verdict::new(status, reason) }
}

fn judge(measured: &Finding, confidence: f64, claim: &Claim, reach: Reach) -> (Status, String) {
    let (bound, delta, claim) = (measured.epsilon(), measured.delta(), claim.interval);
    let family = Some(&measured.valid_for).filter(|words| *words != analysis::ANY_MECHANISM);
    let at = words::delta(delta);
    let percent = (confidence * 1000.0).floor() / 10.0;
    let within = family.map_or_else(String::new, |family| format!(", if the training is {family}"));
    if bound > claim.upper {
        let reason = format!(
            "the scores show epsilon at least {} at delta {at} with {percent} % confidence{within}, but at most {} is claimed as proven: the training, its noise or the accounting is not what was stated",
            AtLeast::new(bound),
            claim.at_most()
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
                    with_commas(reach.searched)
                )
            },
            |needed| {
                format!(
                    "at least {} scores in all are needed to test the claim, and more for an attack that is not perfect (`dosimeter plan` says how many)",
                    with_commas(needed)
                )
            },
        );
        return inconclusive(format!(
            "with this many scores even a perfect attack could only have shown {}, which is not above the claimed {}; {needed}",
            AtLeast::new(reach.could_show),
            claim.at_most()
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
        AtLeast::new(bound),
        claim.at_most()
    );
    (Status::Consistent, reason)
}
