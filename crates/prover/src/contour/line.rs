//! A sampled line, and what it says about thresholds.

use super::Composition;
use super::jumps::Jumped;
use super::masked::MaskedPlan;
use super::plan::{Plan, Zone};
use super::rough_law::RoughLaw;
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
    /// (c', product of L(c')^T): what all-low outcomes of a masked line add is at most this e^((1-c')t); and so for what else is left out.
    rest: Option<(Ball<N>, Ball<N>)>,
    /// What high outcomes add to a masked line.
    jumped: Option<Jumped<N>>,
    points: usize,
}

/// Where a line stands.
pub(super) struct Site {
    pub(super) zone: Zone,
    pub(super) tilt: f64,
    pub(super) spacing: f64,
    /// Tilts at which the aliases are bounded; None: the pole itself, where M = 1.
    pub(super) alias_tilts: [Option<f64>; 2],
}

impl Site {
    pub(super) fn of(plan: &Plan) -> Self {
        let Plan { zone, tilt, spacing, alias_tilts, .. } = *plan;
        Self { zone, tilt, spacing, alias_tilts }
    }
}

impl<const N: usize> Line<N> {
    /// None where a bound cannot be computed.
    pub fn new(composition: &Composition<N>, roughs: &[RoughLaw], plan: &Plan) -> Option<Self> {
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
        for (law, choice) in composition.laws.iter().zip(&plan.choices) {
            points += choice.points() as usize;
            let all = law.nodes(plan.tilt, plan.spacing, plan.nodes, plan.bits, choice);
            for (node, value) in nodes.iter_mut().zip(all) {
                *node = *node * value.power(law.times);
            }
        }
        // Nodes left out.
        let u = Ball::from_f64(most);
        let square = (c * (c - Ball::one()) - u.squared()) * composition.gaussian;
        let mut log_tail = square.scaled(-1);
        let steps: f64 = roughs.iter().map(|rough| rough.times).sum();
        for ((law, rough), angles) in composition.laws.iter().zip(roughs).zip(&plan.tail_angles) {
            // One step's share of the depth, and digits enough for its power.
            let bits = 24.0 + steps.log2() + plan.bits / law.times as f64;
            let bound = law.tail(rough, plan.tilt, most, angles, bits)?;
            log_tail = log_tail + bound.logarithm().times_u64(law.times);
        }
        let tail = log_tail.exponential().over(Ball::pi() * u).above();
        Self::finished(&Site::of(plan), nodes, tail, points, &|c| moment(composition, roughs, c))
    }

    /// The line of a masked plan: the nodes of what is not all low, and a bound on what is.
    pub fn masked(composition: &Composition<N>, masked: &MaskedPlan<N>) -> Option<Self> {
        let plan = &masked.plan;
        let tail = masked.tail(composition)?;
        let points = plan.points as usize;
        let site = Site::of(plan);
        let mut line =
            Self::of_values(&site, masked.nodes(composition), tail, points, &|c| masked.moment(c))?;
        line.rest = Some(masked.masked.rest()?);
        line.jumped = match masked.masked.jumps() {
            Some(jumps) => Some(jumps.enclosed(composition, masked.log_error)?),
            None => None,
        };
        Some(line)
    }

    /// The line with these values of the transform at its nodes.
    pub(super) fn of_values(
        site: &Site,
        mut nodes: Vec<Complex<N>>,
        tail: Magnitude,
        points: usize,
        moment: &dyn Fn(f64) -> Option<Ball<N>>,
    ) -> Option<Self> {
        let (c, h) = (Ball::from_f64(site.tilt), Ball::from_f64(site.spacing));
        for (k, node) in nodes.iter_mut().enumerate() {
            let s = Complex { re: c, im: h.times_u64(k as u64) };
            *node = *node * (s * (s - Complex::one())).reciprocal();
        }
        Self::finished(site, nodes, tail, points, moment)
    }

    fn finished(
        plan: &Site,
        nodes: Vec<Complex<N>>,
        tail: Magnitude,
        points: usize,
        moment: &dyn Fn(f64) -> Option<Ball<N>>,
    ) -> Option<Self> {
        let mut alias = [(Ball::ZERO, Ball::ZERO); 2];
        for (index, other) in plan.alias_tilts.iter().enumerate() {
            alias[index] = match other {
                Some(other) => (Ball::from_f64(*other), moment(*other)?),
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
            rest: None,
            jumped: None,
            points,
        })
    }

    /// The line where up to `most` e^((1-cap) t) is left out of the mean of its zone.
    pub(super) fn and_up_to(self, cap: Ball<N>, most: Ball<N>) -> Self {
        Self { rest: Some((cap, most)), ..self }
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

    /// Units of work that one threshold takes.
    pub fn cost(&self) -> f64 {
        let nodes = self.nodes.len() as f64;
        (0.02 + 0.006 * nodes.sqrt() + 4e-4 * nodes) * (N * N) as f64 / 4.0
    }

    pub fn points(&self) -> usize {
        self.points
    }

    /// e^((1-c)t).
    fn growth(&self, t: Ball<N>) -> Ball<N> {
        ((Ball::one() - Ball::from_f64(self.tilt)) * t).exponential()
    }

    /// At least the aliases at t.
    fn aliases(&self, t: Ball<N>) -> Magnitude {
        let (c, h) = (Ball::from_f64(self.tilt), Ball::from_f64(self.spacing));
        let period = Ball::pi().scaled(1).over(h);
        let mut aliases = Magnitude::ZERO;
        for (other, moment) in &self.alias {
            let gap = *other - c;
            let gap = if gap.mid.is_negative() { -gap } else { gap };
            let ratio = (-(gap * period)).exponential();
            let whole = *moment * ((Ball::one() - *other) * t).exponential() * ratio;
            aliases = aliases.plus(whole.over(Ball::one() - ratio).above());
        }
        aliases
    }

    /// What nodes left out and aliases make of the error at t, without the sum's own.
    pub fn error(&self, t: Ball<N>) -> Magnitude {
        let rest = match &self.rest {
            None => Magnitude::ZERO,
            Some((cap, low)) => (*low * ((Ball::one() - *cap) * t).exponential()).above(),
        };
        let jumps = self.jumped.as_ref().map_or(Magnitude::ZERO, |jumped| jumped.remainder(t));
        self.tail
            .times(self.growth(t).above())
            .plus(self.aliases(t))
            .plus(rest)
            .plus(jumps)
            .scaled(-1)
    }

    /// The zone's function at t.
    pub fn at(&self, t: Ball<N>) -> Ball<N> {
        let h = Ball::from_f64(self.spacing);
        let angle = h * t;
        let mut sum = self.nodes[0].re.scaled(-1);
        // e^(ik angle) as one product of two turns: more factors would widen the balls.
        let turn = |k: usize| {
            let (cosine, sine) = angle.times_u64(k as u64).cosine_sine();
            Complex::new(cosine, sine)
        };
        let turns = self.nodes.len().isqrt().max(1);
        let fine: Vec<Complex<N>> = (0..turns).map(turn).collect();
        for (block, nodes) in self.nodes.chunks(turns).enumerate() {
            let coarse = turn(turns * block);
            let first = usize::from(block == 0);
            for (node, fine) in nodes.iter().zip(&fine).skip(first) {
                let turned = coarse * *fine;
                sum = sum + (node.re * turned.re + node.im * turned.im);
            }
        }
        let growth = self.growth(t);
        let sum = sum.scaled(1) * h.over(Ball::pi().scaled(1));
        let value = (sum.widened(self.tail)) * growth;
        let value = if self.zone == Zone::Between { -value } else { value };
        // The aliases are not negative: the truth lies in [value - aliases, value].
        let aliases = self.aliases(t);
        let half = Ball::exact(Float::from_magnitude(aliases)).scaled(-1);
        let found = (value - half).widened(half.above());
        let found = match &self.rest {
            None => found,
            Some((cap, low)) => {
                found + Ball::up_to((*low * ((Ball::one() - *cap) * t).exponential()).above())
            }
        };
        // It is a mean of a function that is not negative.
        let found = if found.is_positive() { found } else { Ball::up_to(found.upper().above()) };
        match &self.jumped {
            Some(jumped) => found + jumped.at(t),
            None => found,
        }
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
    roughs: &[RoughLaw],
    c: f64,
) -> Option<Ball<N>> {
    let s = Complex { re: Ball::from_f64(c), im: Ball::ZERO };
    let mut product = composition.gaussian_factor(s).re;
    for (law, rough) in composition.laws.iter().zip(roughs) {
        let value = law.real(rough, c, 12.0 + rough.times.log2())?;
        product = product * value.power(law.times);
    }
    Some(product)
}
