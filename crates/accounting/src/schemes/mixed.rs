//! Labelled mixtures of Gaussian pairs: with probability w_i the attacker sees N(mu_i, 1) against
//! N(0, 1), and knows i. delta = sum w_i delta_i, at every epsilon.

use super::Result;
use super::profile::Profile;
use crate::pairs::Gaussian;
use crate::{Order, Pair};
use vocabulary::Interval;

/// Weights (summing to 1) with their pairs.
pub(super) struct MixedGaussians(pub(super) Vec<(f64, Gaussian)>);

impl MixedGaussians {
    fn sum(&self, part: impl Fn(&Gaussian) -> Result<Interval>) -> Result<Interval> {
        let mut total = Interval::exact(0.0);
        for (weight, pair) in &self.0 {
            let here = part(pair)?;
            total.lower += weight * here.lower;
            total.value += weight * here.value;
            total.upper += weight * here.upper;
        }
        // Sums of positive terms; the weights themselves are good to a few units per trial.
        let slack = 64.0 * f64::EPSILON * (4.0 + self.0.len() as f64);
        total.lower *= 1.0 - slack;
        total.upper *= 1.0 + slack;
        Ok(total)
    }
}

impl Profile for MixedGaussians {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        self.sum(|pair| pair.delta(epsilon, order))
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        self.sum(|pair| pair.one_minus_delta(epsilon, order))
    }
}
