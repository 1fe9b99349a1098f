//! One number about a mechanism, in other terms. The number becomes pairs, and everything else is
//! read off them by the code that serves every pair.
//!
//! Two readings, each exact under what it assumes:
//! - *any mechanism* with this number: the worst of them is attained. (epsilon, delta), an
//!   advantage and the accuracy of an attack at a prior are each a bound on one point of the
//!   profile, so the worst mechanism is [`TwoPoint`]. A point (FPR a, TPR p) with p > a allows
//!   every (epsilon, delta) with delta + e^epsilon a = p. A symmetric, concave curve through the
//!   point has slope 1 or more to the left of it, and lies below the line from the origin to its
//!   right. So the worst is (0, p - a) on one side and (ln(p/a), 0) on the other, and each
//!   quantity takes the worse of the two.
//! - *a Gaussian curve* through this number: the pair of one mu.
//!
//! A number that somebody wants to keep, TPR or accuracy, can also be read the other way: what is
//! *enough* for it ([`Known::enough`]), rounded down.

use crate::pairs::{Gaussian, TwoPoint};
use crate::{AccountingError, Order, Pair, directions};
use numerics::elementary::ln;
use vocabulary::rounding::plain;
use vocabulary::{Interval, NotCertified, Problem};

type Result<T> = std::result::Result<T, AccountingError>;

/// What is known about a mechanism; each is a bound from above on what it leaks (Bayes security
/// from below).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    Mu(f64),
    Epsilon {
        epsilon: f64,
        delta: f64,
    },
    Tpr {
        tpr: f64,
        fpr: f64,
    },
    Advantage(f64),
    BayesSecurity(f64),
    /// Of the best attacker who tells two secrets apart, one of which has this prior.
    AttackAccuracy {
        accuracy: f64,
        prior: f64,
    },
}

/// What is assumed when a number is read in other terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nothing: the worst mechanism with this number.
    AnyMechanism,
    /// The trade-off curve is a Gaussian one.
    GaussianCurve,
}

/// The pairs of a reading. Every quantity is the worst over them.
#[derive(Clone, Debug)]
pub enum Worst {
    /// One curve, and its mu.
    Gaussian(Gaussian, Interval),
    Points(Vec<TwoPoint>),
}

impl Known {
    /// The pairs behind this number, or `None` where the reading has none: mu is defined
    /// by a Gaussian curve already.
    ///
    /// # Errors
    /// `InvalidInput` for a number that no mechanism has; `OutsideDomain` for a mu above 1e7.
    pub fn read(self, reading: Reading) -> Result<Option<Worst>> {
        Ok(match (self, reading) {
            (Self::Mu(_), Reading::AnyMechanism) => None,
            (Self::Mu(mu), Reading::GaussianCurve) => Some(curve(mu)?),
            (_, Reading::AnyMechanism) => Some(Worst::Points(self.points()?)),
            (_, Reading::GaussianCurve) => self.gaussian()?,
        })
    }

    fn points(self) -> Result<Vec<TwoPoint>> {
        if let Self::Tpr { tpr, fpr } = self {
            let (tpr, fpr) = point(tpr, fpr)?;
            // A point beyond the middle of the curve is the mirror image of one before it.
            let (tpr, fpr) = if tpr + fpr > 1.0 {
                ((1.0 - fpr).next_up().min(1.0), (1.0 - tpr).next_down().max(0.0))
            } else {
                (tpr, fpr)
            };
            // Each is rounded towards more leakage.
            let flat = TwoPoint::new(0.0, (tpr - fpr).next_up().clamp(0.0, 1.0))?;
            if fpr == 0.0 {
                return Ok(vec![TwoPoint::new(0.0, tpr)?]);
            }
            let steep = TwoPoint::new(ln(tpr / fpr) * (1.0 + 1e-15) + 1e-15, 0.0)?;
            return Ok(vec![flat, steep]);
        }
        let (epsilon, delta) = self.on_the_profile()?;
        Ok(vec![TwoPoint::new(epsilon.upper, delta.upper)?])
    }

    /// The point of the profile that the number bounds.
    fn on_the_profile(self) -> Result<(Interval, Interval)> {
        let tidy = |value: f64| Interval::new(value.next_down().max(0.0), value, value.next_up());
        match self {
            Self::Epsilon { epsilon, delta } => {
                TwoPoint::new(epsilon, delta)?;
                Ok((Interval::exact(epsilon), Interval::exact(delta)))
            }
            Self::Advantage(advantage) => {
                share("advantage", advantage)?;
                Ok((Interval::exact(0.0), Interval::exact(advantage)))
            }
            Self::BayesSecurity(security) => {
                share("Bayes security", security)?;
                Ok((Interval::exact(0.0), tidy(1.0 - security).clamp(0.0, 1.0)))
            }
            Self::AttackAccuracy { accuracy, prior } => {
                let (epsilon, smaller) = directions::accuracy_threshold(prior)?;
                if !(accuracy <= 1.0 && accuracy >= 1.0 - smaller) {
                    return Err(AccountingError::invalid(format!(
                        "attack accuracy {} at prior {} is outside [{}, 1]: guessing alone is \
                         that accurate",
                        plain(accuracy),
                        plain(prior),
                        plain(1.0 - smaller)
                    )));
                }
                let delta = (accuracy - (1.0 - smaller)) / smaller;
                let slack = 8.0 * f64::EPSILON;
                let delta = Interval::new(delta - slack, delta, delta + slack).clamp(0.0, 1.0);
                // A larger epsilon bounds more; the point moves by a rounding.
                Ok((tidy(epsilon), delta))
            }
            Self::Mu(_) | Self::Tpr { .. } => Err(AccountingError::invalid(
                "mu and a true positive rate are not points of the profile",
            )),
        }
    }

    /// The Gaussian curve through the number; none where only an infinite mu reaches it.
    fn gaussian(self) -> Result<Option<Worst>> {
        if let Self::Tpr { tpr, fpr } = self {
            let (tpr, fpr) = point(tpr, fpr)?;
            if tpr == fpr {
                return curve(0.0).map(Some);
            }
            if fpr == 0.0 || tpr == 1.0 {
                return Ok(None);
            }
            let quantile = numerics::special::inverse_normal_sf;
            let mu = quantile(fpr) - quantile(tpr);
            let power = |pair: &Gaussian| pair.tpr(fpr, Order::Remove);
            return enclosed(mu, power, Interval::exact(tpr)).map(Some);
        }
        let (epsilon, delta) = self.on_the_profile()?;
        if delta.upper <= 0.0 && epsilon.upper == 0.0 {
            return curve(0.0).map(Some);
        }
        if delta.value <= 0.0 || delta.value >= 1.0 {
            return Ok(None);
        }
        let mu = directions::mu::through(epsilon.value, delta.value)?;
        let profile = |pair: &Gaussian| {
            let (near, far) = (
                pair.delta(epsilon.lower, Order::Remove)?,
                pair.delta(epsilon.upper, Order::Remove)?,
            );
            Ok(Interval::new(far.lower.min(near.upper), near.value, near.upper))
        };
        enclosed(mu, profile, delta).map(Some)
    }

    /// What keeps the number, whatever the mechanism: `None` for numbers that are no targets.
    ///
    /// # Errors
    /// As [`Known::read`].
    pub fn enough(self, delta: Option<f64>) -> Result<Option<Enough>> {
        let (advantage, mu) = match self {
            Self::Tpr { tpr, fpr } => {
                let (tpr, fpr) = point(tpr, fpr)?;
                ((tpr - fpr).next_down().max(0.0), self.gaussian()?)
            }
            Self::AttackAccuracy { .. } => (self.on_the_profile()?.1.lower, self.gaussian()?),
            _ => return Ok(None),
        };
        let epsilon = match delta {
            Some(delta) => self.enough_epsilon(delta)?,
            None => None,
        };
        let mu = match mu {
            Some(Worst::Gaussian(_, mu)) => Some(mu.lower),
            _ => None,
        };
        Ok(Some(Enough { advantage, mu, epsilon }))
    }

    /// The largest epsilon at `delta` that keeps the number, if any does.
    fn enough_epsilon(self, delta: f64) -> Result<Option<f64>> {
        crate::domain::check_delta(delta)?;
        let keeps = |epsilon: f64| -> Result<bool> {
            let pair = TwoPoint::new(epsilon, delta)?;
            Ok(match self {
                Self::Tpr { tpr, fpr } => pair.tpr(fpr, Order::Remove)?.upper <= tpr,
                _ => {
                    let (at, most) = self.on_the_profile()?;
                    pair.delta(at.lower, Order::Remove)?.upper <= most.lower
                }
            })
        };
        if !keeps(0.0)? {
            return Ok(None);
        }
        let (mut low, mut high) = (0.0, 1.0);
        while keeps(high)? {
            (low, high) = (high, 2.0 * high);
            if high > 1e6 {
                return Ok(Some(low));
            }
        }
        while high - low > 1e-13 * high {
            let middle = 0.5 * (low + high);
            if keeps(middle)? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(Some(low))
    }
}

/// What is enough to keep a target; each alone. Rounded down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enough {
    pub advantage: f64,
    /// Absent where only mu 0 would do.
    pub mu: Option<f64>,
    /// At the delta that was asked for; absent where no epsilon is small enough.
    pub epsilon: Option<f64>,
}

impl Worst {
    fn largest(&self, of: impl Fn(&dyn Pair) -> Result<Interval>) -> Result<Interval> {
        match self {
            Self::Gaussian(pair, _) => of(pair),
            Self::Points(pairs) => pairs
                .iter()
                .map(|pair| of(pair))
                .try_fold(Interval::exact(0.0), |most, next| Ok(most.max(next?))),
        }
    }

    /// # Errors
    /// `InvalidInput` for a delta that is no probability.
    pub fn epsilon(&self, delta: f64) -> Result<Interval> {
        self.largest(|pair| pair.epsilon(delta, Order::Remove))
    }

    /// # Errors
    /// `InvalidInput` for an epsilon that is not a number.
    pub fn delta(&self, epsilon: f64) -> Result<Interval> {
        self.largest(|pair| pair.delta(epsilon, Order::Remove))
    }

    /// # Errors
    /// `InvalidInput` for a rate outside [0, 1].
    pub fn tpr(&self, fpr: f64) -> Result<Interval> {
        self.largest(|pair| pair.tpr(fpr, Order::Remove))
    }

    /// # Errors
    /// None in fact.
    pub fn advantage(&self) -> Result<Interval> {
        self.delta(0.0)
    }

    /// # Errors
    /// None in fact.
    pub fn bayes_security(&self) -> Result<Interval> {
        match self {
            Self::Gaussian(pair, _) => directions::bayes_security(pair),
            Self::Points(pairs) => pairs.iter().try_fold(Interval::exact(1.0), |least, pair| {
                Ok(least.min(pair.one_minus_delta(0.0, Order::Remove)?))
            }),
        }
    }

    /// # Errors
    /// `InvalidInput` for a prior outside (0, 1).
    pub fn accuracy(&self, prior: f64) -> Result<Interval> {
        let (threshold, smaller) = directions::accuracy_threshold(prior)?;
        let delta = self.delta(threshold)?;
        let hits = delta.map_increasing(|delta| (1.0 - smaller) + smaller * delta);
        let slack = 2.0 * f64::EPSILON;
        let hits = Interval::new(hits.lower - slack, hits.value, hits.upper + slack);
        Ok(hits.clamp(1.0 - smaller, 1.0))
    }

    /// The smallest mu whose Gaussian curve covers the profile down to `delta`; infinite where
    /// the profile never falls to `delta`.
    ///
    /// # Errors
    /// Those of [`directions::mu::covering`].
    pub fn mu(&self, delta: f64) -> Result<Interval> {
        match self {
            Self::Gaussian(_, mu) => Ok(*mu),
            Self::Points(_) => self.largest(|pair| {
                let end = pair.epsilon(delta, Order::Remove)?;
                let profile = |epsilon| {
                    directions::mu::Level::of(pair, epsilon, vocabulary::Direction::Remove)
                };
                directions::mu::covering(&profile, end, delta)
            }),
        }
    }
}

fn curve(mu: f64) -> Result<Worst> {
    Ok(Worst::Gaussian(Gaussian::new(mu)?, Interval::exact(mu)))
}

fn share(name: &str, value: f64) -> Result<()> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(AccountingError::invalid(Problem::outside(name, value, "[0, 1]")))
}

/// A point on or above the diagonal.
fn point(tpr: f64, fpr: f64) -> Result<(f64, f64)> {
    share("true positive rate", tpr)?;
    share("false positive rate", fpr)?;
    if tpr < fpr {
        return Err(AccountingError::invalid(format!(
            "true positive rate {tpr} at false positive rate {fpr} is below what guessing reaches; \
             give one of at least {fpr}"
        )));
    }
    Ok((tpr, fpr))
}

/// The Gaussian curve whose quantity, which grows with mu, has the given value: mu with an error
/// that is wide enough, shown at both ends.
fn enclosed(
    mu: f64,
    quantity: impl Fn(&Gaussian) -> Result<Interval>,
    value: Interval,
) -> Result<Worst> {
    let mut error = 1e-13;
    while error < 0.5 {
        let ends = Interval::new(mu * (1.0 - error), mu, mu * (1.0 + error));
        let less = quantity(&Gaussian::new(ends.lower)?)?;
        let more = quantity(&Gaussian::new(ends.upper)?)?;
        if less.upper <= value.lower && value.upper <= more.lower {
            // The pair widens by a rounding of its own.
            return Ok(Worst::Gaussian(Gaussian::computed(mu, 1.01 * error)?, ends));
        }
        error *= 4.0;
    }
    Err(NotCertified::CurveNear { mu }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(known: Known) -> Worst {
        known.read(Reading::AnyMechanism).unwrap().unwrap()
    }

    fn gaussian(known: Known) -> Worst {
        known.read(Reading::GaussianCurve).unwrap().unwrap()
    }

    /// Closed forms that can be checked by hand.
    #[test]
    fn known_values() {
        let one = gaussian(Known::Mu(1.0));
        assert!((one.epsilon(1e-5).unwrap().value - 4.377_178_095_681).abs() < 1e-9);
        // Phi(1 - z) with Phi(z) = 0.99.
        assert!((one.tpr(0.01).unwrap().value - 0.092362248).abs() < 1e-8);
        let two = any(Known::Epsilon { epsilon: 2.0, delta: 1e-5 });
        let power = two.tpr(0.01).unwrap();
        assert!(
            (power.value - (2_f64.exp() * 0.01 + 1e-5)).abs() < 1e-15 && power.upper >= power.value
        );
        let security = two.bayes_security().unwrap();
        assert!((security.value - 2.0 * (1.0 - 1e-5) / (2_f64.exp() + 1.0)).abs() < 1e-15);
        // An advantage may be a secret told with that probability: no finite epsilon below it.
        let told = any(Known::Advantage(0.1));
        assert_eq!(told.epsilon(1e-5).unwrap().upper, f64::INFINITY);
        assert!((told.tpr(0.01).unwrap().value - 0.11).abs() < 1e-15);
        assert!((told.accuracy(0.5).unwrap().value - 0.55).abs() < 1e-15);
        // A point may be the start of a steep line: TPR .1 at FPR .01 allows odds of 10.
        let steep = any(Known::Tpr { tpr: 0.1, fpr: 0.01 });
        assert!((steep.advantage().unwrap().value - 9.0 / 11.0).abs() < 1e-14);
        assert!((steep.tpr(0.02).unwrap().value - 0.2).abs() < 1e-14);
        assert!((steep.tpr(0.001).unwrap().value - 0.091).abs() < 1e-14);
    }

    /// There and back: every number of a Gaussian curve gives its mu again.
    #[test]
    fn both_ways_round() {
        for mu in [0.01, 0.3, 1.0, 2.5, 6.0] {
            let pair = gaussian(Known::Mu(mu));
            let mut all = vec![
                Known::Advantage(pair.advantage().unwrap().value),
                Known::BayesSecurity(pair.bayes_security().unwrap().value),
                Known::Tpr { tpr: pair.tpr(0.01).unwrap().value, fpr: 0.01 },
                Known::AttackAccuracy { accuracy: pair.accuracy(0.3).unwrap().value, prior: 0.3 },
            ];
            let epsilon = pair.epsilon(1e-6).unwrap().value;
            all.push(Known::Epsilon { epsilon, delta: 1e-6 });
            for known in all {
                let Ok(Some(back)) = known.read(Reading::GaussianCurve) else {
                    // An accuracy within rounding of guessing has no digits left.
                    assert!(matches!(known, Known::AttackAccuracy { .. }) && mu < 0.1, "{known:?}");
                    continue;
                };
                let found = back.mu(1e-6).unwrap();
                assert!(
                    found.lower <= mu * (1.0 + 1e-9) && mu * (1.0 - 1e-9) <= found.upper,
                    "{known:?} {found:?}"
                );
                assert!(found.width() < 1e-4 * mu, "{known:?} {found:?}");
            }
        }
    }

    /// Random mechanisms with a number never leak more than the reading of any mechanism allows.
    /// Mechanisms: mixtures of a told secret, randomised response and a second randomised
    /// response, made symmetric by construction.
    #[test]
    fn no_mechanism_leaks_more() {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for _ in 0..60 {
            let told = 0.2 * uniform() * uniform();
            let weight = uniform();
            let (first, second) = (4.0 * uniform(), 1.5 * uniform());
            let parts = [(weight, first), (1.0 - weight, second)];
            let delta = |epsilon: f64| {
                told + (1.0 - told)
                    * parts
                        .iter()
                        .map(|(w, e)| w * (e.exp() - epsilon.exp()).max(0.0) / (1.0 + e.exp()))
                        .sum::<f64>()
            };
            // The power at a rate: the smallest over lines, on a fine grid of slopes.
            let tpr = |fpr: f64| {
                (0..=4000)
                    .map(|k| f64::from(k) * 1e-3)
                    .flat_map(|e| {
                        let d = delta(e);
                        [d + e.exp() * fpr, 1.0 - (-e).exp() * (1.0 - d - fpr)]
                    })
                    .fold(1.0, f64::min)
            };
            let (fpr, at, prior) = (0.2 * uniform(), 3.0 * uniform(), 0.5 * uniform().max(0.01));
            let smaller: f64 = prior;
            let accuracy = (1.0 - smaller) + smaller * delta(((1.0 - smaller) / smaller).ln());
            for known in [
                Known::Epsilon { epsilon: at, delta: delta(at) },
                Known::Advantage(delta(0.0)),
                Known::BayesSecurity(1.0 - delta(0.0)),
                Known::Tpr { tpr: tpr(fpr), fpr },
                Known::AttackAccuracy { accuracy, prior },
            ] {
                let worst = any(known);
                for epsilon in [0.0, 0.3, 1.0, 2.5] {
                    // The powers are read off a grid of lines, which may be high by 1e-3.
                    let slack = if matches!(known, Known::Tpr { .. }) { 0.0 } else { 1e-12 };
                    let most = worst.delta(epsilon).unwrap().upper;
                    assert!(delta(epsilon) <= most + slack, "{known:?} delta({epsilon})");
                }
                for rate in [0.01, 0.1, 0.5] {
                    let most = worst.tpr(rate).unwrap().upper;
                    let grid = 1.001_1;
                    assert!(tpr(rate) <= most * grid, "{known:?} tpr({rate}) {} {most}", tpr(rate));
                }
            }
        }
    }

    #[test]
    fn what_is_enough_keeps_the_target() {
        let target = Known::Tpr { tpr: 0.1, fpr: 0.01 };
        let enough = target.enough(Some(1e-5)).unwrap().unwrap();
        let epsilon = enough.epsilon.unwrap();
        let kept = any(Known::Epsilon { epsilon, delta: 1e-5 }).tpr(0.01).unwrap();
        assert!(kept.upper <= 0.1 && kept.upper > 0.099_999);
        assert!(any(Known::Advantage(enough.advantage)).tpr(0.01).unwrap().value <= 0.1);
        assert!(gaussian(Known::Mu(enough.mu.unwrap())).tpr(0.01).unwrap().value <= 0.1);
        let accurate = Known::AttackAccuracy { accuracy: 0.55, prior: 0.5 };
        let enough = accurate.enough(Some(1e-5)).unwrap().unwrap();
        let kept = any(Known::Epsilon { epsilon: enough.epsilon.unwrap(), delta: 1e-5 });
        assert!(kept.accuracy(0.5).unwrap().upper <= 0.55 + 1e-12);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (known, part) in [
            (Known::Tpr { tpr: 0.01, fpr: 0.1 }, "guessing"),
            (Known::Advantage(1.2), "1.2"),
            (Known::AttackAccuracy { accuracy: 0.4, prior: 0.5 }, "guessing"),
            (Known::Epsilon { epsilon: f64::NAN, delta: 0.1 }, "NaN"),
        ] {
            let error = known.read(Reading::AnyMechanism).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
