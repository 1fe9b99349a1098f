//! The best threshold, exactly, without evaluating all of them.
//!
//! Only thresholds equal to a member's score can be best: between two of them the false
//! negatives stay and the false positives only grow. In the order of the member scores false
//! negatives rise and false positives fall, so between two thresholds every statistic is at most
//! its value at (false positives of the upper, false negatives of the lower one). Branch and bound
//! with that corner visits a few hundred of a million thresholds, and the rates of a corner are
//! known from the thresholds that were visited on both sides of the block. Gains below
//! [`Statistic::negligible`] are not looked for; a slightly worse threshold is as valid.

use crate::{Errors, RateBounds, Scores, Statistic};

/// A threshold with its errors and the statistic there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    pub threshold: f64,
    pub errors: Errors,
    pub value: f64,
}

/// The threshold with the largest statistic; `bounds` turns counts into rate bounds: those of the
/// false positive rate from the false positives alone, those of the false negative rate from the
/// false negatives alone, each monotone. The threshold is +infinity, value 0, when nothing is shown anywhere.
pub fn best_threshold(
    scores: &Scores,
    statistic: &Statistic,
    bounds: &dyn Fn(&Errors) -> RateBounds,
) -> Best {
    best_within(scores, statistic, bounds, statistic.negligible())
}

/// As [`best_threshold`], up to gains below `negligible`.
pub(crate) fn best_within(
    scores: &Scores,
    statistic: &Statistic,
    bounds: &dyn Fn(&Errors) -> RateBounds,
    negligible: f64,
) -> Best {
    let members = scores.members();
    let size = members.len();
    let nowhere = Errors {
        false_positives: 0,
        nonmembers: scores.nonmembers().len() as u64,
        false_negatives: size as u64,
        members: size as u64,
    };
    let mut search = Search {
        scores,
        statistic,
        bounds,
        negligible,
        best: Best { threshold: f64::INFINITY, errors: nowhere, value: 0.0 },
    };
    // A first look at thresholds spread evenly in rank and geometrically towards both ends.
    for part in 1..16 {
        search.visit(size * part / 16);
    }
    let mut rank = 1;
    while rank <= size / 2 {
        search.visit(rank - 1);
        search.visit(size - rank);
        rank *= 2;
    }
    // Nothing beats a test without false positives that finds every member.
    let perfect = search.rates(0, 0);
    search.block(0, size, &perfect, &perfect);
    search.best
}

struct Search<'a> {
    scores: &'a Scores,
    statistic: &'a Statistic,
    bounds: &'a dyn Fn(&Errors) -> RateBounds,
    negligible: f64,
    best: Best,
}

impl Search<'_> {
    fn rates(&self, false_positives: u64, false_negatives: u64) -> RateBounds {
        (self.bounds)(&Errors { false_positives, false_negatives, ..self.best.errors })
    }

    /// Evaluates the threshold at a member's score, with all members that tie with it.
    fn visit(&mut self, index: usize) -> RateBounds {
        let threshold = self.scores.members()[index];
        let errors = self.scores.errors_at(threshold);
        let rates = (self.bounds)(&errors);
        let value = self.statistic.value(&rates);
        if value > self.best.value {
            self.best = Best { threshold, errors, value };
        }
        rates
    }

    /// Thresholds from..to, between one with the rates `below` at or under all of them and one
    /// with the rates `above` at or over all of them.
    fn block(&mut self, from: usize, to: usize, below: &RateBounds, above: &RateBounds) {
        if from >= to {
            return;
        }
        let corner = RateBounds {
            false_positive_upper: above.false_positive_upper,
            true_negative_lower: above.true_negative_lower,
            false_negative_upper: below.false_negative_upper,
            true_positive_lower: below.true_positive_lower,
        };
        if self.statistic.value(&corner) <= self.best.value + self.negligible {
            return;
        }
        let middle = from + (to - from) / 2;
        let rates = self.visit(middle);
        self.block(from, middle, below, &rates);
        self.block(middle + 1, to, &rates, above);
    }
}
