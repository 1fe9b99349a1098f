//! Real balls.

use super::float::Float;
use super::magnitude::Magnitude;
use std::cmp::Ordering;
use std::ops::{Add, Mul, Neg, Sub};

/// All x with |x - mid| <= radius.
#[derive(Clone, Copy, Debug)]
pub struct Ball<const N: usize> {
    pub mid: Float<N>,
    pub radius: Magnitude,
}

impl<const N: usize> Ball<N> {
    pub const ZERO: Self = Self { mid: Float::ZERO, radius: Magnitude::ZERO };

    pub fn exact(mid: Float<N>) -> Self {
        Self { mid, radius: Magnitude::ZERO }
    }

    /// The result of one operation of [`Float`].
    pub(super) fn rounded(mid: Float<N>) -> Self {
        Self { mid, radius: mid.unit() }
    }

    pub fn one() -> Self {
        Self::from_u64(1)
    }

    /// Exact.
    pub fn from_u64(x: u64) -> Self {
        Self::exact(Float::from_u64(x))
    }

    /// Exact, for finite doubles; everything for others.
    pub fn from_f64(x: f64) -> Self {
        if x.is_finite() { Self::exact(Float::from_f64(x)) } else { Self::everything() }
    }

    pub fn everything() -> Self {
        Self { mid: Float::ZERO, radius: Magnitude::INFINITE }
    }

    /// [0, bound].
    pub fn up_to(bound: Magnitude) -> Self {
        if bound.is_infinite() {
            return Self::everything();
        }
        Self { mid: Float::from_magnitude(bound).scaled(-1), radius: bound.scaled(-1) }
    }

    /// The ball with `more` added to its radius.
    pub fn widened(self, more: Magnitude) -> Self {
        Self { radius: self.radius.plus(more), ..self }
    }

    /// The smallest ball (nearly) that contains both.
    pub fn hull(&self, other: &Self) -> Self {
        let middle = (*self + *other).scaled(-1).mid;
        let reach = |ball: &Self| (*ball - Self::exact(middle)).above();
        Self { mid: middle, radius: reach(self).max(reach(other)) }
    }

    /// self * 2^power, exact.
    pub fn scaled(self, power: i64) -> Self {
        Self { mid: self.mid.scaled(power), radius: self.radius.scaled(power) }
    }

    /// Whether both are the same ball.
    pub fn is_same(&self, other: &Self) -> bool {
        self.mid == other.mid && self.radius == other.radius
    }

    pub fn is_finite(&self) -> bool {
        !self.radius.is_infinite()
    }

    /// Whether every member is above 0.
    pub fn is_positive(&self) -> bool {
        self.is_finite()
            && !self.mid.is_negative()
            && self.mid.compare_absolute(&Float::from_magnitude(self.radius)) == Ordering::Greater
    }

    /// Whether every member is below 0.
    pub fn is_negative(&self) -> bool {
        (-*self).is_positive()
    }

    /// Whether every member is at least 0.
    pub fn is_not_negative(&self) -> bool {
        self.is_finite()
            && (!self.mid.is_negative() || self.mid.is_zero())
            && self.mid.compare_absolute(&Float::from_magnitude(self.radius)) != Ordering::Less
    }

    /// Whether every member is below every member of `other`.
    pub fn is_below(&self, other: &Self) -> bool {
        (*other - *self).is_positive()
    }

    /// Whether every member is at most every member of `other`.
    pub fn is_at_most(&self, other: &Self) -> bool {
        (*other - *self).is_not_negative()
    }

    /// At least |x| for every member.
    pub fn above(&self) -> Magnitude {
        self.mid.above().plus(self.radius)
    }

    /// At most |x| for every member; zero where the ball touches zero.
    pub fn below(&self) -> Magnitude {
        if !self.is_finite() {
            return Magnitude::ZERO;
        }
        let rest = self.mid.absolute().minus(&Float::from_magnitude(self.radius));
        if rest.is_negative() || rest.is_zero() {
            return Magnitude::ZERO;
        }
        // The subtraction may be off by two units: take them away again.
        let rest = rest.minus(&Float::from_magnitude(rest.unit()).scaled(1));
        if rest.is_negative() { Magnitude::ZERO } else { rest.below() }
    }

    pub fn upper(&self) -> Self {
        if !self.is_finite() {
            return Self::everything();
        }
        let sum = self.mid.plus(&Float::from_magnitude(self.radius));
        Self { mid: sum, radius: sum.unit() }
    }

    pub fn lower(&self) -> Self {
        if !self.is_finite() {
            return Self::everything();
        }
        let sum = self.mid.minus(&Float::from_magnitude(self.radius));
        Self { mid: sum, radius: sum.unit() }
    }

    /// Bits of the midpoint that are certain.
    pub fn accuracy(&self) -> i64 {
        if self.radius.is_zero() {
            return 1 << 40;
        }
        self.mid.above().order() - self.radius.order()
    }

    pub fn to_f64(&self) -> f64 {
        self.mid.to_f64()
    }

    /// Doubles below and above every member.
    pub fn doubles(&self) -> (f64, f64) {
        if !self.is_finite() {
            return (f64::NEG_INFINITY, f64::INFINITY);
        }
        let (lower, upper) = (self.lower(), self.upper());
        let mut low = lower.to_f64();
        while !Self::from_f64(low).is_at_most(&lower) && low > f64::NEG_INFINITY {
            low = low.next_down();
        }
        let mut high = upper.to_f64();
        while !upper.is_at_most(&Self::from_f64(high)) && high < f64::INFINITY {
            high = high.next_up();
        }
        (low, high)
    }

    pub fn times_u64(self, factor: u64) -> Self {
        self * Self::from_u64(factor)
    }

    pub fn squared(self) -> Self {
        self * self
    }

    /// self^power by repeated squaring.
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

    /// 1/self. With r close to 1/mid, |1/mid - r| = |1 - r mid| / |mid|, and moving from mid by the
    /// radius changes the reciprocal by at most radius / (|mid| (|mid| - radius)).
    pub fn reciprocal(self) -> Self {
        let least = self.below();
        if least.is_zero() || !self.is_finite() {
            return Self::everything();
        }
        let power = self.mid.exponent();
        let scaled = self.mid.scaled(-power);
        let one = Float::from_u64(1);
        let mut guess = Float::from_f64(1.0 / scaled.to_f64());
        let mut right = 48;
        while right < Float::<N>::BITS {
            let lack = one.minus(&scaled.times(&guess));
            guess = guess.plus(&guess.times(&lack));
            right *= 2;
        }
        let rest = Self::one() - Self::rounded(scaled.times(&guess));
        let error = rest.above().over(scaled.below()).scaled(-power);
        let moved = self.radius.over(self.mid.below()).over(least);
        Self { mid: guess.scaled(-power), radius: error.plus(moved) }
    }

    pub fn over(self, other: Self) -> Self {
        self * other.reciprocal()
    }

    pub fn over_u64(self, divisor: u64) -> Self {
        self * super::elementary::inverse(divisor)
    }

    /// The root of a ball whose members are at least 0. With s close to the root of mid,
    /// |root - s| <= |mid - s^2| / s; and roots of x and mid differ by at most |x - mid| / root(mid).
    pub fn root(self) -> Self {
        if self.mid.is_zero() && self.radius.is_zero() {
            return Self::ZERO;
        }
        if !self.is_positive() || !self.is_finite() {
            return Self::everything();
        }
        let power = self.mid.exponent().div_euclid(2) * 2;
        let scaled = self.mid.scaled(-power);
        let mut inverse = Float::from_f64(1.0 / scaled.to_f64().sqrt());
        let (three, mut right) = (Float::from_u64(3), 48);
        while right < Float::<N>::BITS {
            let square = scaled.times(&inverse).times(&inverse);
            inverse = inverse.times(&three.minus(&square)).scaled(-1);
            right *= 2;
        }
        let root = scaled.times(&inverse);
        let rest = Self::exact(scaled) - Self::rounded(root.times(&root));
        let error = rest.above().over(root.below()).scaled(power / 2);
        let moved = self.radius.over(root.scaled(power / 2).below()).scaled(1);
        Self { mid: root.scaled(power / 2), radius: error.plus(moved) }
    }

    pub fn minimum(self, other: Self) -> Self {
        if self.is_at_most(&other) {
            self
        } else if other.is_at_most(&self) {
            other
        } else {
            self.hull(&other)
        }
    }

    pub fn maximum(self, other: Self) -> Self {
        -((-self).minimum(-other))
    }
}

impl<const N: usize> Add for Ball<N> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let mid = self.mid.plus(&other.mid);
        Self { mid, radius: self.radius.plus(other.radius).plus(mid.unit()) }
    }
}

impl<const N: usize> Neg for Ball<N> {
    type Output = Self;

    fn neg(self) -> Self {
        Self { mid: self.mid.negated(), ..self }
    }
}

impl<const N: usize> Sub for Ball<N> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + (-other)
    }
}

impl<const N: usize> Mul for Ball<N> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let mid = self.mid.times(&other.mid);
        let mut radius = mid.unit();
        if !other.radius.is_zero() {
            radius = radius.plus(self.above().times(other.radius));
        }
        if !self.radius.is_zero() {
            radius = radius.plus(other.mid.above().times(self.radius));
        }
        Self { mid, radius }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is known about a ball without bound, however large its midpoint and whatever it is scaled by.
    #[test]
    fn an_endless_ball_stays_endless() {
        let huge = Ball::<2>::exact(Float::from_u64(1).scaled(1 << 57));
        let endless = [
            Ball::<2>::everything(),
            Ball::up_to(Magnitude::INFINITE),
            Ball::everything().scaled(-(1 << 57)),
            Ball::up_to(Magnitude::INFINITE) * huge,
            huge.widened(Magnitude::INFINITE),
            Ball::everything() * Ball::from_f64(1e-300) + huge,
            Ball::everything().exponential(),
            Ball::everything().upper(),
            Ball::everything().lower(),
        ];
        for ball in endless {
            assert!(!ball.is_finite(), "{ball:?}");
            assert!(!ball.is_positive() && !ball.is_negative() && !ball.is_not_negative());
            for other in [Ball::ZERO, Ball::one(), huge, -huge] {
                assert!(!ball.is_below(&other) && !other.is_below(&ball), "{ball:?} {other:?}");
                assert!(!ball.is_at_most(&other) && !other.is_at_most(&ball));
            }
            assert!(ball.below().is_zero() && ball.above().is_infinite());
        }
        assert_eq!(Magnitude::INFINITE.scaled(-1), Magnitude::INFINITE);
    }
}
