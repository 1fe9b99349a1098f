//! Sums and differences of numbers known by their logarithms.

use crate::elementary::{exp, exp_m1, ln, ln_1p};
use std::f64::consts::LN_2;

/// ln(1 - e^x) for x <= 0, without cancellation at either end (Maechler 2012).
///
/// ```
/// assert!((numerics::special::log1mexp(-1e-20) + 46.051701859880914).abs() < 1e-13);
/// ```
pub fn log1mexp(x: f64) -> f64 {
    if x > 0.0 {
        f64::NAN
    } else if x > -LN_2 {
        ln(-exp_m1(x))
    } else {
        ln_1p(-exp(x))
    }
}

/// ln(e^a + e^b).
pub fn log_add_exp(a: f64, b: f64) -> f64 {
    let (high, low) = if a >= b { (a, b) } else { (b, a) };
    if high == f64::INFINITY || low == f64::NEG_INFINITY {
        high
    } else {
        high + ln_1p(exp(low - high))
    }
}

/// ln(e^a - e^b) for a >= b.
pub fn log_sub_exp(a: f64, b: f64) -> f64 {
    if b == f64::NEG_INFINITY { a } else { a + log1mexp(b - a) }
}

/// ln of the sum of e^x; minus infinity for nothing.
pub fn log_sum_exp(terms: &[f64]) -> f64 {
    let high = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if high.is_infinite() {
        return high;
    }
    high + ln(terms.iter().map(|x| exp(x - high)).sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_undoes_sum() {
        for (a, b) in [(0.0, -3.0), (-700.0, -701.0), (2.0, 2.0), (-1e5, -1e5 - 40.0)] {
            let sum = log_add_exp(a, b);
            assert!((log_sub_exp(sum, b) - a).abs() < 4e-15 * f64::max(1.0, f64::abs(a)));
            assert!((log_sum_exp(&[a, b]) - sum).abs() < 4e-16 * f64::max(1.0, f64::abs(a)));
        }
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert_eq!(log_add_exp(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
    }
}
