//! A sampled line, and what it says about thresholds.

use super::Composition;
use super::plan::{Plan, Zone};
use super::rough::Rough;
use super::transform::{Choice, Transform, tail_bound};
use crate::arithmetic::{Ball, Complex, Float, Magnitude};

pub struct Line<const N: usize> {
    zone: Zone,
    tilt: f64,
    spacing: f64,
    /// M(c + i k h) / (s (s-1)) for k = 0, 1, ...
    nodes: Vec<Complex<N>>,
    /// At least the product of |M(c+iu)| over u >= U, divided by pi U.
    tail: Magnitude,
    /// (c', M(c')) above and below the tilt.
    alias: [(Ball<N>, Ball<N>); 2],
    points: usize,
}

impl<const N: usize> Line<N> {
    /// None where a bound cannot be computed.
    pub fn new(composition: &Composition<N>, roughs: &[Rough], plan: &Plan) -> Option<Self> {
        let (c, h) = (Ball::from_f64(plan.tilt), Ball::from_f64(plan.spacing));
        let most = plan.spacing * plan.nodes as f64;
        let mut points = 0;
        let mut nodes: Vec<Complex<N>> = (0..=plan.nodes)
            .map(|k| {
                let s = Complex { re: c, im: h.times_u64(k as u64) };
                let kernel = (s * (s - Complex::one())).reciprocal();
                composition.gaussian_factor(s) * kernel
            })
            .collect();
        for (step, choice) in composition.steps.iter().zip(&plan.choices) {
            let transform = Transform::new(step, plan.tilt, most, plan.bits, choice);
            points += choice.points() as usize;
            let all = transform.nodes(plan.spacing, plan.nodes);
            for (node, value) in nodes.iter_mut().zip(all) {
                *node = *node * value.power(step.times);
            }
        }
        // Nodes left out.
        let u = Ball::from_f64(most);
        let square = (c * (c - Ball::one()) - u.squared()) * composition.gaussian;
        let mut log_tail = square.scaled(-1);
        let steps: f64 = roughs.iter().map(|rough| rough.times).sum();
        for ((step, rough), angle) in composition.steps.iter().zip(roughs).zip(&plan.tail_angles) {
            // One step's share of the depth, and digits enough for its power.
            let bits = 24.0 + steps.log2() + plan.bits / step.times as f64;
            let bound = tail_bound(step, rough, plan.tilt, most, *angle, bits)?;
            log_tail = log_tail + bound.logarithm().times_u64(step.times);
        }
        let tail = log_tail.exponential().over(Ball::pi() * u).above();
        let mut alias = [(Ball::ZERO, Ball::ZERO); 2];
        for (index, other) in plan.alias_tilts.iter().enumerate() {
            alias[index] = match other {
                Some(other) => (Ball::from_f64(*other), moment(composition, roughs, *other)?),
                // M(0) = M(1) = 1.
                None => (Ball::from_u64(pole(plan.zone, index == 0)?), Ball::one()),
            };
        }
        Some(Self {
            zone: plan.zone,
            tilt: plan.tilt,
            spacing: plan.spacing,
            nodes,
            tail,
            alias,
            points,
        })
    }

    pub fn zone(&self) -> Zone {
        self.zone
    }

    pub fn tilt(&self) -> f64 {
        self.tilt
    }

    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub fn points(&self) -> usize {
        self.points
    }

    /// The zone's function at t.
    pub fn at(&self, t: Ball<N>) -> Ball<N> {
        let (c, h) = (Ball::from_f64(self.tilt), Ball::from_f64(self.spacing));
        let angle = h * t;
        let mut sum = self.nodes[0].re.scaled(-1);
        for (k, node) in self.nodes.iter().enumerate().skip(1) {
            // Each turn afresh: products of complex balls would widen with every factor.
            let (cosine, sine) = angle.times_u64(k as u64).cosine_sine();
            sum = sum + (node.re * cosine + node.im * sine);
        }
        let growth = ((Ball::one() - c) * t).exponential();
        let sum = sum.scaled(1) * h.over(Ball::pi().scaled(1));
        let value = (sum.widened(self.tail)) * growth;
        let value = if self.zone == Zone::Between { -value } else { value };
        // The aliases are not negative: the truth lies in [value - aliases, value].
        let period = Ball::pi().scaled(1).over(h);
        let mut aliases = Magnitude::ZERO;
        for (other, moment) in &self.alias {
            let gap = *other - c;
            let gap = if gap.mid.is_negative() { -gap } else { gap };
            let ratio = (-(gap * period)).exponential();
            let whole = *moment * ((Ball::one() - *other) * t).exponential() * ratio;
            aliases = aliases.plus(whole.over(Ball::one() - ratio).above());
        }
        let half = Ball::exact(Float::from_magnitude(aliases)).scaled(-1);
        let found = (value - half).widened(half.above());
        // It is a mean of a function that is not negative.
        if found.is_positive() { found } else { Ball::up_to(found.upper().above()) }
    }
}

fn pole(zone: Zone, up: bool) -> Option<u64> {
    match (zone, up) {
        (Zone::Above, false) | (Zone::Between, true) => Some(1),
        (Zone::Between, false) | (Zone::Below, true) => Some(0),
        _ => None,
    }
}

/// M(c) of the whole composition at a real tilt; a few digits are enough.
pub fn moment<const N: usize>(
    composition: &Composition<N>,
    roughs: &[Rough],
    c: f64,
) -> Option<Ball<N>> {
    let s = Complex { re: Ball::from_f64(c), im: Ball::ZERO };
    let mut product = composition.gaussian_factor(s).re;
    for (step, rough) in composition.steps.iter().zip(roughs) {
        let bits = 12.0 + rough.times.log2();
        let choice = Choice::new(rough, step, c, 0.0, bits)?;
        let value = Transform::new(step, c, 0.0, bits, &choice).real();
        product = product * value.power(step.times);
    }
    Some(product)
}
