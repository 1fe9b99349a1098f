//! The law of one step's loss under Q: steps on the whole line, half-lines with their mirror images, and an atom at
//! loss 0, each with its probability. With J of a half-line ([`super::half`]),
//!
//! ```text
//! M(s) = atom + sum of w M_step(s) + sum of w (J(s) + J(1-s)).
//! ```
//!
//! A step on the whole line alone is the rule: Poisson batches. Batches of a fixed size have half-lines when a record
//! is replaced or zeroed out (h(g) of Theorem B: under Q, with probability p_j/q each, P/Q = 1 - q + q e^(mu_j x -
//! mu_j^2/2) on x > mu_j/2; its mirror image; the rest at 1). Truncated batches have both.

use super::bounds::Lines;
use super::fast;
use super::half::{self, Panels};
use super::rough_law::{Angles, RoughLaw};
use super::transform::{Choice, Transform, tail_bound};
use crate::arithmetic::{Ball, Complex, Magnitude};
use crate::pairs::{Edge, Factor, Mask, Step};

pub struct Strand<const N: usize> {
    pub weight: Ball<N>,
    pub step: Step<N>,
    /// From 1/2 on, with its mirror image.
    pub half: bool,
    /// The step whose mirror image it is, where that is another one.
    pub mirror: Option<Step<N>>,
}

impl<const N: usize> Strand<N> {
    fn mirrored(&self) -> &Step<N> {
        self.mirror.as_ref().unwrap_or(&self.step)
    }

    /// Bits of its own that a rare strand needs for this many of the whole.
    fn bits(&self, bits: f64) -> f64 {
        (bits + self.weight.to_f64().log2().min(0.0)).max(12.0)
    }
}

pub struct Law<const N: usize> {
    pub times: u64,
    pub atom: Ball<N>,
    pub strands: Vec<Strand<N>>,
}

impl<const N: usize> Law<N> {
    /// One step on the whole line.
    pub fn plain(step: Step<N>) -> Self {
        let times = step.times;
        Self {
            times,
            atom: Ball::ZERO,
            strands: vec![Strand { weight: Ball::one(), step, half: false, mirror: None }],
        }
    }

    /// The step, where it is all there is.
    pub fn as_plain(&self) -> Option<&Step<N>> {
        match self.strands.as_slice() {
            [one] if !one.half && self.atom.mid.is_zero() => Some(&one.step),
            _ => None,
        }
    }
}

/// Where outcomes are split: where A - a_0 is about eta.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    pub(super) eta: f64,
    pub(super) sharpness: u64,
    pub(super) power: u64,
}

impl Cut {
    /// A - a_0 = a_1 z + ... is about eta at rho z = 1.
    fn of<const N: usize>(self, strand: &Strand<N>, rising: bool) -> Factor<N> {
        let rho = Ball::from_f64(strand.step.log_slope() - self.eta.ln()).exponential();
        let edge = Edge { rho, sharpness: self.sharpness, power: self.power };
        Factor { edge, rising, mirrored: false }
    }
}

/// What takes deep outcomes out of a step on the whole line, where there are any.
fn shallow<const N: usize>(strand: &Strand<N>, low: Cut) -> Vec<Factor<N>> {
    if strand.half || !strand.step.substitute {
        return Vec::new();
    }
    vec![Factor { mirrored: true, ..low.of(strand, false) }]
}

/// How to sum each strand at one tilt.
pub(super) struct LawChoice(Vec<StrandChoice>);

enum StrandChoice {
    Whole(Choice),
    /// Cut off on both sides.
    Clipped(Panels),
    /// At the tilts c and 1 - c.
    Half([Panels; 2]),
}

impl LawChoice {
    pub(super) fn points(&self) -> f64 {
        let points = |choice: &StrandChoice| match choice {
            StrandChoice::Whole(choice) => choice.points(),
            StrandChoice::Clipped(panels) => panels.points(),
            StrandChoice::Half([one, two]) => one.points() + two.points(),
        };
        self.0.iter().map(points).sum()
    }

    /// Rotations that the nodes cost.
    pub(super) fn work(&self, nodes: usize, bits: f64) -> f64 {
        let (mut work, mut halves) = (0.0, 0.0);
        for choice in &self.0 {
            match choice {
                StrandChoice::Whole(choice) => work += choice.work(nodes, bits),
                StrandChoice::Clipped(panels) => halves += panels.points(),
                StrandChoice::Half([one, two]) => halves += one.points() + two.points(),
            }
        }
        if halves > 0.0 { work + fast::work(halves, nodes, bits, true) } else { work }
    }

    fn whole(&self) -> impl Iterator<Item = &Choice> {
        self.0.iter().filter_map(|choice| match choice {
            StrandChoice::Whole(choice) => Some(choice),
            _ => None,
        })
    }

    pub(super) fn is_cramped(&self) -> bool {
        self.whole().any(|choice| choice.cramped)
    }

    pub(super) fn lost_bits(&self) -> f64 {
        self.whole().map(|choice| choice.lost_bits).fold(0.0, f64::max)
    }

    pub(super) fn new<const N: usize>(
        rough: &RoughLaw,
        law: &Law<N>,
        tilt: f64,
        (most, nodes): (f64, usize),
        bits: f64,
    ) -> Option<Self> {
        let pairs = rough.strands.iter().zip(&law.strands);
        pairs
            .map(|(rough, strand)| {
                if strand.half {
                    // The mirror image has the exponent 1 - c, which must be a double.
                    if 1.0 - (1.0 - tilt) != tilt {
                        return None;
                    }
                    // Off the axis a mask may be as large as 2^p.
                    let power = strand.step.mask.power().max(strand.mirrored().mask.power());
                    let bits = strand.bits(bits) + power as f64;
                    let own = Panels::new(&rough.rough, tilt, most, bits)?;
                    let mirror = Panels::new(rough.mirrored(), 1.0 - tilt, most, bits)?;
                    return Some(StrandChoice::Half([own, mirror]));
                }
                let bits = strand.bits(bits);
                if strand.step.reach.is_finite() {
                    let panels = Panels::clipped(&rough.rough, tilt, most, bits)?;
                    return Some(StrandChoice::Clipped(panels));
                }
                Choice::new(&rough.rough, &strand.step, tilt, (most, nodes), bits)
                    .map(StrandChoice::Whole)
            })
            .collect::<Option<_>>()
            .map(Self)
    }
}

impl<const N: usize> Law<N> {
    /// ln below which cells of a half-line's bounds are not cut smaller.
    fn floor(bits: f64) -> f64 {
        -(bits + 30.0) * std::f64::consts::LN_2
    }

    /// M(c + i k du) for k = 0 .. nodes.
    pub(super) fn nodes(
        &self,
        tilt: f64,
        du: f64,
        nodes: usize,
        bits: f64,
        choice: &LawChoice,
    ) -> Vec<Complex<N>> {
        let mut all = self.nodes_beside(tilt, du, nodes, bits, choice);
        for node in &mut all {
            node.re = node.re + self.atom;
        }
        all
    }

    /// The same without the atom.
    pub(super) fn nodes_beside(
        &self,
        tilt: f64,
        du: f64,
        nodes: usize,
        bits: f64,
        choice: &LawChoice,
    ) -> Vec<Complex<N>> {
        let most = du * nodes as f64;
        if let (Some(step), [StrandChoice::Whole(choice)]) = (self.as_plain(), choice.0.as_slice())
        {
            return Transform::new(step, tilt, most, bits, choice).nodes(du, nodes, bits);
        }
        let mut all = vec![Complex::ZERO; nodes + 1];
        // All points of half-lines are one sum.
        let mut points = Transform::from_points(Vec::new(), Vec::new(), Magnitude::ZERO);
        for (strand, choice) in self.strands.iter().zip(&choice.0) {
            let bits = strand.bits(bits);
            let half = |step: &Step<N>, tilt: f64, panels: &Panels| {
                half::transform(step, tilt, most, panels, Self::floor(bits))
            };
            match choice {
                StrandChoice::Whole(choice) => {
                    let transform = Transform::new(&strand.step, tilt, most, bits, choice);
                    for (sum, value) in all.iter_mut().zip(transform.nodes(du, nodes, bits)) {
                        *sum = *sum + value.times_real(strand.weight);
                    }
                }
                StrandChoice::Clipped(panels) => {
                    points.add(strand.weight, half(&strand.step, tilt, panels), false);
                }
                StrandChoice::Half([own, mirror]) => {
                    points.add(strand.weight, half(&strand.step, tilt, own), false);
                    // A^(1-s) turns the other way.
                    let other = half(strand.mirrored(), 1.0 - tilt, mirror);
                    points.add(strand.weight, other, true);
                }
            }
        }
        if !points.is_empty() {
            for (sum, value) in all.iter_mut().zip(points.nodes(du, nodes, bits)) {
                *sum = *sum + value;
            }
        }
        all
    }

    /// The law of low outcomes, to which all mirror images belong.
    pub(super) fn low(&self, low: Cut) -> Self {
        let strands = self.strands.iter().map(|strand| Strand {
            weight: strand.weight,
            step: self.masked(strand, vec![low.of(strand, false)]),
            half: strand.half,
            mirror: strand.half.then(|| strand.step.clone()),
        });
        Self { times: self.times, atom: self.atom, strands: strands.collect() }
    }

    /// That of middle ones, on whole lines: what [`Law::before`] bounds is too much of it.
    pub(super) fn middle(&self, low: Cut, high: Option<Cut>) -> Self {
        self.on_whole_lines(|strand| {
            let above = high.map(|high| high.of(strand, false));
            [low.of(strand, true)].into_iter().chain(above).collect()
        })
    }

    /// That of high ones, in the same way.
    pub(super) fn high(&self, low: Cut, high: Cut) -> Self {
        self.on_whole_lines(|strand| vec![low.of(strand, true), high.of(strand, true)])
    }

    /// That of outcomes that are not deep.
    pub(super) fn calm(&self, low: Cut) -> Self {
        let strands = self.strands.iter().map(|strand| Strand {
            weight: strand.weight,
            step: self.masked(strand, shallow(strand, low)),
            half: strand.half,
            mirror: strand.half.then(|| self.masked(strand, vec![low.of(strand, false)])),
        });
        Self { times: self.times, atom: self.atom, strands: strands.collect() }
    }

    /// At least that of high outcomes that are not deep.
    pub(super) fn calm_high(&self, low: Cut, high: Cut) -> Self {
        self.on_whole_lines(|strand| {
            let mut factors = shallow(strand, low);
            factors.extend([low.of(strand, true), high.of(strand, true)]);
            factors
        })
    }

    /// At least that of deep outcomes, at 1 - s: the mirror images of those that are not low.
    pub(super) fn deep(&self, low: Cut) -> Self {
        let mut law = self.on_whole_lines(|strand| vec![low.of(strand, true)]);
        let mut all = self.strands.iter();
        law.strands.retain(|_| all.next().is_some_and(|one| one.half || one.step.substitute));
        law
    }

    /// At least the probability with which an outcome at x >= 0 is deep, and at x <= 0 high.
    pub(super) fn both(&self, low: Cut) -> Ball<N> {
        let several = self.strands.iter().filter(|strand| !strand.half && strand.step.substitute);
        several
            .map(|strand| Mask::new(vec![low.of(strand, true)]).at(Complex::one()).re.upper())
            .fold(Ball::ZERO, Ball::maximum)
    }

    fn masked(&self, strand: &Strand<N>, factors: Vec<Factor<N>>) -> Step<N> {
        strand.step.masked(Mask::new(factors), self.times)
    }

    fn on_whole_lines(&self, factors: impl Fn(&Strand<N>) -> Vec<Factor<N>>) -> Self {
        let strands = self.strands.iter().map(|strand| Strand {
            weight: strand.weight,
            step: self.masked(strand, factors(strand)),
            half: false,
            mirror: None,
        });
        Self { times: self.times, atom: Ball::ZERO, strands: strands.collect() }
    }

    /// At least the integral of the modulus left of 1/2 for strands that begin there in `whole`.
    pub(super) fn before(&self, whole: &Self, tilt: f64, bits: f64) -> Magnitude {
        let mut sum = Magnitude::ZERO;
        for (strand, other) in self.strands.iter().zip(&whole.strands) {
            if other.half {
                let lines = Lines::new(&strand.step, tilt, 0.0, 0.0);
                let far = lines.far();
                let below = lines.between(-far, half::START, 0.0, Self::floor(bits));
                sum = sum.plus(below.plus(lines.beyond(0.0)).times(strand.weight.above()));
            }
        }
        sum
    }

    /// A bound on |M(c + iu)| for every u >= `from`, of middle outcomes, by moving the path by an angle.
    pub(super) fn middle_tail(&self, tilt: f64, from: f64, angle: f64, floor: f64) -> Magnitude {
        let mut sum = Magnitude::ZERO;
        for strand in &self.strands {
            let lines = Lines::new(&strand.step, tilt, angle, 0.0);
            let bound = lines.turned(f64::NEG_INFINITY, Ball::from_f64(from), floor);
            sum = sum.plus(bound.times(strand.weight.above()));
        }
        sum
    }

    /// M(c), to about 2^-bits.
    pub(super) fn real(&self, rough: &RoughLaw, tilt: f64, bits: f64) -> Option<Ball<N>> {
        Some(self.atom + self.real_beside(rough, tilt, bits)?)
    }

    /// The same without the atom.
    pub(super) fn real_beside(&self, rough: &RoughLaw, tilt: f64, bits: f64) -> Option<Ball<N>> {
        let choice = LawChoice::new(rough, self, tilt, (0.0, 0), bits)?;
        let mut sum = Ball::ZERO;
        for (strand, choice) in self.strands.iter().zip(&choice.0) {
            let bits = strand.bits(bits);
            let value = match choice {
                StrandChoice::Whole(choice) => {
                    Transform::new(&strand.step, tilt, 0.0, bits, choice).real()
                }
                StrandChoice::Clipped(panels) => {
                    half::transform(&strand.step, tilt, 0.0, panels, Self::floor(bits)).real()
                }
                StrandChoice::Half([one, two]) => {
                    let floor = Self::floor(bits);
                    half::transform(&strand.step, tilt, 0.0, one, floor).real()
                        + half::transform(strand.mirrored(), 1.0 - tilt, 0.0, two, floor).real()
                }
            };
            sum = sum + strand.weight * value;
        }
        Some(sum)
    }

    /// A bound on |M(c + iu)| for every u >= `from`.
    pub(super) fn tail(
        &self,
        rough: &RoughLaw,
        tilt: f64,
        from: f64,
        angles: &Angles,
        bits: f64,
    ) -> Option<Ball<N>> {
        let beside = self.tail_beside(rough, tilt, from, angles, bits)?;
        Some((self.atom + beside).upper())
    }

    /// The same without the atom.
    pub(super) fn tail_beside(
        &self,
        rough: &RoughLaw,
        tilt: f64,
        from: f64,
        angles: &Angles,
        bits: f64,
    ) -> Option<Ball<N>> {
        let mut sum = Ball::ZERO;
        for ((strand, rough), angles) in self.strands.iter().zip(&rough.strands).zip(angles) {
            let bound = if strand.half {
                let floor = Self::floor(bits);
                let apart = half::ball::<N>(half::tail(&strand.step, tilt, from, angles[0], floor))
                    + half::ball(half::tail(&strand.step, 1.0 - tilt, from, angles[1], floor));
                let joined = (angles[0] == angles[1])
                    .then(|| half::joined(&strand.step, &rough.rough, tilt, from, angles[0], bits));
                match joined.flatten() {
                    Some(joined) if !apart.is_finite() || joined.is_below(&apart) => joined,
                    _ => apart,
                }
            } else if strand.step.reach.is_finite() {
                let floor = Self::floor(bits);
                half::ball(half::clipped_tail(&strand.step, tilt, from, angles[0], floor))
            } else {
                tail_bound(&strand.step, &rough.rough, tilt, from, angles[0], bits)?
            };
            sum = sum + strand.weight * bound;
        }
        Some(sum.upper())
    }
}
