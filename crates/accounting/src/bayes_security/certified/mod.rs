//! A lower bound on Bayes security that is a formula: the largest of several, each proven here
//! or in its own file. Direction: **never above the truth**, for gradients that are clipped and
//! chosen by anybody from anything that was seen before. Cost: a microsecond, whatever T.
//!
//! Adding or removing a record ([`add_remove`]), the largest of
//! - [`remainder`]: the Gaussian of the mean shift exactly, the rest of the mixture by Hellinger:
//!   within a few percent of the truth in 1 - beta for sigma >= 1 and many steps;
//! - [`affinity`]: Le Cam's 1 - sqrt(1 - A^2) with A a lower bound on the Hellinger affinity;
//!   the better one for little noise, and never vacuous;
//! - [`coupling`]: (1 - p erf(1/(2 sqrt2 sigma)))^T, the better one for few rare steps.
//!
//! All three bound the T-fold product of (1-p) N(0, s^2) + p N(1, s^2) against N(0, s^2), which
//! dominates T adaptive steps (Zhu, Dong, Wang 2022, Theorem 11), so they bound the run.
//!
//! Replacing a record ([`substitute`]). The product of the one-step worst case is not known to
//! dominate, so only what survives adaptive choices is used:
//! - the triangle inequality through the run without either record: 1 - 2 (1 - beta), beta of
//!   adding or removing, and its sharper form at another slope ([`remainder`]);
//! - affinity and coupling with the one-step worst case over all pairs of clipped gradients, both
//!   of which multiply over adaptive steps (the chain rule: an integral over the first step of
//!   conditional affinities is at least their infimum times the first affinity; a maximal coupling
//!   is continued step by step);
//! - the paper's route with its error term repaired: erf of the mean shifts, plus the distance of
//!   each mixture from the Gaussian of its mean by [`affinity`].

mod affinity;
mod coupling;
mod remainder;

use crate::AccountingError;
use crate::pairs::Gaussian;
use crate::pairs::by_coins;
use crate::{Order, Pair};
use numerics::elementary::powi;
use vocabulary::{Adjacency, Phase, Run};

/// Relative slack that covers the rounding of any formula in this folder: none has more than a
/// hundred operations, and none subtracts before it is positive by construction.
const SLACK: f64 = 1e-12;

/// A lower bound on the Bayes security of a run; 0 where nothing can be said.
///
/// ```
/// use accounting::bayes_security::certified_lower_bound;
/// use vocabulary::Run;
/// // The truth is 0.93286.
/// let run = Run::builder().phase(2.0, 1e-3, 100_000).build()?;
/// let bound = certified_lower_bound(&run)?;
/// assert!((0.9318..0.93286).contains(&bound), "{bound}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `Unsupported` for shuffled and fixed-size batches.
pub fn certified_lower_bound(run: &Run) -> Result<f64, AccountingError> {
    by_coins(run, "the formulas hold")?;
    let bound = match run.adjacency() {
        Adjacency::AddRemove | Adjacency::ZeroOut => add_remove(run.phases(), run.group_size())?,
        Adjacency::Substitute => substitute(run.phases(), run.group_size())?,
    };
    Ok(bound.clamp(0.0, 1.0))
}

/// A bound on the total variation of `steps` mixtures (1-p) N(0, s^2) + p N(1, s^2) and as many
/// Gaussians N(p, s^2), by Hellinger's affinity: what the published closed form leaves out, once for
/// each of the two secrets. At most 1/sqrt2 of what chi-square and Pinsker give.
///
/// ```
/// use accounting::bayes_security::distance_from_mean;
/// // Published: sqrt(T p (1-p))/(2 sigma) = 3.5; chi-square and Pinsker: .134.
/// let (sigma, rate, steps) = (1.0, 1e-3, 50_000);
/// assert!(distance_from_mean(sigma, rate, steps) < 0.096);
/// # assert!(distance_from_mean(sigma, rate, steps) > 0.09);
/// ```
pub fn distance_from_mean(noise_multiplier: f64, sample_rate: f64, steps: u64) -> f64 {
    let phase = Phase { noise_multiplier, sample_rate, steps };
    1.0 - affinity::le_cam(affinity::from_mean(&[phase]))
}

/// Adding or removing a group of records.
fn add_remove(phases: &[Phase], group: u32) -> Result<f64, AccountingError> {
    let mut best = affinity::le_cam(affinity::add_remove(phases, group));
    best = best.max(coupling::add_remove(phases, group));
    if group == 1 {
        best = best.max(remainder::add_remove(phases)?);
    } else if phases.iter().all(|phase| phase.sample_rate == 1.0) {
        best = best.max(gaussian_shift(f64::from(group), phases)?);
    }
    Ok(best)
}

/// Replacing a group of records.
fn substitute(phases: &[Phase], group: u32) -> Result<f64, AccountingError> {
    let triangle = 1.0 - 2.0 * (1.0 - add_remove(phases, group)?);
    let mut best = triangle;
    if phases.iter().all(|phase| phase.sample_rate == 1.0) {
        best = best.max(gaussian_shift(2.0 * f64::from(group), phases)?);
    }
    if group == 1 {
        best = best.max(affinity::le_cam(affinity::substitute(phases)));
        best = best.max(coupling::substitute(phases));
        best = best.max(remainder::substitute(phases)?);
        let shifted = gaussian_shift(2.0, phases)?;
        let distance = 1.0 - affinity::le_cam(affinity::from_mean(phases));
        best = best.max(shifted - 2.0 * distance - SLACK);
    }
    Ok(best)
}

/// Bayes security of the run whose steps are Gaussians with the mixtures' means, `reach` apart; the
/// run itself where every record is in every batch.
fn gaussian_shift(reach: f64, phases: &[Phase]) -> Result<f64, AccountingError> {
    let square: f64 = phases
        .iter()
        .map(|phase| phase.steps as f64 * powi(phase.sample_rate / phase.noise_multiplier, 2))
        .sum();
    Ok(Gaussian::computed(reach * square.sqrt(), SLACK)?.one_minus_delta(0.0, Order::Remove)?.lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directions;
    use crate::pairs::Composed;
    use vocabulary::Sampling;

    fn run(sigma: f64, rate: f64, steps: u64, adjacency: Adjacency) -> Run {
        Run::builder().phase(sigma, rate, steps).adjacency(adjacency).build().unwrap()
    }

    /// Close to the truth where the paper advertises its form, and below it.
    #[test]
    fn tight_in_the_advertised_regime() {
        for (sigma, rate, epochs, adjacency, share) in [
            (1.0, 1e-3, 100.0, Adjacency::AddRemove, 1.06),
            (2.0, 1e-3, 100.0, Adjacency::AddRemove, 1.02),
            (5.0, 1e-3, 100.0, Adjacency::AddRemove, 1.01),
            (1.0, 1e-3, 1.0, Adjacency::AddRemove, 1.10),
            (2.0, 1e-3, 100.0, Adjacency::Substitute, 1.07),
            (2.0, 1e-2, 100.0, Adjacency::Substitute, 1.07),
            (10.0, 0.3, 900.0, Adjacency::Substitute, 1.004),
            (1.0, 1e-3, 100.0, Adjacency::Substitute, 1.25),
        ] {
            let run = run(sigma, rate, (epochs / rate) as u64, adjacency);
            let truth = directions::bayes_security(&Composed::for_run(&run).unwrap()).unwrap();
            let bound = certified_lower_bound(&run).unwrap();
            assert!(bound <= truth.upper, "{sigma} {rate} {epochs}: {bound} {truth:?}");
            let ratio = (1.0 - bound) / (1.0 - truth.value);
            assert!(ratio < share, "{sigma} {rate} {epochs} {adjacency:?}: {ratio}");
        }
    }

    /// In every batch the pair is Gaussian, and the formula is exact.
    #[test]
    fn full_batches_are_exact() {
        for adjacency in [Adjacency::AddRemove, Adjacency::Substitute] {
            for group in [1, 3] {
                let run = Run::builder()
                    .phase(7.0, 1.0, 5)
                    .sampling(Sampling::Full)
                    .adjacency(adjacency)
                    .group_size(group)
                    .build()
                    .unwrap();
                let truth = directions::bayes_security(&Composed::for_run(&run).unwrap()).unwrap();
                let bound = certified_lower_bound(&run).unwrap();
                assert!((bound / truth.value - 1.0).abs() < 1e-9, "{bound} {truth:?}");
            }
        }
    }
}
