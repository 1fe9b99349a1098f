//! The leakiest pair that is (epsilon, delta)-private: with probability delta the secret is told,
//! otherwise it is answered by randomised response with odds e^epsilon. Every pair with
//! H(e^epsilon) <= delta in both orders is dominated by it (Kairouz, Oh, Viswanath 2015,
//! Theorem 3.4; Dong, Roth, Su 2022, Proposition 3), so what is read off it holds for any
//! mechanism with that guarantee, and is attained.
//!
//! Closed forms, for 0 <= e <= epsilon (both orders are the same):
//! - 1 - delta(e) = (1 - delta) (1 + e^e)/(1 + e^epsilon), and 1 - delta beyond epsilon;
//! - TPR(a) = min(1, delta + e^epsilon a, 1 - e^-epsilon (1 - delta - a)).
//!
//! All ends are rounded outwards. Cost: nanoseconds.

use super::ends::{
    check_epsilon, check_probability, complement, delta_at_negative, not_enclosed,
    one_minus_delta_at_negative,
};
use super::{Order, Pair};
use crate::AccountingError;
use numerics::elementary::{exp, exp_m1, ln_1p};
use numerics::special::ROUND;
use vocabulary::Interval;

/// Randomised response with a chance of telling.
///
/// ```
/// use accounting::{Order, Pair, pairs::TwoPoint};
/// let pair = TwoPoint::new(2.0, 1e-5)?;
/// let power = pair.tpr(0.01, Order::Remove)?;
/// assert!((power.value - (2_f64.exp() * 0.01 + 1e-5)).abs() < 1e-15);
/// # Ok::<(), accounting::AccountingError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoPoint {
    epsilon: f64,
    delta: f64,
}

impl TwoPoint {
    /// # Errors
    /// `InvalidInput` unless epsilon is a finite number of at least 0 and delta a probability.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, AccountingError> {
        if !(epsilon >= 0.0 && epsilon.is_finite()) {
            return Err(AccountingError::invalid(format!(
                "epsilon {epsilon} is not a finite number of at least 0"
            )));
        }
        check_probability("delta", delta)?;
        Ok(Self { epsilon, delta })
    }

    /// A relative error that covers one exponential of `exponent` and a handful of roundings.
    fn slack(exponent: f64) -> f64 {
        ROUND * (16.0 + 4.0 * exponent.abs())
    }
}

/// `value` with a relative error, kept inside of [0, 1].
fn around(value: f64, relative: f64) -> Interval {
    let upper = (value * (1.0 + relative)).min(1.0);
    Interval::new((value * (1.0 - relative)).min(upper), value, upper)
}

impl Pair for TwoPoint {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        check_epsilon(epsilon)?;
        if epsilon < 0.0 {
            return delta_at_negative(self, epsilon, order);
        }
        if epsilon >= self.epsilon {
            return Ok(Interval::exact(self.delta));
        }
        // The rest of the epsilon: a difference of the given numbers, rounded once.
        let rest = self.epsilon - epsilon;
        let told = (1.0 - self.delta) * -exp_m1(-rest) / (1.0 + exp(-self.epsilon));
        Ok(around(self.delta + told, Self::slack(rest)))
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        check_epsilon(epsilon)?;
        if epsilon < 0.0 {
            return one_minus_delta_at_negative(self, epsilon, order);
        }
        if epsilon >= self.epsilon {
            return Ok(complement(Interval::exact(self.delta)));
        }
        let rest = self.epsilon - epsilon;
        let ratio = (1.0 + exp(-epsilon)) / (1.0 + exp(-self.epsilon));
        Ok(around((1.0 - self.delta) * exp(-rest) * ratio, Self::slack(rest)))
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval, AccountingError> {
        check_probability("delta", delta)?;
        if delta < self.delta {
            return Ok(Interval::exact(f64::INFINITY));
        }
        if delta == self.delta {
            return Ok(Interval::exact(self.epsilon));
        }
        if self.delta(0.0, order)?.upper <= delta {
            return Ok(Interval::exact(0.0));
        }
        let share = (delta - self.delta) / (1.0 - self.delta) * (1.0 + exp(-self.epsilon));
        let guess = (self.epsilon + ln_1p(-share)).clamp(0.0, self.epsilon);
        // The profile falls: a point on either side of the answer is found by stepping away.
        let (mut low, mut high, mut step) = (guess, guess, ROUND * (1.0 + self.epsilon));
        for _ in 0..80 {
            let below = low == 0.0 || self.delta(low, order)?.lower > delta;
            let above = high >= self.epsilon || self.delta(high, order)?.upper <= delta;
            if below && above {
                return Ok(Interval::new(low, guess, high));
            }
            low = if below { low } else { (low - step).max(0.0) };
            high = if above { high } else { (high + step).min(self.epsilon) };
            step *= 2.0;
        }
        Err(not_enclosed(format!("epsilon of randomised response at delta {delta:e}")))
    }

    fn tpr(&self, fpr: f64, _way: Order) -> Result<Interval, AccountingError> {
        check_probability("false positive rate", fpr)?;
        if fpr == 0.0 {
            return Ok(Interval::exact(self.delta));
        }
        let steep = (self.delta + exp(self.epsilon) * fpr).min(1.0);
        Ok(around(steep, Self::slack(1.0)).min(complement(self.flat(fpr))))
    }

    fn fnr(&self, fpr: f64, _way: Order) -> Result<Interval, AccountingError> {
        check_probability("false positive rate", fpr)?;
        if fpr == 0.0 {
            return Ok(complement(Interval::exact(self.delta)));
        }
        let told = self.delta + exp(self.epsilon) * fpr;
        let error = Self::slack(1.0) * told;
        let steep = Interval {
            lower: (1.0 - told - error).next_down().max(0.0),
            value: (1.0 - told).max(0.0),
            upper: (1.0 - told + error).next_up().max(0.0),
        };
        Ok(steep.max(self.flat(fpr)))
    }
}

impl TwoPoint {
    /// e^-epsilon (1 - delta - fpr), at least 0: the misses of the flat part of the curve.
    fn flat(&self, fpr: f64) -> Interval {
        let left = 1.0 - self.delta - fpr;
        let weight = exp(-self.epsilon);
        let error = 4.0 * ROUND;
        Interval {
            lower: (weight * (1.0 - error) * (left - error)).max(0.0),
            value: (weight * left).max(0.0),
            upper: (weight * (1.0 + error) * (left + error)).max(0.0),
        }
    }
}
