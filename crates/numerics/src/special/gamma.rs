//! The remainder of Stirling's formula and the logarithm of the gamma function.
//!
//! `stirling_remainder(n)` is ln n! - [(n + 1/2) ln n - n + ln(2 pi)/2], the small positive number
//! that Loader's form of the binomial probability is made of. Up to 15 it is a table (computed
//! with 40 digits); from 16 on the asymptotic series, whose first omitted term is below 2e-17.

use crate::elementary::ln;

/// ln(2 pi) / 2.
pub const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_7;

#[rustfmt::skip]
const SMALL: [f64; 15] = [
    0.08106146679532726,
    0.0413406959554093,
    0.02767792568499834,
    0.020790672103765093,
    0.016644691189821193,
    0.013876128823070748,
    0.01189670994589177,
    0.010411265261972096,
    0.009255462182712733,
    0.00833056343336287,
    0.007573675487951841,
    0.00694284010720953,
    0.006408994188004207,
    0.0059513701127588475,
    0.005554733551962801,
];

/// ln n! minus Stirling's approximation, for n >= 1; within 2e-16 relative.
///
/// ```
/// let exact = (1..=20).map(|k| (k as f64).ln()).sum::<f64>();
/// let stirling = 20.5 * 20.0f64.ln() - 20.0 + numerics::special::HALF_LN_TWO_PI;
/// let remainder = numerics::special::stirling_remainder(20.0);
/// assert!((exact - stirling - remainder).abs() < 1e-13);
/// ```
pub fn stirling_remainder(n: f64) -> f64 {
    if (1.0..15.5).contains(&n) && n.fract() == 0.0 {
        return SMALL[n as usize - 1];
    }
    if n < 15.5 {
        return ln_gamma(n + 1.0) - ((n + 0.5) * ln(n) - n + HALF_LN_TWO_PI);
    }
    series(n)
}

fn series(n: f64) -> f64 {
    let r = 1.0 / (n * n);
    let tail = 1.0 / 1188.0 - r * (691.0 / 360_360.0 - r * (1.0 / 156.0));
    (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r * tail)))) / n
}

/// ln Gamma(x) for x > 0, within 4e-16 times the larger of 1 and |ln Gamma(x)|, times the few
/// units that the shift to large arguments costs below 16.
pub fn ln_gamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    // Gamma(x) = Gamma(x + n) / (x (x+1) ... (x+n-1)).
    let mut shift = 1.0;
    let mut z = x;
    while z < 16.0 {
        shift *= z;
        z += 1.0;
    }
    (z - 0.5) * ln(z) - z + HALF_LN_TWO_PI + series(z) - ln(shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Reference values: mpmath with 50 digits.
    #[test]
    fn remainder_matches_high_precision() {
        for (n, want) in [
            (1.0, 0.08106146679532725822),
            (5.0, 0.016644691189821192163),
            (15.0, 0.005554733551962801371),
            (16.0, 0.0052076559196096404407),
            (100.0, 0.00083333055563491468338),
            (1e6, 8.3333333333330555556e-8),
        ] {
            let got = stirling_remainder(n);
            assert!((got / want - 1.0_f64).abs() < 4e-16, "{n}: {got}");
        }
    }

    #[test]
    fn ln_gamma_matches_high_precision() {
        for (x, want) in [
            (0.1, 2.252712651734205902),
            (0.5, 0.57236494292470008707),
            (1.5, -0.12078223763524522235),
            (3.0, std::f64::consts::LN_2),
            (10.0, 12.801827480081469611),
            (100.5, 361.43554046777762156),
            (1e5, 1051287.7089736568949),
        ] {
            let got: f64 = ln_gamma(x);
            let scale = f64::max(1.0, f64::abs(want));
            // the shifted form subtracts numbers of about 30
            assert!((got - want).abs() < 2e-14 * scale, "{x}: {got}");
        }
    }
}
