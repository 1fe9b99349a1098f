//! What a method has to see before it shows the target.

use super::lines::lines;
use crate::joint::Evidence;
use crate::statistic::Contour;
use crate::{AttackDirection, AuditError, Errors, Family, RateBounds, Statistic, gaussian_epsilon};
use accounting::OneWay;

/// The event that an audit shows at least the target, as a condition on two rate bounds.
pub enum Goal {
    /// A statistic reaches a value: the distribution-free bound, or the Gaussian family's mu.
    Statistic { statistic: Statistic, value: f64 },
    /// The rates violate the curve of a DP-SGD family at the noise whose epsilon is the target.
    Family { family: Family, noise_multiplier: f64, curves: [Curve; 2] },
}

/// A trade-off curve from below: its largest line, as (e^l, 1 - delta(l)).
pub struct Curve(Vec<(f64, f64)>);

impl Curve {
    fn of(family: &Family, noise: f64, way: OneWay) -> Result<Self, AuditError> {
        Ok(Self(lines(family.pair(noise)?.as_ref(), way)))
    }

    /// Whether one of the lines that touch the curve near a rate is refuted.
    fn refuted(&self, evidence: &Evidence, fpr: f64) -> bool {
        let height = |line: &(f64, f64)| line.1 - line.0 * fpr;
        let best =
            (0..self.0.len()).max_by(|a, b| height(&self.0[*a]).total_cmp(&height(&self.0[*b])));
        let Some(best) = best else { return false };
        // The one that touches the curve there, and some on both sides.
        [0, 4, -4, 8, -8, 2, -2].into_iter().any(|away| {
            let line = best.checked_add_signed(away).and_then(|place| self.0.get(place));
            line.is_some_and(|(growth, rest)| evidence.refutes(growth.ln(), 1.0 - rest))
        })
    }

    fn at(&self, fpr: f64) -> f64 {
        self.0.iter().map(|(growth, rest)| rest - growth * fpr).fold(0.0, f64::max)
    }
}

impl Goal {
    /// The distribution-free bound reaches epsilon at delta.
    pub fn clopper_pearson(epsilon: f64, delta: f64) -> Self {
        let direction = AttackDirection::Both;
        Self::Statistic { statistic: Statistic::Epsilon { delta, direction }, value: epsilon }
    }

    /// The Gaussian family's bound reaches epsilon at delta.
    ///
    /// # Errors
    /// A delta of 0, at which any mu has infinite epsilon.
    pub fn gaussian(epsilon: f64, delta: f64) -> Result<Self, AuditError> {
        if delta <= 0.0 {
            return Err(needs_delta("gdp"));
        }
        let (mut low, mut high) = (0.0, 1.0);
        while gaussian_epsilon(high, delta) < epsilon {
            low = high;
            high *= 2.0;
        }
        while high - low > 1e-9 * high {
            let middle = 0.5 * (low + high);
            if gaussian_epsilon(middle, delta) < epsilon { low = middle } else { high = middle }
        }
        Ok(Self::Statistic { statistic: Statistic::GaussianMu, value: high })
    }

    /// A DP-SGD family's bound reaches epsilon at delta.
    ///
    /// # Errors
    /// A delta of 0; an epsilon beyond the family's noise multipliers; those of the accounting.
    pub fn family(family: Family, epsilon: f64, delta: f64) -> Result<Self, AuditError> {
        if delta <= 0.0 {
            return Err(needs_delta("a DP-SGD family"));
        }
        let (least, most) = family.noise_domain();
        let near = family.noise_above(epsilon, delta)?.filter(|noise| *noise < most);
        let Some(near) = near else {
            return Err(AuditError::invalid(format!(
                "no noise multiplier between {least} and {most} has epsilon {epsilon} at delta {delta} in this family"
            )));
        };
        // The last one that shows the target is less than a per cent above.
        let (mut shows, mut not) = (near.ln(), (1.01 * near).ln());
        while not - shows > 1e-6 {
            let middle = 0.5 * (shows + not);
            if family.epsilon(middle.exp(), delta)? >= epsilon {
                shows = middle
            } else {
                not = middle
            }
        }
        let noise = shows.exp();
        let curve = |way| Curve::of(&family, noise, way);
        let curves = [curve(OneWay::Remove)?, curve(OneWay::Add)?];
        Ok(Self::Family { family, noise_multiplier: noise, curves })
    }

    /// Whether bounds of this size show the target.
    pub(super) fn shown(&self, rates: &RateBounds) -> bool {
        match self {
            Self::Statistic { statistic, value } => statistic.value(rates) >= *value,
            Self::Family { .. } => rates.false_negative_upper < self.curve(rates),
        }
    }

    /// Whether the joint evidence at one threshold shows the target.
    fn refuted(&self, evidence: &Evidence, errors: &Errors) -> bool {
        match self {
            Self::Statistic { statistic: Statistic::Epsilon { delta, direction }, value } => {
                let forward = || evidence.refutes(*value, *delta);
                let mirror =
                    || evidence.refutes(-value, -(-value).exp_m1() + (-value).exp() * delta);
                match direction {
                    AttackDirection::Forward => forward(),
                    AttackDirection::Mirror => mirror(),
                    AttackDirection::Both => forward() || mirror(),
                }
            }
            Self::Statistic { statistic: Statistic::GaussianMu, value } => {
                crate::joint::refutes_mu(evidence, errors, *value)
            }
            Self::Statistic { statistic: Statistic::Advantage, value } => {
                evidence.refutes(0.0, *value)
            }
            Self::Family { .. } => (0..2).all(|order| self.refuted_in(order, evidence, errors)),
        }
    }

    /// How many parts a refutation has: both orders of a family, perhaps at different thresholds.
    pub(super) fn orders(&self) -> usize {
        match self {
            Self::Statistic { .. } => 1,
            Self::Family { .. } => 2,
        }
    }

    /// As [`Goal::worth`], for one order.
    pub(super) fn worth_of(&self, order: usize, rates: &RateBounds) -> f64 {
        match self {
            Self::Statistic { .. } => self.worth(rates),
            Self::Family { curves, .. } => {
                let height = curves[order].at(rates.false_positive_upper);
                (height.max(1e-300) / rates.false_negative_upper).ln()
            }
        }
    }

    /// Whether the joint evidence at one threshold refutes one order.
    pub(super) fn refuted_in(&self, order: usize, evidence: &Evidence, errors: &Errors) -> bool {
        match self {
            Self::Statistic { .. } => self.refuted(evidence, errors),
            Self::Family { curves, .. } => {
                let rate = RateBounds::wilson(errors, 1.5).false_positive_upper;
                curves[order].refuted(evidence, rate)
            }
        }
    }

    /// How much bounds of this size show, for choosing a threshold.
    pub(super) fn worth(&self, rates: &RateBounds) -> f64 {
        match self {
            Self::Statistic { statistic, .. } => statistic.value(rates),
            Self::Family { .. } => {
                (self.curve(rates).max(1e-300) / rates.false_negative_upper).ln()
            }
        }
    }

    /// The statistic by which `holdout` and `k-fold` choose their thresholds.
    pub(super) fn chooser(&self) -> Statistic {
        match self {
            Self::Statistic { statistic, .. } => *statistic,
            Self::Family { .. } => Statistic::GaussianMu,
        }
    }

    /// The contours of "more than the target", for averaged p-values; families have none (their
    /// folds share the error instead).
    pub(super) fn contours(&self) -> Option<Vec<Contour<'_>>> {
        match self {
            Self::Statistic { statistic, value } => {
                Some(statistic.critical_true_positive_rates(*value))
            }
            Self::Family { .. } => None,
        }
    }

    /// The lower of the two orders' curves.
    fn curve(&self, rates: &RateBounds) -> f64 {
        match self {
            Self::Statistic { .. } => 0.0,
            Self::Family { curves, .. } => {
                let fpr = rates.false_positive_upper;
                curves[0].at(fpr).min(curves[1].at(fpr))
            }
        }
    }
}

fn needs_delta(what: &str) -> AuditError {
    AuditError::invalid(format!(
        "planning for {what} needs --delta above 0: at delta 0 any leakage of the family has infinite epsilon"
    ))
}
