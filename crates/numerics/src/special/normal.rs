//! The normal distribution with relative accuracy in both tails.
//!
//! Everything rests on the Mills ratio R(x) = sf(x)/density(x) = integral_0^inf exp(-xt - t^2/2) dt,
//! which is smooth, positive and decreasing: a table of polynomials in u = 4/(4+x) gives it to a
//! few units in the last place, and the tails follow by a multiplication with exp(-x^2/2) whose
//! argument is split so that squaring costs no accuracy.

use super::gamma::HALF_LN_TWO_PI;
use super::mills_table::MILLS_CELLS;
use crate::elementary::{exp, ln, ln_1p};
use std::f64::consts::SQRT_2;

/// Bound on the relative error of [`mills_ratio`] for x >= 0, and of the tails made from it.
///
/// In units of 2^-53. R: the table 1 (proven cell by cell in `crates/prover/tests/solver_normal.rs`); three
/// roundings of the whole, and at most eight of what is below .0175 of it, 3.2; the rounding of t, .01; two
/// roundings of u, each magnified by d ln R / d ln u = (x + 4)(1/R - x) <= 3.2, 6.4. (Boyd 1959: 1/R - x <=
/// (sqrt(x^2 + 2 pi) - x)/pi, and (x + 4) times that falls from its value at 0.) Together 10.6.
/// Tails: besides, the kernel 3.4, the constant and two products, 17.0 in all; 18.0 for their complement.
/// Largest seen over 60,000 arguments: 8e-16.
pub const MILLS_ERROR: f64 = 2e-15;

/// Bound on the error of [`log_normal_sf`], relative to the larger of 1 and its size for x >= 0, to its size for x < 0.
///
/// x < 0: the tail's 17.0 units of 2^-53 are magnified by p/((1-p) |ln(1-p)|) <= 1.45 for p <= 1/2, and the
/// logarithm adds 1.1: 25.8. x >= 0: 10.6 and 1.1 |ln R| of the logarithm, and at most three roundings of the
/// sizes of x^2/2, .92 and the value.
pub const LOG_TAIL_ERROR: f64 = 3e-15;

/// Bound on the relative error of the 25 terms c_n h^n from n = 1 on, c_n by [`mills_moments`], h at most 1/2, a at
/// least -4; twice that for alternating signs and h max(1, |a|) at most 1/2, a above -9. Proven for every cell of a by
/// `crates/prover/tests/solver_normal.rs`, from the roundings of the recurrence.
pub const SERIES_ERROR: f64 = 1.5e-14;

const SQRT_TWO_PI: f64 = 2.506_628_274_631_000_5;
const INV_SQRT_TWO_PI: f64 = 0.398_942_280_401_432_7;

/// sf(x)/density(x), within [`MILLS_ERROR`] for x >= 0; overflows to infinity below about -38.
///
/// ```
/// assert!((numerics::special::mills_ratio(1.0) - 0.655679542418798471).abs() < 1e-15);
/// ```
#[inline]
pub fn mills_ratio(x: f64) -> f64 {
    if x >= 0.0 {
        mills_right(x)
    } else if x < 0.0 {
        SQRT_TWO_PI / gaussian_kernel(x) - mills_right(-x)
    } else {
        f64::NAN
    }
}

#[inline]
fn mills_right(x: f64) -> f64 {
    let u = 4.0 / (4.0 + x);
    let place = u * 64.0;
    let cell = (place as usize).min(63);
    let t = 2.0 * (place - cell as f64) - 1.0;
    let c = &MILLS_CELLS[cell];
    // Two interleaved Horner chains: half the latency.
    let s = t * t;
    let even = c[0] + s * (c[2] + s * (c[4] + s * c[6]));
    let odd = c[1] + s * (c[3] + s * (c[5] + s * c[7]));
    (even + t * odd) * u
}

/// exp(-x^2/2) within 3.4 units of 2^-53 relative (plus underflow below 1e-308): two exponentials of 1.1, their
/// product, and two roundings of an argument below .08.
#[inline]
pub fn gaussian_kernel(x: f64) -> f64 {
    if x.abs() < 1.0 {
        return exp(-0.5 * x * x);
    }
    if x.abs() > 40.0 {
        return if x.is_nan() { x } else { 0.0 };
    }
    // x = head + rest with head a multiple of 1/256: head^2 is exact, and so is the difference.
    let head = (x * 256.0).round() / 256.0;
    let rest = x - head;
    exp(-0.5 * head * head) * exp(-rest * (head + 0.5 * rest))
}

/// exp(-x^2/2)/sqrt(2 pi).
pub fn normal_density(x: f64) -> f64 {
    gaussian_kernel(x) * INV_SQRT_TWO_PI
}

/// P(N > x), within [`MILLS_ERROR`] relative wherever it is above 1e-307.
#[inline]
pub fn normal_sf(x: f64) -> f64 {
    if x >= 0.0 {
        gaussian_kernel(x) * INV_SQRT_TWO_PI * mills_right(x)
    } else if x < 0.0 {
        1.0 - gaussian_kernel(x) * INV_SQRT_TWO_PI * mills_right(-x)
    } else {
        f64::NAN
    }
}

/// P(N <= x).
#[inline]
pub fn normal_cdf(x: f64) -> f64 {
    normal_sf(-x)
}

/// ln P(N > x), within [`LOG_TAIL_ERROR`] times the larger of 1 and its size; for x < 0 times its size.
pub fn log_normal_sf(x: f64) -> f64 {
    if x >= 0.0 {
        -0.5 * x * x - HALF_LN_TWO_PI + ln(mills_right(x))
    } else {
        ln_1p(-normal_sf(-x))
    }
}

/// ln P(N <= x); see [`log_normal_sf`].
pub fn log_normal_cdf(x: f64) -> f64 {
    log_normal_sf(-x)
}

/// The complementary error function, 2 P(N > x sqrt 2).
pub fn erfc(x: f64) -> f64 {
    2.0 * normal_sf(x * SQRT_2)
}

/// The scaled derivatives c_n(a) = (-1)^n R^(n)(a)/n! = (1/n!) integral t^n exp(-at - t^2/2) dt,
/// n = 0..N, all positive: R(a - h) = sum c_n h^n. For a > -6.
///
/// They obey (n+1) c_{n+1} = c_{n-1} - a c_n. Forwards that is stable for a <= 0 and harmless for
/// small a; for larger a the sequence is the minimal solution and is computed backwards (Miller).
/// What the errors of all c_n do to a sum of c_n h^n is bounded by [`SERIES_ERROR`].
pub fn mills_moments<const N: usize>(a: f64) -> [f64; N] {
    let mut c = [0.0; N];
    c[0] = mills_ratio(a);
    if N == 1 {
        return c;
    }
    if a < 1.0 {
        c[1] = 1.0 - a * c[0];
        for n in 1..N - 1 {
            c[n + 1] = (c[n - 1] - a * c[n]) / (n + 1) as f64;
        }
        return c;
    }
    // The two solutions separate by exp(-2a sqrt n); start where that is below 1e-18.
    let start = N + (440.0 / (a * a)) as usize + 8;
    let (mut above, mut here) = (0.0_f64, 1e-300_f64);
    for n in (1..=start).rev() {
        // here = c_n, above = c_{n+1}
        let below = (n + 1) as f64 * above + a * here;
        if n < N {
            c[n] = here;
        }
        above = here;
        here = below;
        if here > 1e250 {
            // Rescale everything found so far.
            above *= 1e-300;
            here *= 1e-300;
            for value in c.iter_mut().skip(1) {
                *value *= 1e-300;
            }
        }
    }
    let scale = c[0] / here;
    for value in c.iter_mut().skip(1) {
        *value *= scale;
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance * want.abs(), "got {got:e}, want {want:e}");
    }

    // Reference values: mpmath with 50 digits.
    #[test]
    fn mills_ratio_matches_high_precision() {
        for (x, want) in [
            (0.0, 1.2533141373155002512),
            (1e-3, 1.2523147636393921733),
            (0.5, 0.87636445645369234673),
            (1.0, 0.65567954241879847154),
            (3.0, 0.30459029871010329573),
            (8.0, 0.12313196325793229628),
            (20.0, 0.049875925981836783658),
            (37.5, 0.026647744014898550332),
            (100.0, 0.0099990002998501049056),
            (1e6, 9.99999999999e-7),
        ] {
            close(mills_ratio(x), want, MILLS_ERROR);
        }
    }

    #[test]
    fn tails_match_high_precision() {
        for (x, cdf, log_cdf) in [
            (-37.0, 5.7255712225245768227e-300, -689.0305855768905936),
            (-10.0, 7.619853024160526066e-24, -53.231285150512470578),
            (-3.0, 0.0013498980316300945267, -6.6077262215103495433),
            (-1.0, 0.15865525393145705141, -1.8410216450092635058),
            (-0.1, 0.46017216272297101853, -0.77615459273027332078),
            (0.0, 0.5, -std::f64::consts::LN_2),
            (0.5, 0.69146246127401310364, -0.36894641528865639307),
            (2.0, 0.9772498680518207928, -0.023012909328963488465),
            (7.0, 0.99999999999872018746, -1.2798125438866539645e-12),
        ] {
            close(normal_cdf(x), cdf, MILLS_ERROR);
            close(log_normal_cdf(x), log_cdf, MILLS_ERROR);
            close(normal_sf(-x), cdf, MILLS_ERROR);
        }
        close(log_normal_cdf(-40.0), -804.60844201375378817, MILLS_ERROR);
    }

    #[test]
    fn moments_sum_to_the_shifted_ratio() {
        for a in [-5.0, -1.0, 0.0, 0.3, 0.7, 0.99, 1.0, 1.5, 3.0, 10.0, 37.0] {
            let c = mills_moments::<26>(a);
            for h in [0.5, 0.1, 0.01] {
                if h * f64::max(1.0, -a) > 0.5 {
                    continue;
                }
                let sum = c.iter().rev().fold(0.0, |acc, value| acc * h + value);
                close(sum, mills_ratio(a - h), 8e-15);
            }
        }
    }

    // c_1 = 1 - a R(a); at a = 20 the direct form has lost 2.6 digits, the recurrence none.
    #[test]
    fn first_moment_has_no_cancellation() {
        close(mills_moments::<8>(20.0)[1], 0.0024814803632643268, 1e-14);
        close(mills_moments::<8>(37.0)[1], 0.00072886529025156566, 1e-14);
    }
}
