//! How far apart two candidate gradients push one step: with the clip norm C and the noise
//! multiplier s,
//!
//! ```text
//! K(g0, g1) = e^{|g0|^2/(sC)^2} + e^{|g1|^2/(sC)^2} - 2 e^{<g0,g1>/(sC)^2},
//! ```
//!
//! so that p^2 K is ∫ (P0 - P1)^2 / N(0) of the step's two mixtures. mu^2 = sum p^2 K is the
//! central limit of the log-likelihood ratio, and the Hellinger affinity of a step is at least
//! 1 - p^2 K / (8 (1-p)).
//!
//! If only the distance r = |g0 - g1|/C is known, the worst K over all clipped gradients is the
//! larger of two families: *radial* (g0 of full length, g1 on the same line) and *chord* (both of
//! full length). Proof: with A, B the squared lengths over s^2, M and D their half sum and half
//! difference, K = 2 e^M (cosh D - e^{-r^2/(2 s^2)}) grows with M at fixed D, so the longer gradient
//! has length C; then K is a convex quadratic in e^{B/2}, so the shorter one is at an end of its
//! range [|1-r|, 1]. Neither family always wins: radial for small r, chord for large.

use numerics::elementary::{exp, exp_m1, powi};

/// Two clipped gradients, by their lengths and inner product, in the units of the clip norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientPair {
    pub norm_a: f64,
    pub norm_b: f64,
    pub inner: f64,
}

impl GradientPair {
    /// K of the pair; `scale` is noise multiplier times clip norm.
    pub fn kernel(&self, scale: f64) -> f64 {
        let gain = powi(scale, -2);
        let (a, b, c) = (powi(self.norm_a, 2), powi(self.norm_b, 2), self.inner);
        // e^c (e^{a-c} - 1 + e^{b-c} - 1), which does not cancel: a + b >= 2c.
        exp(gain * c) * (exp_m1(gain * (a - c)) + exp_m1(gain * (b - c)))
    }

    /// |g0 - g1|.
    pub fn distance(&self) -> f64 {
        (powi(self.norm_a, 2) + powi(self.norm_b, 2) - 2.0 * self.inner).max(0.0).sqrt()
    }
}

/// The worst K over clipped gradients `distance` apart; distances above 2 `clip_norm` cannot
/// occur and count as that.
///
/// ```
/// use accounting::bayes_security::attribute::worst_kernel;
/// assert!((worst_kernel(0.3, 1.0, 1.0) - 0.3231).abs() < 5e-5); // radial
/// assert!((worst_kernel(1.0, 1.0, 1.0) - 2.139).abs() < 5e-4); // chord
/// ```
pub fn worst_kernel(distance: f64, noise_multiplier: f64, clip_norm: f64) -> f64 {
    let (r, scale) = ((distance / clip_norm).clamp(0.0, 2.0), noise_multiplier);
    let radial = GradientPair { norm_a: 1.0, norm_b: (1.0 - r).abs(), inner: 1.0 - r };
    let chord = GradientPair { norm_a: 1.0, norm_b: 1.0, inner: 1.0 - 0.5 * r * r };
    radial.kernel(scale).max(chord.kernel(scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two families are the supremum: no pair on a fine grid exceeds them, and they grow
    /// with the distance.
    #[test]
    fn worst_over_all_clipped_pairs() {
        for scale in [0.6, 1.0, 2.5] {
            let mut before = 0.0;
            for i in 1..=40 {
                let r = 0.05 * f64::from(i);
                let worst = worst_kernel(r, scale, 1.0);
                assert!(worst >= before);
                before = worst;
                for j in 0..=40 {
                    for k in 0..=40 {
                        let (norm_a, norm_b) = (0.025 * f64::from(j), 0.025 * f64::from(k));
                        let inner = 0.5 * (norm_a.powi(2) + norm_b.powi(2) - r * r);
                        if inner.abs() > norm_a * norm_b {
                            continue;
                        }
                        let pair = GradientPair { norm_a, norm_b, inner };
                        assert!((pair.distance() - r).abs() < 1e-9);
                        assert!(
                            pair.kernel(scale) <= worst * (1.0 + 1e-12),
                            "{scale} {r} {pair:?}"
                        );
                    }
                }
            }
        }
    }
}
