//! Rarely used records: the loss of a step is nearly an atom, and M(c+iu) hardly falls. Each step is split into low
//! and middle outcomes ([`crate::pairs::Mask`]). With L the transform of the low ones alone,
//!
//! ```text
//! E(e^Y - e^t)_+ = E[(e^Y - e^t)_+ ; not all low] + E[(e^Y - e^t)_+ ; all low],
//! ```
//!
//! where outcomes count as low with the probability that the mask gives. The first is a contour integral of
//! product of M^T - product of L^T: the transform of a measure that is not negative, so its aliases have the same
//! sign and are at most those of the whole. It falls with u like one middle outcome:
//!
//! ```text
//! |prod M^T - prod L^T| <= prod M(c)^T * sum T |M - L| / M(c),
//! ```
//!
//! since |M|, |L| <= M(c) on the line, and |M - L| is bounded by moving the path to x + iy: there |A| <= A(x), and
//! arg A rises with x and with u's sign in its favour, so that on a cell it is at least its value at the left end.
//! The second is at most prod L(c')^T e^((1-c') t) for every c' >= 1.

use super::Composition;
use super::bounds::Lines;
use super::law::{Law, RoughLaw};
use super::plan::{Plan, Zone};
use super::rough::Rough;
use super::transform::{Choice, Transform};
use crate::arithmetic::{Ball, Complex, Magnitude};
use crate::pairs::{Mask, Step};

/// The steps of a composition with their masks.
pub(super) struct Masked<const N: usize> {
    low: Vec<Step<N>>,
    middle: Vec<Step<N>>,
    low_roughs: Vec<Rough>,
    middle_roughs: Vec<Rough>,
    /// c' at which all-low outcomes are bounded.
    pub(super) cap: f64,
}

/// A plan for the masked line.
pub struct MaskedPlan<const N: usize> {
    pub plan: Plan,
    pub(super) masked: Masked<N>,
    pub(super) choices: Vec<Choice>,
    angle: f64,
}

impl<const N: usize> Masked<N> {
    /// Middle outcomes begin where P/Q is about 1 + eta.
    fn new(composition: &Composition<N>, eta: f64) -> Self {
        let with = |make: &dyn Fn(Ball<N>) -> Mask<N>| -> Vec<Step<N>> {
            composition
                .laws
                .iter()
                .filter_map(|law| law.as_plain().map(|step| (step, law.times)))
                .map(|(step, times)| {
                    // A - a_0 = a_1 z + ... is about eta at rho z = 1.
                    let log = step.log_slope() - eta.ln();
                    let rho = Ball::from_f64(log).exponential();
                    step.masked(make(rho), times)
                })
                .collect()
        };
        let (low, middle) = (with(&Mask::Low), with(&Mask::Middle));
        let low_roughs = low.iter().map(Rough::new).collect();
        let middle_roughs = middle.iter().map(Rough::new).collect();
        Self { low, middle, low_roughs, middle_roughs, cap: 2.0 }
    }

    /// ln of the bound on all-low outcomes, in doubles.
    fn log_rest(&self, cap: f64, t: f64) -> f64 {
        let low: f64 =
            self.low_roughs.iter().map(|rough| rough.times * rough.log_moment(cap)).sum();
        low + (1.0 - cap) * t
    }

    /// The largest eta whose all-low outcomes weigh less than e^log_error.
    fn choose(composition: &Composition<N>, t: f64, log_error: f64) -> Option<Self> {
        let mut eta = 2.0 * t;
        for _ in 0..14 {
            let mut masked = Self::new(composition, eta);
            let mut cap = 2.0 + (20.0 - log_error).max(20.0) / t;
            for _ in 0..4 {
                if masked.log_rest(cap, t) < log_error - 1.0 {
                    masked.cap = cap;
                    return Some(masked);
                }
                cap *= 0.6;
            }
            eta *= 0.6;
        }
        None
    }

    /// sum of T |M - L| / M(c) at u and beyond, in doubles.
    fn rough_tail(&self, roughs: &[RoughLaw], c: f64, u: f64, angle: f64) -> f64 {
        let sum = |rough: &Rough, whole: &RoughLaw| {
            rough.times * (rough.log_middle(c, u, angle) - whole.log_moment(c)).exp()
        };
        self.middle_roughs.iter().zip(roughs).map(|(middle, whole)| sum(middle, whole)).sum()
    }

    /// The transform of low outcomes at c', to their powers.
    pub(super) fn rest(&self) -> Option<(Ball<N>, Ball<N>)> {
        let mut product = Ball::one();
        for (step, rough) in self.low.iter().zip(&self.low_roughs) {
            let bits = 12.0 + rough.times.log2();
            let choice = Choice::new(rough, step, self.cap, 0.0, bits)?;
            let value = Transform::new(step, self.cap, 0.0, bits, &choice).real();
            product = product * value.power(step.times);
        }
        Some((Ball::from_f64(self.cap), product))
    }
}

impl<const N: usize> MaskedPlan<N> {
    /// A plan for threshold t > 0 of one-sided steps; None where none is affordable.
    pub fn new(
        composition: &Composition<N>,
        roughs: &[RoughLaw],
        threshold: f64,
        log_error: f64,
    ) -> Option<Self> {
        let one_sided = |law: &Law<N>| law.as_plain().is_some_and(|step| !step.substitute);
        if !composition.laws.iter().all(one_sided)
            || !composition.gaussian.mid.is_zero()
            || !(threshold > 1e-3)
        {
            return None;
        }
        let line = Plan::line(composition, roughs, Zone::Above, threshold, log_error)?;
        let masked = Masked::choose(composition, threshold, log_error)?;
        let c = line.tilt;
        // |integrand| at u is at most its value on the axis times this, and 1/u^2.
        let depth = line.depth + (c * (c - 1.0)).ln();
        let mut best: Option<(f64, f64)> = None;
        for angle in [0.15, 0.3, 0.6, 0.9, 1.2] {
            let enough =
                |u: f64| masked.rough_tail(roughs, c, u, angle).ln() - u.ln() < -depth - 1.0;
            let mut high = 4.0;
            while !enough(high) && high < 4e5 {
                high *= 2.0;
            }
            let mut low = 0.5 * high;
            for _ in 0..3 {
                let middle = 0.5 * (low + high);
                if enough(middle) { high = middle } else { low = middle }
            }
            if enough(high) && best.is_none_or(|(far, _)| high < far) {
                best = Some((high, angle));
            }
        }
        let (far, angle) = best?;
        let plan = line.until(composition, roughs, far)?;
        let most = plan.spacing * plan.nodes as f64;
        let choices: Vec<Choice> = masked
            .low_roughs
            .iter()
            .zip(&masked.low)
            .map(|(rough, step)| Choice::new(rough, step, c, most, plan.bits))
            .collect::<Option<_>>()?;
        let more: f64 = choices.iter().map(Choice::points).sum();
        let work = plan.work + plan.nodes as f64 * more;
        Some(Self { plan: Plan { work, ..plan }, masked, choices, angle })
    }

    /// product of L^T at the nodes.
    pub(super) fn low_nodes(&self) -> Vec<Complex<N>> {
        let plan = &self.plan;
        let most = plan.spacing * plan.nodes as f64;
        let mut nodes = vec![Complex::one(); plan.nodes + 1];
        for (step, choice) in self.masked.low.iter().zip(&self.choices) {
            let transform = Transform::new(step, plan.tilt, most, plan.bits, choice);
            let all = transform.nodes(plan.spacing, plan.nodes);
            for (node, value) in nodes.iter_mut().zip(all) {
                *node = *node * value.power(step.times);
            }
        }
        nodes
    }

    /// At least the modulus of the difference for every u >= the last node's, divided by pi u.
    pub(super) fn tail(
        &self,
        composition: &Composition<N>,
        roughs: &[RoughLaw],
    ) -> Option<Magnitude> {
        let plan = &self.plan;
        let (c, most) = (plan.tilt, plan.spacing * plan.nodes as f64);
        let mut whole = Ball::one();
        let mut sum = Ball::ZERO;
        for ((law, rough), middle) in composition.laws.iter().zip(roughs).zip(&self.masked.middle) {
            let value = law.real(rough, c, 12.0 + rough.times.log2())?;
            whole = whole * value.power(law.times);
            let lines = Lines::new(middle, c, self.angle, 0.0);
            let floor = rough.log_moment(c) - plan.bits * std::f64::consts::LN_2 - 20.0;
            let bound = lines.turned(f64::NEG_INFINITY, Ball::from_f64(most), floor);
            let share = Ball::exact(crate::arithmetic::Float::from_magnitude(bound)).over(value);
            sum = sum + share.times_u64(law.times);
        }
        let most = Ball::pi() * Ball::from_f64(most);
        Some((whole * sum).over(most).above())
    }
}
