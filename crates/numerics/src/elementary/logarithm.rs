//! ln x and ln(1 + x).
//!
//! x = 2^e y with y in [sqrt(1/2), sqrt 2). With i the whole number next to 128 (y - 1), the table has a multiple c of
//! 2^-9 next to 1/(1 + i/128) and -ln c; r = c y - 1 is at most .00593, and ln x = e ln 2 - ln c + ln(1 + r).
//!
//! - y = high + low with 26 and 27 bits and c has 10, so c high - 1 and c low are exact, and r is known as a
//!   rounded number and its rest, exactly.
//! - ln 2 and -ln c have first parts that are multiples of 2^-42, so their sum w is exact, being below 2^10; their
//!   rests have 53 bits of less than 2^-43.
//! - w = 0 only where c = 1 (|y - 1| <= 1/256), and else |r| <= .52 |w|, so w + r is known as a rounded sum and
//!   its rest, and |ln x| >= .0038.
//! - ln(1 + r) - r = r^2 P(r), P up to r^6, leaves out at most r^9/(9(1-|r|)): with w = 0 it is 7e-21 of r, else 1.1e-21, which is
//!   .0027 u of the value. Its roundings, fewer than ten, are of numbers at most |r|/2 times r: .02 u of r with w = 0, else at most
//!   1.8e-5 10 u in all, .05 u of the value (where |ln x| is near .0038, |r| <= .0039, and it is .02 u).
//! - A rest l of the argument (of r, or of 1 + x) enters as l (1 - r), to l r^2, below 4e-5 u.
//! - The small terms, below 2e-5, are added with three roundings, and the last sum is rounded once: u.
//!
//! All of it is below 1.08 u. ln(1 + x) for |x| <= 1/256 is r^2 P(r) + r with r = x; else 1 + x is a rounded sum and
//! its rest, exactly, and the value is at least .0038.

use super::exponential::WHOLE;
use super::tables::LOGARITHMS;
use super::{power_of_two, two_sum};

/// ln 2 as a multiple of 2^-42, and the rest.
const LN_2: f64 = 0.6931471805598903;
const LN_2_REST: f64 = 5.497923018708371e-14;
/// The bits of the root of 1/2.
const ROOT_OF_HALF: i64 = 0x3fe6_a09e_667f_3bcd;

/// ln(1 + r) - r.
#[inline]
fn quadratic(r: f64) -> f64 {
    let square = r * r;
    let low = -0.5 + r * (1.0 / 3.0);
    let middle = -0.25 + r * (1.0 / 5.0);
    let high = -1.0 / 6.0 + r * (1.0 / 7.0);
    square * (low + square * (middle + square * (high - square * 0.125)))
}

/// ln(2^added (x + rest)) for a normal, positive x.
#[inline]
fn parts(x: f64, rest: f64, added: i64) -> f64 {
    let bits = x.to_bits() as i64;
    let e = (bits - ROOT_OF_HALF) >> 52;
    let y_bits = (bits - (e << 52)) as u64;
    let y = f64::from_bits(y_bits);
    let shifted = (y - 1.0) * 128.0 + WHOLE;
    let i = shifted.to_bits() as i64 - WHOLE.to_bits() as i64;
    let (c, log, log_rest) = LOGARITHMS[(i + 38) as usize];
    let high = f64::from_bits(y_bits & !0x7ff_ffff);
    let (r, mut r_rest) = two_sum(high * c - 1.0, (y - high) * c);
    if rest != 0.0 {
        // Half of the power at a time: each is a normal number.
        let half = e / 2;
        r_rest += rest * power_of_two(-half) * power_of_two(half - e) * c;
    }
    let e = (e + added) as f64;
    let w = e * LN_2 + log;
    let sum = w + r;
    let left = (w - sum) + r;
    let small = (r_rest - r_rest * r) + (e * LN_2_REST + log_rest);
    sum + (quadratic(r) + (left + small))
}

/// ln x; minus infinity at zero, no number below.
#[inline]
pub fn ln(x: f64) -> f64 {
    if (f64::MIN_POSITIVE..f64::INFINITY).contains(&x) { parts(x, 0.0, 0) } else { far(x) }
}

#[cold]
fn far(x: f64) -> f64 {
    if x == 0.0 {
        f64::NEG_INFINITY
    } else if (0.0..f64::MIN_POSITIVE).contains(&x) {
        parts(x * power_of_two(54), 0.0, -54)
    } else if x == f64::INFINITY {
        x
    } else {
        f64::NAN
    }
}

/// ln(1 + x); minus infinity at -1, no number below.
pub fn ln_1p(x: f64) -> f64 {
    if x.abs() <= 1.0 / 256.0 {
        return x + quadratic(x);
    }
    if !(x > -1.0 && x < f64::INFINITY) {
        return far(1.0 + x);
    }
    let (sum, rest) = two_sum(1.0, x);
    if sum == f64::INFINITY { far(sum) } else { parts(sum, rest, 0) }
}
