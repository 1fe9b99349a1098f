//! Fixed-point complex rotations: the inner loop of the transform.
//!
//! A number is a two's complement integer of N words over 2^(64 N - 2), so it lies in [-2, 2).
//! A product is cut off towards zero: off by less than one unit, 2^(2 - 64 N). A complex product has
//! two products in each part: off by less than 2 units in each part, 4 units in modulus.

use super::ball::Ball;
use super::complex::Complex;
use super::float::Float;
use super::magnitude::Magnitude;

#[derive(Clone, Copy, Debug)]
pub struct Fixed<const N: usize>([u64; N]);

#[derive(Clone, Copy, Debug)]
pub struct Rotor<const N: usize> {
    pub re: Fixed<N>,
    pub im: Fixed<N>,
}

impl<const N: usize> Fixed<N> {
    pub const ZERO: Self = Self([0; N]);
    /// One unit is 2^this.
    pub const UNIT: i64 = 2 - 64 * N as i64;

    /// The midpoint cut off, |x| < 2: off by less than a unit and the radius of the ball.
    pub fn from_ball(x: &Ball<N>) -> Self {
        let (negative, words) = x.mid.fraction_words(2);
        let number = Self(words);
        if negative { number.negated() } else { number }
    }

    pub fn to_float(self) -> Float<N> {
        let (negative, size) = self.split();
        let mut sum = Float::ZERO;
        for (i, word) in size.iter().enumerate() {
            // Each word is exact, and words do not overlap: sums are exact.
            sum = sum.plus(&Float::from_u64(*word).scaled(64 * i as i64 + Self::UNIT));
        }
        if negative { sum.negated() } else { sum }
    }

    fn negated(self) -> Self {
        let (mut words, mut carry) = ([0; N], true);
        for (word, own) in words.iter_mut().zip(self.0) {
            (*word, carry) = (!own).overflowing_add(u64::from(carry));
        }
        Self(words)
    }

    #[inline]
    fn split(self) -> (bool, [u64; N]) {
        let negative = self.0[N - 1] >> 63 == 1;
        (negative, if negative { self.negated().0 } else { self.0 })
    }

    #[inline]
    pub fn plus(self, other: Self) -> Self {
        let (mut words, mut carry) = ([0; N], false);
        for (word, (own, given)) in words.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            let (sum, first) = own.overflowing_add(given);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            *word = sum;
            carry = first || second;
        }
        Self(words)
    }

    #[inline]
    fn minus(self, other: Self) -> Self {
        self.plus(other.negated())
    }

    #[inline]
    fn times(self, other: Self) -> Self {
        let ((a_negative, a), (b_negative, b)) = (self.split(), other.split());
        let mut product = [[0u64; N]; 2];
        let product = product.as_flattened_mut();
        for i in 0..N {
            let mut carry = 0u128;
            for j in 0..N {
                let sum = u128::from(a[i]) * u128::from(b[j]) + u128::from(product[i + j]) + carry;
                product[i + j] = sum as u64;
                carry = sum >> 64;
            }
            product[i + N] = carry as u64;
        }
        // Divide by 2^(64 N - 2).
        let mut words = [0; N];
        for i in 0..N {
            words[i] = (product[N + i] << 2) | (product[N + i - 1] >> 62);
        }
        let result = Self(words);
        if a_negative != b_negative { result.negated() } else { result }
    }
}

impl<const N: usize> Rotor<N> {
    pub const ZERO: Self = Self { re: Fixed::ZERO, im: Fixed::ZERO };

    #[inline]
    pub fn plus(self, other: Self) -> Self {
        Self { re: self.re.plus(other.re), im: self.im.plus(other.im) }
    }

    #[inline]
    pub fn minus(self, other: Self) -> Self {
        Self { re: self.re.minus(other.re), im: self.im.minus(other.im) }
    }

    pub fn from_complex(z: &Complex<N>) -> Self {
        Self { re: Fixed::from_ball(&z.re), im: Fixed::from_ball(&z.im) }
    }

    #[inline]
    pub fn times(self, other: Self) -> Self {
        Self {
            re: self.re.times(other.re).minus(self.im.times(other.im)),
            im: self.re.times(other.im).plus(self.im.times(other.re)),
        }
    }

    /// The complex ball around this number with the given radius for each part.
    pub fn to_complex(self, radius: Magnitude) -> Complex<N> {
        let ball = |x: Fixed<N>| Ball { mid: x.to_float(), radius };
        Complex { re: ball(self.re), im: ball(self.im) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_stay_within_their_bound() {
        for angle in [0.1, -1.3, 2.9, 1e-9] {
            let (cosine, sine) = Ball::<2>::from_f64(angle).cosine_sine();
            let step = Rotor::from_complex(&Complex { re: cosine, im: sine });
            let mut now = Rotor::from_complex(&Complex::one());
            for _ in 0..1000 {
                now = now.times(step);
            }
            let unit = Magnitude::power_of_two(Fixed::<2>::UNIT);
            let radius = unit.times(Magnitude::from_f64(16.0 * 1000.0));
            let (cosine, sine) = (Ball::<2>::from_f64(angle).times_u64(1000)).cosine_sine();
            let found = now.to_complex(radius);
            for gap in [found.re - cosine, found.im - sine] {
                assert!(!gap.is_positive() && !gap.is_negative(), "{angle}");
            }
        }
    }
}
