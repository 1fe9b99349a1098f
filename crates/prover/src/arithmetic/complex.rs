//! Complex balls: a real and an imaginary ball.

use super::ball::Ball;
use super::magnitude::Magnitude;
use std::ops::{Add, Mul, Neg, Sub};

#[derive(Clone, Copy, Debug)]
pub struct Complex<const N: usize> {
    pub re: Ball<N>,
    pub im: Ball<N>,
}

impl<const N: usize> Complex<N> {
    pub const ZERO: Self = Self { re: Ball::ZERO, im: Ball::ZERO };

    pub fn new(re: Ball<N>, im: Ball<N>) -> Self {
        Self { re, im }
    }

    pub fn one() -> Self {
        Self { re: Ball::one(), im: Ball::ZERO }
    }

    pub fn conjugate(self) -> Self {
        Self { im: -self.im, ..self }
    }

    pub fn times_real(self, factor: Ball<N>) -> Self {
        Self { re: self.re * factor, im: self.im * factor }
    }

    pub fn square_modulus(&self) -> Ball<N> {
        self.re.squared() + self.im.squared()
    }

    /// At least |z| for every member.
    pub fn above(&self) -> Magnitude {
        Ball::<N>::exact(super::float::Float::from_magnitude(self.square_modulus().above()))
            .root()
            .above()
    }

    pub fn reciprocal(self) -> Self {
        let factor = self.square_modulus().reciprocal();
        self.conjugate().times_real(factor)
    }

    pub fn squared(self) -> Self {
        let cross = self.re * self.im;
        Self { re: (self.re + self.im) * (self.re - self.im), im: cross.scaled(1) }
    }

    pub fn power(self, mut power: u64) -> Self {
        let (mut result, mut base) = (Self::one(), self);
        while power > 0 {
            if power & 1 == 1 {
                result = result * base;
            }
            power >>= 1;
            if power > 0 {
                base = base.squared();
            }
        }
        result
    }

    pub fn exponential(self) -> Self {
        let (cosine, sine) = self.im.cosine_sine();
        Self { re: cosine, im: sine }.times_real(self.re.exponential())
    }

    /// ln|z| and the angle in (-pi/2, pi/2), for balls right of the imaginary axis. With theta close
    /// to the angle of the midpoint, z e^(-i theta) has angle artan(im/re), a short series.
    pub fn logarithm(self) -> Self {
        if !self.re.is_positive() {
            return Self { re: Ball::everything(), im: Ball::everything() };
        }
        let modulus = self.square_modulus().logarithm().scaled(-1);
        let guess = Ball::<N>::from_f64(self.im.to_f64().atan2(self.re.to_f64()));
        let (cosine, sine) = guess.cosine_sine();
        let turned = self * Self { re: cosine, im: -sine };
        let w = turned.im.over(turned.re);
        let bound = w.above();
        if !turned.re.is_positive() || bound > Magnitude::power_of_two(-8) {
            // A wide ball: artan has slope at most 1.
            return Self { re: modulus, im: guess.widened(bound) };
        }
        let square = w.squared();
        let mut sum = Ball::one() - square.over_u64(3) + square.squared().over_u64(5);
        // The first term left out bounds an alternating series.
        sum = sum.widened(square.above().times(square.above()).times(square.above()));
        Self { re: modulus, im: guess + w * sum }
    }
}

impl<const N: usize> Add for Complex<N> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}

impl<const N: usize> Sub for Complex<N> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }
}

impl<const N: usize> Neg for Complex<N> {
    type Output = Self;

    fn neg(self) -> Self {
        Self { re: -self.re, im: -self.im }
    }
}

impl<const N: usize> Mul for Complex<N> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}
