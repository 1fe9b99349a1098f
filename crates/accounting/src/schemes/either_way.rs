//! Lower ends from pairs that data sets attain. A pair in one order, for both: where neighbours are exchangeable
//! (substitution), a data set that attains an order attains the other as well, with both data sets exchanged. And the
//! larger of two pairs, each attained by data of its own.

use super::profile::complement;
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

/// The larger lower end of two pairs. The second is asked for all numbers; where the first has none, it
/// answers alone.
pub(super) struct Larger(pub(super) BoxedPair, pub(super) BoxedPair);

impl Larger {
    fn of(&self, ask: impl Fn(&dyn Pair) -> Result<Interval>) -> Result<Interval> {
        let other = ask(self.1.as_ref())?;
        Ok(match ask(self.0.as_ref()) {
            Ok(one) if one.lower > other.lower => one,
            _ => other,
        })
    }
}

impl Pair for Larger {
    fn delta(&self, epsilon: f64, way: OneWay) -> Result<Interval> {
        self.of(|pair| pair.delta(epsilon, way))
    }

    fn one_minus_delta(&self, epsilon: f64, way: OneWay) -> Result<Interval> {
        Ok(complement(self.delta(epsilon, way)?))
    }

    fn epsilon(&self, delta: f64, way: OneWay) -> Result<Interval> {
        self.of(|pair| pair.epsilon(delta, way))
    }

    fn tpr(&self, fpr: f64, way: OneWay) -> Result<Interval> {
        self.of(|pair| pair.tpr(fpr, way))
    }

    fn fnr(&self, fpr: f64, way: OneWay) -> Result<Interval> {
        Ok(complement(self.tpr(fpr, way)?))
    }
}
