//! Elementary functions with a proven error and the same bits on every machine.
//!
//! The functions of the standard library are those of the platform: nobody promises their error, and
//! it differs between processors. These are made of +, -, *, / and roots alone, each of which IEEE 754
//! defines to the last bit, in one order, without fused steps. With u = 2^-53 (half of `f64::EPSILON`)
//! each returns f(x)(1 + d), where
//!
//! | function | bound on d | proof |
//! |---|---|---|
//! | [`exp`] | 1.1 u | `exponential.rs` |
//! | [`exp_m1`] | 1.5 u | `exponential.rs` |
//! | [`ln`], [`ln_1p`] | 1.1 u | `logarithm.rs` |
//! | [`sin`], [`cos`], [`sin_cos`] | 1.7 u | `circle.rs` |
//! | [`atan2`] | 1.8 u | `circle.rs` |
//! | [`hypot`] | 1.1 u | here |
//! | [`powi`] | 1.01 n u for the power n, twice one more for a negative n | here |
//! | [`powf`] | 1.1 u + 2.2 u times the size of y ln x | here |
//! | [`sinh`] | 5 u | here |
//!
//! as long as the value is a normal number; a value below 2^-1020 has an error of at most 2^-1074
//! besides. All but the last three are below `f64::EPSILON` = 2 u. The tables and the bounds
//! are checked in ball arithmetic by `crates/prover/tests/solver_functions.rs`.
//!
//! Rounding in the proofs: fl(a op b) = (a op b)(1 + e), |e| <= u. Sums of such terms are taken to first
//! order where they are below 1e-3 of u; every bound above has at least .05 u of room for what second order
//! and these add.

mod circle;
mod exponential;
mod logarithm;
#[doc(hidden)]
pub mod tables;

pub use circle::{atan2, cos, sin, sin_cos};
pub use exponential::{exp, exp_m1};
pub use logarithm::{ln, ln_1p};

/// a + b = sum + rest, exactly, in any order of size (Knuth).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

/// x = high + low with 26 bits each (Veltkamp); |x| below 2^995.
fn split(x: f64) -> (f64, f64) {
    let grown = 134_217_729.0 * x;
    let high = grown - (grown - x);
    (high, x - high)
}

/// a b = product + rest, exactly (Dekker), away from overflow and underflow.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let ((a1, a2), (b1, b2)) = (split(a), split(b));
    (product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2)
}

/// 2^power for a power from -1022 to 1023.
fn power_of_two(power: i64) -> f64 {
    f64::from_bits(((power + 1023) as u64) << 52)
}

/// The square root of x^2 + y^2.
///
/// The root h of the rounded sum errs by 2 u; x^2 + y^2 - h^2 is formed from exact products, so that the
/// correction over 2h has a few u of its own size, and the last sum is rounded once. Below 9e-10 of the longer side a,
/// the shorter one adds b^2/(2a), up to a part of its fourth power that is below 1e-36 of a.
pub fn hypot(x: f64, y: f64) -> f64 {
    let (a, b) = if x.abs() >= y.abs() { (x.abs(), y.abs()) } else { (y.abs(), x.abs()) };
    if a.is_infinite() || b.is_infinite() {
        return f64::INFINITY;
    }
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    if b == 0.0 {
        return a;
    }
    let scale = if a > 1e150 {
        power_of_two(-600)
    } else if a < 1e-100 {
        power_of_two(600)
    } else {
        1.0
    };
    let (a, b) = (a * scale, b * scale);
    if b < a * 9e-10 {
        return (a + 0.5 * b * (b / a)) / scale;
    }
    let h = (a * a + b * b).sqrt();
    let ((aa, aa_rest), (bb, bb_rest), (hh, hh_rest)) =
        (two_product(a, a), two_product(b, b), two_product(h, h));
    let off = ((aa - hh) + bb) + ((aa_rest + bb_rest) - hh_rest);
    (h + off / (2.0 * h)) / scale
}

/// x^n by squares; a negative power is one over the positive one.
///
/// A square doubles the error and adds a rounding, a product adds the errors and a rounding: n - 1
/// roundings in all, however they fall, and one for the quotient.
pub fn powi(x: f64, n: i32) -> f64 {
    let (mut left, mut square, mut power) = (n.unsigned_abs(), x, 1.0);
    loop {
        if left % 2 == 1 {
            power *= square;
        }
        left /= 2;
        if left == 0 {
            break;
        }
        square *= square;
    }
    if n < 0 { 1.0 / power } else { power }
}

/// x^y for a positive x, as e^(y ln x): y ln x errs by 2.1 u of its size, and so does the logarithm of the power.
pub fn powf(x: f64, y: f64) -> f64 {
    if y == 0.0 {
        return 1.0;
    }
    exp(y * ln(x))
}

/// The hyperbolic sine, (t + t/(t + 1))/2 with t = e^|x| - 1: 1.5 u for t, whose parts move the sum by no more
/// than its part, and four roundings of which the first three concern the smaller summand or both equally.
pub fn sinh(x: f64) -> f64 {
    let t = exp_m1(x.abs());
    if t.is_infinite() {
        return (0.5 * exp(x.abs() - 1.0) * std::f64::consts::E).copysign(x);
    }
    (0.5 * (t + t / (t + 1.0))).copysign(x)
}
