//! Magnitudes: non-negative bounds that are only ever rounded up. They are the radii of balls.
//!
//! A magnitude is `mantissa * 2^exponent` with `2^30 <= mantissa < 2^31`, or zero. Every operation
//! returns a number at least as large as the exact result. A bound that is too large to matter is
//! [`Magnitude::INFINITE`], which every operation keeps.

use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Magnitude {
    mantissa: u64,
    exponent: i64,
}

const BITS: i64 = 31;
/// Exponents from here on mean infinity.
const ENDLESS: i64 = 1 << 56;

impl Magnitude {
    pub const ZERO: Self = Self { mantissa: 0, exponent: 0 };
    pub const INFINITE: Self = Self { mantissa: 1 << 30, exponent: ENDLESS };

    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    pub fn is_infinite(self) -> bool {
        self.mantissa != 0 && self.exponent >= ENDLESS
    }

    /// 2^power.
    pub fn power_of_two(power: i64) -> Self {
        Self { mantissa: 1 << 30, exponent: power.saturating_sub(30) }.checked()
    }

    /// At least `mantissa * 2^exponent`, for any mantissa.
    pub(super) fn above(mut mantissa: u64, mut exponent: i64) -> Self {
        if mantissa == 0 {
            return Self::ZERO;
        }
        let excess = (64 - i64::from(mantissa.leading_zeros())) - BITS;
        if excess > 0 {
            // What is cut off is less than one unit of what remains.
            mantissa = (mantissa >> excess) + 1;
            exponent = exponent.saturating_add(excess);
            if mantissa >> BITS != 0 {
                mantissa = (mantissa >> 1) + 1;
                exponent += 1;
            }
        } else {
            mantissa <<= -excess;
            exponent = exponent.saturating_add(excess);
        }
        Self { mantissa, exponent }.checked()
    }

    /// At least |x|, for a finite x; infinite otherwise.
    pub fn from_f64(x: f64) -> Self {
        if x == 0.0 {
            return Self::ZERO;
        }
        if !x.is_finite() {
            return Self::INFINITE;
        }
        let (mantissa, exponent) = super::float::parts(x);
        Self::above(mantissa, exponent)
    }

    fn checked(self) -> Self {
        if self.exponent >= ENDLESS {
            return Self::INFINITE;
        }
        // Rounding a number this small up to 2^-ENDLESS is still rounding up.
        Self { exponent: self.exponent.max(-ENDLESS), ..self }
    }

    pub fn plus(self, other: Self) -> Self {
        let (large, small) = if self.exponent_or_least() >= other.exponent_or_least() {
            (self, other)
        } else {
            (other, self)
        };
        if small.is_zero() {
            return large;
        }
        let gap = large.exponent - small.exponent;
        let shifted = if gap >= BITS { 1 } else { (small.mantissa >> gap) + 1 };
        Self::above(large.mantissa + shifted, large.exponent)
    }

    pub fn times(self, other: Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return Self::ZERO;
        }
        if self.is_infinite() || other.is_infinite() {
            return Self::INFINITE;
        }
        Self::above(self.mantissa * other.mantissa, self.exponent + other.exponent)
    }

    /// At least self / other; infinite for other = 0. `other` must be a lower bound of the divisor.
    pub fn over(self, other: Self) -> Self {
        if self.is_zero() {
            return Self::ZERO;
        }
        if other.is_zero() || self.is_infinite() {
            return Self::INFINITE;
        }
        let quotient = (self.mantissa << 32) / other.mantissa + 1;
        Self::above(quotient, self.exponent - other.exponent - 32)
    }

    /// self * 2^power.
    pub fn scaled(self, power: i64) -> Self {
        if self.is_zero() || self.is_infinite() {
            return self;
        }
        Self { exponent: self.exponent.saturating_add(power), ..self }.checked()
    }

    fn exponent_or_least(self) -> i64 {
        if self.is_zero() { i64::MIN } else { self.exponent }
    }

    /// The power p with 2^(p-1) <= self < 2^p; far below everything for zero.
    pub fn order(self) -> i64 {
        if self.is_zero() { -ENDLESS } else { self.exponent + BITS }
    }

    /// The exact value's mantissa and exponent.
    pub(super) fn raw(self) -> (u64, i64) {
        (self.mantissa, self.exponent)
    }
}

impl PartialOrd for Magnitude {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Magnitude {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.exponent_or_least(), self.mantissa).cmp(&(other.exponent_or_least(), other.mantissa))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(x: Magnitude) -> f64 {
        x.mantissa as f64 * (x.exponent as f64).exp2()
    }

    #[test]
    fn operations_round_up_and_not_far() {
        let numbers =
            [1.0, 3.0, 0.1, 7.25e-12, 6.02e23, 1.0 / 3.0, f64::MIN_POSITIVE, 123_456_789.0];
        for a in numbers {
            let x = Magnitude::from_f64(a);
            assert!(value(x) >= a && value(x) <= a * (1.0 + 1e-8), "{a}");
            for b in numbers {
                let y = Magnitude::from_f64(b);
                if a.min(b) > 1e-300 {
                    let product = a * b;
                    assert!(
                        value(x.times(y)) >= product && value(x.times(y)) <= product * (1.0 + 1e-7)
                    );
                    let quotient =
                        a / Magnitude::from_f64(b).mantissa as f64 / (y.exponent as f64).exp2();
                    assert!(value(x.over(y)) >= quotient * (1.0 - 1e-15));
                    assert!(value(x.over(y)) <= quotient * (1.0 + 1e-7));
                }
                assert!(value(x.plus(y)) >= a + b && value(x.plus(y)) <= (a + b) * (1.0 + 1e-7));
            }
        }
        assert!(Magnitude::INFINITE.plus(Magnitude::ZERO).is_infinite());
        assert!(Magnitude::from_f64(1.0).over(Magnitude::ZERO).is_infinite());
    }
}
