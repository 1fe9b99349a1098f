//! Small tools the closed-form pairs share: intervals from logarithms, checks of questions, and
//! the identity that carries negative epsilon to the other order.

use super::{Order, Pair};
use crate::AccountingError;
use numerics::elementary::{exp, exp_m1, ln};
use numerics::special::ROUND;
use vocabulary::{Difficulty, Interval, NotCertified, Problem, Quantity};

/// Below this, numbers are reported as "between 0 and `TINY`".
pub(super) const TINY: f64 = 1e-299;

/// e^log with `error` a bound on the error of `log`; in [0, 1].
pub(super) fn probability_from_log(log: f64, error: f64) -> Interval {
    if log.is_nan() || error.is_nan() {
        return Interval { lower: 0.0, value: 0.5, upper: 1.0 };
    }
    if log + error < ln(TINY) {
        return Interval { lower: 0.0, value: exp(log), upper: TINY };
    }
    let slack = 4.0 * ROUND;
    let lower = (exp(log - error) * (1.0 - slack)).min(1.0);
    let upper = (exp(log + error) * (1.0 + slack)).min(1.0);
    Interval::new(lower, exp(log), upper)
}

impl Order {
    /// The same pair, its distributions exchanged.
    pub fn reversed(self) -> Self {
        match self {
            Order::Remove => Order::Add,
            Order::Add => Order::Remove,
        }
    }
}

/// delta(epsilon) for epsilon < 0: (p - e^eps q)_+ = p - e^eps q + (e^eps q - p)_+ gives
/// 1 - e^eps + e^eps delta'(-eps), delta' belonging to the other order; a sum of positive terms.
pub(super) fn delta_at_negative(
    pair: &impl Pair,
    epsilon: f64,
    order: Order,
) -> Result<Interval, AccountingError> {
    let other = pair.delta(-epsilon, order.reversed())?;
    let (sure, weight) = (-exp_m1(epsilon), exp(epsilon));
    let slack = 8.0 * ROUND;
    let upper = ((sure + weight * other.upper) * (1.0 + slack)).min(1.0);
    let lower = ((sure + weight * other.lower) * (1.0 - slack)).min(upper);
    Ok(Interval::new(lower, sure + weight * other.value, upper))
}

/// 1 - delta(epsilon) for epsilon < 0: e^eps (1 - delta'(-eps)).
pub(super) fn one_minus_delta_at_negative(
    pair: &impl Pair,
    epsilon: f64,
    order: Order,
) -> Result<Interval, AccountingError> {
    let other = pair.one_minus_delta(-epsilon, order.reversed())?;
    let (weight, slack) = (exp(epsilon), 8.0 * ROUND);
    Ok(Interval::new(
        weight * other.lower * (1.0 - slack),
        weight * other.value,
        (weight * other.upper * (1.0 + slack)).clamp(f64::MIN_POSITIVE, 1.0),
    ))
}

/// 1 - x for probabilities, rounded outwards: absolute, not relative, accuracy.
pub(crate) fn complement(x: Interval) -> Interval {
    Interval {
        lower: (1.0 - x.upper).next_down().max(0.0),
        value: 1.0 - x.value,
        upper: (1.0 - x.lower).next_up().min(1.0),
    }
}

/// Ends for a number that lies strictly between 0 and 1. No test between distributions with the same
/// null sets is certain; what underflows to 0 is above it, and below the smallest normal double.
pub(super) fn strictly_inside(x: Interval) -> Interval {
    const LARGEST: f64 = 1.0 - f64::EPSILON / 2.0;
    Interval { lower: x.lower.min(LARGEST), value: x.value, upper: x.upper.max(f64::MIN_POSITIVE) }
}

pub(super) fn check_epsilon(epsilon: f64) -> Result<(), AccountingError> {
    if epsilon.is_nan() {
        return Err(AccountingError::invalid(format!("epsilon {epsilon} is not a number")));
    }
    Ok(())
}

pub(super) fn check_probability(name: &str, value: f64) -> Result<(), AccountingError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(AccountingError::invalid(Problem::outside(name, value, "[0, 1]")))
}

pub(super) fn not_enclosed(what: impl Into<String>) -> AccountingError {
    NotCertified::NotEnclosed { what: what.into() }.into()
}

/// Of an epsilon that is searched for by its delta.
pub(crate) fn vague_delta() -> AccountingError {
    let (quantity, difficulty) = (Quantity::Epsilon, Difficulty::VagueDelta);
    NotCertified::Difficulty { quantity, difficulty }.into()
}
