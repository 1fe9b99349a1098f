//! Certified bracket of the composition on a lattice: an independent check of the contour.

mod compose;
mod discretise;
mod plan;
mod step;

use super::OneWay;
use crate::AccountingError;
use compose::{Composition, End};
use step::Step;
use vocabulary::{Interval, Run};

/// How fine the lattice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatticeOptions {
    /// Lattice points for the total loss: a power of two in 2^8..=2^20.
    pub points: usize,
}

impl Default for LatticeOptions {
    fn default() -> Self {
        Self { points: 1 << 15 }
    }
}

/// Lower and upper bounds of a run's composition, by convolution on a lattice.
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
    /// no power of two in range.
    pub fn for_run(run: &Run, options: LatticeOptions) -> Result<Self, AccountingError> {
        let points = options.points;
        if !points.is_power_of_two() || !(1 << 8..=1 << 20).contains(&points) {
            return Err(AccountingError::InvalidInput(format!(
                "{points} lattice points: give a power of two from 256 to 1048576"
            )));
        }
        Ok(Self {
            remove: Step::of_run(run, OneWay::Remove)?,
            add: Step::of_run(run, OneWay::Add)?,
            points,
        })
    }

    fn steps(&self, way: OneWay) -> &[Step] {
        match way {
            OneWay::Remove => &self.remove,
            OneWay::Add => &self.add,
        }
    }

    /// delta(epsilon) in one order.
    ///
    /// # Errors
    /// `NotCertified` where the losses do not fit on the lattice.
    pub fn delta(&self, epsilon: f64, way: OneWay) -> Result<Interval, AccountingError> {
        let steps = self.steps(way);
        if epsilon >= largest_loss(steps) {
            return Ok(Interval::exact(0.0));
        }
        let plan = plan::window(steps, plan::tilt_for_epsilon(steps, epsilon));
        let high =
            Composition::new(steps, &plan, self.points, End::Upper)?.log_delta(epsilon).exp();
        let low = Composition::new(steps, &plan, self.points, End::Lower)?.log_delta(epsilon).exp();
        let floor = (-epsilon.exp_m1()).max(0.0) * (1.0 - 1e-15);
        let (low, high) = (low.max(floor).min(1.0), high.min(1.0));
        if low > high {
            return Err(AccountingError::NotCertified(format!("inverted bracket {low} > {high}")));
        }
        Ok(Interval::new(low, 0.5 * (low + high), high))
    }
}

/// The largest total loss there can be, rounded up.
fn largest_loss(steps: &[Step]) -> f64 {
    let bound = |step: &Step| step.supremum.unwrap_or(f64::INFINITY) * step.repeats as f64;
    steps.iter().map(bound).sum::<f64>() * (1.0 + 1e-14)
}
