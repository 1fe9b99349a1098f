//! The brackets of the two orders' sums: differences of Mills ratios without cancellation.

use super::super::gaussian::SERIES_REACH;
use numerics::elementary::{exp, exp_m1};
use numerics::special::{
    HALF_LN_TWO_PI, MILLS_ERROR, ROUND, SERIES_ERROR, mills_moments, mills_ratio, normal_density,
    normal_sf,
};

/// sum_{n>=1} c_n h^n for h <= 1/2, to 1e-17 relative; as many terms as h needs (the ratios
/// c_n/c_1 are largest at a = 0, where they are known).
#[inline]
pub(super) fn series_difference(c: &[f64; 26], h: f64) -> f64 {
    let last = if h < 0.05 {
        10
    } else if h < 0.2 {
        15
    } else {
        24
    };
    c[1..=last].iter().rev().fold(0.0, |sum, value| (sum + value) * h)
}

/// R(A) - R(A + h) times e^-log_factor times density(A): the bracket of the other order.
pub(super) struct Bracket {
    base: f64,
    pub log_factor: f64,
    /// Its limit for large h.
    pub limit: f64,
    /// -(-1)^n c_n, times density(A) if A < 0.
    series: [f64; 26],
    pub density: f64,
}

impl Bracket {
    pub(super) fn new(base: f64) -> Self {
        let mut series = [0.0; 26];
        let right = base >= 0.0;
        let density = if right { 1.0 } else { normal_density(base) };
        if base > -9.0 {
            series = mills_moments::<26>(base);
            for (n, value) in series.iter_mut().enumerate() {
                *value *= if n % 2 == 1 { density } else { -density };
            }
        }
        Self {
            base,
            log_factor: if right { -0.5 * base * base - HALF_LN_TWO_PI } else { 0.0 },
            limit: if right { mills_ratio(base) } else { normal_sf(base) },
            series,
            density,
        }
    }

    /// The bracket and a bound on its absolute error.
    #[inline]
    pub(super) fn at(&self, h: f64) -> (f64, f64) {
        let base = self.base;
        if base <= -9.0 && h <= SERIES_REACH {
            // P(N > A) and P(N > A + h) are 1 to within 1e-17 of their difference.
            let value = -exp_m1(h * (base + 0.5 * h));
            return (value, 1e-15 * value * (1.0 + h * base.abs()));
        }
        if h * base.abs().max(1.0) <= SERIES_REACH || (base >= 0.0 && h <= SERIES_REACH) {
            let value = if h < 0.05 && base >= 0.0 {
                self.series[1..=10].iter().rev().fold(0.0, |sum, c| (sum + c) * h)
            } else {
                self.series[1..].iter().rev().fold(0.0, |sum, c| (sum + c) * h)
            };
            return (value, 2.0 * SERIES_ERROR * value);
        }
        let lost = if base >= 0.0 {
            mills_ratio(base + h)
        } else if base + h >= 0.0 {
            self.density * mills_ratio(base + h)
        } else {
            exp(h * (base + 0.5 * h)) * normal_sf(base + h)
        };
        let exponent = if base < 0.0 { h * (base.abs() + h) } else { 0.0 };
        let error =
            (MILLS_ERROR + 6.0 * ROUND) * (self.limit + lost) + ROUND * lost * 6.0 * exponent;
        (self.limit - lost, error)
    }
}
