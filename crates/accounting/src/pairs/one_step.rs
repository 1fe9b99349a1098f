//! A single step, in closed form: the likelihood ratio is monotone, so the best test is a
//! threshold on x.
//!
//! With x = L^{-1}(t), delta_PQ(t) = P(X > x) - e^t Q(X > x) and delta_QP(-t) =
//! Q(X < x) - e^{-t} P(X < x); the threshold is found by bisection to the last bit, and because
//! both are maxima over x, an error in x is of second order (and never makes delta too large by
//! more than round-off).

use super::{OneWay, Pair};
use crate::AccountingError;
use numerics::mixture::MixtureRatio;
use numerics::special::{inverse_normal_sf, log_normal_cdf, normal_cdf, normal_sf};
use vocabulary::Interval;

/// One step of a mixture pair.
#[derive(Clone, Debug)]
pub(crate) struct OneStep {
    pair: MixtureRatio,
}

/// Relative error of a tail probability and of the arithmetic around it.
const UNIT: f64 = 40.0 * f64::EPSILON;

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

    /// e^epsilon times a mass, also where the one overflows and the other underflows.
    fn grown(&self, epsilon: f64, of_p: bool, x: f64, above: bool) -> f64 {
        if epsilon < 700.0 {
            return epsilon.exp() * self.mass(of_p, x, above);
        }
        let log_tail = |centre: f64| {
            let z = (x - centre) / self.pair.scale();
            log_normal_cdf(if above { -z } else { z })
        };
        // A weight of zero has the logarithm -inf, and adds nothing.
        self.pair
            .with_zero(of_p)
            .map(|c| (epsilon + c.weight.ln() + log_tail(c.centre)).exp())
            .sum()
    }

    fn p(&self, x: f64, above: bool) -> f64 {
        self.mass(true, x, above)
    }

    fn q(&self, x: f64, above: bool) -> f64 {
        self.mass(false, x, above)
    }

    /// First minus factor times second at the best threshold, with the order's distributions.
    fn hockey(&self, epsilon: f64, way: OneWay) -> Interval {
        let t = if way == OneWay::Remove { epsilon } else { -epsilon };
        let x = self.pair.inverse(t);
        if x == f64::NEG_INFINITY {
            return match way {
                OneWay::Remove => Interval::new(0.0, -epsilon.exp_m1(), 1.0).clamp(
                    -epsilon.exp_m1() * (1.0 - UNIT),
                    (-epsilon.exp_m1() * (1.0 + UNIT)).max(0.0),
                ),
                OneWay::Add => Interval::exact(0.0),
            };
        }
        let above = way == OneWay::Remove;
        let remove = way == OneWay::Remove;
        let (first, second) = (self.mass(remove, x, above), self.grown(epsilon, !remove, x, above));
        if first + second == 0.0 {
            return Interval::new(0.0, 0.0, f64::MIN_POSITIVE);
        }
        let interval = Interval::around(first - second, self.unit(x, epsilon) * (first + second));
        // The same with the component at zero cancelled by hand, where the plain form loses digits.
        match self.reduced(epsilon, x, way) {
            Some(reduced) if reduced.width() < interval.width() => reduced,
            _ => interval,
        }
        .clamp(0.0, 1.0)
    }

    /// One-sided pairs: sum_j a_j (Phi(x/s) - Phi((x - m_j)/s)) - expm1(eps) tail, in which the
    /// component at zero has dropped out.
    fn reduced(&self, epsilon: f64, x: f64, way: OneWay) -> Option<Interval> {
        if !self.pair.one_sided() || epsilon > 700.0 {
            return None;
        }
        let scale = self.pair.scale();
        // The differences, and the size of what they are differences of.
        let (mut gained, mut size) = (0.0, 0.0);
        for c in self.pair.numerator() {
            let (near, far) = tails((x - c.centre) / scale, x / scale);
            gained += c.weight * (near - far);
            size += c.weight * (near + far);
        }
        let (factor, second) = match way {
            OneWay::Remove => (1.0, epsilon.exp_m1() * normal_sf(x / scale)),
            OneWay::Add => (epsilon.exp(), epsilon.exp_m1() * normal_cdf(x / scale)),
        };
        let error = self.unit(x, epsilon) * (factor * size + second.abs());
        Some(Interval::around(factor * gained - second, error))
    }

    /// Relative error of tails at x: of the function, and of rounding its argument, which a tail
    /// z standard deviations out multiplies by z^2; and of e^epsilon.
    fn unit(&self, x: f64, epsilon: f64) -> f64 {
        let z = (x.abs() + self.pair.reach()) / self.pair.scale();
        UNIT + f64::EPSILON * (4.0 * z * z + 2.0 * epsilon.abs())
    }
}

/// Two numbers whose difference is Phi(b) - Phi(a), a <= b, on the side of the smaller tails.
fn tails(a: f64, b: f64) -> (f64, f64) {
    if a > 0.0 { (normal_sf(a), normal_sf(b)) } else { (normal_cdf(b), normal_cdf(a)) }
}

impl Pair for OneStep {
    fn delta(&self, epsilon: f64, way: OneWay) -> Result<Interval, AccountingError> {
        Ok(self.hockey(epsilon, way))
    }

    fn one_minus_delta(&self, epsilon: f64, way: OneWay) -> Result<Interval, AccountingError> {
        let t = if way == OneWay::Remove { epsilon } else { -epsilon };
        let x = self.pair.inverse(t);
        if x == f64::NEG_INFINITY {
            let factor = epsilon.exp();
            return Ok(match way {
                OneWay::Remove => Interval::around(factor, UNIT * factor).clamp(0.0, 1.0),
                OneWay::Add => Interval::exact(1.0),
            });
        }
        let above = way == OneWay::Remove;
        let remove = way == OneWay::Remove;
        let rest = self.mass(remove, x, !above) + self.grown(epsilon, !remove, x, above);
        Ok(Interval::around(rest, self.unit(x, epsilon) * rest).clamp(0.0, 1.0))
    }

    fn epsilon(&self, delta: f64, way: OneWay) -> Result<Interval, AccountingError> {
        let at_zero = self.hockey(0.0, way);
        if at_zero.upper <= delta {
            return Ok(Interval::exact(0.0));
        }
        let supremum = match way {
            OneWay::Remove => f64::INFINITY,
            OneWay::Add => -self.pair.infimum(),
        };
        let mut high = 1.0f64;
        while self.hockey(high.min(supremum), way).upper > delta && high < supremum {
            high *= 2.0;
            if high > 1e9 {
                return Err(AccountingError::NotCertified(format!(
                    "no epsilon below 1e9 reaches delta {delta}"
                )));
            }
        }
        let high = high.min(supremum);
        let upper = bisect(0.0, high, |x| self.hockey(x, way).upper <= delta);
        let lower = bisect(0.0, high, |x| self.hockey(x, way).lower <= delta);
        let value = bisect(0.0, high, |x| self.hockey(x, way).value <= delta);
        // `bisect` returns the first point at which the condition was seen to hold.
        let lower = (lower - 2.0 * f64::EPSILON * lower.abs()).max(0.0);
        Ok(Interval::new(lower.min(upper), value, upper))
    }

    fn tpr(&self, fpr: f64, way: OneWay) -> Result<Interval, AccountingError> {
        Ok(self.power(fpr, way, false))
    }

    fn fnr(&self, fpr: f64, way: OneWay) -> Result<Interval, AccountingError> {
        Ok(self.power(fpr, way, true))
    }
}

impl OneStep {
    /// Power (or one minus it) of the threshold test of size `fpr`.
    fn power(&self, fpr: f64, way: OneWay, missed: bool) -> Interval {
        if fpr <= 0.0 || fpr >= 1.0 {
            return Interval::exact(if (fpr >= 1.0) == missed { 0.0 } else { 1.0 });
        }
        let above = way == OneWay::Remove;
        let null = |x: f64| if way == OneWay::Remove { self.q(x, true) } else { self.p(x, false) };
        let alternative = |x: f64| match (way, missed) {
            (OneWay::Remove, _) => self.p(x, above != missed),
            (OneWay::Add, _) => self.q(x, above != missed),
        };
        // The size is monotone in x: bracket from the quantile of the reference.
        let scale = self.pair.scale();
        let guess = scale * inverse_normal_sf(if above { fpr } else { 1.0 - fpr });
        let far = scale * 60.0 + 2.0 * self.pair.reach() + guess.abs();
        let small = |x: f64, slack: f64| null(x) <= fpr * (1.0 + slack);
        let find = |slack: f64| {
            if above {
                bisect(-far, far, |x| small(x, slack))
            } else {
                -bisect(-far, far, |x| small(-x, slack))
            }
        };
        let (one, two) = (alternative(find(UNIT)), alternative(find(-UNIT)));
        let (low, high) = if one < two { (one, two) } else { (two, one) };
        let slack = UNIT + 8.0 * f64::EPSILON * (far / scale).powi(2).min(1e4);
        Interval::new(low * (1.0 - slack), 0.5 * (low + high), (high * (1.0 + slack)).min(1.0))
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
