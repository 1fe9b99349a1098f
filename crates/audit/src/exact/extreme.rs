//! The outcome without an error: no false positive, no false negative.
//!
//! Every set S contains it, so S of this outcome may be the outcome alone: the sets stay nested. Then
//! P(S; p, b_v(p)) = (1 - p)^n0 b_v(p)^n1. All b_v are concave in p (they are trade-off curves), so the
//! logarithm is concave and its largest value over the interval of p is found by thirds. The largest v
//! with that value at most the level is the bound, at any number of scores in microseconds.

use super::{Limit, OUTSIDE, Outcome};

/// The bound when nothing is on the wrong side of the threshold.
pub(super) fn lower_bound(outcome: &Outcome, limit: Limit, level: f64) -> f64 {
    let (n0, n1) = (outcome.n0 as f64, outcome.n1 as f64);
    let outside = OUTSIDE * level;
    let bar = (level - outside).ln();
    // The upper Clopper-Pearson end of 0 of n0.
    let most = -((0.5 * outside).ln() / n0).exp_m1();
    let refuted = |value: f64| {
        let log_tail = |p: f64| n0 * (-p).ln_1p() + n1 * limit.at(value, p).ln();
        let (mut low, mut high) = (0.0, most);
        for _ in 0..120 {
            let third = (high - low) / 3.0;
            let (a, b) = (low + third, high - third);
            if log_tail(a) < log_tail(b) { low = a } else { high = b }
        }
        let ends = log_tail(0.0).max(log_tail(most));
        log_tail(0.5 * (low + high)).max(ends) + 1e-9 <= bar
    };
    if !refuted(0.0) {
        return 0.0;
    }
    let (mut shown, mut beyond) = (0.0, 1.0);
    while refuted(beyond) {
        shown = beyond;
        beyond *= 2.0;
        if beyond > 700.0 {
            return shown;
        }
    }
    while beyond - shown > 1e-10 * beyond {
        let middle = 0.5 * (shown + beyond);
        if refuted(middle) { shown = middle } else { beyond = middle }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a fine grid of rates.
    #[test]
    fn the_tail_of_the_outcome_alone_reaches_the_level_at_the_bound() {
        let level = 0.025;
        for (n0, n1) in [(10, 10), (50, 400), (3000, 20)] {
            for limit in [
                Limit::Line { delta: 0.0 },
                Limit::Line { delta: 1e-3 },
                Limit::Gaussian,
                Limit::Shift,
            ] {
                let outcome = Outcome { zeros: 0, n0, ones: n1, n1 };
                let bound = lower_bound(&outcome, limit, level);
                let tail = |value: f64| {
                    (0..=200_000)
                        .map(|step| {
                            let p = f64::from(step) / 200_000.0;
                            (1.0 - p).powf(n0 as f64) * limit.at(value, p).powf(n1 as f64)
                        })
                        .fold(0.0, f64::max)
                };
                assert!(bound > 0.0, "{n0} {n1} {limit:?}");
                assert!(tail(bound) <= level, "{n0} {n1} {limit:?} {bound}: {}", tail(bound));
                // The interval for p0 takes half a per cent of the level.
                assert!(tail(1.01 * bound) > 0.99 * level, "{n0} {n1} {limit:?} {bound}");
            }
        }
    }
}
