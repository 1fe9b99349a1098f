//! Who looks at the release and says how much it looks like a training with the canary.

use random::elementary::{exp, ln};

/// What an attacker who knows everything but the canary's presence makes of one step: the noisy
/// sum, less what the other records are expected to give, projected on the canary's gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepView {
    pub projection: f64,
    pub squared_norm: f64,
}

/// What is released.
#[derive(Clone, Copy, Debug)]
pub struct Released<'a> {
    /// The last iterate.
    pub model: &'a [f64],
    /// Every step; empty when only the last iterate is released.
    pub steps: &'a [StepView],
}

/// Gives a score; larger = more likely with the canary.
pub trait Distinguisher: Sync {
    fn score(&self, release: &Released<'_>) -> f64;

    /// Whether the game releases every iterate to this distinguisher.
    fn sees_all_iterates(&self) -> bool {
        false
    }
}

/// An exponent beyond which the term 1 - q is lost in rounding, and e^x would soon overflow.
pub(crate) const FAR: f64 = 600.0;

/// L(v) = ln(1 - q + q e^((2v - 1)/(2 sigma^2))): the log-likelihood ratio of one step of the
/// subsampled Gaussian, at most 700 per step.
#[inline]
pub(crate) fn step_log_ratio(v: f64, noise_multiplier: f64, sample_rate: f64) -> f64 {
    let exponent = (2.0 * v - 1.0) / (2.0 * noise_multiplier * noise_multiplier);
    if exponent > FAR {
        return ln(sample_rate) + exponent;
    }
    ln(1.0 - sample_rate + sample_rate * exp(exponent))
}

/// The likelihood-ratio test on all iterates (P3 4.1): the strongest attacker, whose trade-off
/// curve is the composition's. Exact when the other records' contribution is not random.
#[derive(Clone, Copy, Debug)]
pub struct LikelihoodRatio {
    pub noise_multiplier: f64,
    pub sample_rate: f64,
    pub clip_norm: f64,
}

impl Distinguisher for LikelihoodRatio {
    fn score(&self, release: &Released<'_>) -> f64 {
        let sigma = self.noise_multiplier * self.clip_norm;
        release
            .steps
            .iter()
            .map(|step| {
                // (2<x, g> - |g|^2)/(2 sigma^2) = (2v - 1)/(2 s^2) with s = sigma/|g|, v = <x, g>/|g|^2.
                if step.squared_norm == 0.0 {
                    return 0.0;
                }
                let v = step.projection / step.squared_norm;
                step_log_ratio(v, sigma / step.squared_norm.sqrt(), self.sample_rate)
            })
            .sum()
    }

    fn sees_all_iterates(&self) -> bool {
        true
    }
}
