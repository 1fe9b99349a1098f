//! True positive rate at a false positive rate, and the advantage max_t (TPR - FPR).
//!
//! `tpr_at` is the step version: the largest observed TPR among thresholds whose observed FPR is
//! at most the asked one. Its interval is exact and accounts for the threshold being estimated
//! too: with a quarter of the error each, (a) a threshold high enough that its true FPR is at
//! most the asked one, (b) a lower end for the TPR there, (c) a threshold low enough, (d) an
//! upper end for the TPR there. (a) and (c) are order statistics of the non-members with binomial
//! tails; (b) and (d) are Clopper-Pearson on the members, which are independent of them.
//!
//! The advantage's interval comes from the simultaneous band of the `union` rule below and from
//! the same band above, with half of the error each.

use super::Measured;
use crate::scores::at_least;
use crate::search::{best_threshold, best_within};
use crate::{Errors, RateBounds, Scores, Simultaneous, Statistic};
use numerics::beta::{
    binomial_log_at_least, binomial_log_tails, clopper_pearson_lower, clopper_pearson_upper,
};

/// The true positive rate at `fpr`, with a two-sided interval.
pub fn tpr_at(scores: &Scores, fpr: f64, confidence: f64) -> Measured {
    let (members, nonmembers) = (scores.members(), scores.nonmembers());
    let (m, n) = (members.len() as u64, nonmembers.len() as u64);
    let quarter = 0.25 * (1.0 - confidence);
    let allowed = (fpr * n as f64 * (1.0 + 1e-12)).floor() as u64;
    let value = true_positives(scores, allowed) as f64 / m as f64;
    // The (k+1)-th largest non-member Y: P(Y >= .) of a threshold just above it is at most fpr
    // unless Binomial(n, fpr) <= k. Largest safe k: P(B <= k) <= quarter.
    let safe = largest_below(n, |k| binomial_log_tails(k, n, fpr).lower <= quarter.ln());
    let lower = safe.map_or(0.0, |k| clopper_pearson_lower(true_positives(scores, k), m, quarter));
    // A threshold at the k-th largest non-member has true FPR at least fpr unless
    // Binomial(n, fpr) >= k. Smallest k with P(B >= k) <= quarter.
    let upper =
        smallest_above(n, |k| binomial_log_at_least(k, n, fpr) <= quarter.ln()).map_or(1.0, |k| {
            let threshold = nonmembers[(n - k) as usize];
            clopper_pearson_upper(at_least(members, threshold), m, quarter)
        });
    Measured { value, lower: lower.min(value), upper: upper.max(value) }
}

/// Members strictly above the (allowed+1)-th largest non-member: the best threshold with at
/// most `allowed` false positives.
fn true_positives(scores: &Scores, allowed: u64) -> u64 {
    let (members, nonmembers) = (scores.members(), scores.nonmembers());
    if allowed as usize >= nonmembers.len() {
        return members.len() as u64;
    }
    let edge = nonmembers[nonmembers.len() - 1 - allowed as usize];
    (members.len() - members.partition_point(|&score| score <= edge)) as u64
}

/// The largest k < n for which a predicate that holds up to some point holds.
fn largest_below(n: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if !holds(0) {
        return None;
    }
    let (mut low, mut high) = (0, n);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// The smallest k in 1..=n for which a predicate that holds from some point on holds.
fn smallest_above(n: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if !holds(n) {
        return None;
    }
    let (mut low, mut high) = (0, n);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// max_t (TPR - FPR), with a two-sided interval.
pub fn advantage(scores: &Scores, confidence: f64) -> Measured {
    let (m, n) = (scores.members().len() as u64, scores.nonmembers().len() as u64);
    let band = Simultaneous::martingale(n, m, 0.5 * (1.0 - confidence));
    let largest = |bounds: &dyn Fn(&Errors) -> RateBounds| {
        best_threshold(scores, &Statistic::Advantage, bounds).value
    };
    let value = best_within(scores, &Statistic::Advantage, &RateBounds::observed, 1e-6).value;
    let lower = largest(&|errors| band.at(errors));
    // The search passes over what is less than that above what it finds, and over thresholds
    // above all members.
    let missed = Statistic::Advantage.negligible();
    let beyond = Errors { false_positives: 0, nonmembers: n, false_negatives: m, members: m };
    let upper = (largest(&|errors| band.opposite(errors)) + missed)
        .max(Statistic::Advantage.value(&band.opposite(&beyond)))
        .min(1.0);
    Measured { value, lower: lower.min(value), upper: upper.max(value) }
}
