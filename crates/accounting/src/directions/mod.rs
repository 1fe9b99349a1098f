//! From one order of a pair to statements about both: the maximum of epsilon and delta over the
//! orders, the symmetrised trade-off curve, and what follows from them. Everything works on
//! `&dyn Pair` alone, so all lenses share it, and every number keeps certified ends.
//!
//! - epsilon, delta: the larger of the two orders.
//! - advantage = total variation = delta(0); Bayes security = 1 - delta(0). Total variation is
//!   symmetric, so one order is enough.
//! - accuracy of the best attacker with prior `p <= 1/2` on one of two secrets:
//!   (1 - p) + p delta(ln((1 - p)/p)), since max over tests of TPR - x FPR is delta(ln x).
//! - [`symmetrised`]: the trade-off curve of "either order".
//! - [`mu`]: the smallest Gaussian curve that covers the run down to a stated delta.

pub(crate) mod convex;
pub mod mu;
pub mod symmetrised;

use crate::pairs::{in_session, orders_of};
use crate::{AccountingError, Order, Pair};
use numerics::elementary::ln;
use vocabulary::{Direction, Interval, Problem};

type Result<T> = std::result::Result<T, AccountingError>;

/// The smallest epsilon >= 0 with delta(epsilon) <= `delta`.
///
/// # Errors
/// Those of the pair.
pub fn epsilon(pair: &dyn Pair, delta: f64, direction: Direction) -> Result<Interval> {
    let orders = orders(pair, direction);
    if let [one] = orders {
        return pair.epsilon(delta, *one);
    }
    in_session(pair, |pair| larger_epsilon(pair, delta))
}

fn larger_epsilon(pair: &dyn Pair, delta: f64) -> Result<Interval> {
    let remove = pair.epsilon(delta, Order::Remove)?;
    // Removal leaks more for almost every run; then one evaluation of the other order at the
    // lower end shows that its epsilon is not larger, and no second solve is needed.
    let add_is_less = |at: f64| match pair.is_below(at, Order::Add, delta) {
        Some(less) => less,
        None => pair.delta(at, Order::Add).is_ok_and(|add| add.upper <= delta),
    };
    if remove.lower.is_finite() && add_is_less(remove.lower) {
        return Ok(remove);
    }
    Ok(remove.max(pair.epsilon(delta, Order::Add)?))
}

/// The orders that have to be asked for a direction.
pub(crate) fn orders(pair: &dyn Pair, direction: Direction) -> &'static [Order] {
    if pair.symmetric() { &[Order::Remove] } else { orders_of(direction) }
}

/// The hockey-stick divergence at e^epsilon.
///
/// # Errors
/// Those of the pair.
pub fn delta(pair: &dyn Pair, epsilon: f64, direction: Direction) -> Result<Interval> {
    crate::patience::look();
    if epsilon == 0.0 {
        return advantage(pair);
    }
    let mut orders = orders(pair, direction).iter();
    let first = pair.delta(epsilon, *orders.next().unwrap_or(&Order::Remove))?;
    if orders.len() > 0 && pair.is_below(epsilon, Order::Add, first.lower) == Some(true) {
        return Ok(first.clamp(0.0, 1.0));
    }
    orders
        .try_fold(first, |largest, order| Ok(largest.max(pair.delta(epsilon, *order)?)))
        .map(|delta| delta.clamp(0.0, 1.0))
}

/// 1 - delta(epsilon), without cancellation.
///
/// # Errors
/// Those of the pair.
pub fn one_minus_delta(pair: &dyn Pair, epsilon: f64, direction: Direction) -> Result<Interval> {
    crate::patience::look();
    if epsilon == 0.0 {
        return bayes_security(pair);
    }
    let mut orders = orders(pair, direction).iter();
    let first = pair.one_minus_delta(epsilon, *orders.next().unwrap_or(&Order::Remove))?;
    orders
        .try_fold(first, |smallest, order| Ok(smallest.min(pair.one_minus_delta(epsilon, *order)?)))
        .map(|rest| rest.clamp(0.0, 1.0))
}

/// The largest TPR - FPR of any test: the total variation distance.
///
/// # Errors
/// Those of the pair.
pub fn advantage(pair: &dyn Pair) -> Result<Interval> {
    Ok(pair.delta(0.0, Order::Remove)?.clamp(0.0, 1.0))
}

/// 1 - advantage.
///
/// # Errors
/// Those of the pair.
pub fn bayes_security(pair: &dyn Pair) -> Result<Interval> {
    Ok(pair.one_minus_delta(0.0, Order::Remove)?.clamp(0.0, 1.0))
}

/// The true positive rate at a false positive rate; symmetrised for [`Direction::Both`].
///
/// # Errors
/// `InvalidInput` for a rate outside [0, 1], and those of the pair.
pub fn tpr(pair: &dyn Pair, fpr: f64, direction: Direction) -> Result<Interval> {
    check_rate(fpr)?;
    match direction {
        Direction::Both => in_session(pair, |pair| symmetrised::tpr(pair, fpr)),
        one => Ok(pair.tpr(fpr, orders_of(one)[0])?.clamp(fpr, 1.0)),
    }
}

/// The false negative rate at a false positive rate: the trade-off curve.
///
/// # Errors
/// As [`tpr`].
pub fn fnr(pair: &dyn Pair, fpr: f64, direction: Direction) -> Result<Interval> {
    check_rate(fpr)?;
    match direction {
        Direction::Both => in_session(pair, |pair| symmetrised::fnr(pair, fpr)),
        one => Ok(pair.fnr(fpr, orders_of(one)[0])?.clamp(0.0, most_missed(fpr))),
    }
}

/// The accuracy of the best attacker who must tell two secrets apart, one of which has the
/// given prior probability.
///
/// # Errors
/// `InvalidInput` for a prior outside (0, 1), and those of the pair.
pub fn accuracy(pair: &dyn Pair, prior: f64, direction: Direction) -> Result<Interval> {
    accuracy_by(|threshold| delta(pair, threshold, direction), prior)
}

/// The same from any profile.
pub(crate) fn accuracy_by(
    delta: impl FnOnce(f64) -> Result<Interval>,
    prior: f64,
) -> Result<Interval> {
    let (threshold, smaller) = accuracy_threshold(prior)?;
    let accuracy = delta(threshold)?.map_increasing(|delta| (1.0 - smaller) + smaller * delta);
    // The threshold has two roundings and a logarithm, and delta falls by at most one per unit of it;
    // the sum has three. A guess by the prior alone is right as often as the larger prior says.
    let slack = 2.0 * f64::EPSILON * (1.0 + smaller * (2.0 + threshold));
    Ok(Interval { lower: accuracy.lower - slack, upper: accuracy.upper + slack, ..accuracy }
        .clamp((1.0 - smaller).next_down().max(0.5), 1.0))
}

/// The epsilon at which delta decides the accuracy at this prior, and the smaller prior.
pub(crate) fn accuracy_threshold(prior: f64) -> Result<(f64, f64)> {
    if !(prior > 0.0 && prior < 1.0) {
        let problem = Problem::outside("prior", prior, "(0, 1)");
        let advice = "give the probability of one of the two secrets";
        return Err(AccountingError::InvalidInput(problem.and(advice)));
    }
    let smaller = prior.min(1.0 - prior);
    Ok((ln((1.0 - smaller) / smaller), smaller))
}

/// No test of this size misses more than 1 - `fpr`, rounded up.
pub(crate) fn most_missed(fpr: f64) -> f64 {
    (1.0 - fpr).next_up().min(1.0)
}

fn check_rate(fpr: f64) -> Result<()> {
    if (0.0..=1.0).contains(&fpr) {
        return Ok(());
    }
    let problem = Problem::outside("false positive rate", fpr, "[0, 1]");
    Err(AccountingError::InvalidInput(problem.and("give a probability")))
}
