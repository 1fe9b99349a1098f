//! Just enough complex arithmetic for contour sums.

use crate::elementary::{atan2, exp, exp_m1, hypot, ln, ln_1p, sin};
use std::ops::{Add, Mul, Sub};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Complex {
    pub(crate) re: f64,
    pub(crate) im: f64,
}

impl Complex {
    pub(crate) const fn new(re: f64, im: f64) -> Self {
        Self { re, im }
    }

    pub(crate) fn modulus(self) -> f64 {
        hypot(self.re, self.im)
    }

    pub(crate) fn ln(self) -> Self {
        Self::new(ln(self.modulus()), atan2(self.im, self.re))
    }

    /// ln(1 + self), and a bound on its absolute error.
    ///
    /// Where |1 + z|^2 = 1 + square is not small, `square` has an error of at most
    /// 3 u (|re| |2 + re| + im^2), u = 2^-53, and |re| |2 + re| <= 1 + (1 + square); near z = 0 all
    /// of it is a part of |z|. Where 1 + square is small it would be rounding only, of either
    /// sign; there 1 + re is rounded once, and the modulus keeps its relative accuracy.
    pub(crate) fn ln_1p(self) -> (Self, f64) {
        let square = self.re * (2.0 + self.re) + self.im * self.im;
        let real = 1.0 + self.re;
        let modulus = if square > -0.5 { 0.5 * ln_1p(square) } else { ln(hypot(real, self.im)) };
        let log = Self::new(modulus, atan2(self.im, real));
        let reached = (self.re.abs() + self.im.abs()).min(1.5);
        (log, f64::EPSILON * (4.0 * reached + 2.0 * (log.re.abs() + log.im.abs())))
    }

    /// e^z - 1.
    pub(crate) fn exp_m1(self) -> Self {
        let half = sin(0.5 * self.im);
        let grown = exp(self.re);
        Self::new(exp_m1(self.re) - 2.0 * grown * half * half, grown * sin(self.im))
    }

    pub(crate) fn scale(self, factor: f64) -> Self {
        Self::new(self.re * factor, self.im * factor)
    }
}

impl Add for Complex {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.re + other.re, self.im + other.im)
    }
}

impl Sub for Complex {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }
}

impl Mul for Complex {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::new(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Near -1 the square of the modulus, formed from its difference to 1, has no digits left.
    /// References: 40-digit arithmetic with these doubles.
    #[test]
    fn the_logarithm_near_minus_one_keeps_its_digits() {
        for (re, im, log_modulus) in [
            (-0.999_999_999, 1e-9, -20.376_692_260_807_404),
            (-1.000_000_3, 2e-7, -14.835_620_972_335_746),
            (-1.0, 1e-30, -69.077_552_789_821_37),
            (-1.7, 0.1, -0.346_573_590_279_972_7),
            (1e-15, -3e-15, 1.000_000_000_000_004e-15),
        ] {
            let (log, error) = Complex::new(re, im).ln_1p();
            assert!((log.re - log_modulus).abs() <= error, "{re} {im}: {} {log_modulus}", log.re);
            assert!(
                error <= 1e-15 * (1.0 + log.modulus()).min(10.0 * re.hypot(im) + log.modulus())
            );
        }
    }
}
