//! The power of n trainings a side when the threshold is fixed, or under a band: exactly from
//! the two binomial counts at the threshold that is best for expected counts. Under a band the
//! maximum over thresholds can only show more, so the power stated is a lower bound on it. The sum
//! over false positives is cut into blocks that count with their worst end, which understates the
//! power by at most one part in sixty-four.

use super::{Goal, Needed, Target};
use crate::{Errors, RateBounds, Simultaneous, rates};
use numerics::beta::binomial_log_tails;

/// Rate bounds at a threshold that the counts did not choose, or at all thresholds at once.
pub(super) enum Bounds {
    Fixed { level: f64 },
    Band(Simultaneous),
}

impl Bounds {
    fn at(&self, errors: &Errors) -> RateBounds {
        match self {
            Self::Fixed { level } => rates::clopper_pearson(errors, *level),
            Self::Band(band) => band.at(errors),
        }
    }
}

/// The power of `count` trainings a side.
pub(super) fn power(points: &[(f64, f64)], goal: &Goal, bounds: &Bounds, count: u64) -> Needed {
    let errors_of = |false_positives: u64, false_negatives: u64| Errors {
        false_positives,
        nonmembers: count,
        false_negatives,
        members: count,
    };
    let n = count as f64;
    let mut best = (points[0], f64::NEG_INFINITY);
    for &(fpr, tpr) in points {
        let expected = errors_of((n * fpr).round() as u64, (n * (1.0 - tpr)).round() as u64);
        let value = goal.worth(&bounds.at(&expected));
        if value > best.1 {
            best = ((fpr, tpr), value);
        }
    }
    let (fpr, tpr) = best.0;
    // Blocks of false positives of equal probability, each with its largest count.
    const BLOCKS: u64 = 64;
    let (mut power, mut from_below) = (0.0, 0.0);
    for block in 1..BLOCKS {
        let last = quantile(count, fpr, block as f64 / BLOCKS as f64);
        let reached = binomial_log_tails(last, count, fpr).lower.exp();
        let mass = reached - from_below;
        from_below = reached;
        if mass <= 0.0 {
            continue;
        }
        let shows =
            |false_negatives: u64| goal.shown(&bounds.at(&errors_of(last, false_negatives)));
        if let Some(most) = largest_where(count, shows) {
            power += mass * binomial_log_tails(most, count, 1.0 - tpr).lower.exp();
        }
    }
    Needed { count, power, fpr, tpr, simulated: false }
}

/// The rate bounds of a target under a band.
pub(super) fn band(target: &Target, count: u64, dkw: bool) -> Bounds {
    let level = 1.0 - target.confidence;
    Bounds::Band(if dkw {
        Simultaneous::dkw(count, count, level)
    } else {
        Simultaneous::martingale(count, count, level)
    })
}

/// The smallest k with P(B <= k) >= share.
fn quantile(n: u64, rate: f64, share: f64) -> u64 {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if binomial_log_tails(middle, n, rate).lower.exp() >= share {
            high = middle
        } else {
            low = middle + 1
        }
    }
    low
}

/// The largest value in 0..=n for which a predicate that holds up to some point holds.
fn largest_where(n: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if !holds(0) {
        return None;
    }
    let (mut low, mut high) = (0, n + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    Some(low)
}
