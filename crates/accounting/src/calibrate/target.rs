//! What a calibration aims at. Every target becomes a residual in one unit, the logarithm of
//! the Gaussian mu that would leak as much, relative to the mu that the target allows: almost
//! linear in the logarithms of noise, rate and steps, whatever the target.

use super::search::Measured;
use crate::directions::{accuracy_threshold, mu::through};
use crate::lenses::View;
use crate::{AccountingError, domain};
use numerics::elementary::ln;
use numerics::special::inverse_normal_cdf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::{At, Direction, Interval, NotCovered, Problem, Quantity};

type Result<T> = std::result::Result<T, AccountingError>;

/// The most leakage that is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", rename_all_fields = "snake_case")]
pub enum Target {
    Epsilon { epsilon: f64, delta: f64 },
    Mu { mu: f64, delta: f64 },
    Advantage { advantage: f64 },
    BayesSecurity { bayes_security: f64 },
    Tpr { tpr: f64, fpr: f64 },
    AttackAccuracy { accuracy: f64, prior: f64 },
    Reconstruction { success: f64, prior: f64 },
}

/// A share that guessing reaches, or one that nothing does.
fn between(name: &str, value: f64, guessing: f64) -> Problem {
    Problem::outside(name, value, &format!("({guessing}, 1)"))
        .and(&format!("{guessing} is reached by guessing, so give one in between"))
}

impl Target {
    /// How far an interval lies on the safe side of the target; negative where it does not.
    pub(super) fn slack(&self, interval: &Interval) -> f64 {
        if self.quantity().is_leakage() {
            self.value() - interval.upper
        } else {
            interval.lower - self.value()
        }
    }

    /// # Errors
    /// `InvalidInput` for a target that every run, or none, would meet.
    pub fn check(&self) -> Result<()> {
        let invalid = |problem: Problem| Err(AccountingError::InvalidInput(problem));
        match *self {
            Self::Epsilon { epsilon, delta } => {
                domain::check_delta(delta)?;
                if !(epsilon > 0.0 && epsilon.is_finite()) {
                    return invalid(
                        Problem::is_not("target epsilon", epsilon, "a finite number above 0")
                            .and("give one such as 2"),
                    );
                }
            }
            Self::Mu { mu, delta } => {
                domain::check_delta(delta)?;
                if !(mu > 0.0 && mu <= 1e3) {
                    return invalid(
                        Problem::outside("target mu", mu, "(0, 1000]").and("give one such as 1"),
                    );
                }
            }
            Self::Advantage { advantage } => {
                domain::check_probability("target advantage", advantage)?;
            }
            Self::BayesSecurity { bayes_security } => {
                domain::check_probability("target Bayes security", bayes_security)?;
            }
            Self::Tpr { tpr, fpr } => {
                domain::check_probability("false positive rate", fpr)?;
                domain::check_probability("target true positive rate", tpr)?;
                if tpr <= fpr {
                    let expected =
                        format!("above the false positive rate {fpr}, which guessing reaches");
                    return invalid(
                        Problem::is_not("target true positive rate", tpr, &expected)
                            .and("give a larger one"),
                    );
                }
            }
            Self::AttackAccuracy { accuracy, prior } => {
                domain::check_probability("prior", prior)?;
                let guessing = prior.max(1.0 - prior);
                if !(accuracy > guessing && accuracy < 1.0) {
                    return invalid(between("target attack accuracy", accuracy, guessing));
                }
            }
            Self::Reconstruction { success, prior } => {
                domain::check_probability("prior", prior)?;
                if !(success > prior && success < 1.0) {
                    return invalid(between("target reconstruction success", success, prior));
                }
            }
        }
        Ok(())
    }

    pub fn quantity(&self) -> Quantity {
        match self {
            Self::Epsilon { .. } => Quantity::Epsilon,
            Self::Mu { .. } => Quantity::Mu,
            Self::Advantage { .. } => Quantity::Advantage,
            Self::BayesSecurity { .. } => Quantity::BayesSecurity,
            Self::Tpr { .. } => Quantity::Tpr,
            Self::AttackAccuracy { .. } => Quantity::AttackAccuracy,
            Self::Reconstruction { .. } => Quantity::Reconstruction,
        }
    }

    pub fn at(&self) -> At {
        let mut at = At::default();
        match *self {
            Self::Epsilon { delta, .. } | Self::Mu { delta, .. } => at.delta = Some(delta),
            Self::Tpr { fpr, .. } => at.fpr = Some(fpr),
            Self::AttackAccuracy { prior, .. } | Self::Reconstruction { prior, .. } => {
                at.prior = Some(prior);
            }
            Self::Advantage { .. } | Self::BayesSecurity { .. } => {}
        }
        at
    }

    /// The number aimed at.
    pub fn value(&self) -> f64 {
        match *self {
            Self::Epsilon { epsilon, .. } => epsilon,
            Self::Mu { mu, .. } => mu,
            Self::Advantage { advantage } => advantage,
            Self::BayesSecurity { bayes_security } => bayes_security,
            Self::Tpr { tpr, .. } => tpr,
            Self::AttackAccuracy { accuracy, .. } => accuracy,
            Self::Reconstruction { success, .. } => success,
        }
    }

    /// The Gaussian mu that just meets the target.
    pub(crate) fn allowed_mu(&self) -> Result<f64> {
        match *self {
            Self::Epsilon { epsilon, delta } => through(epsilon, delta),
            Self::Mu { mu, .. } => Ok(mu),
            Self::Advantage { advantage } => Ok(mu_of_security(1.0 - advantage)),
            Self::BayesSecurity { bayes_security } => Ok(mu_of_security(bayes_security)),
            Self::Tpr { tpr, fpr } => Ok(inverse_normal_cdf(tpr) - inverse_normal_cdf(fpr)),
            Self::AttackAccuracy { accuracy, prior } => {
                let (epsilon, smaller) = accuracy_threshold(prior)?;
                through(epsilon, (accuracy - (1.0 - smaller)) / smaller)
            }
            Self::Reconstruction { success, prior } => {
                Ok(inverse_normal_cdf(success) - inverse_normal_cdf(prior))
            }
        }
    }

    /// Measures a view against the target, looking at one direction or at both.
    pub(crate) fn measure(
        &self,
        view: &View,
        allowed: f64,
        direction: Direction,
    ) -> Result<Measured> {
        if matches!(view, View::Security(_))
            && matches!(self, Self::Epsilon { .. } | Self::Mu { .. })
        {
            let asked = &[Quantity::Epsilon, Quantity::Mu];
            let why = "it bounds Bayes security; use --target-bayes-security, --target-advantage, \
                       --target-attack-accuracy, --target-tpr or --target-reconstruction";
            return Err(NotCovered::Quantities { asked, why }.into());
        }
        match *self {
            Self::Epsilon { epsilon, delta } => {
                if let View::Bound(bound) = view {
                    let reached = bound.epsilon(delta)?;
                    return Ok(ratio(reached, epsilon));
                }
                let reached = view.delta(epsilon, direction)?.upper;
                Ok(Measured {
                    residual: implied(epsilon, reached, allowed)?,
                    met: reached <= delta,
                })
            }
            Self::Mu { mu, delta } => Ok(ratio(view.mu(delta, direction)?.upper, mu)),
            Self::Advantage { advantage } => {
                let reached = view.advantage()?.upper;
                Ok(Measured {
                    residual: implied(0.0, reached, allowed)?,
                    met: reached <= advantage,
                })
            }
            Self::BayesSecurity { bayes_security } => {
                let reached = view.bayes_security()?.lower;
                let residual = log_ratio(mu_of_security(reached), allowed);
                Ok(Measured { residual, met: reached >= bayes_security })
            }
            Self::Tpr { tpr, fpr } | Self::Reconstruction { success: tpr, prior: fpr } => {
                let reached = view.tpr(fpr, direction)?.upper;
                let mu = inverse_normal_cdf(reached.min(1.0 - 1e-15)) - inverse_normal_cdf(fpr);
                Ok(Measured { residual: log_ratio(mu, allowed), met: reached <= tpr })
            }
            Self::AttackAccuracy { accuracy, prior } => {
                let (threshold, smaller) = accuracy_threshold(prior)?;
                let reached = view.delta(threshold, direction)?.upper;
                // Rounded up: the sum below has two roundings of numbers below 1.
                let hits = (1.0 - smaller) + smaller * reached + f64::EPSILON;
                Ok(Measured {
                    residual: implied(threshold, reached, allowed)?,
                    met: hits <= accuracy,
                })
            }
        }
    }

    /// The quantity itself, for the achieved claim.
    pub(crate) fn achieved(&self, view: &View) -> Result<Interval> {
        let both = Direction::Both;
        Ok(match *self {
            Self::Epsilon { epsilon, delta } => {
                let mut reached = view.epsilon(delta, both)?;
                // delta(epsilon) <= delta was certified, so epsilon(delta) <= epsilon is, even
                // where the solver's own end is a rounding above it.
                reached.upper = reached.upper.min(epsilon).max(reached.lower.min(epsilon));
                Interval::new(reached.lower.min(reached.upper), reached.value, reached.upper)
            }
            Self::Mu { delta, .. } => view.mu(delta, both)?,
            Self::Advantage { .. } => view.advantage()?,
            Self::BayesSecurity { .. } => view.bayes_security()?,
            Self::Tpr { fpr, .. } => view.tpr(fpr, both)?,
            Self::Reconstruction { prior, .. } => view.tpr(prior, both)?,
            Self::AttackAccuracy { prior, .. } => {
                let (threshold, smaller) = accuracy_threshold(prior)?;
                let delta = view.delta(threshold, both)?;
                let hits = delta.map_increasing(|delta| (1.0 - smaller) + smaller * delta);
                Interval::new(hits.lower - f64::EPSILON, hits.value, hits.upper + f64::EPSILON)
                    .clamp(0.5, 1.0)
            }
        })
    }
}

/// The residual of a profile's value at an epsilon.
fn implied(epsilon: f64, delta: f64, allowed: f64) -> Result<f64> {
    if delta <= 0.0 {
        return Ok(-30.0);
    }
    if delta > 1.0 - 1e-9 {
        return Ok(30.0);
    }
    Ok(log_ratio(through(epsilon, delta)?, allowed))
}

fn log_ratio(reached: f64, allowed: f64) -> f64 {
    ln(reached / allowed).clamp(-30.0, 30.0)
}

fn ratio(reached: f64, allowed: f64) -> Measured {
    Measured { residual: log_ratio(reached, allowed), met: reached <= allowed }
}

/// The Gaussian mu with a given Bayes security 2 Phi(-mu/2).
fn mu_of_security(security: f64) -> f64 {
    -2.0 * inverse_normal_cdf((0.5 * security).max(1e-300))
}
