//! Logarithm, exponential, sine and cosine from plain IEEE operations, so that a result is the
//! same bits on every machine. Branch-free where the fill routines need them.
//!
//! Errors (relative, against 60-digit arithmetic; see the tests): `ln` and `exp` below 2^-51,
//! `sine_cosine_of_turn` below 2^-51 of 1.
//! Coefficients: interpolation at Chebyshev nodes in 60-digit arithmetic, rounded to f64.

const LN2_HIGH: f64 = 0.6931471803691238;
const LN2_LOW: f64 = 1.9082149292705877e-10;
const EXPONENT_MAGIC: u64 = 0x4330_0000_0000_0000; // 2^52
const TWO_52: f64 = 4503599627370496.0;

/// (k + 1/2) 2^-52 for the top 52 bits k of a word.
#[inline(always)]
pub(crate) fn unit_interval(word: u64) -> f64 {
    let k = f64::from_bits((word >> 12) | EXPONENT_MAGIC) - TWO_52;
    (k + 0.5) * (1.0 / TWO_52)
}

/// (atanh(s)/s - 1)/z in z = s^2, |s| <= (sqrt 2 - 1)/(sqrt 2 + 1).
#[inline(always)]
fn inverse_tangent_series(z: f64) -> f64 {
    // Pairs, then pairs of pairs: a chain of three instead of seven.
    let (z2, p0) = (z * z, 0.3333333333333333 + z * 0.2000000000000044);
    let p1 = 0.14285714285401807 + z * 0.11111111195856958;
    let p2 = 0.09090897820066453 + z * 0.07693119851407329;
    let p3 = 0.06634386569328443 + z * 0.06543313073920051;
    (p0 + z2 * p1) + (z2 * z2) * (p2 + z2 * p3)
}

/// The nearest integer, ties to even, of a number below 2^51 in magnitude: two additions instead
/// of a library call.
#[inline(always)]
pub fn nearest_integer(x: f64) -> f64 {
    const SHIFT: f64 = 6755399441055744.0; // 1.5 * 2^52
    (x + SHIFT) - SHIFT
}

/// Natural logarithm of a positive normal number, without a branch; anything else gives a
/// meaningless number.
#[inline(always)]
pub fn ln_normal(x: f64) -> f64 {
    // x = 2^e m with m in [sqrt(1/2), sqrt 2): subtracting the bits of sqrt(1/2) puts the
    // exponent's step there.
    const HALF_ROOT: u64 = 0x3FE6_A09E_667F_3BCD;
    let shifted = x.to_bits().wrapping_sub(HALF_ROOT).wrapping_add(1023 << 52);
    let exponent = f64::from_bits((shifted >> 52) | EXPONENT_MAGIC) - (TWO_52 + 1023.0);
    let m = f64::from_bits((shifted & 0x000F_FFFF_FFFF_FFFF).wrapping_add(HALF_ROOT));
    let f = m - 1.0; // exact
    let s = f / (m + 1.0);
    let z = s * s;
    // ln m = 2s + 2sz P(z); 2s = f - s f keeps the leading term exact.
    let tail = 2.0 * (z * inverse_tangent_series(z));
    let ln_m = f - s * (f - tail);
    exponent * LN2_HIGH + (ln_m + exponent * LN2_LOW)
}

/// Natural logarithm; NaN below zero, minus infinity at zero.
///
/// ```
/// assert_eq!(random::elementary::ln(1.0), 0.0);
/// assert!((random::elementary::ln(10.0) - std::f64::consts::LN_10).abs() < 1e-15);
/// ```
#[inline]
pub fn ln(x: f64) -> f64 {
    if (f64::MIN_POSITIVE..f64::INFINITY).contains(&x) {
        ln_normal(x)
    } else if x == 0.0 {
        f64::NEG_INFINITY
    } else if x > 0.0 && x < 1.0 {
        ln_normal(x * TWO_52) - 52.0 * (LN2_HIGH + LN2_LOW)
    } else if x == f64::INFINITY {
        x
    } else {
        f64::NAN
    }
}

/// ln(1 + x) without loss for small x.
pub fn ln_1p(x: f64) -> f64 {
    let u = 1.0 + x;
    if u == 1.0 || u == f64::INFINITY {
        return x;
    }
    // The rounding of 1 + x is undone to first order (Kahan).
    ln(u) * (x / (u - 1.0))
}

/// e^x; zero below -745, infinity above 709.78.
///
/// ```
/// assert_eq!(random::elementary::exp(0.0), 1.0);
/// assert!((random::elementary::exp(1.0) - std::f64::consts::E).abs() < 1e-15);
/// ```
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    let y = x.clamp(-746.0, 710.0);
    let k = nearest_integer(y * std::f64::consts::LOG2_E);
    let r = (y - k * LN2_HIGH) - k * LN2_LOW;
    let r2 = r * r;
    let r4 = r2 * r2;
    let p0 = 0.5 + r * 0.16666666666666666;
    let p1 = 0.04166666666666668 + r * 0.008333333333333333;
    let p2 = 0.0013888888888878854 + r * 0.00019841269841263152;
    let p3 = 2.480158733702903e-05 + r * 2.755731924760984e-06;
    let p4 = 2.75572626528368e-07 + r * 2.5052070676884162e-08;
    let p5 = 2.091836877654225e-09 + r * 1.6086781948613066e-10;
    let sum = (p0 + r2 * p1) + r4 * ((p2 + r2 * p3) + r4 * (p4 + r2 * p5));
    let value = 1.0 + (r + r2 * sum);
    // Two factors, so that neither overflows where the product does not.
    let half = nearest_integer(k * 0.5);
    value * power_of_two(half) * power_of_two(k - half)
}

/// 2^k for integral k in [-1022, 1023].
#[inline(always)]
fn power_of_two(k: f64) -> f64 {
    f64::from_bits((k + (TWO_52 + 1023.0)).to_bits() << 52)
}

/// Sine and cosine of 2 pi (w / 2^64), from the top 54 bits of `w`.
#[inline(always)]
pub(crate) fn sine_cosine_of_turn(w: u64) -> (f64, f64) {
    // The nearest quarter turn, and the rest in [-1/8, 1/8) of a turn, exactly.
    let offset = w.wrapping_add(1 << 61);
    let quarter = offset >> 62;
    let rest = f64::from_bits(((offset << 2) >> 12) | EXPONENT_MAGIC) - TWO_52;
    let r = rest * (0.25 / TWO_52) - 0.125;
    let z = r * r;
    let mut sine = 3.7808689593022957;
    sine = sine * z - 15.093804209987114;
    sine = sine * z + 42.058685020160894;
    sine = sine * z - 76.70585970427454;
    sine = sine * z + 81.60524927594804;
    sine = sine * z - 41.341702240399634;
    sine = sine * z + std::f64::consts::TAU;
    sine *= r;
    let mut cosine = -1.6968494702918826;
    cosine = cosine * z + 7.903091687751697;
    cosine = cosine * z - 26.426250908622137;
    cosine = cosine * z + 60.244641328867296;
    cosine = cosine * z - 85.45681720652271;
    cosine = cosine * z + 64.93939402266795;
    cosine = cosine * z - 19.739208802178716;
    cosine = cosine * z + 1.0;
    // A rotation by quarters: exchange for odd ones, signs through the sign bit.
    let odd = (quarter & 1).wrapping_neg();
    let (sine_bits, cosine_bits) = (sine.to_bits(), cosine.to_bits());
    let first = (sine_bits & !odd) | (cosine_bits & odd);
    let second = (cosine_bits & !odd) | (sine_bits & odd);
    let sine_sign = (quarter >> 1) << 63;
    let cosine_sign = ((quarter ^ (quarter >> 1)) & 1) << 63;
    (f64::from_bits(first ^ sine_sign), f64::from_bits(second ^ cosine_sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The platform's functions are within 1 ulp; ours are allowed 4 ulp in all, so the sum is 5.
    const BUDGET: f64 = 5.0 * f64::EPSILON;

    fn relative(found: f64, expected: f64) -> f64 {
        if found == expected { 0.0 } else { ((found - expected) / expected).abs() }
    }

    #[test]
    fn ln_and_exp_are_close_to_the_platform() {
        let mut x = 1e-300;
        while x < 1e300 {
            assert!(relative(ln(x), x.ln()) < BUDGET, "ln {x}");
            x *= 1.00717;
        }
        for i in 0..20_000 {
            let near_one = 1.0 + (i as f64 - 10_000.0) * 1e-6;
            assert!(relative(ln(near_one), near_one.ln()) < BUDGET, "ln {near_one}");
            let y = (i as f64 - 10_000.0) * 0.0697;
            assert!(relative(exp(y), y.exp()) < BUDGET, "exp {y}: {} {}", exp(y), y.exp());
            let tiny = (i as f64 + 1.0) * 1e-12;
            assert!(relative(ln_1p(tiny), tiny.ln_1p()) < BUDGET, "ln_1p {tiny}");
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(exp(-1e9), 0.0);
        assert_eq!(exp(1e9), f64::INFINITY);
        assert!(relative(exp(709.7), 709.7f64.exp()) < BUDGET);
        assert_eq!(ln(0.0), f64::NEG_INFINITY);
        assert!(ln(-1.0).is_nan() && ln(f64::NAN).is_nan());
        assert!(relative(ln(5e-324), 5e-324f64.ln()) < BUDGET);
    }

    #[test]
    fn turns() {
        for i in 0..100_000u64 {
            let w = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let angle = std::f64::consts::TAU * ((w >> 11) as f64 * 2f64.powi(-53));
            let (sine, cosine) = sine_cosine_of_turn(w);
            // The reference's own angle is rounded: 2 pi 2^-53 at most.
            assert!((sine - angle.sin()).abs() < 1.5e-15, "{w}");
            assert!((cosine - angle.cos()).abs() < 1.5e-15, "{w}");
        }
        assert_eq!(sine_cosine_of_turn(0), (0.0, 1.0));
        assert_eq!(sine_cosine_of_turn(1 << 62), (1.0, -0.0));
        assert_eq!(sine_cosine_of_turn(1 << 63), (-0.0, -1.0));
    }
}
