//! e^x and e^x - 1.
//!
//! x = n ln 2/128 + r with a whole n = 128 m + j, so e^x = 2^m 2^(j/128) e^r (Tang 1989). With |r| <= ln 2/256 +
//! 2^-40 < .00271:
//!
//! - ln 2/128 = `STEP` + `STEP_REST`; `STEP` has 35 bits and |n| < 2^18, so n `STEP` is exact. The two
//!   differences err by u |r| each (.0055 u), n `STEP_REST`, below 2^-24, by 2^-76: r errs by .0056 u.
//! - p = r + r^2 (1/2 + r/6 + r^2/24 + r^3/120) leaves out less than 1.01 r^6/720 < .0051 u of e^r - 1, and
//!   the quadratic part, below 3.7e-6, has fewer than ten roundings; the sum is rounded once: .0028 u.
//! - With the table's (high, low), high in [1, 2): high p and low + high p are rounded, .0028 u each relative to
//!   high, low p (below .0028 u) is left out, and the last sum is rounded once: u.
//!
//! All of it is below 1.03 u. The power of two is exact, but for results below 2^-1021, which are rounded once
//! more.
//!
//! e^x - 1, |x| <= 1/4: x + q, q the Taylor series up to x^14, which leaves out less than 3e-21 x. q = x x B with
//! B = 1/2 + x C: the sum is rounded once, x C (at most a twelfth of B) has an error of 2.3 u, and there are two
//! products, so q errs by 3.2 u |q|. |q| is at most .131 of the value, so .42 u, and the sum is rounded: 1.42 u.
//! Beyond: 2^m high - 1 is exact as a sum of two numbers, and what is added errs by .021 u of e^x, which is at most 4.6
//! times the value; the last two sums are rounded: below 1.13 u. Below -40 the value is -1 to 4e-18.

use super::tables::POWERS;
use super::{power_of_two, two_sum};

/// Adding this rounds to a whole number, which stands in the low bits.
pub(super) const WHOLE: f64 = 6_755_399_441_055_744.0;
const STEPS_PER_UNIT: f64 = 184.6649652337873;
const STEP: f64 = 0.005415212347998022;
const STEP_REST: f64 = 1.2655086083325438e-13;

/// (m, high, rest) with e^x = 2^m (high + rest), for |x| below 750.
fn parts(x: f64) -> (i64, f64, f64) {
    let shifted = x * STEPS_PER_UNIT + WHOLE;
    let n = shifted - WHOLE;
    let whole = shifted.to_bits() as i64 - WHOLE.to_bits() as i64;
    let r = (x - n * STEP) - n * STEP_REST;
    let square = r * r;
    let p = r + square * ((0.5 + r * (1.0 / 6.0)) + square * (1.0 / 24.0 + r * (1.0 / 120.0)));
    let (high, low) = POWERS[(whole & 127) as usize];
    (whole >> 7, high, low + high * p)
}

/// e^x.
#[inline]
pub fn exp(x: f64) -> f64 {
    if !(x.abs() <= 708.0) {
        return far(x);
    }
    let (m, high, rest) = parts(x);
    (high + rest) * power_of_two(m)
}

#[cold]
fn far(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x > 709.8 {
        return f64::INFINITY;
    }
    if x < -745.2 {
        return 0.0;
    }
    let (m, high, rest) = parts(x);
    let half = if x > 0.0 { 1000 } else { -1000 };
    (high + rest) * power_of_two(m - half) * power_of_two(half)
}

/// e^x - 1.
pub fn exp_m1(x: f64) -> f64 {
    if x.abs() <= 0.25 {
        return x + x * x * quadratic(x);
    }
    if x < -40.0 {
        return -1.0;
    }
    if !(x <= 708.0) {
        return exp(x);
    }
    let (m, high, rest) = parts(x);
    let scale = power_of_two(m);
    let (sum, left) = two_sum(high * scale, -1.0);
    sum + (left + rest * scale)
}

/// (e^x - 1 - x)/x^2 up to x^12.
fn quadratic(x: f64) -> f64 {
    const INVERSE: [f64; 13] = [
        1.0 / 2.0,
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5_040.0,
        1.0 / 40_320.0,
        1.0 / 362_880.0,
        1.0 / 3_628_800.0,
        1.0 / 39_916_800.0,
        1.0 / 479_001_600.0,
        1.0 / 6_227_020_800.0,
        1.0 / 87_178_291_200.0,
    ];
    let pair = |k: usize| INVERSE[k] + x * INVERSE[k + 1];
    let square = x * x;
    let rest = pair(8) + square * (pair(10) + square * INVERSE[12]);
    let rest = pair(2) + square * (pair(4) + square * (pair(6) + square * rest));
    INVERSE[0] + x * (INVERSE[1] + x * rest)
}
