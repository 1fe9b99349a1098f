//! The best threshold, exactly, without evaluating all of them.
//!
//! Only thresholds equal to a member's score can be best: between two of them the false
//! negatives stay and the false positives only grow. In the order of the member scores false
//! negatives rise and false positives fall, so over a block of thresholds every statistic is at
//! most its value at (false positives of the last, false negatives of the first). Branch and
//! bound with that corner visits a few hundred of a million thresholds. Gains below
//! [`Statistic::negligible`] are not looked for; a slightly worse threshold is as valid.

use crate::{Errors, RateBounds, Scores, Statistic, scores::at_least};

/// A threshold with its errors and the statistic there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    pub threshold: f64,
    pub errors: Errors,
    pub value: f64,
}

/// The threshold with the largest statistic; `bounds` turns counts into rate bounds and must be
/// monotone in both counts. The threshold is +infinity, value 0, when nothing is shown anywhere.
pub fn best_threshold(
    scores: &Scores,
    statistic: &Statistic,
    bounds: &dyn Fn(&Errors) -> RateBounds,
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
    search.block(0, size);
    search.best
}

struct Search<'a> {
    scores: &'a Scores,
    statistic: &'a Statistic,
    bounds: &'a dyn Fn(&Errors) -> RateBounds,
    best: Best,
}

impl Search<'_> {
    fn errors(&self, false_positives: u64, false_negatives: u64) -> Errors {
        Errors { false_positives, false_negatives, ..self.best.errors }
    }

    fn false_positives(&self, index: usize) -> u64 {
        at_least(self.scores.nonmembers(), self.scores.members()[index])
    }

    /// Evaluates the threshold at a member's score, with all members that tie with it.
    fn visit(&mut self, index: usize) {
        let threshold = self.scores.members()[index];
        let errors = self.scores.errors_at(threshold);
        let value = self.statistic.value(&(self.bounds)(&errors));
        if value > self.best.value {
            self.best = Best { threshold, errors, value };
        }
    }

    fn block(&mut self, from: usize, to: usize) {
        if from >= to {
            return;
        }
        if to - from == 1 {
            self.visit(from);
            return;
        }
        // `from` may tie with an earlier member, whose rank is smaller: then the corner must
        // use that smaller count to stay an upper bound.
        let first = self.scores.members()[from];
        let false_negatives = self.scores.members().partition_point(|&score| score < first) as u64;
        let corner = self.errors(self.false_positives(to - 1), false_negatives);
        let limit = self.statistic.value(&(self.bounds)(&corner));
        if limit <= self.best.value + self.statistic.negligible() {
            return;
        }
        let middle = from + (to - from) / 2;
        self.visit(middle);
        self.block(from, middle);
        self.block(middle + 1, to);
    }
}
