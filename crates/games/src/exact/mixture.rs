//! A mixture of shifted Gaussians against the unshifted one: P = sum_k w_k N(x_k, s^2), x_k >= 0,
//! Q = N(0, s^2). Certified ends.
//!
//! The likelihood ratio increases with y, so the best set is a half-line from y*, f(y*) = epsilon,
//! f(y) = ln sum_k w_k exp(x_k (2y - x_k)/(2 s^2)). Then H(P, Q) = P(y > y*) - e^epsilon Q(y > y*).
//! With y* enclosed in [a, b] the upper end is P(y > a) - e^epsilon Q(y > b), and every y gives a
//! lower bound, because H is a supremum over sets. Rounding: normal tails are good to
//! `MILLS_ERROR`, weights to `weight_error`, sums of positive numbers to the length of their runs.
//! Cost: number of atoms times about 100 evaluations of a normal tail for an epsilon.

use accounting::{AccountingError, Order, Pair};
use numerics::roots::{Enclosure, Noisy, enclose};
use numerics::special::{MILLS_ERROR, inverse_normal_sf, normal_density, normal_sf};
use vocabulary::{Interval, NotCertified};

/// The pair (mixture, Gaussian).
#[derive(Clone, Debug)]
pub struct ShiftedGaussians {
    /// (shift, weight), shifts non-negative and increasing.
    atoms: Vec<(f64, f64)>,
    deviation: f64,
    /// Relative error of every weight.
    weight_error: f64,
}

/// Terms summed in one run before runs are summed.
const RUN: usize = 256;

impl ShiftedGaussians {
    /// `atoms` = (shift, weight) with shifts >= 0; weights are good to a relative `weight_error`.
    ///
    /// # Errors
    /// `InvalidInput` without atoms, with a negative shift or weight, or without noise.
    pub fn new(
        mut atoms: Vec<(f64, f64)>,
        deviation: f64,
        weight_error: f64,
    ) -> Result<Self, AccountingError> {
        let sound = atoms.iter().all(|(x, w)| *x >= 0.0 && x.is_finite() && *w >= 0.0);
        if atoms.is_empty() || !sound || !(deviation > 0.0 && deviation.is_finite()) {
            let reason = "a mixture needs shifts of at least 0, weights and positive noise";
            return Err(AccountingError::invalid(reason.to_owned()));
        }
        atoms.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(Self { atoms, deviation, weight_error })
    }

    pub fn atoms(&self) -> &[(f64, f64)] {
        &self.atoms
    }

    pub(crate) fn deviation(&self) -> f64 {
        self.deviation
    }

    pub(crate) fn weight_error(&self) -> f64 {
        self.weight_error
    }

    /// Sums positive terms; relative error below [`Self::sum_error`].
    fn sum(&self, term: impl Fn(f64, f64) -> f64) -> f64 {
        self.atoms.chunks(RUN).map(|run| run.iter().map(|(x, w)| term(*x, *w)).sum::<f64>()).sum()
    }

    fn sum_error(&self) -> f64 {
        let additions = RUN.min(self.atoms.len()) + self.atoms.len().div_ceil(RUN);
        self.weight_error + (additions as f64 + 8.0) * f64::EPSILON + MILLS_ERROR
    }

    /// P(y > c) and Q(y > c).
    fn above(&self, c: f64) -> (f64, f64) {
        let s = self.deviation;
        (self.sum(|x, w| w * normal_sf((c - x) / s)), normal_sf(c / s))
    }

    /// P(y <= c) and Q(y <= c).
    fn below(&self, c: f64) -> (f64, f64) {
        let s = self.deviation;
        (self.sum(|x, w| w * normal_sf((x - c) / s)), normal_sf(-c / s))
    }

    /// f(y) with its error and slope.
    fn log_ratio(&self, y: f64) -> Noisy {
        let scale = 1.0 / (2.0 * self.deviation * self.deviation);
        let exponent = |x: f64| x * (2.0 * y - x) * scale;
        let largest =
            self.atoms.iter().map(|(x, w)| exponent(*x) + w.ln()).fold(f64::NEG_INFINITY, f64::max);
        let total = self.sum(|x, w| (exponent(x) + w.ln() - largest).exp());
        let first = self.sum(|x, w| x * (exponent(x) + w.ln() - largest).exp());
        // The exponents that matter are within 45 of the largest; each carries its own rounding.
        let reach = self.atoms.last().map_or(0.0, |(x, _)| x * (2.0 * y.abs() + x) * scale);
        let error = (reach + largest.abs() + 60.0) * 4.0 * f64::EPSILON + self.sum_error();
        Noisy { value: largest + total.ln(), error, slope: first / total * (2.0 * scale) }
    }

    /// inf f = ln w(0): the weight of the atoms at zero.
    fn infimum(&self) -> f64 {
        let at_zero: f64 = self.atoms.iter().take_while(|(x, _)| *x == 0.0).map(|(_, w)| w).sum();
        at_zero.ln()
    }

    /// The y with f(y) = target; `None` when f stays above it everywhere.
    fn crossing(&self, target: f64) -> Result<Option<Enclosure>, AccountingError> {
        if target <= self.infimum() {
            return Ok(None);
        }
        let guess = self.atoms.iter().map(|(x, w)| x * w).sum::<f64>();
        let search = |y: f64| Ok::<_, AccountingError>(self.log_ratio(y));
        match enclose(search, target, guess, self.deviation)? {
            Some(found) => Ok(Some(found)),
            None => {
                let what = format!("where the likelihood ratio crosses {target}");
                Err(NotCertified::NotEnclosed { what }.into())
            }
        }
    }

    fn enclosed(&self, lower: f64, value: f64, upper: f64) -> Interval {
        let value = value.clamp(0.0, 1.0);
        Interval { lower: lower.clamp(0.0, value), value, upper: upper.clamp(value, 1.0) }
    }
}

impl Pair for ShiftedGaussians {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        let e = self.sum_error() + 4.0 * f64::EPSILON;
        let factor = epsilon.exp() * (1.0 + epsilon.abs() * f64::EPSILON);
        match order {
            Order::Remove => {
                let Some(y) = self.crossing(epsilon)? else {
                    let value = -epsilon.exp_m1();
                    return Ok(self.enclosed(value - e, value, value + e));
                };
                let (p, q) = self.above(y.middle);
                let (p_more, _) = self.above(y.below);
                let (_, q_less) = self.above(y.above);
                Ok(self.enclosed(
                    p * (1.0 - e) - factor * q * (1.0 + e),
                    p - epsilon.exp() * q,
                    p_more * (1.0 + e) - factor * q_less * (1.0 - e),
                ))
            }
            Order::Add => {
                let Some(y) = self.crossing(-epsilon)? else { return Ok(Interval::exact(0.0)) };
                let (p, q) = self.below(y.middle);
                let (_, q_more) = self.below(y.above);
                let (p_less, _) = self.below(y.below);
                Ok(self.enclosed(
                    q * (1.0 - e) - factor * p * (1.0 + e),
                    q - epsilon.exp() * p,
                    q_more * (1.0 + e) - factor * p_less * (1.0 - e),
                ))
            }
        }
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        let e = self.sum_error() + (4.0 + epsilon.abs()) * f64::EPSILON;
        let factor = epsilon.exp();
        let (value, lower) = match order {
            Order::Remove => match self.crossing(epsilon)? {
                None => (factor, factor),
                Some(y) => (
                    self.below(y.middle).0 + factor * self.above(y.middle).1,
                    self.below(y.below).0 + factor * self.above(y.above).1,
                ),
            },
            Order::Add => match self.crossing(-epsilon)? {
                None => (1.0, 1.0),
                Some(y) => (
                    self.above(y.middle).1 + factor * self.below(y.middle).0,
                    self.above(y.above).1 + factor * self.below(y.below).0,
                ),
            },
        };
        Ok(self.enclosed(lower * (1.0 - e), value, value * (1.0 + e)))
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval, AccountingError> {
        epsilon_by_bisection(delta, |epsilon| self.delta(epsilon, order))
    }

    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        let e = self.sum_error() + 4.0 * f64::EPSILON;
        let c = self.test(fpr, order)?;
        let (lower, value, upper) = match order {
            Order::Remove => (self.above(c.above).0, self.above(c.middle).0, self.above(c.below).0),
            Order::Add => (self.below(c.below).1, self.below(c.middle).1, self.below(c.above).1),
        };
        Ok(self.enclosed(lower * (1.0 - e), value, upper * (1.0 + e)))
    }

    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        let e = self.sum_error() + 4.0 * f64::EPSILON;
        let c = self.test(fpr, order)?;
        let (lower, value, upper) = match order {
            Order::Remove => (self.below(c.below).0, self.below(c.middle).0, self.below(c.above).0),
            Order::Add => (self.above(c.above).1, self.above(c.middle).1, self.above(c.below).1),
        };
        Ok(self.enclosed(lower * (1.0 - e), value, upper * (1.0 + e)))
    }
}

impl ShiftedGaussians {
    /// Where the best test of size `fpr` cuts.
    fn test(&self, fpr: f64, order: Order) -> Result<Enclosure, AccountingError> {
        if !(fpr > 0.0 && fpr < 1.0) {
            let middle = match (order, fpr <= 0.0) {
                (Order::Remove, true) | (Order::Add, false) => f64::INFINITY,
                _ => f64::NEG_INFINITY,
            };
            return Ok(Enclosure { below: middle, middle, above: middle });
        }
        match order {
            Order::Remove => {
                let middle = self.deviation * inverse_normal_sf(fpr);
                let margin = 8.0 * f64::EPSILON * (middle.abs() + self.deviation);
                Ok(Enclosure { below: middle - margin, middle, above: middle + margin })
            }
            Order::Add => {
                let s = self.deviation;
                let mass = |c: f64| {
                    let value = self.below(c).0;
                    let slope = self.sum(|x, w| w * normal_density((c - x) / s)) / s;
                    Ok::<_, AccountingError>(Noisy {
                        value,
                        error: value * self.sum_error(),
                        slope,
                    })
                };
                let guess = -s * inverse_normal_sf(fpr);
                enclose(mass, fpr, guess, s)?.ok_or_else(|| {
                    NotCertified::NotEnclosed {
                        what: format!("threshold of the test of size {fpr}"),
                    }
                    .into()
                })
            }
        }
    }
}

/// The smallest epsilon >= 0 with delta(epsilon) <= delta, with certified ends, for any decreasing
/// enclosed delta.
pub(crate) fn epsilon_by_bisection(
    delta: f64,
    function: impl Fn(f64) -> Result<Interval, AccountingError>,
) -> Result<Interval, AccountingError> {
    if !(delta > 0.0 && delta < 1.0) {
        let reason = format!("delta {delta} is outside (0, 1)");
        return Err(AccountingError::invalid(reason));
    }
    if function(0.0)?.upper <= delta {
        return Ok(Interval::exact(0.0));
    }
    let mut high = 1.0;
    while function(high)?.upper > delta {
        high *= 2.0;
        if high > 1e5 {
            return Err(NotCertified::Unreached { most: high, delta }.into());
        }
    }
    // The root of ln delta by the Illinois rule, then outwards until both sides are certain.
    let height = |found: &Interval| (found.value.max(f64::MIN_POSITIVE) / delta).ln();
    let (mut left, mut right) = (0.0, high);
    let (mut up, mut down) = (height(&function(left)?), height(&function(right)?));
    let mut root = right;
    for _ in 0..200 {
        root = (left * down - right * up) / (down - up);
        if !(root > left && root < right) {
            root = 0.5 * (left + right);
        }
        let here = height(&function(root)?);
        if here.abs() < 1e-13 || right - left < 4.0 * f64::EPSILON * right {
            break;
        }
        if here > 0.0 {
            (left, up, down) = (root, here, 0.5 * down);
        } else {
            (right, down, up) = (root, here, 0.5 * up);
        }
    }
    let certain = |sign: f64, sure: &dyn Fn(&Interval) -> bool| -> Result<f64, AccountingError> {
        let mut margin = 1e-14 * (1.0 + root);
        loop {
            let candidate = (root + sign * margin).max(0.0);
            if candidate > 2.0 * high {
                return Ok(f64::INFINITY);
            }
            if candidate == 0.0 || sure(&function(candidate)?) {
                return Ok(candidate);
            }
            margin *= 2.0;
        }
    };
    let lower = certain(-1.0, &|found| found.lower >= delta)?;
    let upper = certain(1.0, &|found| found.upper <= delta)?;
    Ok(Interval { lower, value: root, upper })
}
