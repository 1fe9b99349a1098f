//! A single step, in closed form: the likelihood ratio is monotone, so the best test is a
//! threshold on x.
//!
//! With x = L^{-1}(t), delta_PQ(t) = P(X > x) - e^t Q(X > x) and delta_QP(-t) =
//! Q(X < x) - e^{-t} P(X < x); the threshold is found by bisection to the last bit, and because
//! both are maxima over x, an error in x is of second order (and never makes delta too large by
//! more than round-off).

use super::ends::complement;
use super::{Order, Pair};
use crate::AccountingError;
use numerics::elementary::{exp, exp_m1, ln};
use numerics::mixture::{Component, MixtureRatio};
use numerics::special::{inverse_normal_sf, log_normal_cdf, normal_cdf, normal_sf};
use vocabulary::{Interval, NotCertified};

/// One step of a mixture pair.
#[derive(Clone, Debug)]
pub(crate) struct OneStep {
    pair: MixtureRatio,
}

/// Relative error of a tail probability and of the arithmetic around it.
const UNIT: f64 = 40.0 * f64::EPSILON;
/// Below this a product of a weight and a tail may have lost digits to underflow.
const SMALLEST: f64 = 1e-290;
/// What a sum of such products may have lost in all, for a thousand components.
const LOST: f64 = 1e-303;

impl OneStep {
    pub(crate) fn new(pair: MixtureRatio) -> Self {
        Self { pair }
    }

    /// P or Q mass of {X > x} or {X < x}.
    fn mass(&self, of_p: bool, x: f64, above: bool) -> f64 {
        let tail = |centre: f64| {
            let z = (x - centre) / self.pair.scale();
            if above { normal_sf(z) } else { normal_cdf(z) }
        };
        self.pair.with_zero(of_p).map(|c| c.weight * tail(c.centre)).sum()
    }

    /// e^epsilon times a mass, also where the one overflows or the other underflows.
    fn grown(&self, epsilon: f64, of_p: bool, x: f64, above: bool) -> f64 {
        let grown = |c: Component| {
            let z = (x - c.centre) / self.pair.scale();
            let z = if above { -z } else { z };
            let mass = c.weight * normal_cdf(z);
            if epsilon < 700.0 && mass > SMALLEST {
                exp(epsilon) * mass
            } else {
                // A weight of zero has the logarithm -inf, and adds nothing.
                exp(epsilon + ln(c.weight) + log_normal_cdf(z))
            }
        };
        self.pair.with_zero(of_p).map(grown).sum()
    }

    fn p(&self, x: f64, above: bool) -> f64 {
        self.mass(true, x, above)
    }

    fn q(&self, x: f64, above: bool) -> f64 {
        self.mass(false, x, above)
    }

    /// First minus factor times second at the best threshold, with the order's distributions.
    fn hockey(&self, epsilon: f64, order: Order) -> Interval {
        let t = if order == Order::Remove { epsilon } else { -epsilon };
        if t <= self.bottom() {
            // Nowhere is the ratio as small as e^t.
            return match order {
                Order::Remove => {
                    let sure = -exp_m1(epsilon);
                    Interval::around(sure, UNIT * sure.abs()).clamp(0.0, 1.0)
                }
                Order::Add => Interval::exact(0.0),
            };
        }
        let nearly = self.nearly_bottom();
        if t <= nearly {
            return self.hockey_at_the_bottom(epsilon, order, nearly);
        }
        let x = self.pair.inverse(t);
        let above = order == Order::Remove;
        let remove = order == Order::Remove;
        let (first, second) = (self.mass(remove, x, above), self.grown(epsilon, !remove, x, above));
        if first + second == 0.0 {
            return Interval::new(0.0, 0.0, self.lost(epsilon, order).min(1.0));
        }
        let error = self.unit(x, epsilon) * (first + second) + self.lost(epsilon, order);
        let interval = Interval::around(first - second, error);
        // The same with the component at zero cancelled by hand, where the plain form loses digits.
        match self.reduced(epsilon, x, order) {
            Some(reduced) if reduced.width() < interval.width() => reduced,
            _ => interval,
        }
        .clamp(0.0, 1.0)
    }

    /// One-sided pairs: sum_j a_j (Phi(x/s) - Phi((x - m_j)/s)) - expm1(eps) tail, in which the
    /// component at zero has dropped out.
    fn reduced(&self, epsilon: f64, x: f64, order: Order) -> Option<Interval> {
        let scale = self.pair.scale();
        let above = order == Order::Remove;
        let reference = if above { normal_sf(x / scale) } else { normal_cdf(x / scale) };
        // An underflowing tail, times e^epsilon, may be anything.
        if !self.pair.one_sided() || epsilon > 700.0 || reference < SMALLEST {
            return None;
        }
        // The differences, and the size of what they are differences of.
        let (mut gained, mut size) = (0.0, 0.0);
        for c in self.pair.numerator() {
            let (near, far) = tails((x - c.centre) / scale, x / scale);
            gained += c.weight * (near - far);
            size += c.weight * (near + far);
        }
        let (factor, second) = match order {
            Order::Remove => (1.0, exp_m1(epsilon) * reference),
            Order::Add => (exp(epsilon), exp_m1(epsilon) * reference),
        };
        let error = self.unit(x, epsilon) * (factor * size + second.abs())
            + factor * LOST
            + self.lost(epsilon, order);
        Some(Interval::around(factor * gained - second, error))
    }

    /// Relative error of tails at x: of the function, and of rounding its argument, which a tail
    /// z standard deviations out multiplies by z^2; and of e^epsilon.
    fn unit(&self, x: f64, epsilon: f64) -> f64 {
        let z = (x.abs() + self.pair.reach()) / self.pair.scale();
        UNIT + 2.0 * self.pair.weight_error() + f64::EPSILON * (8.0 * z * z + 4.0 * epsilon.abs())
    }

    /// What underflow and components that are not listed may add to either mass, the second times
    /// e^epsilon.
    fn lost(&self, epsilon: f64, order: Order) -> f64 {
        lost(self.pair.left_out(), &self.pair, epsilon, order) + LOST
    }

    /// Room for the rounding of the smallest log ratio and of ratios near it, relative.
    fn room(&self) -> f64 {
        32.0 * f64::EPSILON + 2.0 * self.pair.weight_error()
    }

    /// No log ratio is smaller, whatever the rounding of its infimum; -infinity if there is none.
    fn bottom(&self) -> f64 {
        self.pair.infimum() * (1.0 + self.room())
    }

    /// Thresholds up to here may be below the infimum or above it.
    fn nearly_bottom(&self) -> f64 {
        self.pair.infimum() * (1.0 - self.room())
    }

    /// Where e^t may be just above the smallest ratio: the part of 1 - e^-t W that is positive is
    /// at most 1 - e^(bottom - t), and only where W is below e^nearly.
    fn hockey_at_the_bottom(&self, epsilon: f64, order: Order, nearly: f64) -> Interval {
        let x = self.pair.inverse(nearly * (1.0 - self.room()));
        let tail = if x == f64::NEG_INFINITY { 1.0 } else { self.q(x, false) };
        let most = -2.0 * self.room() * self.pair.infimum() * tail * (1.0 + UNIT) * 1.01 + LOST;
        match order {
            Order::Add => Interval::new(0.0, 0.0, most.min(1.0)),
            // 1 - e^epsilon + e^epsilon times the other order's.
            Order::Remove => {
                let (sure, weight) = (-exp_m1(epsilon), exp(epsilon));
                let slack = UNIT * sure.abs();
                Interval::new(sure - slack, sure, sure + slack + weight * most).clamp(0.0, 1.0)
            }
        }
    }
}

/// How far mass that is left out of P, and of Q where that is a mixture too, can move delta: P is the
/// first distribution of `Remove` and the second of `Add`, and the second counts e^epsilon times.
pub(super) fn lost(mass: f64, pair: &MixtureRatio, epsilon: f64, order: Order) -> f64 {
    if mass == 0.0 {
        return 0.0;
    }
    let first = order == Order::Remove || !pair.one_sided();
    let second = order == Order::Add || !pair.one_sided();
    mass * (f64::from(u8::from(first)) + if second { exp(epsilon) } else { 0.0 })
}

/// Two numbers whose difference is Phi(b) - Phi(a), a <= b, on the side of the smaller tails.
fn tails(a: f64, b: f64) -> (f64, f64) {
    if a > 0.0 { (normal_sf(a), normal_sf(b)) } else { (normal_cdf(b), normal_cdf(a)) }
}

impl Pair for OneStep {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        Ok(self.hockey(epsilon, order))
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        let t = if order == Order::Remove { epsilon } else { -epsilon };
        if t <= self.nearly_bottom() {
            let factor = exp(epsilon);
            return Ok(match order {
                Order::Remove => {
                    let most = self.hockey(-epsilon, Order::Add).upper;
                    let slack = UNIT * factor;
                    Interval::new(factor * (1.0 - most) - slack, factor, factor + slack)
                        .clamp(0.0, 1.0)
                }
                Order::Add => complement(self.hockey(epsilon, order)),
            });
        }
        let x = self.pair.inverse(t);
        let above = order == Order::Remove;
        let remove = order == Order::Remove;
        let rest = self.mass(remove, x, !above) + self.grown(epsilon, !remove, x, above);
        Ok(Interval::around(rest, self.unit(x, epsilon) * rest + self.lost(epsilon, order))
            .clamp(0.0, 1.0))
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval, AccountingError> {
        let at_zero = self.hockey(0.0, order);
        if at_zero.upper <= delta {
            return Ok(Interval::exact(0.0));
        }
        let supremum = match order {
            Order::Remove => f64::INFINITY,
            Order::Add => -self.bottom(),
        };
        let mut high = 1.0f64;
        while self.hockey(high.min(supremum), order).upper > delta && high < supremum {
            high *= 2.0;
            if high > 1e9 {
                return Err(NotCertified::Unreached { most: 1e9, delta }.into());
            }
        }
        let high = high.min(supremum);
        let upper = bisect(0.0, high, |x| self.hockey(x, order).upper <= delta);
        let lower = bisect(0.0, high, |x| self.hockey(x, order).lower <= delta);
        let value = bisect(0.0, high, |x| self.hockey(x, order).value <= delta);
        // `bisect` returns the first point at which the condition was seen to hold.
        let lower = (lower - 2.0 * f64::EPSILON * lower.abs()).max(0.0);
        Ok(Interval::new(lower.min(upper), value, upper))
    }

    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        Ok(self.power(fpr, order, false))
    }

    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        Ok(self.power(fpr, order, true))
    }
}

impl OneStep {
    /// Power (or one minus it) of the threshold test of size `fpr`.
    fn power(&self, fpr: f64, order: Order, missed: bool) -> Interval {
        if fpr <= 0.0 || fpr >= 1.0 {
            return Interval::exact(if (fpr >= 1.0) == missed { 0.0 } else { 1.0 });
        }
        let above = order == Order::Remove;
        let null = |x: f64| if order == Order::Remove { self.q(x, true) } else { self.p(x, false) };
        let alternative = |x: f64| match (order, missed) {
            (Order::Remove, _) => self.p(x, above != missed),
            (Order::Add, _) => self.q(x, above != missed),
        };
        // The size is monotone in x: bracket from the quantile of the reference.
        let scale = self.pair.scale();
        let guess = scale * inverse_normal_sf(if above { fpr } else { 1.0 - fpr });
        let far = scale * 60.0 + 2.0 * self.pair.reach() + guess.abs();
        let find = |size: f64| {
            if above {
                bisect(-far, far, |x| null(x) <= size)
            } else {
                -bisect(-far, far, |x| null(-x) <= size)
            }
        };
        let middle = find(fpr);
        let slack = self.unit(middle.abs() + scale, 0.0);
        let lost = self.lost(0.0, order);
        let (one, two) = (find(fpr * (1.0 + slack) + lost), find(fpr * (1.0 - slack) - lost));
        let (one, two) = (alternative(one), alternative(two));
        let (low, high) = if one < two { (one, two) } else { (two, one) };
        Interval::new(
            (low * (1.0 - slack) - lost).max(0.0),
            alternative(middle).clamp(low, high),
            (high * (1.0 + slack) + lost).min(1.0),
        )
    }
}

/// The smallest point of [low, high] at which the monotone condition holds, to the last bit.
fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..1100 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}
