//! A binomial law with many values, summed at every B-th of them.
//!
//! Let p(x) = n!/(Gamma(x+1) Gamma(n-x+1)) q^x (1-q)^(n-x), and f a function with 0 <= f <= 1 and
//! |f(x + iy)| <= e^(y^2/2v) f(x) on the strip: normal tails, as functions of the mean, with variance v, and their
//! mixtures (the tail at z + iw is the integral of the density along a path parallel to the axis, so at most e^(w^2/2)
//! times the tail at z).
//!
//! **Off the axis.** |Gamma(a)/Gamma(a+iy)|^2 is the product over k >= 0 of 1 + y^2/(a+k)^2 (DLMF 5.8.3), at most e^(y^2 (1/a +
//! 1/a^2)). So on a window whose members x have x >= a and n - x >= b, |pf(x + iy)| <= e^(y^2/2V) p(x) f(x),
//! 1/V = 1/a + 1/a^2 + 1/b + 1/b^2 + 1/v.
//!
//! **Sums and integrals.** For points B apart between the ends of an interval that lie half a step beyond them, the sum times B
//! less the integral of pf is that of pf(z)/(1 + e^(-+2 pi i (z - end)/B)) along the upper and the lower half of a rectangle
//! of half-height d. On the vertical sides the denominator is 1 + e^(2 pi |y|/B) >= 2, on the others its modulus is at least
//! e^(2 pi d/B) - 1. So the two differ by at most
//!
//! ```text
//! 2 e^(d^2/2V) I / (e^(2 pi d/B) - 1) + d e^(d^2/2V) (p(left) + p(right)),   I the integral.
//! ```
//!
//! The law itself is such a sum with B = 1. So the sum at every B-th point is off by at most both errors, the mass beyond
//! the window, and the integral over what the two intervals do not share, less than a step at either end.
//!
//! **Weights.** Stirling's series envelopes ln Gamma(x+1) = x ln x - x + ln(2 pi x)/2 + R(x), so p(x) is, but for a factor
//! that the sum of all weights gives, e^(-D(x) - R(x) - R(n-x)) / sqrt(x (n-x)), D(x) = x ln(x/nq) + (n-x)
//! ln((n-x)/(n-nq)).

use crate::arithmetic::{Ball, Magnitude};

/// B_2k / (2k (2k-1)), k = 1, 2, ...: numerators and denominators, signs alternating from +.
const STIRLING: [(u64, u64); 12] = [
    (1, 12),
    (1, 360),
    (1, 1260),
    (1, 1680),
    (1, 1188),
    (691, 360_360),
    (1, 156),
    (3617, 122_400),
    (43_867, 244_188),
    (174_611, 125_400),
    (77_683, 5796),
    (236_364_091, 1_506_960),
];

pub(super) struct Smooth<const N: usize> {
    n: u64,
    mean: Ball<N>,
    other_mean: Ball<N>,
    odds: Ball<N>,
    /// The window.
    pub first: u64,
    pub last: u64,
    pub stride: u64,
    /// What weights are multiplied by, so that they and the stride give probabilities.
    scale: Ball<N>,
    /// At least how far a sum is off.
    pub error: Magnitude,
}

/// x ln(x/mean) + (n-x) ln((n-x)/(n-mean)), in doubles.
fn deviance(n: f64, mean: f64, x: f64) -> f64 {
    let part = |x: f64, mean: f64| x * ((x - mean) / mean).ln_1p();
    part(x, mean) + part(n - x, n - mean)
}

impl<const N: usize> Smooth<N> {
    /// Binomial(n, q) with an error of less than about 2^-depth for functions with this v; None where it has too few
    /// values for that, or lies too close to 0 or n. The stride is a multiple of `unit`.
    pub(super) fn new(n: u64, q: f64, depth: i64, v: f64, unit: u64) -> Option<Self> {
        let (whole, nats) = (n as f64, (depth.max(20) as f64 + 4.0) * std::f64::consts::LN_2);
        let mean = whole * q;
        let variance = mean * (1.0 - q);
        let level = 1.5 * nats + 20.0;
        // In doubles: where the deviance reaches the level.
        let edge = |end: f64| {
            let (mut near, mut far) = (mean, end);
            for _ in 0..100 {
                let middle = 0.5 * (near + far);
                if deviance(whole, mean, middle) < level { near = middle } else { far = middle }
            }
            far
        };
        let reach = (2.0 * level * variance).sqrt();
        if !(reach < 0.5 * mean && reach < 0.5 * (whole - mean)) {
            return None;
        }
        let (first, last) = (edge(0.25 * mean).floor(), edge(whole - 0.25 * (whole - mean)).ceil());
        let (a, b) = (0.9 * first, 0.9 * (whole - last));
        let narrow = 1.0 / (1.0 / a + 1.0 / (a * a) + 1.0 / b + 1.0 / (b * b) + 1.0 / v);
        let height = (nats * narrow).sqrt();
        let widest = 2.0 * std::f64::consts::PI * height / (1.5 * nats + 2.0);
        let stride = (widest / unit as f64).floor() * unit as f64;
        if !(stride >= 2.0 && stride < 0.02 * first.min(whole - last)) {
            return None;
        }
        let rate = Ball::from_f64(q);
        let mean = rate.times_u64(n);
        let mut law = Self {
            n,
            mean,
            other_mean: Ball::from_u64(n) - mean,
            odds: rate.over(Ball::one() - rate),
            first: first as u64,
            last: last as u64,
            stride: stride as u64,
            scale: Ball::one(),
            error: Magnitude::INFINITE,
        };
        law.normalise(height, v).then_some(law)
    }

    /// Sets the scale and the error; whether they are proven.
    fn normalise(&mut self, height: f64, v: f64) -> bool {
        let step = Ball::<N>::from_u64(self.stride);
        let points = self.first..=self.last;
        let sum =
            points.step_by(self.stride as usize).fold(Ball::ZERO, |sum, j| sum + self.weight(j));
        let sum = sum * step;
        // 1/V, with a and b a step further out than the window.
        let inverse = |x: u64| Ball::<N>::from_u64(x).reciprocal();
        let edge = |x: Ball<N>| x + x.squared();
        let narrow = edge(inverse(self.first - self.stride))
            + edge(inverse(self.n - self.last - self.stride))
            + Ball::from_f64(v).reciprocal();
        let height = Ball::<N>::from_f64(height);
        let grown = (height.squared() * narrow).scaled(-1).exponential();
        let turns = (Ball::pi().scaled(1) * height).over(step);
        // Of the spacings 1 and B, the second is worse: twice that.
        let sides = grown.scaled(2).over(turns.exponential() - Ball::one());
        // Weights rise up to the mode and fall beyond it; a step further in they bound those at both ends.
        let mode = Ball::from_u64(self.n + 1) * self.odds.over(Ball::one() + self.odds);
        let (left, right) = (self.first + self.stride, self.last - self.stride);
        if !(Ball::from_u64(left + 2).is_below(&mode) && mode.is_below(&Ball::from_u64(right - 2)))
        {
            return false;
        }
        let ends = self.weight(left) + self.weight(right);
        let caps = (height * grown).scaled(1) + step.scaled(1);
        // Beyond the window ratios of neighbours only fall further: geometric series.
        let up = self.ratio(self.last);
        let down = self.ratio(self.first - 1).reciprocal();
        if !(up.is_below(&Ball::one()) && down.is_below(&Ball::one())) {
            return false;
        }
        let beyond = self.weight(self.last).over(Ball::one() - up)
            + self.weight(self.first).over(Ball::one() - down);
        let stuff = ends * caps + beyond;
        // Let c be what weights have to be multiplied by, s their sum times B. Both sums are at most
        // (I + c stuff) (1 + sides) + c stuff, I <= (1 + c stuff)/(1 - sides): with sides <= 1/16 and stuff <= s/16,
        // c s <= 2 and I <= 2.
        let small = sides.is_at_most(&Ball::one().scaled(-4)) && stuff.is_at_most(&sum.scaled(-4));
        if !small {
            return false;
        }
        let error = (sides.scaled(1) + (stuff.scaled(1)).over(sum)).above();
        if error > Magnitude::power_of_two(-4) {
            return false;
        }
        self.error = error;
        self.scale = step.over(sum);
        self.scale = self.scale.widened(self.scale.above().times(error).scaled(1));
        true
    }

    /// p(j+1)/p(j).
    pub(super) fn ratio(&self, j: u64) -> Ball<N> {
        self.odds.times_u64(self.n - j).over(Ball::from_u64(j + 1))
    }

    /// B p(j).
    pub(super) fn at(&self, j: u64) -> Ball<N> {
        self.weight(j) * self.scale
    }

    fn weight(&self, j: u64) -> Ball<N> {
        let (x, y) = (Ball::from_u64(j), Ball::from_u64(self.n - j));
        let deviance =
            x * log_ratio(x, self.mean) + y * log_ratio(y, self.other_mean) + rest(x) + rest(y);
        (-deviance).exponential().over((x * y).root())
    }
}

/// ln(a/b) = 2 artanh((a-b)/(a+b)), which keeps its digits where both are close.
fn log_ratio<const N: usize>(a: Ball<N>, b: Ball<N>) -> Ball<N> {
    let w = (a - b).over(a + b);
    let square = w.squared();
    let bound = square.above();
    if bound > Magnitude::power_of_two(-4) {
        return a.over(b).logarithm();
    }
    let (mut sum, mut term, mut odd) = (Ball::one(), Ball::one(), 3);
    while bound.times(term.above()).order() > -(64 * N as i64) {
        term = term * square;
        sum = sum + term.over_u64(odd);
        odd += 2;
    }
    // After the last term at most w^2k/(1 - w^2) is left, relative to w.
    let left_out = term.above().times(bound).scaled(1);
    (w * sum.widened(left_out)).scaled(1)
}

/// R(x): the first term left out bounds what is left out.
fn rest<const N: usize>(x: Ball<N>) -> Ball<N> {
    let inverse = x.reciprocal();
    let square = inverse.squared();
    let (mut sum, mut power) = (Ball::ZERO, inverse);
    for (index, (over, under)) in STIRLING.iter().enumerate() {
        let term = power.times_u64(*over).over(Ball::from_u64(*under));
        let last = index + 1 == STIRLING.len();
        if last || term.above().order() < -(64 * N as i64) - 8 {
            return sum.widened(term.above());
        }
        sum = if index % 2 == 0 { sum + term } else { sum - term };
        power = power * square;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::count::Count;
    use super::*;
    use crate::arithmetic::normal_tail;
    use crate::obstacle::{Limit, within};

    fn sum<const N: usize>(law: &Count<N>, z: f64, deviation: f64) -> Ball<N> {
        let mut sum = Ball::ZERO;
        for (weight, index) in law.weights.iter().zip(0u64..) {
            let x = Ball::from_u64(law.first + index * law.stride);
            let at = (Ball::from_f64(z) - x).over(Ball::from_f64(deviation));
            sum = sum + *weight * normal_tail(at);
        }
        sum.widened(law.outside)
    }

    /// Sums over every B-th value against sums over all of them: they meet, and both are narrow.
    #[test]
    fn every_bth_value_is_enough() {
        for (n, q, deviation) in
            [(100_000u64, 0.05, 300.0), (60_000, 0.5, 1000.0), (40_000, 0.31, 40.0)]
        {
            let depth = 110;
            let whole = Count::<4>::binomial(n, q, 150).expect("few enough values");
            let law = Count::<4>::sum(0, &[(q, n)], depth, deviation * deviation);
            let law = law.expect("a smooth law");
            assert!(law.stride > 1 && law.weights.len() < 200, "{n} {q}: {}", law.stride);
            for shift in [-6.0, -1.0, 0.0, 0.7, 3.0, 8.0] {
                let mean = n as f64 * q;
                let z = mean + shift * (mean * (1.0 - q) + deviation * deviation).sqrt();
                let (one, two) = (sum(&whole, z, deviation), sum(&law, z, deviation));
                let gap = one - two;
                assert!(!gap.is_positive() && !gap.is_negative(), "{n} {q} {shift}");
                assert!(two.radius < Magnitude::power_of_two(4 - depth), "{n} {q} {shift}");
            }
        }
    }

    /// A smooth law and others, against the product of all values.
    #[test]
    fn sums_of_laws_are_as_smooth_as_the_widest() {
        let parts = [(0.25, 20_000u64), (0.0005, 200), (0.4, 9000), (0.2, 12_000)];
        let deviation = 150.0;
        // Sums of the values of three smooth laws meet, so they are as many as those of one.
        let law = within(Limit::Work(200.0), || {
            Count::<4>::sum(17, &parts, 100, deviation * deviation).expect("a law")
        });
        assert!(law.stride > 1 && law.weights.len() < 400, "{} {}", law.stride, law.weights.len());
        let mut whole = Count::<4>::certain(17);
        for (q, n) in parts {
            let one = Count::binomial(n, q, 130).expect("few enough values");
            whole = whole.plus(&one).expect("few enough values");
        }
        for z in [10_700.0, 11_017.0, 11_800.0] {
            let gap = sum(&whole, z, deviation) - sum(&law, z, deviation);
            assert!(!gap.is_positive() && !gap.is_negative(), "{z}");
            assert!(gap.radius < Magnitude::power_of_two(-90), "{z}");
        }
    }
}
