//! Certified bracket of a run's composition on a lattice of losses: the route that checks the
//! contour, and stands in for it where the contour cannot certify.
//!
//! **What.** For the pair (P, Q) of one step with loss l = log(dP/dQ) and T independent steps,
//! lower and upper bounds of delta(epsilon) = E_P (1 - e^(epsilon - Y))_+, Y the sum of losses.
//! Both ends are certified: discretisation, truncation, aliasing and round-off are all bounded.
//!
//! **Domination.** Let (P', Q') be another pair. If its profile delta' is >= delta everywhere,
//! (P', Q') dominates (P, Q): (P, Q) is a post-processing of it (Blackwell; Dong, Roth and Su
//! 2022, theorem 2.10), and compositions of dominating pairs dominate (Zhu, Dong and Wang 2022,
//! theorem 10). On a lattice y_k = anchor + k h a pair is a set of masses p_k >= 0 with
//! Q mass p_k e^(-y_k), and its profile is piecewise linear in r = e^epsilon with corners at
//! e^(y_k). The same holds for sub-measures in this form: delta is monotone in every p_k, and
//! lowering the loss of a mass (p at loss l becomes q e^y at y <= l) only lowers delta.
//!
//! **Upper: connect the dots** (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). A mass
//! with loss l in [y_k, y_(k+1)] is split over both ends, keeping its P mass and its Q mass; the
//! likelihood ratio is spread with its mean kept, so every convex functional, and with it the
//! profile, can only grow. The shares of y_(k+1) and y_k are p (1 - e^(y_k - l))/(1 - e^-h) and
//! p (e^(y_(k+1) - l) - 1)/(e^h - 1), integrated over x by Gauss-Legendre rules. All terms are
//! positive: there is no difference of deltas that could lose or gain mass.
//!
//! **Lower: balanced merging.** Merging masses into one atom whose P and Q masses are their sums
//! is post-processing. In cell k let the mass that goes down to y_k exceed it by
//! alpha = p_left - e^(y_k) q_left, and the mass that goes up to y_(k+1) fall short by
//! beta = e^(y_(k+1)) q_right - p_right. Given the connect-the-dots masses (a, b) of the cell,
//! p_left = a + (alpha e^h - beta)/(e^h - 1) and p_right = b - the same. A lattice point whose
//! two cells contribute alpha_k = beta_(k-1) has ratio exactly e^(y_k): no bias, only a
//! contraction of order h^2. Which (alpha, beta) can a cell offer? The set is convex (randomised
//! assignments); it contains the segment from (A, 0) to (0, B), A = b (1 - e^-h),
//! B = a (e^h - 1) (constant probability), and its lower frontier is that of threshold
//! assignments: (alpha, beta) is on or above it iff the chord of the profile over the cell,
//! lowered by alpha at its left and beta at its right end, is nowhere above the profile. So
//! alpha/A + beta/B <= 1 together with the chord condition suffices. Chord minus profile is
//! concave in r; tangents at both ends and at the middle bound it. Both cells at a point aim
//! at the larger of their two needs. Where a cell cannot offer it, the surplus is given up by
//! rounding down, which is dominated. Near a finite limit of the loss (log(1-q) for removal) the
//! losses pile up; they are merged into one bin and the lattice is anchored at that bin's loss.
//!
//! **Tilting.** All masses are multiplied by e^(c y) and normalised, c at the saddle of
//! T K(c) - c epsilon - log c - log(1 + c). Then delta = e^(T K(c) - c epsilon) times the mean of
//! e^(-c d)(1 - e^-d)_+, d = Y - epsilon, which is at most c^c/(1+c)^(1+c): a tilted mass
//! that is missing or misplaced costs at most that. Truncated tails of one step (bounded by
//! Gaussian integrals), the mass outside the window (Chernoff's bound on the lattice itself), and
//! the round-off of the transform (see `numerics::lattice::power`) enter each end in this way;
//! the rounding of single masses enters with the sign of its end.
//!
//! **Cost.** About 50 node evaluations per cell and two to eight transforms of n points; steps are
//! composed in blocks of 1024 on growing lattices, so cost and relative width hardly grow with T
//! until T times 3e-14, the certified round-off, matters. Memory below 80 n bytes.

mod balance;
mod block;
mod compose;
mod discretise;
mod kept;
mod plan;
mod solve;
mod step;

use super::ends::complement;
use super::{Order, Pair};
use crate::AccountingError;
use compose::{Composition, End};
pub(crate) use kept::KeptBracket;
use numerics::elementary::{exp, exp_m1, ln};
use step::Step;
use vocabulary::{Difficulty, Interval, NotCertified, Run};

/// How fine the lattice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatticeOptions {
    /// Lattice points for the total loss: a power of two from 2^8 to 2^19.
    pub points: usize,
}

impl Default for LatticeOptions {
    fn default() -> Self {
        Self { points: 1 << 15 }
    }
}

/// Lower and upper bounds of a run's composition, by convolution on a lattice.
///
/// ```
/// use accounting::{Order, Pair, pairs::{LatticeBracket, LatticeOptions}};
/// let run = vocabulary::Run::builder().phase(1.0, 0.01, 1000).build()?;
/// let bracket = LatticeBracket::for_run(&run, LatticeOptions { points: 1 << 12 })?;
/// let delta = bracket.delta(1.0, Order::Remove)?;
/// assert!(delta.lower <= 0.002612420578 && 0.002612420579 <= delta.upper);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LatticeBracket {
    remove: Vec<Step>,
    add: Vec<Step>,
    points: usize,
}

impl LatticeBracket {
    /// The bracket of a run: Poisson or full batches, add/remove or substitution, any group size
    /// and any number of phases.
    ///
    /// # Errors
    /// `Unsupported` for other sampling schemes, `InvalidInput` for a number of points that is
    /// not a power of two in range.
    pub fn for_run(run: &Run, options: LatticeOptions) -> Result<Self, AccountingError> {
        let points = options.points;
        if !points.is_power_of_two() || !(1 << 8..=1 << 19).contains(&points) {
            return Err(AccountingError::invalid(format!(
                "{points} lattice points: give a power of two from 256 to 524288"
            )));
        }
        Ok(Self {
            remove: Step::of_run(run, Order::Remove)?,
            add: Step::of_run(run, Order::Add)?,
            points,
        })
    }

    fn steps(&self, order: Order) -> &[Step] {
        match order {
            Order::Remove => &self.remove,
            Order::Add => &self.add,
        }
    }

    /// Both ends, each as far as it can be certified; an error only if neither can.
    fn both(&self, plan: &plan::Plan) -> Result<Ends, AccountingError> {
        if plan.steps.iter().any(|step| step.kept.is_none()) {
            return Err(NotCertified::OneRoute(Difficulty::NoTilt).into());
        }
        crate::patience::look();
        let low = Composition::new(plan, self.points, End::Lower);
        crate::patience::look();
        let high = Composition::new(plan, self.points, End::Upper);
        match (low, high) {
            (Err(error), Err(_)) => Err(error),
            (low, high) => {
                Ok(Ends { low: low.ok(), high: high.ok(), window: plan.high - plan.low })
            }
        }
    }
}

/// The two compositions of a plan, and the length of its window.
#[derive(Debug)]
struct Ends {
    low: Option<Composition>,
    high: Option<Composition>,
    window: f64,
}

impl Ends {
    /// What they say about delta(epsilon); widest far from the epsilon of the plan.
    fn delta(&self, epsilon: f64) -> Result<Interval, AccountingError> {
        // delta >= 1 - e^epsilon always.
        let floor = (-exp_m1(epsilon)).max(0.0) * (1.0 - 1e-15);
        let at = |end: &Composition| exp(end.log_delta(epsilon)).max(floor).min(1.0);
        bracket(self.low.as_ref().map_or(floor, at), self.high.as_ref().map_or(1.0, at))
    }
}

/// An interval whose ends come from two computations that must not contradict each other.
fn bracket(lower: f64, upper: f64) -> Result<Interval, AccountingError> {
    if lower <= upper {
        Ok(Interval::new(
            lower,
            if upper.is_finite() { 0.5 * (lower + upper) } else { lower },
            upper,
        ))
    } else {
        Err(NotCertified::Inverted { lower, upper }.into())
    }
}

/// The largest total loss there can be, rounded up.
fn largest_loss(steps: &[Step]) -> f64 {
    let bound = |step: &Step| step.supremum.unwrap_or(f64::INFINITY) * step.repeats as f64;
    steps.iter().map(bound).sum::<f64>() * (1.0 + f64::EPSILON * (32.0 + steps.len() as f64))
}

impl Pair for LatticeBracket {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        let steps = self.steps(order);
        if epsilon >= largest_loss(steps) {
            return Ok(Interval::exact(0.0));
        }
        let (tilt, log_delta) = plan::tilt_for_epsilon(steps, epsilon);
        self.both(&plan::best(steps, tilt, epsilon, log_delta, self.points))?.delta(epsilon)
    }

    /// The complement of `delta`: absolute, not relative, accuracy.
    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        Ok(complement(self.delta(epsilon, order)?))
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval, AccountingError> {
        if !(delta > 0.0 && delta < 1.0) {
            return Err(AccountingError::invalid(format!("delta {delta} is outside (0, 1)")));
        }
        let steps = self.steps(order);
        let (tilt, guess) = plan::tilt_for_delta(steps, delta);
        let largest = largest_loss(steps);
        let plan = plan::best(steps, tilt, guess, ln(delta), self.points);
        let guess = guess.clamp(0.0, largest.min(1e300));
        let ends = self.both(&plan)?;
        let cross = |end: &Composition| {
            solve::crossing(|e| end.log_delta(e), ln(delta), guess, ends.window / 20.0)
        };
        let lower = ends.low.as_ref().map_or(0.0, |low| cross(low).0);
        let upper = ends.high.as_ref().map_or(f64::INFINITY, |high| cross(high).1);
        bracket(lower.min(largest), upper.min(largest))
    }

    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        Ok(complement(self.fnr(fpr, order)?))
    }

    /// f(fpr) = sup over epsilon of 1 - delta(epsilon) - e^epsilon fpr. Any epsilon gives a lower
    /// bound; the supremum for the lower pair is at a corner of its profile.
    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        if !(fpr > 0.0 && fpr < 1.0) {
            return Err(AccountingError::invalid(format!("fpr {fpr} is outside (0, 1)")));
        }
        let steps = self.steps(order);
        let (tilt, epsilon) = plan::tilt_for_size(steps, fpr);
        let ends = self.both(&plan::best(steps, tilt, epsilon, -5.0, self.points))?;
        let trivial = (1.0 - fpr, epsilon);
        let (upper, at) = ends.low.as_ref().map_or(trivial, |low| low.largest_miss(fpr));
        let miss = |high: &Composition, e: f64| {
            1.0 - exp(high.log_delta(e)).min(1.0) - exp(e) * fpr * (1.0 + 1e-15)
        };
        let lower = ends
            .high
            .as_ref()
            .map_or(0.0, |high| solve::largest(|e| miss(high, e), at, ends.window / 20.0));
        bracket((lower - 1e-15).max(0.0), (upper + 1e-15).min(1.0 - fpr).max(0.0))
    }
}
