//! What a method has to see before it shows the target.

use super::lines::lines;
use crate::joint::{Evidence, Joint, likely_height};
use crate::statistic::Contour;
use crate::{AttackDirection, AuditError, Errors, Family, RateBounds, Statistic, gaussian_epsilon};
use accounting::Order;

/// Cuts at which a statistic is asked for.
const ASKED: usize = 12;
/// Standard deviations by which they are ranked.
const SPREAD: f64 = 2.5;
/// Slopes at which a family's curve is asked for.
const LOOKS: usize = 8;

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
    fn of(family: &Family, noise: f64, way: Order) -> Result<Self, AuditError> {
        Ok(Self(lines(family.pair(noise)?.as_ref(), way)))
    }

    /// Which of the errors refutes one of the lines, if any: as the rule does, the thresholds are ranked for each
    /// slope, and the slopes by how far their best threshold lies below the line.
    fn refuted(&self, joint: &Joint, all: &[Errors]) -> Option<usize> {
        let mut looks: Vec<(f64, (f64, f64), [usize; 2])> = self
            .0
            .iter()
            .step_by(2)
            .filter_map(|&(growth, rest)| {
                // The two lowest.
                let mut lowest = [(f64::INFINITY, 0); 2];
                for (place, errors) in all.iter().enumerate() {
                    let height = (likely_height(errors, growth), place);
                    if height.0 < lowest[0].0 {
                        lowest = [height, lowest[0]];
                    } else if height.0 < lowest[1].0 {
                        lowest[1] = height;
                    }
                }
                let excess = rest / lowest[0].0;
                // Far above it nothing is refuted.
                (excess > 0.8).then_some((excess, (growth, rest), lowest.map(|(_, place)| place)))
            })
            .collect();
        looks.sort_by(|a, b| b.0.total_cmp(&a.0));
        looks.truncate(LOOKS);
        looks.iter().find_map(|(_, (growth, rest), places)| {
            let refutes =
                |place: &&usize| joint.evidence(&all[**place]).refutes(growth.ln(), 1.0 - rest);
            places.iter().find(refutes).copied()
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
        let curves = [curve(Order::Remove)?, curve(Order::Add)?];
        Ok(Self::Family { family, noise_multiplier: noise, curves })
    }

    /// Whether bounds of this size show the target.
    pub(super) fn shown(&self, rates: &RateBounds) -> bool {
        match self {
            Self::Statistic { statistic, value } => statistic.value(rates) >= *value,
            Self::Family { .. } => rates.false_negative_upper < self.curve(rates),
        }
    }

    /// Which of several bounds that hold together show the target, if they do: for a family, the last of those that show it to its two
    /// orders, as in the rule ([`crate::family`]).
    pub(super) fn shown_by(&self, all: &[RateBounds]) -> Option<usize> {
        match self {
            Self::Statistic { .. } => all.iter().position(|rates| self.shown(rates)),
            Self::Family { curves, .. } => {
                let below = |curve: &Curve| {
                    all.iter().position(|rates| {
                        rates.false_negative_upper < curve.at(rates.false_positive_upper)
                    })
                };
                Some(below(&curves[0])?.max(below(&curves[1])?))
            }
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
            // Its orders may be refuted at different thresholds.
            Self::Family { .. } => false,
        }
    }

    /// Which of these errors refutes the target, if the joint evidence does: for a family, the last of the
    /// thresholds that refute its two orders.
    pub(super) fn refuted_by(&self, joint: &Joint, all: &[Errors]) -> Option<usize> {
        match self {
            Self::Family { curves, .. } => {
                let first = curves[0].refuted(joint, all)?;
                curves[1].refuted(joint, all).map(|second| first.max(second))
            }
            Self::Statistic { .. } => {
                let worth = |errors: &Errors| self.worth(&RateBounds::wilson(errors, SPREAD));
                let mut ranked: Vec<(f64, usize)> =
                    all.iter().enumerate().map(|(place, one)| (worth(one), place)).collect();
                ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
                let refutes =
                    |place: &usize| self.refuted(&joint.evidence(&all[*place]), &all[*place]);
                ranked.into_iter().map(|(_, place)| place).take(ASKED).find(refutes)
            }
        }
    }

    /// About the smallest level at which these errors show the target: by Wilson's bounds.
    pub(super) fn rough(&self, errors: &Errors) -> f64 {
        let shown = |z: f64| self.shown(&RateBounds::wilson(errors, z));
        let (mut does, mut not) = (0.0, 6.0);
        if !shown(does) {
            return 0.5;
        }
        for _ in 0..10 {
            let middle = 0.5 * (does + not);
            if shown(middle) { does = middle } else { not = middle }
        }
        numerics::special::normal_cdf(-does)
    }

    /// How much bounds of this size show, for choosing a threshold.
    pub(super) fn worth(&self, rates: &RateBounds) -> f64 {
        let [one, other] = self.worths(rates);
        one.min(other)
    }

    /// How much they show to each order of a family; elsewhere the same twice.
    pub(super) fn worths(&self, rates: &RateBounds) -> [f64; 2] {
        match self {
            Self::Statistic { statistic, .. } => [statistic.value(rates); 2],
            Self::Family { curves, .. } => [0, 1].map(|order: usize| {
                let curve = curves[order].at(rates.false_positive_upper);
                (curve.max(1e-300) / rates.false_negative_upper).ln()
            }),
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
