//! A pair in one order, for both: where neighbours are exchangeable (substitution), a data set that attains an
//! order attains the other as well, with both data sets exchanged.

use super::{BoxedPair, Result};
use crate::{OneWay, Pair};
use vocabulary::Interval;

/// The remove order of a pair, for both.
pub(super) struct EitherWay(pub(super) BoxedPair);

impl Pair for EitherWay {
    fn symmetric(&self) -> bool {
        true
    }

    fn delta(&self, epsilon: f64, _: OneWay) -> Result<Interval> {
        self.0.delta(epsilon, OneWay::Remove)
    }

    fn one_minus_delta(&self, epsilon: f64, _: OneWay) -> Result<Interval> {
        self.0.one_minus_delta(epsilon, OneWay::Remove)
    }

    fn epsilon(&self, delta: f64, _: OneWay) -> Result<Interval> {
        self.0.epsilon(delta, OneWay::Remove)
    }

    fn tpr(&self, fpr: f64, _: OneWay) -> Result<Interval> {
        self.0.tpr(fpr, OneWay::Remove)
    }

    fn fnr(&self, fpr: f64, _: OneWay) -> Result<Interval> {
        self.0.fnr(fpr, OneWay::Remove)
    }
}
