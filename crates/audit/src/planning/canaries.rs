//! The power of m canaries in one run, if canaries do not disturb each other.
//!
//! A guess about one of the highest scores is right with probability TPR / (TPR + FPR) at their
//! edge, one about the lowest with TNR / (TNR + FNR); right guesses are then binomial. Guesses on
//! both sides count with the smaller of the two probabilities, which understates the power.

use super::{Needed, Target};
use crate::ThresholdRule;
use crate::one_run::{one_run_p_value, strategies};
use numerics::beta::{binomial_log_at_least, binomial_log_pmf};

/// The largest epsilon that any number of canaries shows: the log odds of the best guess.
pub(super) fn largest_epsilon(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|(fpr, tpr)| (tpr / fpr).ln()).fold(0.0, f64::max)
}

/// The power of `count` canaries under a rule.
pub(super) fn power(
    points: &[(f64, f64)],
    target: &Target,
    rule: &ThresholdRule,
    count: u64,
) -> Needed {
    let level = 1.0 - target.confidence;
    let mut best =
        Needed { count, power: 0.0, fpr: points[0].0, tpr: points[0].1, simulated: false };
    let mut consider = |(fpr, tpr): (f64, f64), right: f64, guesses: u64, counted: u64, level| {
        let power = shows(counted, guesses, right, level, target);
        if power > best.power {
            best = Needed { power, fpr, tpr, ..best };
        }
    };
    match rule {
        ThresholdRule::Fixed(_) => {
            // Thresholds ranked by the usual number of guesses, the best few then averaged over
            // the number that the scores will decide.
            let mut ranked: Vec<(f64, (f64, f64))> = points
                .iter()
                .map(|&(fpr, tpr)| {
                    let guesses = (0.5 * (fpr + tpr) * count as f64) as u64;
                    (shows(count, guesses, tpr / (tpr + fpr), level, target), (fpr, tpr))
                })
                .collect();
            ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
            for &(_, (fpr, tpr)) in ranked.iter().take(FEW) {
                let power = averaged(count, (fpr, tpr), level, target);
                if power > best.power {
                    best = Needed { power, fpr, tpr, ..best };
                }
            }
            return best;
        }
        // What the rule tries; the parts that choose do not count. A part that chooses badly
        // costs power that is not foreseen here.
        _ => {
            let (counted, level) = match rule {
                ThresholdRule::Holdout => (count / 2, level),
                ThresholdRule::KFold => (count - count / 5, level / 5.0),
                _ => (count, level / strategies(count).len() as f64),
            };
            for (inside, outside) in strategies(counted) {
                let share = inside as f64 / counted as f64;
                let Some(top) = edge(points, share) else { continue };
                let sure_in = top.1 / (top.0 + top.1);
                if outside == 0 {
                    consider(top, sure_in, inside, counted, level);
                } else if let Some(bottom) = edge(points, 1.0 - share) {
                    let kept = (1.0 - bottom.0, 1.0 - bottom.1);
                    let sure_out = kept.0 / (kept.0 + kept.1);
                    consider(top, sure_in.min(sure_out), inside + outside, counted, level);
                }
            }
        }
    }
    best
}

/// The rates where this share of fair canaries lies at or above the threshold, on the chord
/// between planning points (which is a weaker attack than the curve).
fn edge(points: &[(f64, f64)], share: f64) -> Option<(f64, f64)> {
    let twice = 2.0 * share;
    let sum = |point: &(f64, f64)| point.0 + point.1;
    let next = points.iter().position(|point| sum(point) >= twice)?;
    let (low, high) = (if next == 0 { (0.0, 0.0) } else { points[next - 1] }, points[next]);
    let part = (twice - sum(&low)) / (sum(&high) - sum(&low)).max(1e-300);
    Some((low.0 + part * (high.0 - low.0), low.1 + part * (high.1 - low.1)))
}

/// Thresholds whose power is averaged.
const FEW: usize = 12;

/// The power at a threshold given in advance: the number of guesses is binomial.
fn averaged(count: u64, (fpr, tpr): (f64, f64), level: f64, target: &Target) -> f64 {
    let share = 0.5 * (fpr + tpr);
    let (mean, spread) = (share * count as f64, (share * (1.0 - share) * count as f64).sqrt());
    let low = (mean - 5.0 * spread).floor().max(0.0) as u64;
    let high = ((mean + 5.0 * spread).ceil() as u64).min(count);
    let stride = ((high - low) / 48).max(1);
    let (mut sum, mut weights) = (0.0, 0.0);
    for guesses in (low..=high).step_by(stride as usize) {
        let weight = binomial_log_pmf(guesses, count, share).exp();
        sum += weight * shows(count, guesses, tpr / (tpr + fpr), level, target);
        weights += weight;
    }
    if weights > 0.0 { sum / weights } else { 0.0 }
}

/// P(the target is rejected) when each of `guesses` is right with probability `right`.
fn shows(canaries: u64, guesses: u64, right: f64, level: f64, target: &Target) -> f64 {
    let rejects = |count: u64| {
        one_run_p_value(canaries, guesses, count, target.epsilon, target.delta) <= level
    };
    if guesses == 0 || !rejects(guesses) {
        return 0.0;
    }
    let (mut low, mut high) = (0, guesses);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if rejects(middle) { high = middle } else { low = middle }
    }
    binomial_log_at_least(high, guesses, right).exp()
}
