//! Lower ends from pairs that data sets attain. A pair in one order, for both: where neighbours are exchangeable
//! (substitution), a data set that attains an order attains the other as well, with both data sets exchanged. And the
//! larger of two pairs, each attained by data of its own.

use super::profile::complement;
use super::{BoxedPair, Result};
use crate::{Order, Pair};
use vocabulary::Interval;

/// The remove order of a pair, for both.
pub(super) struct EitherWay(pub(super) BoxedPair);

impl Pair for EitherWay {
    fn symmetric(&self) -> bool {
        true
    }

    fn delta(&self, epsilon: f64, _: Order) -> Result<Interval> {
        self.0.delta(epsilon, Order::Remove)
    }

    fn one_minus_delta(&self, epsilon: f64, _: Order) -> Result<Interval> {
        self.0.one_minus_delta(epsilon, Order::Remove)
    }

    fn epsilon(&self, delta: f64, _: Order) -> Result<Interval> {
        self.0.epsilon(delta, Order::Remove)
    }

    fn tpr(&self, fpr: f64, _: Order) -> Result<Interval> {
        self.0.tpr(fpr, Order::Remove)
    }

    fn fnr(&self, fpr: f64, _: Order) -> Result<Interval> {
        self.0.fnr(fpr, Order::Remove)
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
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        self.of(|pair| pair.delta(epsilon, order))
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        Ok(complement(self.delta(epsilon, order)?))
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval> {
        self.of(|pair| pair.epsilon(delta, order))
    }

    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval> {
        self.of(|pair| pair.tpr(fpr, order))
    }

    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval> {
        Ok(complement(self.tpr(fpr, order)?))
    }
}
