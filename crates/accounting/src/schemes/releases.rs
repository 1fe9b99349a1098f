//! Several releases on one batch: per-layer clipping, the count of adaptive clipping, a private
//! statistic. Theorem A (`poisson.rs`) with tied participation: the shifts of one batch add in
//! squares, also if a later query of the step depends on an earlier answer. So all of them are one
//! release of noise multiplier sigma_eff, 1/sigma_eff^2 = sum (sensitivity_i / noise_i)^2.
//!
//! The noises are independent, the batch is the same, and a threshold must come from released
//! values. The centred count of adaptive clipping (Andrew et al. 2021), b_i - 1/2, has sensitivity 1/2.

use super::{BoxedPair, Result};
use crate::{Order, Pair};
use numerics::elementary::powi;
use vocabulary::{FurtherRelease, Interval, Side};

/// The noise multiplier of all releases together, rounded down.
///
/// ```
/// use accounting::schemes::effective_noise_multiplier;
/// use vocabulary::FurtherRelease;
/// let layers = [(1.5, 1.0), (3.0, 2.0), (1.0, 0.5)]
///     .map(|(noise, sensitivity)| FurtherRelease { noise, sensitivity });
/// let sigma = effective_noise_multiplier(&layers);
/// assert!((sigma - 0.937042571331636393).abs() < 1e-14 && sigma < 0.937042571331636393);
/// ```
pub fn effective_noise_multiplier(releases: &[FurtherRelease]) -> f64 {
    let (noise, error) = effective(releases);
    noise * (1.0 - error)
}

/// The noise multiplier of all releases together, and a bound on its relative error.
fn effective(releases: &[FurtherRelease]) -> (f64, f64) {
    let square: f64 = releases.iter().map(|r| powi(r.sensitivity / r.noise, 2)).sum();
    (square.sqrt().recip(), 4.0 * f64::EPSILON * (2.0 + releases.len() as f64))
}

/// The noise multiplier of a step with its further releases: rounded down for upper ends of what leaks, up for
/// lower ones.
pub(super) fn with_further(noise_multiplier: f64, further: &[FurtherRelease], side: Side) -> f64 {
    if further.is_empty() {
        return noise_multiplier;
    }
    let mut all = vec![FurtherRelease { noise: noise_multiplier, sensitivity: 1.0 }];
    all.extend_from_slice(further);
    let (noise, error) = effective(&all);
    noise * if side == Side::Lower { 1.0 + error } else { 1.0 - error }
}

/// A pair between two others of which one leaks less and one more, everywhere.
pub(super) struct Between {
    pub(super) least: BoxedPair,
    pub(super) most: BoxedPair,
}

impl Between {
    fn ends(&self, ask: impl Fn(&dyn Pair) -> Result<Interval>, leaks: bool) -> Result<Interval> {
        let (least, most) = (ask(self.least.as_ref())?, ask(self.most.as_ref())?);
        let (low, high) = if leaks { (least, most) } else { (most, least) };
        let value = most.value.max(low.lower).min(high.upper);
        Ok(Interval { lower: low.lower, value, upper: high.upper })
    }
}

impl Pair for Between {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        self.ends(|pair| pair.delta(epsilon, order), true)
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        self.ends(|pair| pair.one_minus_delta(epsilon, order), false)
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval> {
        self.ends(|pair| pair.epsilon(delta, order), true)
    }

    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval> {
        self.ends(|pair| pair.tpr(fpr, order), true)
    }

    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval> {
        self.ends(|pair| pair.fnr(fpr, order), false)
    }

    fn symmetric(&self) -> bool {
        self.least.symmetric() && self.most.symmetric()
    }

    fn log_slopes(&self, fpr: f64, order: Order) -> Vec<f64> {
        self.most.log_slopes(fpr, order)
    }
}
