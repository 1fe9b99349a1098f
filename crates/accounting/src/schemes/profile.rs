//! A pair from its profile alone: epsilon, true positive and false negative rates follow from
//! delta(epsilon) with certified ends.

use super::Result;
use crate::directions::convex::{self, Guess};
use crate::pairs::vague_delta;
use crate::{AccountingError, Order, Pair};
use numerics::elementary::{exp, ln};
use vocabulary::{Interval, NotCertified};

/// Upper ends of delta that come out below this are this: sums of products that underflow lose less.
pub(super) const LEAST: f64 = 1e-290;

/// delta(epsilon) with certified ends, for any real epsilon.
pub(super) trait Profile: Send + Sync {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval>;

    /// 1 - delta, with relative accuracy where the profile has it.
    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        Ok(complement(self.delta(epsilon, order)?))
    }

    /// Epsilon, if there is a faster way to it than by values of delta.
    fn epsilon(&self, _delta: f64, _way: Order) -> Option<Result<Interval>> {
        None
    }

    /// Whether both orders are the same.
    fn symmetric(&self) -> bool {
        false
    }

    /// Whether delta(epsilon) is certainly at most `delta`, if that is cheaper to tell than delta.
    fn is_below(&self, _epsilon: f64, _way: Order, _delta: f64) -> Option<bool> {
        None
    }
}

/// The pair behind a profile.
pub(super) struct FromProfile<P>(pub(super) P);

/// 1 - x, rounded outwards.
pub(super) fn complement(x: Interval) -> Interval {
    Interval {
        lower: (1.0 - x.upper).next_down().max(0.0),
        value: 1.0 - x.value,
        upper: (1.0 - x.lower).next_up().min(1.0),
    }
}

impl<P: Profile> Pair for FromProfile<P> {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        check(epsilon)?;
        Ok(self.0.delta(epsilon, order)?.clamp(0.0, 1.0))
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        check(epsilon)?;
        Ok(self.0.one_minus_delta(epsilon, order)?.clamp(0.0, 1.0))
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval> {
        crate::domain::check_delta(delta)?;
        if let Some(found) = self.0.epsilon(delta, order) {
            return found.map(|epsilon| epsilon.map_increasing(|x| x.max(0.0)));
        }
        crossing(|epsilon| self.delta(epsilon, order), delta)
    }

    fn symmetric(&self) -> bool {
        self.0.symmetric()
    }

    fn is_below(&self, epsilon: f64, order: Order, delta: f64) -> Option<bool> {
        self.0.is_below(epsilon, order, delta)
    }

    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval> {
        rate(fpr)?;
        if fpr <= 0.0 || fpr >= 1.0 {
            // Every set that has probability zero under one distribution has it under the other.
            return Ok(Interval::exact(if fpr <= 0.0 { 0.0 } else { 1.0 }));
        }
        let (low, high, guess) = self.slopes(fpr, order)?;
        let power = |log_slope: f64| {
            let slope = exp(log_slope);
            let delta = self.delta(log_slope, order)?;
            let slack = 4.0 * f64::EPSILON * (delta.upper + slope * fpr);
            Ok(Interval {
                lower: delta.lower + slope * fpr - slack,
                value: delta.value + slope * fpr,
                upper: delta.upper + slope * fpr + slack,
            })
        };
        let (_, tpr) = convex::minimise_from(power, low, high, guess)?;
        // Flatter lines: delta(ln k) + k fpr >= 1 - k (1 - fpr).
        let flatter = 1.0 - low * (1.0 - fpr);
        Ok(Interval { lower: tpr.lower.min(flatter), ..tpr }.clamp(fpr, 1.0))
    }

    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval> {
        rate(fpr)?;
        if fpr <= 0.0 || fpr >= 1.0 {
            return Ok(Interval::exact(if fpr <= 0.0 { 1.0 } else { 0.0 }));
        }
        let (low, high, guess) = self.slopes(fpr, order)?;
        let line = |log_slope: f64| {
            let slope = exp(log_slope);
            let rest = self.one_minus_delta(log_slope, order)?;
            let slack = 4.0 * f64::EPSILON * (rest.upper + slope * fpr);
            Ok(Interval {
                lower: slope * fpr - rest.upper - slack,
                value: slope * fpr - rest.value,
                upper: slope * fpr - rest.lower + slack,
            })
        };
        let (_, negative) = convex::minimise_from(line, low, high, guess)?;
        let fnr = negative.map_decreasing(|x| -x);
        // Flatter lines: 1 - delta(ln k) - k fpr <= k (1 - fpr).
        let fnr = Interval { upper: fnr.upper.max(low * (1.0 - fpr)), ..fnr };
        Ok(fnr.clamp(0.0, 1.0 - fpr))
    }
}

impl<P: Profile> FromProfile<P> {
    /// Slopes e^epsilon between which the supporting line at `fpr` is looked for.
    fn slopes(&self, fpr: f64, order: Order) -> Result<(f64, f64, Guess)> {
        let advantage = self.delta(0.0, order)?;
        let rest = self.one_minus_delta(0.0, order)?;
        let guess = Guess::gaussian(advantage.value, rest.value, fpr);
        let end = (1e-9 * guess.at).clamp(1e-250, 1e-6);
        let low = ((rest.lower - fpr) / (1.0 - fpr)).max(end) * 0.999;
        Ok((low, (advantage.upper + fpr) / fpr * 1.001, guess))
    }
}

fn check(epsilon: f64) -> Result<()> {
    if epsilon.is_finite() {
        return Ok(());
    }
    Err(AccountingError::invalid(format!("epsilon {epsilon} is not a finite number")))
}

fn rate(fpr: f64) -> Result<()> {
    if (0.0..=1.0).contains(&fpr) {
        return Ok(());
    }
    Err(AccountingError::invalid(format!("false positive rate {fpr} is outside [0, 1]")))
}

/// The epsilon >= 0 at which a falling profile meets `delta`: secants on its logarithm, then an end on
/// either side at which it is certain.
pub(super) fn crossing(profile: impl Fn(f64) -> Result<Interval>, delta: f64) -> Result<Interval> {
    let at_zero = profile(0.0)?;
    if at_zero.upper <= delta {
        return Ok(Interval::exact(0.0));
    }
    let log = |x: f64| ln(x.max(1e-320));
    let target = log(delta);
    // Walk out until below, then close in with secants and halves in turn.
    let (mut low, mut high) = ((0.0, log(at_zero.value) - target), (0.5, f64::NAN));
    loop {
        high.1 = log(profile(high.0)?.value) - target;
        if high.1 <= 0.0 {
            break;
        }
        low = high;
        high.0 *= 2.0;
        if high.0 > 1e6 {
            return Err(NotCertified::Unreached { most: 1e6, delta }.into());
        }
    }
    close_in(profile, delta, low, high)
}

/// The same from a guess, for a profile whose numbers far from the answer cost as much as those near it.
pub(super) fn crossing_near(
    profile: impl Fn(f64) -> Result<Interval>,
    delta: f64,
    guess: f64,
) -> Result<Interval> {
    let off =
        |x: f64| -> Result<(f64, f64)> { Ok((x, ln(profile(x)?.value.max(1e-320)) - ln(delta))) };
    let first = off(guess)?;
    let (mut low, mut high) = (first, first);
    for round in 0..6 {
        let step = guess * 0.1 * f64::from(1 << round);
        match (low.1 > 0.0, high.1 > 0.0) {
            (true, true) => (low, high) = (high, off(high.0 + step)?),
            (false, false) if low.0 > step => (low, high) = (off(low.0 - step)?, low),
            (true, false) => return close_in(profile, delta, low, high),
            _ => break,
        }
    }
    crossing(profile, delta)
}

/// The crossing between two places, and how far it is there from the target in logarithms.
fn close_in(
    profile: impl Fn(f64) -> Result<Interval>,
    delta: f64,
    mut low: (f64, f64),
    mut high: (f64, f64),
) -> Result<Interval> {
    let log = |x: f64| ln(x.max(1e-320));
    let target = log(delta);
    let mut middle = high.0;
    if low.1 > 0.0 {
        for round in 0..60 {
            let secant = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
            let half = 0.5 * (low.0 + high.0);
            let inside = secant > low.0 && secant < high.0 && round % 4 != 3;
            middle = if inside { secant } else { half };
            let here = log(profile(middle)?.value) - target;
            if here > 0.0 {
                low = (middle, here);
            } else {
                high = (middle, here);
            }
            if here.abs() < 1e-13 || high.0 - low.0 <= 4e-16 * high.0 {
                break;
            }
        }
    } else {
        middle = 0.0;
    }
    let here = profile(middle)?;
    let slope = ((high.1 - low.1) / (high.0 - low.0)).abs().max(1e-6);
    // First steps to either side, by what is unknown on that side; where that is nearly all, not far.
    let unit = |unknown: f64| {
        let step = 0.6 * (unknown / here.value.max(1e-300) + 1e-14) / slope;
        step.min(0.1 * (1.0 + middle)) + 4.0 * f64::EPSILON * middle.abs()
    };
    let (mut lower, mut upper) = (None, None);
    let (mut up, mut down) = (unit(here.upper - here.value), unit(here.value - here.lower));
    for _ in 0..60 {
        if upper.is_none() && profile(middle + up)?.upper <= delta {
            upper = Some(middle + up);
        }
        if lower.is_none() {
            let below = middle - down;
            if below <= 0.0 {
                lower = Some(0.0);
            } else if profile(below)?.lower >= delta {
                lower = Some(below);
            }
        }
        if let (Some(lower), Some(upper)) = (lower, upper) {
            return Ok(Interval::new(lower, middle.clamp(lower, upper), upper));
        }
        up *= 1.6;
        down *= 1.6;
    }
    Err(vague_delta())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile that falls to nothing within a step, with an upper end that does not: no epsilon can be certified, and
    /// the search does not run away to infinity, which would read as bad input.
    #[test]
    fn a_profile_that_is_hardly_known_is_refused() {
        let profile = |epsilon: f64| {
            check(epsilon)?;
            Ok(if epsilon < 3.0 {
                Interval::new(0.2, 0.3, 0.4)
            } else {
                Interval::new(0.0, 0.0, 1e-3)
            })
        };
        let found = crossing(profile, 1e-9);
        assert!(matches!(found, Err(AccountingError::NotCertified(_))), "{found:?}");
    }
}
