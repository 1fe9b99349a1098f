//! The Gaussian pair N(mu, 1) against N(0, 1), in closed form with certified ends.
//!
//! With the threshold z in the alternative's coordinates, epsilon = mu (z + mu/2) and
//! delta = density(z) [R(z) - R(z + mu)], R the Mills ratio (the usual
//! Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2), Balle and Wang 2018, Theorem 8, without its
//! cancellation: for small mu the bracket is the series sum_n c_n mu^n of positive terms).
//! epsilon(delta) is one root search in z. Both orders are the same. Cost: a microsecond.

use super::ends::{
    TINY, check_epsilon, check_probability, delta_at_negative, not_enclosed,
    one_minus_delta_at_negative, probability_from_log,
};
use super::{Order, Pair};
use crate::AccountingError;
use numerics::elementary::{exp, ln};
use numerics::roots::{Enclosure, Noisy, enclose};
use numerics::special::{
    HALF_LN_TWO_PI, MILLS_ERROR, ROUND, SERIES_ERROR, inverse_normal_sf, log_normal_cdf,
    log_normal_sf, mills_moments, mills_ratio, normal_density, normal_sf,
};
use vocabulary::rounding::plain;
use vocabulary::{Direction, Interval};

/// Below this mu (or shift) differences of Mills ratios are taken by their series.
pub(super) const SERIES_REACH: f64 = 0.5;

/// N(mu, 1) against N(0, 1).
///
/// ```
/// use accounting::{Order, Pair, pairs::Gaussian};
/// let epsilon = Gaussian::new(1.0)?.epsilon(1e-5, Order::Remove)?;
/// assert!(epsilon.lower <= 4.37717809568122463 && 4.37717809568122463 <= epsilon.upper);
/// assert!(epsilon.relative_width() < 1e-13);
/// # Ok::<(), accounting::AccountingError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaussian {
    mu: f64,
    /// Relative error of mu, if it was itself computed.
    mu_error: f64,
}

impl Gaussian {
    /// The pair with distance mu >= 0 between its means, in units of the noise.
    ///
    /// # Errors
    /// `InvalidInput` if mu is negative or not a number, `OutsideDomain` above 1e7.
    pub fn new(mu: f64) -> Result<Self, AccountingError> {
        Self::computed(mu, 0.0)
    }

    /// The pair for a mu known up to a relative error of `mu_error`.
    ///
    /// # Errors
    /// As [`Gaussian::new`].
    pub fn computed(mu: f64, mu_error: f64) -> Result<Self, AccountingError> {
        if mu.is_nan() || mu < 0.0 {
            return Err(AccountingError::invalid(format!(
                "mu {} is not a number of at least 0",
                plain(mu)
            )));
        }
        if mu > 1e7 {
            return Err(AccountingError::outside_domain(format!(
                "the Gaussian pair has mu {}, above 1e7: nothing is hidden at such a distance",
                plain(mu)
            )));
        }
        Ok(Self { mu, mu_error })
    }

    /// The distance between the means.
    pub fn mu(&self) -> f64 {
        self.mu
    }

    /// The pairs at the two ends of mu; everything is monotone in mu.
    fn ends(&self) -> Option<(Self, Self)> {
        (self.mu_error > 0.0).then(|| {
            let at = |factor: f64| Self { mu: self.mu * factor, mu_error: 0.0 };
            (at(1.0 - self.mu_error), at(1.0 + self.mu_error))
        })
    }

    /// The hull over mu's error, for a quantity that grows (or falls) with mu.
    fn over_mu(
        &self,
        question: impl Fn(&Self) -> Result<Interval, AccountingError>,
    ) -> Result<Interval, AccountingError> {
        let exact = Self { mu: self.mu, mu_error: 0.0 };
        let mut hull = question(&exact)?;
        if let Some((less, more)) = self.ends() {
            for end in [question(&less)?, question(&more)?] {
                hull.lower = hull.lower.min(end.lower);
                hull.upper = hull.upper.max(end.upper);
            }
        }
        Ok(hull)
    }

    fn at_threshold(&self, z: f64) -> Threshold {
        let mu = self.mu;
        let a = z + mu;
        if mu <= SERIES_REACH && a >= -4.0 {
            let c = mills_moments::<26>(a);
            let difference = c[1..].iter().rev().fold(0.0, |sum, value| (sum + value) * mu);
            return Threshold::from_mills(z, difference, SERIES_ERROR * difference, c[0], mu);
        }
        if z >= 0.0 {
            let (near, far) = (mills_ratio(z), mills_ratio(a));
            return Threshold::from_mills(
                z,
                near - far,
                (MILLS_ERROR + 2.0 * ROUND) * (near + far),
                far,
                mu,
            );
        }
        // z < 0: sf(z) is of order one.
        let sure = normal_sf(z);
        let lost = if a >= 0.0 {
            normal_density(z) * mills_ratio(a)
        } else {
            exp(mu * (z + 0.5 * mu)) * normal_sf(a)
        };
        let delta = sure - lost;
        let error = (MILLS_ERROR + 4.0 * ROUND) * (sure + lost * (1.0 + a.abs()));
        Threshold { log_delta: ln(delta), error: error / delta + ROUND, slope: mu * lost / delta }
    }

    /// ln(1 - delta) at z, its error and its slope.
    fn complement(&self, z: f64) -> Noisy {
        let a = z + self.mu;
        let missed = log_normal_cdf(z);
        let alarm = if a >= 0.0 {
            -0.5 * z * z - HALF_LN_TWO_PI + ln(mills_ratio(a))
        } else {
            self.mu * (z + 0.5 * self.mu) + log_normal_sf(a)
        };
        let value = numerics::special::log_add_exp(missed, alarm);
        let error = MILLS_ERROR * (3.0 + missed.abs().min(z * z + 4.0) + z * z + a.abs().min(2.0));
        Noisy { value, error, slope: self.mu * exp(alarm - value) }
    }

    fn solve_epsilon(&self, delta: f64) -> Result<Interval, AccountingError> {
        if delta >= 1.0 || self.mu == 0.0 {
            return Ok(Interval::exact(0.0));
        }
        if delta == 0.0 {
            return Ok(Interval::exact(f64::INFINITY));
        }
        let mu = self.mu;
        let guess = if delta <= 0.5 {
            inverse_normal_sf((delta / mu.min(1.0)).min(0.6)).max(-0.5 * mu)
        } else {
            inverse_normal_sf(delta)
        };
        let target = if delta <= 0.5 { -ln(delta) } else { ln(1.0 - delta) };
        let rounding = 2.0 * ROUND * target.abs();
        let function = |z: f64| {
            let mut point = if delta <= 0.5 {
                let t = self.at_threshold(z);
                Noisy { value: -t.log_delta, error: t.error, slope: t.slope }
            } else {
                self.complement(z)
            };
            point.error += rounding;
            Ok::<_, AccountingError>(point)
        };
        let root = enclose(function, target, guess, 1.0)?;
        let Enclosure { below, middle, above } = root.ok_or_else(|| {
            not_enclosed(format!("epsilon of the Gaussian pair mu = {mu} at delta {delta:e}"))
        })?;
        let epsilon = |z: f64| mu * (z + 0.5 * mu);
        let (low, high) = (epsilon(below), epsilon(above));
        let slack = |z: f64| ROUND * mu * (2.0 * z.abs() + 3.0 * (z + 0.5 * mu).abs());
        Ok(Interval::new(
            (low - slack(below)).max(0.0),
            epsilon(middle).max(0.0),
            (high + slack(above)).max(0.0),
        ))
    }

    /// z at epsilon, and the bound on its rounding.
    fn threshold(&self, epsilon: f64) -> (f64, f64) {
        let z = epsilon / self.mu - 0.5 * self.mu;
        (z, ROUND * (epsilon / self.mu + self.mu + z.abs()) + f64::MIN_POSITIVE)
    }
}

/// delta at a threshold.
struct Threshold {
    log_delta: f64,
    error: f64,
    /// -d(ln delta)/dz
    slope: f64,
}

impl Threshold {
    fn from_mills(z: f64, difference: f64, error: f64, far: f64, mu: f64) -> Self {
        Threshold {
            log_delta: -0.5 * z * z - HALF_LN_TWO_PI + ln(difference),
            error: error / difference + ROUND * (z * z + ln(difference).abs() + 4.0),
            slope: mu * far / difference,
        }
    }
}

impl Pair for Gaussian {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        check_epsilon(epsilon)?;
        if epsilon < 0.0 {
            return delta_at_negative(self, epsilon, order);
        }
        self.over_mu(|pair| {
            if pair.mu == 0.0 || epsilon == f64::INFINITY {
                return Ok(Interval::exact(0.0));
            }
            let (z, slip) = pair.threshold(epsilon);
            let ends = |z: f64| {
                let t = pair.at_threshold(z);
                if t.log_delta > -0.7 {
                    // 1 - (1 - delta) is the better side here, and cannot leave [0, 1].
                    let c = pair.complement(z);
                    let rest = probability_from_log(c.value, c.error);
                    return Interval::new(
                        (1.0 - rest.upper - ROUND).max(0.0),
                        1.0 - rest.value,
                        (1.0 - rest.lower + ROUND).min(1.0),
                    );
                }
                probability_from_log(t.log_delta, t.error)
            };
            let (low, middle, high) = (ends(z + slip), ends(z), ends(z - slip));
            Ok(Interval::new(low.lower.min(high.upper), middle.value, high.upper.max(low.lower)))
        })
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        check_epsilon(epsilon)?;
        if epsilon < 0.0 {
            return one_minus_delta_at_negative(self, epsilon, order);
        }
        self.over_mu(|pair| {
            if pair.mu == 0.0 || epsilon == f64::INFINITY {
                return Ok(Interval::exact(1.0));
            }
            let (z, slip) = pair.threshold(epsilon);
            let ends = |z: f64| {
                let c = pair.complement(z);
                probability_from_log(c.value, c.error)
            };
            let (low, middle, high) = (ends(z - slip), ends(z), ends(z + slip));
            Ok(Interval::new(low.lower.min(high.upper), middle.value, high.upper.max(low.lower)))
        })
    }

    fn epsilon(&self, delta: f64, _way: Order) -> Result<Interval, AccountingError> {
        check_probability("delta", delta)?;
        self.over_mu(|pair| pair.solve_epsilon(delta))
    }

    fn tpr(&self, fpr: f64, _way: Order) -> Result<Interval, AccountingError> {
        check_probability("false positive rate", fpr)?;
        self.over_mu(|pair| {
            pair.power(fpr, |z| (log_normal_sf(z), 2.0 * MILLS_ERROR * (1.0 + z * z)), true)
        })
    }

    /// Its own curve, unless delta(epsilon) never reaches delta.
    fn mu(&self, delta: f64, _direction: Direction) -> Option<Result<Interval, AccountingError>> {
        Some(self.epsilon(delta, Order::Remove).map(|end| {
            // What is known of its own error, and more than the roundings of lenses that know none.
            let error = self.mu_error + 1e-12;
            let (lower, upper) = (self.mu * (1.0 - error), self.mu * (1.0 + error));
            let lower = if end.lower > 0.0 { lower } else { 0.0 };
            let upper = if end.upper > 0.0 { upper } else { 0.0 };
            Interval::new(lower, if end.value > 0.0 { self.mu } else { 0.0 }, upper)
        }))
    }

    fn log_slopes(&self, fpr: f64, _way: Order) -> Vec<f64> {
        vec![self.mu * (inverse_normal_sf(fpr) - 0.5 * self.mu)]
    }

    fn fnr(&self, fpr: f64, _way: Order) -> Result<Interval, AccountingError> {
        check_probability("false positive rate", fpr)?;
        self.over_mu(|pair| {
            pair.power(fpr, |z| (log_normal_cdf(z), 2.0 * MILLS_ERROR * (1.0 + z * z)), false)
        })
    }
}

impl Gaussian {
    /// The tail beyond the threshold of a test of size `fpr`, by its logarithm.
    fn power(
        &self,
        fpr: f64,
        log_tail: impl Fn(f64) -> (f64, f64),
        falls_with_threshold: bool,
    ) -> Result<Interval, AccountingError> {
        if fpr == 0.0 || fpr == 1.0 {
            return Ok(Interval::exact(if (fpr == 1.0) == falls_with_threshold {
                1.0
            } else {
                0.0
            }));
        }
        let x = inverse_normal_sf(fpr);
        let z = x - self.mu;
        let slip = 2e-15 * x.abs() + ROUND * z.abs() + f64::MIN_POSITIVE;
        let at = |z: f64| {
            let (log, error) = log_tail(z);
            probability_from_log(log, error)
        };
        let (near, far) =
            if falls_with_threshold { (z + slip, z - slip) } else { (z - slip, z + slip) };
        let (lower, upper) = (at(near).lower, at(far).upper);
        Ok(Interval::new(
            lower,
            at(z).value,
            upper.max(lower).max(if lower == 0.0 { TINY } else { 0.0 }),
        ))
    }
}
