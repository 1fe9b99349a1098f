//! Sine, cosine, and the angle of a point.
//!
//! x = n pi/2 + r, |r| <= pi/4 + 2^-31. Below 2^20 pi/2 has three parts of 33, 33 and 53 bits: n times the first two is
//! exact; the first difference is a multiple of x's last place and below 1, so exact; the second is kept with its
//! rest; the third part and its product err by 2^-98 in all. Where |r| < 1e-9, and for larger x, r comes from x times
//! 256 bits of 2/pi (Payne and Hanek 1983): 128 bits of the fraction, of which at most 62 are zeros. So r is known as a
//! number and its rest to 2^-64 of its size. From 2^54 on, where neighbouring numbers are farther apart than an
//! eighth of a turn, there is no answer (no number).
//!
//! - sin r = r + (r z S + l (1 - z/2)), z = r^2, l the rest, S the Taylor series up to r^16: what is left out is below
//!   .001 u. r z S is at most .111 of the value and errs by 4.4 u of its size (z, r z, the product, and 1.4 u
//!   of S): .49 u; its sum .12 u; the last sum u. In all below 1.65 u.
//! - cos r = 1 - z/2 + (z^2 C - r l): z/2 errs by .309 u, 1 - z/2 is kept with its rest, z^2 C is at most .0156 and errs by
//!   5 u of it; .39 u of a value of at least .707 is .55 u; what is left out .03 u, the last sum u. Below 1.65 u.
//!
//! The angle: with f = small/large <= 1, below 1/16 the quotient and the rest of the division, exactly known, are z and
//! l; else c = i/64 next to f and z = (small - c large)/(large + c small), |z| <= .0079. c has 7 bits and `large` is cut into
//! halves, so the numerator errs by 2 u of its size, and z by 5.1 u of its: .041 u, at most .67 u of the value, which is
//! at least .0604. atan z up to z^13 leaves out .01 u. Sums with pi/2 and pi are kept with their rests, and the last sum is
//! rounded: 1.75 u.

use super::exponential::WHOLE;
use super::tables::{ARCTANGENTS, TWO_OVER_PI};
use super::{power_of_two, two_product, two_sum};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

const QUARTERS_PER_UNIT: f64 = std::f64::consts::FRAC_2_PI;
const QUARTER: [f64; 3] = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21];
const QUARTER_REST: f64 = 6.123233995736766e-17;
const PI_REST: f64 = 1.2246467991473532e-16;

/// (quadrant, r, rest of r).
fn reduced(x: f64) -> (u64, f64, f64) {
    if x.abs() <= FRAC_PI_4 {
        return (0, x, 0.0);
    }
    if x.abs() < 1_048_576.0 {
        let shifted = x * QUARTERS_PER_UNIT + WHOLE;
        let n = shifted - WHOLE;
        let (sum, rest) = two_sum(x - n * QUARTER[0], -(n * QUARTER[1]));
        let correction = n * QUARTER[2] - rest;
        let r = sum - correction;
        if r.abs() >= 1e-9 {
            return (shifted.to_bits() & 3, r, (sum - r) - correction);
        }
    }
    by_all_bits(x)
}

/// The same for any number below 2^54, by x 2/pi to 128 bits after the point.
#[cold]
fn by_all_bits(x: f64) -> (u64, f64, f64) {
    let bits = x.abs().to_bits();
    let mantissa = (bits & 0xf_ffff_ffff_ffff) | 0x10_0000_0000_0000;
    let exponent = (bits >> 52) as i64 - 1075;
    // mantissa times four words, as five words, the highest first.
    let mut product = [0u64; 5];
    let mut carry = 0u128;
    for k in (0..4).rev() {
        let term = u128::from(TWO_OVER_PI[k]) * u128::from(mantissa) + carry;
        product[k + 1] = term as u64;
        carry = term >> 64;
    }
    product[0] = carry as u64;
    // The point stands `point` bits below the top of the 320.
    let point = 64 + exponent;
    let bits_from = |place: i64| -> u64 {
        // 64 bits that begin `place` bits below the top.
        let word = |k: i64| if (0..5).contains(&k) { product[k as usize] } else { 0 };
        let (k, shift) = (place.div_euclid(64), place.rem_euclid(64));
        if shift == 0 { word(k) } else { word(k) << shift | word(k + 1) >> (64 - shift) }
    };
    let mut quadrant = bits_from(point - 64) & 3;
    let mut fraction = u128::from(bits_from(point)) << 64 | u128::from(bits_from(point + 64));
    let mut negative = false;
    if fraction >> 127 == 1 {
        quadrant += 1;
        fraction = fraction.wrapping_neg();
        negative = true;
    }
    if fraction == 0 {
        return (quadrant & 3, 0.0, 0.0);
    }
    let zeros = i64::from(fraction.leading_zeros());
    let top = fraction << zeros;
    let high = (top >> 75) as f64 * power_of_two(-53 - zeros);
    let low = ((top << 53) >> 75) as f64 * power_of_two(-106 - zeros);
    let (product, rest) = two_product(high, FRAC_PI_2);
    let (r, rest) = two_sum(product, rest + (high * QUARTER_REST + low * FRAC_PI_2));
    let (r, rest) = if negative { (-r, -rest) } else { (r, rest) };
    if x < 0.0 { (quadrant.wrapping_neg() & 3, -r, -rest) } else { (quadrant & 3, r, rest) }
}

#[inline]
fn sine_near_zero(r: f64, rest: f64) -> f64 {
    let z = r * r;
    let w = z * z;
    let low = (-1.0 / 6.0 + z * (1.0 / 120.0)) + w * (-1.0 / 5_040.0 + z * (1.0 / 362_880.0));
    let high = (-1.0 / 39_916_800.0 + z * (1.0 / 6_227_020_800.0))
        + w * (-1.0 / 1_307_674_368_000.0 + z * (1.0 / 355_687_428_096_000.0));
    r + (r * z * (low + w * w * high) + rest * (1.0 - 0.5 * z))
}

#[inline]
fn cosine_near_zero(r: f64, rest: f64) -> f64 {
    let z = r * r;
    let w = z * z;
    let low = (1.0 / 24.0 - z * (1.0 / 720.0)) + w * (1.0 / 40_320.0 - z * (1.0 / 3_628_800.0));
    let high =
        (1.0 / 479_001_600.0 - z * (1.0 / 87_178_291_200.0)) + w * (1.0 / 20_922_789_888_000.0);
    let half = 0.5 * z;
    let near = 1.0 - half;
    near + (((1.0 - near) - half) + (w * (low + w * w * high) - r * rest))
}

/// (sin x, cos x); no numbers from 2^54 on.
pub fn sin_cos(x: f64) -> (f64, f64) {
    if !(x.abs() < 18_014_398_509_481_984.0) {
        return (f64::NAN, f64::NAN);
    }
    let (quadrant, r, rest) = reduced(x);
    let (sine, cosine) = (sine_near_zero(r, rest), cosine_near_zero(r, rest));
    match quadrant {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

pub fn sin(x: f64) -> f64 {
    sin_cos(x).0
}

pub fn cos(x: f64) -> f64 {
    sin_cos(x).1
}

/// atan(z + rest) - z, for |z| up to 1/16.
fn beyond(z: f64, rest: f64) -> f64 {
    let s = z * z;
    let tail = 1.0 / 9.0 + s * (-1.0 / 11.0 + s * (1.0 / 13.0));
    let series = -1.0 / 3.0 + s * (1.0 / 5.0 + s * (-1.0 / 7.0 + s * tail));
    z * s * series + rest * (1.0 - s)
}

/// The angle of the point (x, y), from -pi to pi.
pub fn atan2(y: f64, x: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let (mut a, mut b) = (y.abs(), x.abs());
    if a.is_infinite() || b.is_infinite() {
        // Only the directions count.
        (a, b) = (f64::from(u8::from(a.is_infinite())), f64::from(u8::from(b.is_infinite())));
    }
    let (small, large) = if a > b { (b, a) } else { (a, b) };
    let (high, low) = first_octant(small, large);
    let (high, low) =
        if a > b { subtracted(FRAC_PI_2, QUARTER_REST, high, low) } else { (high, low) };
    let (high, low) =
        if x.is_sign_negative() { subtracted(PI, PI_REST, high, low) } else { (high, low) };
    (high + low).copysign(y)
}

fn subtracted(from: f64, from_rest: f64, high: f64, low: f64) -> (f64, f64) {
    let (sum, left) = two_sum(from, -high);
    (sum, left + (from_rest - low))
}

/// The arctangent of small/large as two numbers, 0 <= small <= large.
fn first_octant(small: f64, large: f64) -> (f64, f64) {
    if small == 0.0 {
        return (0.0, 0.0);
    }
    let scale = if large > 1e200 {
        power_of_two(-700)
    } else if large < 1e-200 {
        power_of_two(700)
    } else {
        1.0
    };
    let (small, large) = (small * scale, large * scale);
    let f = small / large;
    if f < 1e-30 {
        return (f, 0.0);
    }
    if f < 1.0 / 16.0 {
        let (product, rest) = two_product(f, large);
        return (f, beyond(f, ((small - product) - rest) / large));
    }
    let shifted = f * 64.0 + WHOLE;
    let i = (shifted.to_bits() - WHOLE.to_bits()) as usize;
    let c = (shifted - WHOLE) / 64.0;
    let half = f64::from_bits(large.to_bits() & !0x7ff_ffff);
    let z = ((small - c * half) - c * (large - half)) / (large + c * small);
    let (angle, rest) = ARCTANGENTS[i];
    let (sum, left) = two_sum(angle, z);
    (sum, left + (rest + beyond(z, 0.0)))
}
