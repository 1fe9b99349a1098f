//! Convolution powers of positive sequences on a circle, with an error bound for every entry.
//!
//! Result: r = p_1^{*T_1} * ... * p_m^{*T_m} (circular of length n), where every p_i is
//! non-negative with sum 1 (to 1e-9). Computed as the inverse transform of
//! prod F_i^{T_i}, the power taken in polar form, so the cost does not grow with T.
//!
//! Round-off. The transform errs by at most 3.6 u sum |input| per bit of the length, 1.5 u for an odd number of bits
//! and 8 u for real data (`fourier.rs`); 8 u per bit and 32 u are counted. Hence
//! |F^ - F| <= e at every frequency, |F^^T - F^T| <= (|F^| + e)^T - |F^|^T plus the rounding of
//! the polar power, T (10 + 2 |log |F^||) u relative; after the inverse transform an entry is off
//! by at most the mean over frequencies of these errors plus the transform's own e times the mean
//! of |G|. For large T that is about T e in relative terms: the bound widens, it never lies.
//!
//! Memory: about seven arrays of n numbers.

use crate::elementary::{atan2, exp, exp_m1, ln, sin_cos};
use crate::fourier::{Spectrum, forward, inverse};

const UNIT: f64 = f64::EPSILON / 2.0;

/// A frequency whose product is below exp(-this) is taken for zero; its bound stays.
const NOTHING: f64 = 100.0;

/// A sequence and the power it enters with.
#[derive(Clone, Copy, Debug)]
pub struct Factor<'a> {
    /// Non-negative weights with sum 1.
    pub weights: &'a [f64],
    /// Index of the first weight; indices are taken modulo the length of the circle.
    pub first: i64,
    pub power: u64,
    /// Sum of the absolute errors of the weights.
    pub error: f64,
}

/// A product on the circle; entry i stands for all indices congruent to i.
#[derive(Clone, Debug)]
pub struct Product {
    pub values: Vec<f64>,
    /// No entry is farther from the exact product than this.
    pub error: f64,
}

/// The circular product of powers. `length` must be a power of two of at least 8.
///
/// ```
/// use numerics::lattice::power::{Factor, circular_product};
/// let coin = [0.5, 0.5];
/// let product = circular_product(8, &[Factor { weights: &coin, first: 0, power: 4, error: 0.0 }]);
/// assert!((product.values[2] - 6.0 / 16.0).abs() <= product.error);
/// assert!(product.error < 1e-13);
/// ```
pub fn circular_product(length: usize, factors: &[Factor]) -> Product {
    assert!(length.is_power_of_two() && length >= 8, "length {length} is not a power of two");
    let stages = f64::from(length.trailing_zeros()) + 4.0;
    let transform_error = 8.0 * UNIT * stages * 1.001;
    let half = length / 2 + 1;
    // Logarithm of the modulus, angle, logarithm of the modulus with its error, relative rounding.
    let mut log_modulus = vec![0.0; half];
    let mut angle = vec![0.0; half];
    let mut log_bound = vec![0.0; half];
    let mut rounding = 30.0 * UNIT;
    let mut input = vec![0.0; length];
    let mut spectrum = Spectrum::default();
    for factor in factors {
        input.fill(0.0);
        let mut sum = 0.0;
        for (i, weight) in factor.weights.iter().enumerate() {
            debug_assert!(*weight >= 0.0);
            let at = (factor.first + i as i64).rem_euclid(length as i64) as usize;
            input[at] += weight;
            sum += weight;
        }
        spectrum = forward(&input);
        let power = factor.power as f64;
        // The wrapped sums above round too: at most one unit a wrap, far fewer than the stages.
        let wraps = (factor.weights.len() / length + 1) as f64;
        let error = (transform_error + wraps * UNIT) * sum * 1.001 + factor.error;
        // Below this the factor alone makes the product nothing.
        let nothing = exp(-NOTHING / power.max(1.0));
        for k in 0..half {
            let square = spectrum.re[k] * spectrum.re[k] + spectrum.im[k] * spectrum.im[k];
            if log_bound[k] < -NOTHING || square.sqrt() * (1.0 + 4.0 * UNIT) + error < nothing {
                log_bound[k] = log_bound[k].min(-NOTHING);
                continue;
            }
            // The square is at least e^(-2 NOTHING) or the error counts for more: no underflow matters.
            let modulus = square.sqrt();
            let log = if modulus > 0.0 { 0.5 * ln(square) } else { -1e6 };
            log_modulus[k] += power * log;
            angle[k] += power * atan2(spectrum.im[k], spectrum.re[k]);
            log_bound[k] += power * ln(modulus + error);
        }
        rounding += 10.0 * UNIT * power;
    }
    let (mut error_sum, mut modulus_sum) = (0.0, 0.0);
    for k in 0..half {
        // Both ends of the real spectrum stand for one frequency, all others for two.
        let count = if k == 0 || k == half - 1 { 1.0 } else { 2.0 };
        if log_bound[k] <= -NOTHING {
            // Factors are at most 1 (to 1e-9), so the product is no larger than when it was left.
            error_sum += count * exp(1e-6 - NOTHING);
            (spectrum.re[k], spectrum.im[k]) = (0.0, 0.0);
            continue;
        }
        let bound = exp(log_bound[k]);
        let gap = -exp_m1((log_modulus[k] - log_bound[k]).min(0.0));
        let log_rounding = 4.0 * UNIT * log_bound[k].abs().min(745.0);
        error_sum += count * bound * (gap + rounding + log_rounding).min(2.0);
        modulus_sum += count * bound;
        let modulus = exp(log_modulus[k]);
        let (sine, cosine) = sin_cos(angle[k]);
        spectrum.re[k] = modulus * cosine;
        spectrum.im[k] = if k == 0 || k == half - 1 { 0.0 } else { modulus * sine };
    }
    drop((log_modulus, angle, log_bound, input));
    let scale = 1.0 / length as f64;
    let mut values = inverse(&spectrum);
    for value in &mut values {
        *value *= scale;
    }
    let error = (error_sum + modulus_sum * (transform_error + 4.0 * UNIT)) * scale * 1.001;
    // Underflow of an exponential costs at most 1e-300 a frequency.
    Product { values, error: error + 1e-290 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Direct convolution of positive numbers keeps relative accuracy; the FFT must agree within
    /// its own bound at every entry, and the bound must be of a useful size.
    #[test]
    fn agrees_with_direct_convolution_within_the_bound() {
        let raw: Vec<f64> = (0..17).map(|i| ((i * i * 7 + 3) % 23) as f64 + 0.25).collect();
        let sum: f64 = raw.iter().sum();
        let weights: Vec<f64> = raw.iter().map(|x| x / sum).collect();
        let length = 1024;
        let power = 60;
        let mut direct = vec![1.0];
        for _ in 0..power {
            let mut next = vec![0.0; direct.len() + 16];
            for (i, a) in direct.iter().enumerate() {
                for (j, b) in weights.iter().enumerate() {
                    next[i + j] += a * b;
                }
            }
            direct = next;
        }
        let factor = Factor { weights: &weights, first: -5, power, error: 17.0 * UNIT };
        let product = circular_product(length, &[factor]);
        assert!(product.error < 1e-12, "{}", product.error);
        for (i, exact) in direct.iter().enumerate() {
            let at = (i as i64 - 5 * power as i64).rem_euclid(length as i64) as usize;
            let off = (product.values[at] - exact).abs();
            assert!(off <= product.error, "{i}: {off} > {}", product.error);
        }
    }

    /// Without its error term the bound is of the order of T times the unit round-off; it must not
    /// be so loose that brackets become useless at a million steps.
    #[test]
    fn the_bound_grows_like_the_number_of_steps() {
        let weights = [0.25, 0.5, 0.25];
        let error_at = |power| {
            let factor = Factor { weights: &weights, first: -1, power, error: 0.0 };
            circular_product(1 << 14, &[factor]).error
        };
        assert!(error_at(1_000_000) < 1e-10);
        assert!(error_at(1_000_000) < 2000.0 * error_at(1000));
    }
}
