//! Several releases on one batch: per-layer clipping, the count of adaptive clipping, a private
//! statistic. Theorem A (`poisson.rs`) with tied participation: the shifts of one batch add in
//! squares, also if a later query of the step depends on an earlier answer. So all of them are one
//! release of noise multiplier sigma_eff, 1/sigma_eff^2 = sum (sensitivity_i / noise_i)^2.
//!
//! The noises are independent, the batch is the same, and a threshold must come from released
//! values. The centred count of adaptive clipping (Andrew et al. 2021), b_i - 1/2, has sensitivity 1/2.

use vocabulary::FurtherRelease;

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
    let square: f64 = releases.iter().map(|r| (r.sensitivity / r.noise).powi(2)).sum();
    (1.0 - 4.0 * f64::EPSILON * (2.0 + releases.len() as f64)) / square.sqrt()
}

/// The noise multiplier of a step with its further releases.
pub(super) fn with_further(noise_multiplier: f64, further: &[FurtherRelease]) -> f64 {
    if further.is_empty() {
        return noise_multiplier;
    }
    let mut all = vec![FurtherRelease { noise: noise_multiplier, sensitivity: 1.0 }];
    all.extend_from_slice(further);
    effective_noise_multiplier(&all)
}
