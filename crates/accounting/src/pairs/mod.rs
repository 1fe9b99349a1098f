//! A pair: two distributions, P (with the record) and Q (without it), that dominate what the
//! attacker sees. A pair gives delta(epsilon), the trade-off curve and total variation; every
//! lens is a way to a pair.

mod advanced_composition;
mod baselines;
mod binomial_gaussian;
mod composed;
mod ends;
mod gaussian;
mod last_iterate_max;
mod lattice;
mod one_step;
mod renyi;
mod shuffle;
mod two_point;

pub use advanced_composition::AdvancedComposition;
pub use binomial_gaussian::{BinomialGaussian, supports_last_iterate};
pub use composed::Composed;
pub use gaussian::Gaussian;
pub use last_iterate_max::LastIterateMax;
pub use lattice::{LatticeBracket, LatticeOptions};
pub(crate) use one_step::OneStep;
pub use renyi::{FilterBound, RenyiBound};
pub use shuffle::{ShuffleLowerBound, shuffle_lower_bound};
pub use two_point::TwoPoint;

pub(crate) use baselines::by_coins;
pub(crate) use ends::{complement, vague_delta};

use crate::AccountingError;
use vocabulary::{Direction, Interval};

/// One order of the pair. `Remove` is H(P || Q): the record is there and is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    Remove,
    Add,
}

/// A point of a profile: delta is at least `delta.lower` at `epsilon.lower` and at most `delta.upper` at
/// `epsilon.upper`.
#[derive(Clone, Copy, Debug)]
pub struct ProfilePoint {
    pub epsilon: Interval,
    pub delta: Interval,
}

/// What every pair can answer, with certified ends. All functions are about one order; the
/// maximum over both orders and the symmetrised curve are built from these, once, for all pairs.
pub trait Pair: Send + Sync {
    /// The hockey-stick divergence at e^epsilon; any real epsilon is allowed.
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError>;

    /// 1 - delta(epsilon), computed without cancellation (Bayes security at epsilon 0).
    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError>;

    /// The smallest epsilon >= 0 with delta(epsilon) <= delta.
    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval, AccountingError>;

    /// The largest power (true positive rate) of a test of size `fpr`: null = second
    /// distribution of the order, alternative = first. So `Remove` tests P against Q.
    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError>;

    /// 1 - tpr(fpr), computed without cancellation: the trade-off function f(fpr).
    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError>;

    /// Whether delta(epsilon) is certainly at most `delta`, if that is cheaper to tell than delta itself.
    fn is_below(&self, epsilon: f64, order: Order, delta: f64) -> Option<bool> {
        let _ = (epsilon, order, delta);
        None
    }

    /// Whether both orders are the same, so that one answers for both.
    fn symmetric(&self) -> bool {
        false
    }

    /// A point of the profile (the larger of both orders) somewhere near `epsilon`, if that is cheaper than the
    /// one at it.
    fn point_near(&self, epsilon: f64) -> Option<ProfilePoint> {
        let _ = epsilon;
        None
    }

    /// Logarithms of slopes of lines that may support the trade-off curve at `fpr`, where they are known
    /// without a search. They choose where to look, not what is true.
    fn log_slopes(&self, fpr: f64, order: Order) -> Vec<f64> {
        let _ = (fpr, order);
        Vec::new()
    }

    /// The smallest mu whose Gaussian curve covers the pair down to `delta`, where the pair knows a better way
    /// than [`crate::directions::mu::covering`].
    fn mu(&self, delta: f64, direction: Direction) -> Option<Result<Interval, AccountingError>> {
        let _ = (delta, direction);
        None
    }

    /// The same pair for the questions that make up one answer, if it saves work to remember one for
    /// the next. A pair itself remembers nothing that could change an answer: what it says
    /// depends on the run and the question alone.
    fn session(&self) -> Option<Box<dyn Pair + '_>> {
        None
    }
}

/// Puts the questions of one answer to a pair.
pub(crate) fn in_session<T>(pair: &dyn Pair, ask: impl FnOnce(&dyn Pair) -> T) -> T {
    match pair.session() {
        Some(session) => ask(session.as_ref()),
        None => ask(pair),
    }
}

/// The orders a direction stands for.
pub(crate) fn orders_of(direction: Direction) -> &'static [Order] {
    match direction {
        Direction::Both => &[Order::Remove, Order::Add],
        Direction::Add => &[Order::Add],
        Direction::Remove => &[Order::Remove],
    }
}
