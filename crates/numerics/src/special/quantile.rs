//! Quantiles of the normal distribution, accurate in the far tails and beside the median.

use super::normal::{log_normal_sf, mills_ratio};
use crate::elementary::{exp, exp_m1, ln};
use std::f64::consts::LN_2;

/// x with P(N > x) = p; within 1e-15 relative (p from 1e-308 to 1; infinite at 0 and 1).
///
/// ```
/// let x = numerics::special::inverse_normal_sf(1e-300);
/// assert!((x - 37.047096299361199237).abs() < 4e-14);
/// ```
pub fn inverse_normal_sf(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        f64::NAN
    } else if p > 0.5 {
        -inverse_normal_sf(1.0 - p) // exact subtraction
    } else if p > 0.3 {
        beside_median(0.5 - p)
    } else {
        tail(ln(p))
    }
}

/// x with P(N <= x) = p.
pub fn inverse_normal_cdf(p: f64) -> f64 {
    -inverse_normal_sf(p)
}

/// x with ln P(N > x) = log_p, for log_p < 0 of any size.
pub fn inverse_log_normal_sf(log_p: f64) -> f64 {
    if log_p.is_nan() || log_p > 0.0 {
        f64::NAN
    } else if log_p > -1.2 {
        let p = exp(log_p);
        if p > 0.5 { -inverse_normal_sf(-exp_m1(log_p)) } else { inverse_normal_sf(p) }
    } else {
        tail(log_p)
    }
}

/// Newton on ln sf, which is concave; its slope is -1/R.
fn tail(log_p: f64) -> f64 {
    if log_p == f64::NEG_INFINITY {
        return f64::INFINITY;
    }
    let s = (-2.0 * (log_p + LN_2)).max(0.0).sqrt();
    let mut x = if s < 2.0 { s * 0.8 } else { s - ln(s) / s };
    for _ in 0..30 {
        let step = (log_normal_sf(x) - log_p) * mills_ratio(x);
        x += step;
        if step.abs() <= 3e-16 * x.abs() {
            break;
        }
    }
    x
}

/// x with P(0 < N < x) = r for small r: Newton on the series
/// density(x) (x + x^3/3 + x^5/15 + ...), which has positive terms only.
fn beside_median(r: f64) -> f64 {
    const INV_SQRT_TWO_PI: f64 = 0.398_942_280_401_432_7;
    let mut x = r / INV_SQRT_TWO_PI;
    for _ in 0..30 {
        let (mut term, mut sum, mut odd) = (x, x, 1.0);
        while term > 1e-18 * sum {
            odd += 2.0;
            term *= x * x / odd;
            sum += term;
        }
        let density = INV_SQRT_TWO_PI * exp(-0.5 * x * x);
        let step = (r - density * sum) / density;
        x += step;
        if step.abs() <= 3e-16 * x {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::normal_sf;

    // Reference values: mpmath with 50 digits, p being the f64 written.
    #[test]
    fn quantiles_match_high_precision() {
        for (p, want) in [
            (1e-300, -37.047096299361199237),
            (1e-100, -21.273453560965324294),
            (1e-20, -9.2623400897984075796),
            (1e-5, -4.2648907939228246102),
            (0.02, -2.0537489106318230443),
            (0.3, -0.52440051270804081597),
            (0.7, 0.52440051270804065631),
            (0.999, 3.0902323061678132778),
        ] {
            let got: f64 = inverse_normal_cdf(p);
            assert!((got / want - 1.0_f64).abs() < 1e-15, "{p}: {got}");
            let from_log = inverse_log_normal_sf(p.ln());
            assert!((from_log / want + 1.0_f64).abs() < 4e-15, "{p}: {from_log}");
        }
        assert_eq!(inverse_normal_sf(0.5), 0.0);
        assert_eq!(inverse_normal_sf(0.0), f64::INFINITY);
        assert!(inverse_normal_sf(-0.1).is_nan());
    }

    #[test]
    fn round_trip_through_the_tail() {
        for i in 1..600 {
            let p = 10f64.powf(-0.5 * f64::from(i));
            let back = normal_sf(inverse_normal_sf(p));
            // dp/p = -x dx / ... : an error of 1e-15 in x is 1e-15 x^2 in p.
            let x = inverse_normal_sf(p);
            assert!((back / p - 1.0).abs() < 2e-15 * (1.0 + x * x), "{p:e}");
        }
    }
}
