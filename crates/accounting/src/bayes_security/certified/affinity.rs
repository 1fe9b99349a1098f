//! Bayes security from the Hellinger affinity A = ∫ sqrt(P Q), which multiplies over steps:
//! TV <= sqrt(1 - A^2) (Le Cam), so beta >= 1 - sqrt(1 - A^2) = A^2 / (1 + sqrt(1 - A^2)).
//!
//! One step. With y = P/Q, 1 - A = E_Q (sqrt y - 1)^2 / 2 and
//! (sqrt y - 1)^2 = (y - 1)^2 / (1 + sqrt y)^2, which falls with y beside (y - 1)^2; so if y >= y0,
//! 1 - A <= chi^2 / (2 (1 + sqrt y0)^2), almost chi^2 / 8.
//! - adding or removing: y >= (1-p)^k, chi^2 = E e^{NM/s^2} - 1 with N, M ~ Bin(k, p)
//!   (p^2 (e^{1/s^2} - 1) for one record);
//! - a mixture against the Gaussian of its own mean: y >= e^{-p(1-p)/(2 s^2)} (weighted means), and
//!   chi^2 = p^2 psi((1-p)^2/s^2) + 2p(1-p) psi(-p(1-p)/s^2) + (1-p)^2 psi(p^2/s^2), psi(x) =
//!   e^x - 1 - x;
//! - replacing: both mixtures are at least (1-p) N(0), so 1 - A = ∫ (P-P')^2/(2 (sqrt P + sqrt P')^2)
//!   <= ∫ (P-P')^2 / N(0) / (8(1-p)) = p^2 K / (8(1-p)), K = e^{|g0|^2/s^2} + e^{|g1|^2/s^2}
//!   - 2 e^{<g0,g1>/s^2}, at most 4 sinh(1/s^2) for |g| <= 1 (opposite gradients of full length).
//!
//! With little noise chi^2 comes from likelihood ratios so large that the factor 1/(1 + sqrt y)^2 is far
//! below 1/4 there. [`by_cells`] cuts the range of y = 1 + p(W - 1), W = e^{x/s^2 - 1/(2 s^2)}, into a few
//! cells, takes the factor at each cell's lower end, and beyond the last (sqrt y - 1)^2 <= y - 1:
//! E (W-1)^2 over a cell is e^{1/s^2} dPhi(. - 2/s) - 2 dPhi(. - 1/s) + dPhi(.). For replacing, with a = 1 + x and
//! b = 1 + z the two ratios, (sqrt a - sqrt b)^2 <= (sqrt a - 1)^2 + (sqrt b - 1)^2 plus, where x > 0 > z >= -p (or
//! the other way round), 2 (1 - sqrt(1-p)) (sqrt a - 1), and sqrt a - 1 <= x/2, E x_+ = p erf(|g|/(2 sqrt2 s)). So
//! 1 - A <= 2 (1 - A of adding) + (1 - sqrt(1-p)) p erf(1/(2 sqrt2 s)); all terms grow with |g| <= 1 (shorter
//! gradients are a post-processing of longer ones).
//!
//! For Gaussians A = e^{-mu^2/8}, and with mu of the central limit that is what these become for
//! small p: a TV of at most mu/2 instead of mu/sqrt(2 pi), 25 % too much.

use super::SLACK;
use numerics::elementary::{exp, exp_m1, ln, ln_1p, powi, sinh};
use numerics::special::{Binomial, normal_sf};
use vocabulary::Phase;

/// 1 - sqrt(1 - A^2) from ln A (rounded down already).
pub(super) fn le_cam(log_affinity: f64) -> f64 {
    let square = exp(2.0 * log_affinity);
    let distance = (-exp_m1(2.0 * log_affinity)).max(0.0).sqrt();
    square / (1.0 + distance) * (1.0 - SLACK)
}

/// ln of the affinity for adding or removing a group.
pub(super) fn add_remove(phases: &[Phase], group: u32) -> f64 {
    product(phases, |phase| {
        let least = exp(f64::from(group) * ln_1p(-phase.sample_rate));
        let plain = chi_square(phase, group) / (2.0 * powi(1.0 + least.sqrt(), 2));
        if group == 1 { plain.min(by_cells(phase)) } else { plain }
    })
}

/// ln of the affinity for replacing a record.
pub(super) fn substitute(phases: &[Phase]) -> f64 {
    product(phases, |phase| {
        let (p, s) = (phase.sample_rate, phase.noise_multiplier);
        let plain = p * p * sinh(powi(s, -2)) / (2.0 * (1.0 - p));
        let used = p * (1.0 - 2.0 * normal_sf(0.5 / s));
        // 1 - sqrt(1-p), without cancellation.
        let gap = p / (1.0 + (1.0 - p).sqrt());
        plain.min(2.0 * by_cells(phase) + gap * used)
    })
}

/// Likelihood ratios at which cells end.
const ENDS: [f64; 9] = [1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 9.0, 20.0, 60.0];

/// 1 - A of adding or removing one record, cell by cell; see the module.
fn by_cells(phase: &Phase) -> f64 {
    let (p, s) = (phase.sample_rate, phase.noise_multiplier);
    let top = exp(powi(s, -2));
    // Tails of 1, W and W^2 beyond a likelihood ratio; everything below the smallest.
    let beyond = |ratio: f64| {
        let weight = 1.0 + (ratio - 1.0) / p;
        let z = s * ln(weight) + 0.5 / s;
        (normal_sf(z), normal_sf(z - 1.0 / s), top * normal_sf(z - 2.0 / s))
    };
    let square = |from: (f64, f64, f64), to: (f64, f64, f64)| {
        // Differences of tails: their rounding is added.
        let (zero, first, second) = (from.0 - to.0, from.1 - to.1, from.2 - to.2);
        (second - 2.0 * first + zero).max(0.0) + 1e-14 * (from.2 + 2.0 * from.1 + from.0)
    };
    let mut before = ((1.0 - p).sqrt(), (1.0, 1.0, top));
    let mut sum = 0.0;
    for end in ENDS {
        let tails = beyond(end);
        sum += p * p * square(before.1, tails) / powi(1.0 + before.0, 2);
        before = (end.sqrt(), tails);
    }
    let last = p * (before.1.1 - before.1.0).max(0.0);
    0.5 * (sum + last) * (1.0 + SLACK)
}

/// ln of the affinity of all mixtures with the Gaussians of their means.
pub(super) fn from_mean(phases: &[Phase]) -> f64 {
    product(phases, deficit_from_mean)
}

/// A bound on 1 - A of one step's mixture with the Gaussian of its mean.
pub(super) fn deficit_from_mean(phase: &Phase) -> f64 {
    let (p, gain) = (phase.sample_rate, powi(phase.noise_multiplier, -2));
    let least = exp(-0.25 * p * (1.0 - p) * gain);
    centred_chi_square(p, gain) / (2.0 * powi(1.0 + least, 2))
}

/// chi^2 of the centred mixture against N(0, s^2); gain = 1/s^2.
pub(super) fn centred_chi_square(p: f64, gain: f64) -> f64 {
    let r = 1.0 - p;
    p * p * psi(r * r * gain) + 2.0 * p * r * psi(-p * r * gain) + r * r * psi(p * p * gain)
}

/// e^x - 1 - x, without cancellation.
pub(super) fn psi(x: f64) -> f64 {
    if x.abs() > 0.5 {
        return exp_m1(x) - x;
    }
    // The sixteenth term is below 1e-18 of the first.
    let mut sum = 0.0;
    for n in (3..=18).rev() {
        sum = (1.0 + sum) * x / f64::from(n);
    }
    0.5 * x * x * (1.0 + sum)
}

/// chi^2 of one step with a group of records.
fn chi_square(phase: &Phase, group: u32) -> f64 {
    let (p, gain) = (phase.sample_rate, powi(phase.noise_multiplier, -2));
    if group == 1 {
        return p * p * exp_m1(gain);
    }
    let inner = |n: f64| exp_m1(f64::from(group) * ln_1p(p * exp_m1(n * gain)));
    match Binomial::new(u64::from(group), p) {
        Some(law) => {
            (1..=group).map(|n| exp(law.log_pmf(f64::from(n)).0) * inner(f64::from(n))).sum()
        }
        None => inner(f64::from(group)),
    }
}

/// Sum of T ln(1 - deficit), rounded down.
fn product(phases: &[Phase], deficit: impl Fn(&Phase) -> f64) -> f64 {
    let log: f64 = phases
        .iter()
        .map(|phase| {
            // Computed over at most a thousand terms, each good to 1e-13.
            let lost = deficit(phase) * (1.0 + SLACK);
            if lost >= 1.0 { f64::NEG_INFINITY } else { phase.steps as f64 * ln_1p(-lost) }
        })
        .sum();
    log * (1.0 + SLACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psi_has_no_seam() {
        for x in [-0.5, -0.3, -1e-3, -1e-9, 1e-12, 1e-4, 0.2, 0.5] {
            // Two more terms than the leading one, where those suffice; the plain form elsewhere.
            let want = if f64::abs(x) < 1e-2 {
                let tail: f64 = 1.0 + x / 3.0 + x * x / 12.0 + x.powi(3) / 60.0;
                0.5 * x * x * tail
            } else {
                x.exp_m1() - x
            };
            assert!((psi(x) / want - 1.0).abs() < 3e-11, "{x}: {} {want}", psi(x));
        }
    }

    /// The affinities bound the true ones, by quadrature.
    #[test]
    fn affinities_are_lower_bounds() {
        let density = |x: f64, m: f64, s: f64| (-0.5 * ((x - m) / s).powi(2)).exp();
        for (p, s) in [(0.01, 0.5), (0.3, 1.0), (0.9, 2.0), (0.05, 0.8), (1e-3, 0.3), (0.2, 0.3)] {
            let phase = Phase { noise_multiplier: s, sample_rate: p, steps: 1 };
            let (mut direct, mut centred, mut swapped, mut total) = (0.0, 0.0, 0.0, 0.0);
            let step = s / 50.0;
            for i in -1000..=2500 {
                let x = step * f64::from(i);
                let zero = density(x, 0.0, s);
                let mixed = (1.0 - p) * zero + p * density(x, 1.0, s);
                let other = (1.0 - p) * zero + p * density(x, -1.0, s);
                total += zero;
                direct += (mixed * zero).sqrt();
                centred += (mixed * density(x, p, s)).sqrt();
                swapped += (mixed * other).sqrt();
            }
            // The centred mixture is not cut into cells, so with little noise it is bounded loosely.
            let loose = if s < 0.5 { f64::INFINITY } else { 12.0 };
            for (bound, truth, factor) in [
                (add_remove(&[phase], 1), direct / total, 2.5),
                (from_mean(&[phase]), centred / total, loose),
                (substitute(&[phase]), swapped / total, 2.5),
            ] {
                assert!(bound.exp() <= truth * (1.0 + 1e-9), "{p} {s}: {} {truth}", bound.exp());
                let lost = 1.0 - bound.exp();
                assert!(lost < factor * (1.0 - truth), "{p} {s}: {lost} {}", 1.0 - truth);
            }
        }
    }
}
