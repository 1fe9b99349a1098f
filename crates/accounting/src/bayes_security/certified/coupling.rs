//! Bayes security by coupling: two runs that are coupled step by step, each step maximally, are
//! the same with probability at least prod_t (1 - TV_t), and 1 - TV is at least that. The chain
//! continues whatever gradients were chosen from the past, so it holds for adaptive steps.
//!
//! One step: TV((1-p) N(0) + p N(g), N(0)) = p erf(|g| / (2 sqrt2 s)), increasing in |g| <= 1, and
//! for replacing a record at most p TV(N(g0), N(g1)) = p erf(|g0 - g1| / (2 sqrt2 s)), |g0 - g1| <= 2.
//! A group of k moves by at most k, and is used at all with probability 1 - (1-p)^k.
//!
//! Tight for a single step; poor for many.

use super::SLACK;
use numerics::elementary::{exp, exp_m1, ln_1p};
use numerics::special::normal_sf;
use vocabulary::Phase;

pub(super) fn add_remove(phases: &[Phase], group: u32) -> f64 {
    bound(phases, |phase| {
        let used = -exp_m1(f64::from(group) * ln_1p(-phase.sample_rate));
        used * total_variation(f64::from(group) / phase.noise_multiplier)
    })
}

pub(super) fn substitute(phases: &[Phase]) -> f64 {
    bound(phases, |phase| phase.sample_rate * total_variation(2.0 / phase.noise_multiplier))
}

fn bound(phases: &[Phase], step: impl Fn(&Phase) -> f64) -> f64 {
    let log: f64 = phases
        .iter()
        .map(|phase| phase.steps as f64 * ln_1p(-(step(phase) * (1.0 + SLACK)).min(1.0)))
        .sum();
    exp(log * (1.0 + SLACK)) * (1.0 - SLACK)
}

/// Of two Gaussians `distance` standard deviations apart: erf(d / (2 sqrt 2)).
fn total_variation(distance: f64) -> f64 {
    1.0 - 2.0 * normal_sf(0.5 * distance)
}
