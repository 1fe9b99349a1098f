//! The complementary error function and normal tails, in every range with relative accuracy.
//!
//! Small arguments: erf x = (2/sqrt pi) e^(-x^2) sum_n 2^n x^(2n+1) / (1 3 5 ... (2n+1)), all terms
//! positive for x > 0 (DLMF 7.6.2). Large ones: the continued fraction
//! sqrt(pi) x e^(x^2) erfc x = 1/(1+ (1/2x^2)/(1+ (2/2x^2)/(1+ (3/2x^2)/(1+ ...
//! (DLMF 7.9.1). Its elements are positive, so consecutive approximants enclose the value.

use super::ball::Ball;
use super::float::Float;
use super::magnitude::Magnitude;

/// erfc. |erfc'| = 2/sqrt(pi) e^(-x^2) at the point of the ball nearest to zero, at most 2 e^(-x^2).
pub fn erfc<const N: usize>(x: Ball<N>) -> Ball<N> {
    if !x.is_finite() {
        return Ball::up_to(Magnitude::power_of_two(1));
    }
    let point = Ball::exact(x.mid);
    let value = if x.mid.is_negative() {
        Ball::from_u64(2) - of_positive(-point)
    } else {
        of_positive(point)
    };
    if x.radius.is_zero() {
        return value;
    }
    let nearest = Ball::<N>::exact(Float::from_magnitude(x.below()));
    let slope = (-nearest.squared()).exponential().above().scaled(1);
    value.widened(slope.times(x.radius))
}

/// The probability that a standard normal variable exceeds z.
pub fn normal_tail<const N: usize>(z: Ball<N>) -> Ball<N> {
    erfc(z.over(Ball::from_u64(2).root())).scaled(-1)
}

fn of_positive<const N: usize>(x: Ball<N>) -> Ball<N> {
    // The series loses x^2/ln 2 bits, the fraction converges like e^(-2 x sqrt(2 n)).
    let boundary = if N <= 2 { 4.0 } else { 6.0 };
    if x.to_f64() < boundary { Ball::one() - by_series(x) } else { by_fraction(x) }
}

fn by_series<const N: usize>(x: Ball<N>) -> Ball<N> {
    if x.mid.is_zero() {
        return Ball::ZERO;
    }
    let twice = x.squared().scaled(1);
    let (mut term, mut sum, mut odd) = (x, x, 1u64);
    loop {
        odd += 2;
        term = (term * twice).over_u64(odd);
        sum = sum + term;
        // From here on terms at least halve: what is left is below the last one.
        let halves = twice.scaled(1).is_below(&Ball::from_u64(odd));
        if halves && term.above().order() < sum.above().order() - Float::<N>::BITS - 2 {
            break;
        }
    }
    let sum = sum.widened(term.above());
    (sum * (-x.squared()).exponential()).scaled(1).over(Ball::pi().root())
}

fn by_fraction<const N: usize>(x: Ball<N>) -> Ball<N> {
    let half = x.squared().scaled(1).reciprocal();
    // Approximants A_n / B_n of 1/(1 + a_1/(1 + a_2/(1 + ...))), a_n = n/(2 x^2), by the forward
    // recurrence X_n = X_(n-1) + a_n X_(n-2).
    let (mut before, mut now) = ((Ball::ZERO, Ball::one()), (Ball::one(), Ball::one()));
    let mut n = 0u64;
    loop {
        for _ in 0..8 {
            n += 1;
            let element = half.times_u64(n);
            let next = (now.0 + element * before.0, now.1 + element * before.1);
            before = now;
            now = next;
        }
        let (one, other) = (before.0.over(before.1), now.0.over(now.1));
        let gap = (one - other).above();
        if gap.order() < -Float::<N>::BITS + 6 || n > 4000 || gap <= other.radius.scaled(4) {
            let between = one.hull(&other);
            let density = (-x.squared()).exponential();
            return (density * between).over(x * Ball::pi().root());
        }
    }
}
