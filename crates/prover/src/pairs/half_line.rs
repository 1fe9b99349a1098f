//! Pairs of Gaussian mixtures whose likelihood ratio rises with x, so that the best tests are
//! half-lines: a single step, a Gaussian, and the last iterate.
//!
//! With x the root of L(x) = t, E_P-E_Q comparisons are sums of normal tails:
//! E(e^Y - e^t)_+ = P(X > x) - e^t Q(X > x), E min(e^Y, e^t) = P(X < x) + e^t Q(X > x),
//! E(e^t - e^Y)_+ = e^t Q(X < x) - P(X < x). The root is enclosed between two points at which the sign of
//! L - t is certain, and the tails are taken at the ball between them.

use super::count::Count;
use crate::arithmetic::{Ball, Float, Magnitude, normal_tail};
use crate::obstacle::Obstacle;
use std::cell::OnceCell;

/// P = sum_j p_j N(first + j stride, v), up to `outside` on every half-line; Q = N(0, v), or the mirror image of P.
pub struct HalfLine<const N: usize> {
    /// p_j.
    pub weights: Vec<Ball<N>>,
    pub first: u64,
    pub stride: u64,
    pub variance: Ball<N>,
    pub substitute: bool,
    pub outside: Magnitude,
    /// p_j e^(-(first + j stride)^2/2v).
    coefficients: Vec<Ball<N>>,
    deviation: Ball<N>,
    /// E K and E K^2 of the count, where they are known.
    moments: Option<(Ball<N>, Ball<N>)>,
    blocks: OnceCell<Vec<Block<N>>>,
}

/// Neighbouring values of the count, whose normal tails are one Taylor series around the middle of them. With D the distance from there
/// divided by the deviation, |D| <= d, f the normal tail and b_n the coefficients of the density around z, f(z + D) = f(z) - sum of b_n
/// D^(n+1)/(n+1). For |w| <= r the density at z + w is at most e^(-m/2)/sqrt(2 pi) in modulus, m the least of (|z| + a)^2 - (r^2 - a^2) over
/// |a| <= r: it is (|z| - r)^2 for |z| >= 2r, and z^2/2 - r^2 else. So |b_n| <= r^-n times that (Cauchy), and what follows the first R terms is
/// at most d (d/r)^R / ((R+1) (1 - d/r)) times it.
struct Block<const N: usize> {
    /// The middle.
    centre: Ball<N>,
    /// sum of p_j D^n/n!, n = 0 .. R.
    moments: Vec<Ball<N>>,
    /// d.
    reach: Ball<N>,
}

/// R.
const TERMS: usize = 36;
/// Values in a block times this many are worth one.
const WORTH: usize = 8;
/// Most of d.
const REACH: f64 = 0.06;

/// What is asked of a pair at a threshold t of the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// E(e^Y - e^t)_+.
    Above,
    /// E min(e^Y, e^t).
    Least,
    /// E(e^t - e^Y)_+.
    Below,
}

impl<const N: usize> HalfLine<N> {
    pub fn new(
        Count { first, stride, weights, outside, moments }: Count<N>,
        variance: Ball<N>,
        substitute: bool,
    ) -> Self {
        let inverse = variance.reciprocal();
        // e^(-(x+s)^2/2v) / e^(-x^2/2v) = e^(-s(2x+s)/2v): by recurrence, two products each.
        let step = Ball::from_u64(stride);
        let centre = Ball::from_u64(first);
        let mut factor = (-(centre.squared() * inverse).scaled(-1)).exponential();
        let mut ratio = (-((centre.scaled(1) + step) * step * inverse).scaled(-1)).exponential();
        let shrink = (-(step.squared() * inverse)).exponential();
        let coefficients = weights
            .iter()
            .map(|weight| {
                let coefficient = *weight * factor;
                factor = factor * ratio;
                ratio = ratio * shrink;
                coefficient
            })
            .collect();
        Self {
            weights,
            first,
            stride,
            variance,
            substitute,
            outside,
            coefficients,
            deviation: variance.root(),
            moments: moments.filter(|_| !substitute),
            blocks: OnceCell::new(),
        }
    }

    /// -ln of the least dP/dQ, where no use at all is among the values: dP/dQ is at least its probability, and comes
    /// as close to it as one likes.
    pub fn largest_loss(&self) -> Option<Ball<N>> {
        if self.substitute || self.first > 0 || self.stride > 1 {
            return None;
        }
        let none = self.weights.first()?.widened(self.outside);
        none.is_positive().then(|| -none.logarithm())
    }

    /// Values in one block.
    fn block_length(&self) -> usize {
        let values = 2.0 * REACH * self.deviation.to_f64() / self.stride as f64;
        if values >= self.weights.len() as f64 { self.weights.len() } else { values as usize }
    }

    /// Units of work that one threshold takes.
    pub fn cost(&self) -> f64 {
        let (all, length) = (self.weights.len() as f64, self.block_length());
        let tails = if length < WORTH { all } else { 3.0 * (all / length as f64).ceil() };
        (0.1 + 0.015 * tails + 0.001 * all) * (N * N) as f64 / 4.0
    }

    fn blocks(&self) -> &[Block<N>] {
        self.blocks.get_or_init(|| {
            let length = self.block_length();
            if length < WORTH {
                return Vec::new();
            }
            let scale = self.deviation.reciprocal();
            let at = |index: usize| Ball::from_u64(self.first + index as u64 * self.stride);
            let chunks = self.weights.chunks(length).enumerate();
            let block = |(number, weights): (usize, &[Ball<N>])| {
                let first = number * length;
                let centre = at(first + weights.len() / 2);
                let mut moments = vec![Ball::ZERO; TERMS + 1];
                let mut reach = Ball::ZERO;
                for (index, weight) in weights.iter().enumerate() {
                    let distance = (at(first + index) - centre) * scale;
                    reach = reach.maximum(distance).maximum(-distance);
                    let mut term = *weight;
                    for (n, moment) in (1u64..).zip(moments.iter_mut()) {
                        *moment = *moment + term;
                        term = (term * distance).over_u64(n);
                    }
                }
                Block { centre, moments, reach: reach.upper() }
            };
            chunks.map(block).collect()
        })
    }

    /// P(X > x) or P(X < x) by blocks, where they are good enough.
    fn by_blocks(&self, x: Ball<N>, above: bool) -> Option<Ball<N>> {
        let root = Ball::pi().scaled(1).root();
        let (mut sum, mut error) = (Ball::<N>::ZERO, Magnitude::ZERO);
        let blocks = self.blocks();
        for block in blocks {
            let z = (x - block.centre).over(self.deviation);
            let z = if above { z } else { -z };
            let density = (-z.squared().scaled(-1)).exponential().over(root);
            // b_n D^(n+1)/(n+1) has (-1)^n He_n(z) D^(n+1)/(n+1)!. Above, the tail is taken at z - D, below at z + D.
            let (mut before, mut here, mut series) = (Ball::ZERO, Ball::one(), Ball::ZERO);
            for (n, moment) in (0u64..).zip(&block.moments[1..]) {
                let term = here * *moment;
                series = if above || n % 2 == 1 { series - term } else { series + term };
                (before, here) = (here, z * here - before.times_u64(n));
            }
            sum = sum + block.moments[0] * normal_tail(z) - density * series;
            // The radius that makes the bound about least.
            let size = z.to_f64().abs();
            let terms = TERMS as f64;
            let r = (0.5 * (size * size + 4.0 * terms).sqrt() - 0.5 * size).max(0.2);
            let (circle, far) = (Ball::<N>::from_f64(r), if z.mid.is_negative() { -z } else { z });
            let log = if circle.scaled(1).is_at_most(&far) {
                -(far - circle).squared().scaled(-1)
            } else {
                (circle.squared() - far.squared().scaled(-1)).scaled(-1)
            };
            let ratio = block.reach.over(circle);
            let less = Ball::one() - ratio;
            if !less.is_positive() {
                return None;
            }
            let rest = ratio.power(TERMS as u64) * block.reach * log.exponential();
            let rest = rest.over_u64(TERMS as u64 + 1).over(less * root);
            error = error.plus((rest * block.moments[0]).above());
        }
        let good = !blocks.is_empty() && error <= self.outside.plus(sum.radius);
        good.then(|| sum.widened(error))
    }

    /// The likelihood ratio's logarithm at x.
    fn loss(&self, x: Ball<N>) -> Ball<N> {
        let at = |x: Ball<N>| {
            let slope = x.over(self.variance);
            let z = slope.times_u64(self.stride).exponential();
            let sum = self.coefficients.iter().rev().fold(Ball::ZERO, |sum, a| sum * z + *a);
            slope.times_u64(self.first) + sum.logarithm()
        };
        if self.substitute { at(x) - at(-x) } else { at(x) }
    }

    /// The infimum of the loss, where it is finite.
    fn infimum(&self) -> Option<Ball<N>> {
        (self.first == 0 && !self.substitute).then(|| self.weights[0].logarithm())
    }

    /// A ball around the root of loss(x) = t; None where there is none, or none is found.
    fn root(&self, t: Ball<N>) -> Result<Option<Ball<N>>, Obstacle> {
        if let Some(infimum) = self.infimum() {
            if t.is_at_most(&infimum) {
                return Ok(None);
            }
            if !infimum.is_below(&t) {
                return Err(Obstacle::precision(
                    "the threshold cannot be told from the smallest loss",
                ));
            }
        }
        let excess = |x: f64| (self.loss(Ball::from_f64(x)) - t).to_f64();
        let scale = self.deviation.to_f64();
        // A bracket, then regula falsi with halving (Illinois), in doubles.
        let (mut low, mut high) = (-scale, scale + self.first as f64);
        let mut at_low = excess(low);
        let mut at_high = excess(high);
        let mut tries = 0;
        while at_low > 0.0 {
            high = low;
            at_high = at_low;
            low *= 2.0;
            at_low = excess(low);
            tries += 1;
            if tries > 200 {
                return Err("no point lies left of the threshold".into());
            }
        }
        while at_high < 0.0 {
            low = high;
            at_low = at_high;
            high = high.abs().max(scale) * 2.0;
            at_high = excess(high);
            tries += 1;
            if tries > 200 {
                return Err("no point lies right of the threshold".into());
            }
        }
        let mut slope = (at_high - at_low) / (high - low);
        for round in 0..200 {
            let mut middle = high - at_high * (high - low) / (at_high - at_low);
            if round % 4 == 3 || !(middle > low && middle < high) {
                middle = 0.5 * (low + high);
            }
            if !(middle > low && middle < high) || high - low <= 1e-14 * scale.max(high.abs()) {
                break;
            }
            let here = excess(middle);
            slope = (at_high - at_low) / (high - low);
            if here < 0.0 {
                low = middle;
                at_low = here;
                at_high *= if round % 4 == 1 { 0.5 } else { 1.0 };
            } else {
                high = middle;
                at_high = here;
                at_low *= if round % 4 == 1 { 0.5 } else { 1.0 };
            }
        }
        // Newton with a slope of doubles gains some 30 bits in every round.
        let mut x = Ball::from_f64(if at_low.abs() < at_high.abs() { low } else { high });
        if !(slope > 0.0 && slope.is_finite()) {
            return Err(Obstacle::precision("the loss is flat in doubles"));
        }
        let mut width = Magnitude::from_f64(high - low);
        let epsilon = (1e-9 * scale).max(f64::MIN_POSITIVE);
        let near = |x: Ball<N>| self.loss(Ball::exact(x.mid));
        slope = ((near(x + Ball::from_f64(epsilon)) - near(x - Ball::from_f64(epsilon)))
            .over(Ball::from_f64(2.0 * epsilon)))
        .to_f64();
        if !(slope > 0.0 && slope.is_finite()) {
            return Err(Obstacle::precision("the loss is flat"));
        }
        let inverse = Ball::from_f64(1.0 / slope);
        for _ in 0..2 + 3 * N {
            let residue = near(x) - Ball::exact(t.mid);
            let change = residue * inverse;
            width = change.above();
            x = Ball::exact((x - change).mid);
            if change.mid.above() <= change.radius.scaled(2) {
                break;
            }
        }
        // Enclose: the signs at both ends must be certain.
        let mut reach = width.max(x.mid.unit()).scaled(1);
        for _ in 0..40 {
            let gap = Ball::exact(Float::from_magnitude(reach));
            let (left, right) = (Ball::exact((x - gap).mid), Ball::exact((x + gap).mid));
            if self.loss(left).is_below(&t) && t.is_below(&self.loss(right)) {
                return Ok(Some(left.hull(&right)));
            }
            reach = reach.scaled(3);
        }
        Err(Obstacle::precision("the threshold could not be enclosed"))
    }

    /// P(X > x) or P(X < x).
    fn mass(&self, of_p: bool, x: Ball<N>, above: bool) -> Ball<N> {
        let tail = |centre: Ball<N>| {
            let z = (x - centre).over(self.deviation);
            normal_tail(if above { z } else { -z })
        };
        if !of_p && !self.substitute {
            return tail(Ball::ZERO);
        }
        // Q is the mirror image of P.
        let (x_of_p, above_of_p) = if of_p { (x, above) } else { (-x, !above) };
        if let Some(found) = self.by_blocks(x_of_p, above_of_p) {
            return found.widened(self.outside);
        }
        let mut sum = Ball::ZERO;
        for (j, weight) in self.weights.iter().enumerate() {
            let centre = Ball::from_u64(self.first + j as u64 * self.stride);
            sum = sum + *weight * tail(if of_p { centre } else { -centre });
        }
        sum.widened(self.outside)
    }

    /// P(X > s z), the power of the test {X > s z}, and the loss at its threshold in doubles.
    pub fn power_above(&self, z: Ball<N>) -> (Ball<N>, f64) {
        let x = self.deviation * z;
        (self.mass(true, x, true), self.loss(Ball::exact(x.mid)).to_f64())
    }

    /// P(X < s z), the size of the test {X < s z} in the other order; for one-sided pairs.
    pub fn size_below(&self, z: Ball<N>) -> Ball<N> {
        self.mass(true, self.deviation * z, false)
    }

    /// At least E_Q(e^t - e^L)_+, L the loss. By Jensen's inequality L(x) >= a x - b, a = E K/v, b = E K^2/2v, and with h = (t + b)/(a s)
    /// E_Q(e^t - e^(aX-b))_+ = e^t Q(X < s h) - e^(a^2 v/2 - b) Q(X < s h - a v).
    fn below(&self, t: Ball<N>) -> Option<Ball<N>> {
        let (mean, square) = self.moments?;
        if !mean.is_positive() {
            return None;
        }
        let x = (square + (t * self.variance).scaled(1)).over(mean.scaled(1));
        let size = (mean.squared() - square).over(self.variance).scaled(-1).exponential();
        let tail = |x: Ball<N>| normal_tail(-(x.over(self.deviation)));
        Some((t.exponential() * tail(x) - size * tail(x - mean)).upper())
    }

    /// What is asked at t.
    pub fn at(&self, t: Ball<N>, part: Part) -> Result<Ball<N>, Obstacle> {
        let level = t.exponential();
        let found = match self.root(t)? {
            None => match part {
                Part::Above => Ball::one() - level,
                Part::Least => level,
                Part::Below => Ball::ZERO,
            },
            Some(x) => match part {
                Part::Above => self.mass(true, x, true) - level * self.mass(false, x, true),
                Part::Least => self.mass(true, x, false) + level * self.mass(false, x, true),
                Part::Below => level * self.mass(false, x, false) - self.mass(true, x, false),
            },
        };
        // What lies outside of the window moves the best threshold; the suprema by no more than it.
        let found = found.widened(self.outside);
        if part == Part::Below
            && !self.outside.is_zero()
            && let Some(below) = self.below(t)
        {
            let most = below.above();
            if most < found.radius {
                return Ok(Ball::up_to(most));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far below all losses, where the table leaves out too much: against the pair with a certain count, which a count that is nearly
    /// certain leaks a little less than.
    #[test]
    fn adding_at_a_large_epsilon() {
        let (n, deviation) = (10_000u64, 3.0);
        let variance = Ball::<3>::from_f64(deviation).squared().times_u64(n);
        let count = Count::<3>::sum(0, &[(1.0 - 1e-12, n)], 200, variance.doubles().0).unwrap();
        let pair = HalfLine::new(count, variance, false);
        let mu = Ball::from_u64(n).over(variance.root());
        let t = Ball::from_f64(-1200.0);
        let found = pair.at(t, Part::Below).unwrap().over(t.exponential());
        let exact = crate::model::gaussian(mu, t, Part::Below).over(t.exponential());
        let ratio = found.upper().over(exact).to_f64();
        assert!((1.0 - 1e-7..1.0 + 1e-7).contains(&ratio), "{ratio}");
    }

    #[test]
    fn blocks_agree_with_single_tails() {
        let count = Count::<3>::binomial(2_000, 0.1, 180).unwrap();
        let stripped = |count: &Count<3>| {
            let mut pair = HalfLine::new(
                Count { weights: count.weights.clone(), ..*count },
                Ball::from_f64(40_000.0),
                false,
            );
            pair.outside = Magnitude::power_of_two(-150);
            pair
        };
        let pair = stripped(&count);
        assert!(pair.block_length() >= WORTH);
        for z in [-9.0, -3.0, 0.0, 0.4, 4.0, 6.7, 12.0, 30.0] {
            for above in [true, false] {
                let x = Ball::from_f64(200.0 * z);
                let found = pair.by_blocks(x, above).unwrap();
                let mut sum = Ball::ZERO;
                for (j, weight) in pair.weights.iter().enumerate() {
                    let z = (x - Ball::from_u64(pair.first + j as u64)).over(pair.deviation);
                    sum = sum + *weight * normal_tail(if above { z } else { -z });
                }
                let difference = found - sum;
                assert!(!difference.is_positive() && !difference.is_negative(), "{z} {above}");
                assert!(found.radius <= Magnitude::power_of_two(-148), "{z} {above}");
            }
        }
    }
}
