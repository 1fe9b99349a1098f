//! Pairs of Gaussian mixtures whose likelihood ratio rises with x, so that the best tests are
//! half-lines: a single step, a Gaussian, and the last iterate.
//!
//! With x the root of L(x) = t, E_P-E_Q comparisons are sums of normal tails:
//! E(e^Y - e^t)_+ = P(X > x) - e^t Q(X > x), E min(e^Y, e^t) = P(X < x) + e^t Q(X > x),
//! E(e^t - e^Y)_+ = e^t Q(X < x) - P(X < x). The root is enclosed between two points at which the sign of
//! L - t is certain, and the tails are taken at the ball between them.

use crate::arithmetic::{Ball, Float, Magnitude, normal_tail};
use crate::obstacle::Obstacle;

/// P = sum_j p_j N(first + j, v), plus up to `outside` of mass anywhere to the right of 0;
/// Q = N(0, v), or the mirror image of P.
pub struct HalfLine<const N: usize> {
    /// p_j.
    pub weights: Vec<Ball<N>>,
    pub first: u64,
    pub variance: Ball<N>,
    pub substitute: bool,
    pub outside: Magnitude,
    /// p_j e^(-(first+j)^2/2v).
    coefficients: Vec<Ball<N>>,
    deviation: Ball<N>,
}

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
        weights: Vec<Ball<N>>,
        first: u64,
        variance: Ball<N>,
        substitute: bool,
        outside: Magnitude,
    ) -> Self {
        let inverse = variance.reciprocal();
        // e^(-(j+1)^2/2v) / e^(-j^2/2v) = e^(-(2j+1)/2v): by recurrence, two products each.
        let centre = Ball::from_u64(first);
        let mut factor = (-(centre.squared() * inverse).scaled(-1)).exponential();
        let mut ratio = (-((centre.scaled(1) + Ball::one()) * inverse).scaled(-1)).exponential();
        let shrink = (-inverse).exponential();
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
            variance,
            substitute,
            outside,
            coefficients,
            deviation: variance.root(),
        }
    }

    /// The likelihood ratio's logarithm at x.
    fn loss(&self, x: Ball<N>) -> Ball<N> {
        let at = |x: Ball<N>| {
            let slope = x.over(self.variance);
            let z = slope.exponential();
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
        let mut sum = Ball::ZERO;
        for (j, weight) in self.weights.iter().enumerate() {
            let centre = Ball::from_u64(self.first + j as u64);
            sum = sum + *weight * tail(if of_p { centre } else { -centre });
        }
        sum + Ball::up_to(self.outside)
    }

    /// P(X > s z), the power of the test {X > s z}, and the loss at its threshold in doubles.
    pub fn power_above(&self, z: Ball<N>) -> (Ball<N>, f64) {
        let x = self.deviation * z;
        (self.mass(true, x, true), self.loss(Ball::exact(x.mid)).to_f64())
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
        Ok(found.widened(self.outside))
    }
}
