//! The attack that is expected: what its scores can show.

use super::lines::lines;
use crate::{AttackDirection, AuditError, RateBounds, Statistic};
use accounting::{Order, Pair};
use numerics::special::{inverse_normal_cdf, normal_cdf};
use vocabulary::Direction;

/// The attack that is expected.
pub enum Attack<'a> {
    /// Scores N(mu, 1) against N(0, 1).
    Gaussian { mu: f64 },
    /// One threshold with these true rates.
    Rates { fpr: f64, tpr: f64 },
    /// The best attack on a pair.
    Pair(&'a dyn Pair),
}

impl Attack<'_> {
    /// Thresholds to consider, as (false positive rate, true positive rate), from the highest
    /// threshold down: both rates rise.
    pub(super) fn points(&self) -> Result<Vec<(f64, f64)>, AuditError> {
        // Six a decade from both ends: forward bounds live at small rates, mirrored ones near 1.
        let small = (0..48).map(|step| 0.5 * 10f64.powf(-f64::from(step) / 6.0));
        let mut grid: Vec<f64> =
            small.clone().chain(small.skip(1).map(|rate| 1.0 - rate)).collect();
        grid.sort_by(f64::total_cmp);
        match *self {
            Self::Rates { fpr, tpr } => Ok(vec![(fpr, tpr)]),
            Self::Gaussian { mu } => Ok(grid
                .iter()
                .map(|&fpr| (fpr, normal_cdf(inverse_normal_cdf(fpr) + mu)))
                .collect()),
            Self::Pair(pair) => {
                // The curve is the upper envelope of its lines, which cost far less than a solution for
                // each rate.
                let lines = lines(pair, Order::Remove);
                let missed = |fpr: f64| {
                    lines.iter().map(|(growth, rest)| rest - growth * fpr).fold(0.0, f64::max)
                };
                Ok(grid.iter().map(|&fpr| (fpr, (1.0 - missed(fpr)).clamp(fpr, 1.0))).collect())
            }
        }
    }

    /// As [`Attack::points`], with more between them: straight lines in normal quantiles, which is what
    /// Gaussian curves are and others nearly.
    pub(super) fn dense_points(&self, between: u32) -> Result<Vec<(f64, f64)>, AuditError> {
        let points = self.points()?;
        let mut dense = Vec::with_capacity(between as usize * points.len());
        for pair in points.windows(2) {
            let z = |rate: f64| inverse_normal_cdf(rate.clamp(1e-300, 1.0 - 1e-16));
            let (from, to) = ((z(pair[0].0), z(pair[0].1)), (z(pair[1].0), z(pair[1].1)));
            for step in 0..between {
                let share = f64::from(step) / f64::from(between);
                let at = |from: f64, to: f64| normal_cdf(from + share * (to - from));
                dense.push((at(from.0, to.0), at(from.1, to.1)));
            }
        }
        dense.extend(points.last());
        Ok(dense)
    }

    /// The largest epsilon that the attack's true rates show at delta: beyond it no number of
    /// rows helps. For a curve that is its epsilon, sup over thresholds of ln((TPR - delta)/FPR).
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn largest_epsilon(&self, delta: f64) -> Result<f64, AuditError> {
        match *self {
            Self::Gaussian { mu } => Ok(crate::gaussian_epsilon(mu, delta)),
            Self::Pair(_) if delta <= 0.0 => Ok(f64::INFINITY),
            Self::Pair(pair) => {
                Ok(accounting::directions::epsilon(pair, delta, Direction::Both)?.lower)
            }
            Self::Rates { fpr, tpr } => {
                let direction = AttackDirection::Both;
                Ok(Statistic::Epsilon { delta, direction }.value(&exact(fpr, tpr)))
            }
        }
    }
}

/// True rates as bounds on themselves.
pub(super) fn exact(fpr: f64, tpr: f64) -> RateBounds {
    RateBounds {
        false_positive_upper: fpr,
        true_negative_lower: 1.0 - fpr,
        false_negative_upper: 1.0 - tpr,
        true_positive_lower: tpr,
    }
}
