//! Convolution powers of positive sequences on a circle, with an error bound for every entry.
//!
//! Result: r = p_1^{*T_1} * ... * p_m^{*T_m} (circular of length n), where every p_i is
//! non-negative with sum 1 (to 1e-9). Computed as the inverse transform of
//! prod F_i^{T_i}, the power taken in polar form, so the cost does not grow with T; few steps are multiplied out.
//!
//! Round-off. The transform errs by at most 3.6 u sum |input| per bit of the length, 1.5 u for an odd number of bits
//! and 8 u for real data (`fourier.rs`); 8 u per bit and 32 u are counted. Hence
//! |F^ - F| <= e at every frequency, |F^^T - F^T| <= (|F^| + e)^T - |F^|^T plus the rounding of
//! the polar power, e^y - 1 relative, y the error of T times logarithm and angle: an angle of at most pi is
//! off by 1.8 pi u and its product by pi u, half the logarithm of a square of two roundings by 1.5 u, its bound by
//! 3 u, together below 16 u per step; what is proportional to the logarithms is below 4 u times their sum; and
//! adding up m angles rounds by at most pi u times all steps for each. Multiplied out, a power has fewer than T
//! products of sqrt 5 u each, and so have the powers of the modulus and of its bound (u each, and 2 u for the root). After the inverse transform an entry is off
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
    let half = length / 2 + 1;
    // Logarithm of the modulus, angle, logarithm of the modulus with its error, relative rounding.
    let mut log_modulus = vec![0.0; half];
    let mut angle = vec![0.0; half];
    let mut log_bound = vec![0.0; half];
    if factors.iter().map(|factor| factor.power).sum::<u64>() <= FEW {
        return multiplied_out(length, factors);
    }
    let (mut rounding, mut steps) = (30.0 * UNIT, 0.0);
    let mut spectrum = Spectrum::default();
    for factor in factors {
        let error;
        (spectrum, error) = transformed(length, factor);
        let power = factor.power as f64;
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
        rounding += 16.0 * UNIT * power;
        steps += power;
    }
    rounding += 4.0 * UNIT * steps * factors.len().saturating_sub(1) as f64;
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
        error_sum += count * bound * (gap + exp_m1(rounding + log_rounding)).min(2.0);
        modulus_sum += count * bound;
        let modulus = exp(log_modulus[k]);
        let (sine, cosine) = sin_cos(angle[k]);
        spectrum.re[k] = modulus * cosine;
        spectrum.im[k] = if k == 0 || k == half - 1 { 0.0 } else { modulus * sine };
    }
    drop((log_modulus, angle, log_bound));
    back(length, &spectrum, error_sum, modulus_sum)
}

/// What a transform errs by, of a sum of 1.
fn transform_error(length: usize) -> f64 {
    let stages = f64::from(length.trailing_zeros()) + 4.0;
    8.0 * UNIT * stages * 1.001
}

/// The transform of a factor, and its error at every frequency.
fn transformed(length: usize, factor: &Factor) -> (Spectrum, f64) {
    let mut input = vec![0.0; length];
    let mut sum = 0.0;
    for (i, weight) in factor.weights.iter().enumerate() {
        debug_assert!(*weight >= 0.0);
        let at = (factor.first + i as i64).rem_euclid(length as i64) as usize;
        input[at] += weight;
        sum += weight;
    }
    // The wrapped sums above round too: at most one unit a wrap, far fewer than the stages.
    let wraps = (factor.weights.len() / length + 1) as f64;
    let error = (transform_error(length) + wraps * UNIT) * sum * 1.001 + factor.error;
    (forward(&input), error)
}

/// From the spectrum to the values; the sums are over all frequencies.
fn back(length: usize, spectrum: &Spectrum, error_sum: f64, modulus_sum: f64) -> Product {
    let scale = 1.0 / length as f64;
    let mut values = inverse(spectrum);
    for value in &mut values {
        *value *= scale;
    }
    let error = (error_sum + modulus_sum * (transform_error(length) + 4.0 * UNIT)) * scale * 1.001;
    // Underflow of an exponential costs at most 1e-300 a frequency.
    Product { values, error: error + 1e-290 }
}

/// Steps up to which powers are products.
const FEW: u64 = 256;

fn multiplied_out(length: usize, factors: &[Factor]) -> Product {
    let half = length / 2 + 1;
    let mut product = Spectrum { re: vec![1.0; half], im: vec![0.0; half] };
    // The modulus, and with the errors of the transforms.
    let (mut least, mut most) = (vec![1.0; half], vec![1.0; half]);
    let mut steps = 0.0;
    for factor in factors {
        let (spectrum, error) = transformed(length, factor);
        for k in 0..half {
            let (re, im) = (spectrum.re[k], spectrum.im[k]);
            let modulus = (re * re + im * im).sqrt();
            let (mut power, mut base) = (factor.power, (re, im, modulus, modulus + error));
            while power > 0 {
                if power % 2 == 1 {
                    let (re, im) = (product.re[k], product.im[k]);
                    product.re[k] = re * base.0 - im * base.1;
                    product.im[k] = re * base.1 + im * base.0;
                    least[k] *= base.2;
                    most[k] *= base.3;
                }
                let (re, im, modulus, bound) = base;
                base = (re * re - im * im, 2.0 * re * im, modulus * modulus, bound * bound);
                power /= 2;
            }
        }
        steps += factor.power as f64;
    }
    let rounding = 16.0 * UNIT * (2.0 + steps);
    let (mut error_sum, mut modulus_sum) = (0.0, 0.0);
    for k in 0..half {
        let count = if k == 0 || k == half - 1 { 1.0 } else { 2.0 };
        let bound = most[k] * (1.0 + rounding);
        error_sum += count * ((most[k] - least[k]).max(0.0) + rounding * bound + 1e-290);
        modulus_sum += count * bound;
    }
    product.im[0] = 0.0;
    product.im[half - 1] = 0.0;
    back(length, &product, error_sum, modulus_sum)
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
