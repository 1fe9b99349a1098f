//! What is read off a pair of rate bounds: epsilon at a delta, or the Gaussian mu.
//!
//! A statistic grows when either error rate shrinks, so a bound on both rates is a bound on it,
//! and its value at a corner bounds it over a whole block of thresholds.

use crate::RateBounds;
use numerics::special::{inverse_normal_cdf, inverse_normal_sf, normal_cdf};

/// Which order of the pair an epsilon is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttackDirection {
    /// ln((1 - delta - FNR) / FPR): "this is a member" is the event.
    Forward,
    /// ln((1 - delta - FPR) / FNR): "this is not a member" is the event.
    Mirror,
    /// The larger of both; free, since both read the same two rate bounds.
    #[default]
    Both,
}

impl AttackDirection {
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Mirror => "mirror",
            Self::Both => "both",
        }
    }
}

impl std::str::FromStr for AttackDirection {
    type Err = crate::AuditError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Forward, Self::Mirror, Self::Both]
            .into_iter()
            .find(|direction| direction.name() == text)
            .ok_or_else(|| {
                crate::AuditError::invalid(format!(
                    "direction `{text}` is not forward, mirror or both"
                ))
            })
    }
}

/// The true positive rate above which a value is exceeded, over the false positive rate.
pub(crate) type Contour<'a> = Box<dyn Fn(f64) -> f64 + 'a>;

/// A number that grows with the leakage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The smallest epsilon at this delta that allows such rates, for any mechanism.
    Epsilon { delta: f64, direction: AttackDirection },
    /// The smallest mu whose Gaussian trade-off curve allows such rates.
    GaussianMu,
    /// 1 - FPR - FNR, the advantage at a threshold.
    Advantage,
}

impl Statistic {
    /// The value at these rates, at least 0.
    pub fn value(&self, rates: &RateBounds) -> f64 {
        match *self {
            Self::Epsilon { delta, direction } => {
                let forward =
                    || log_ratio(rates.true_positive_lower, delta, rates.false_positive_upper);
                let mirror =
                    || log_ratio(rates.true_negative_lower, delta, rates.false_negative_upper);
                match direction {
                    AttackDirection::Forward => forward(),
                    AttackDirection::Mirror => mirror(),
                    AttackDirection::Both => forward().max(mirror()),
                }
            }
            Self::GaussianMu => {
                let positive = quantile(rates.false_positive_upper, rates.true_negative_lower);
                let negative = quantile(rates.false_negative_upper, rates.true_positive_lower);
                let mu = -positive - negative;
                // Both quantiles infinite with opposite signs: nothing is shown.
                if mu > 0.0 { mu } else { 0.0 }
            }
            Self::Advantage => (rates.true_positive_lower - rates.false_positive_upper).max(0.0),
        }
    }

    /// Gains too small to search for. The Gaussian mu of Gaussian scores is flat over all
    /// thresholds, and would be searched to the last one.
    pub(crate) const fn negligible(&self) -> f64 {
        match self {
            Self::Epsilon { .. } => 1e-7,
            Self::GaussianMu => 1e-4,
            Self::Advantage => 1e-5,
        }
    }

    /// The true positive rate above which the value exceeds `value` when the false positive
    /// rate is `false_positive_rate`: one contour per direction.
    pub(crate) fn critical_true_positive_rates(&self, value: f64) -> Vec<Contour<'_>> {
        match *self {
            Self::Epsilon { delta, direction } => {
                let mut contours: Vec<Contour<'_>> = Vec::new();
                if direction != AttackDirection::Mirror {
                    contours.push(Box::new(move |rate| delta + value.exp() * rate));
                }
                if direction != AttackDirection::Forward {
                    contours.push(Box::new(move |rate| {
                        1.0 - (1.0 - rate - delta).max(0.0) * (-value).exp()
                    }));
                }
                contours
            }
            Self::GaussianMu => {
                vec![Box::new(move |rate| normal_cdf(inverse_normal_cdf(rate) + value))]
            }
            Self::Advantage => vec![Box::new(move |rate| rate + value)],
        }
    }
}

/// ln((kept - delta) / error), 0 when that is negative or nothing is kept.
fn log_ratio(kept: f64, delta: f64, error: f64) -> f64 {
    let numerator = kept - delta;
    if numerator <= 0.0 { 0.0 } else { (numerator / error).ln().max(0.0) }
}

/// The normal quantile of a rate, from whichever of the rate and its complement is smaller.
fn quantile(rate: f64, complement: f64) -> f64 {
    if rate <= 0.0 {
        f64::NEG_INFINITY
    } else if complement <= 0.0 {
        f64::INFINITY
    } else if rate < 0.5 {
        inverse_normal_cdf(rate)
    } else {
        inverse_normal_sf(complement)
    }
}
