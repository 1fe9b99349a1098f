//! Contour inversion, and the lattice behind it.

use super::{extremes, interval};
use crate::AccountingError;
use crate::pairs::ends::{complement, strictly_inside};
use crate::pairs::lattice::KeptBracket;
use crate::pairs::{LatticeBracket, LatticeOptions, Order, RenyiBound};
use numerics::contour::{Obstacle, SumOfLogRatios, Zone};
use numerics::elementary::exp;
use std::sync::{Arc, OnceLock};
use vocabulary::{Adjacency, Interval, NotCertified, Quantity, Run};

/// Points of the lattice that stands in for the contour: a fraction of a second, 15 MB.
const LATTICE_POINTS: usize = 1 << 16;
/// Gaussians in all steps' mixtures for which the lattice is built; each costs as much again, and
/// a large group would take minutes.
const MOST_COMPONENTS: usize = 16;

/// Where a delta cannot be certified and is below this, its upper end by moments is the answer.
const NOTHING: f64 = 1e-20;

/// The sum of a run's losses, asked by contour first.
#[derive(Debug)]
pub(super) struct Contour {
    pub(super) sum: SumOfLogRatios,
    run: Arc<Run>,
    /// Made when the contour first fails; `None` inside where the run has too many components.
    shared: Arc<OnceLock<Option<KeptBracket>>>,
    /// The same with a memory of its own.
    lattice: OnceLock<Option<KeptBracket>>,
    /// Made when a delta is first too small for the contour; `None` inside where the run has no such bound.
    moments: Arc<OnceLock<Option<RenyiBound>>>,
}

/// Without the memory of what was asked.
impl Clone for Contour {
    fn clone(&self) -> Self {
        Self {
            sum: self.sum.session(),
            run: Arc::clone(&self.run),
            shared: Arc::clone(&self.shared),
            lattice: OnceLock::new(),
            moments: Arc::clone(&self.moments),
        }
    }
}

impl Contour {
    pub(super) fn new(sum: SumOfLogRatios, run: Run) -> Self {
        let run = Arc::new(run);
        let (shared, moments) = (Arc::default(), Arc::default());
        Self { sum, run, shared, lattice: OnceLock::new(), moments }
    }

    /// What the lattice says, if it says something: an interval narrower than half its value.
    pub(super) fn bracket(
        &self,
        refusal: AccountingError,
        ask: impl Fn(&KeptBracket) -> Result<Interval, AccountingError>,
    ) -> Result<Interval, AccountingError> {
        crate::patience::look();
        let make = || {
            let components: usize = (self.sum.parts().iter())
                .map(|part| part.pair.numerator().len() + part.pair.denominator().len())
                .sum();
            if components > MOST_COMPONENTS {
                return None;
            }
            let options = LatticeOptions { points: LATTICE_POINTS };
            LatticeBracket::for_run(&self.run, options).ok().map(KeptBracket::new)
        };
        let lattice = self
            .lattice
            .get_or_init(|| self.shared.get_or_init(make).as_ref().map(KeptBracket::session));
        lattice
            .as_ref()
            .and_then(|lattice| ask(lattice).ok())
            .filter(|interval| interval.upper.is_finite())
            .filter(|interval| interval.width() <= 0.5 * interval.upper)
            .ok_or(refusal)
    }

    /// A bound on delta(epsilon) of both orders from Rényi moments; 1 where there is none. Replacing a record is
    /// taking it away and adding another, each at half of epsilon:
    /// (p - e^eps r)_+ <= (p - e^a q)_+ + e^a (q - e^(eps-a) r)_+.
    fn most_by_moments(&self, epsilon: f64) -> f64 {
        let replaced = self.run.adjacency() == Adjacency::Substitute;
        let moments = || {
            let builder = Run::builder()
                .phases(self.run.phases().iter().copied())
                .sampling(self.run.sampling())
                .group_size(self.run.group_size());
            RenyiBound::for_run(&builder.build().ok()?).ok()
        };
        let Some(bound) = self.moments.get_or_init(moments) else { return 1.0 };
        let share = if replaced { 0.5 * epsilon } else { epsilon };
        let most = bound.rough_delta(share).map_or(1.0, |delta| delta.upper);
        if !replaced {
            return most;
        }
        let both = most * (1.0 + exp(share)) * (1.0 + 8.0 * f64::EPSILON);
        if both.is_finite() { both.min(1.0) } else { 1.0 }
    }

    /// delta(epsilon), or the rest of it to 1.
    pub(super) fn average(
        &self,
        epsilon: f64,
        order: Order,
        rest: bool,
    ) -> Result<Interval, AccountingError> {
        let (t, growth) = match order {
            Order::Remove => (epsilon, 1.0),
            Order::Add => (-epsilon, 0.0),
        };
        let zone = match (order, rest) {
            (_, true) => Zone::Between,
            (Order::Remove, false) => Zone::Above,
            (Order::Add, false) => Zone::Below,
        };
        let found = match self.sum.average(zone, growth, t) {
            Ok(ends) => Ok(interval(ends).clamp(0.0, 1.0)),
            Err(obstacle) => self.bracket(refusal(obstacle, Quantity::Delta), |lattice| {
                let delta = lattice.delta(epsilon, order)?;
                Ok(if rest { complement(delta) } else { delta })
            }),
        };
        // Where next to nothing is left of 1, that is all that doubles can say.
        if found.is_err() {
            let most = extremes::most_rest(self.sum.parts(), epsilon);
            if most < NOTHING {
                let whole = Interval::new((1.0 - most).next_down(), 1.0, 1.0);
                return Ok(if rest { Interval::new(0.0, most, most) } else { whole });
            }
        }
        // Where nothing is known from below, delta may be far smaller than all roundings.
        let vague = found.as_ref().map_or(true, |found| found.lower <= 0.0);
        if vague && !rest && epsilon >= 0.0 {
            let most = self.most_by_moments(epsilon);
            let most = most.min(extremes::most_delta(self.sum.parts(), epsilon, order));
            return match found {
                Ok(found) => Ok(strictly_inside(found.clamp(0.0, most))),
                Err(_) if most < NOTHING => Ok(Interval::new(0.0, most, most)),
                refused => refused,
            };
        }
        found.map(strictly_inside)
    }
}

pub(super) fn refusal(obstacle: Obstacle, quantity: Quantity) -> AccountingError {
    let difficulty = match obstacle {
        Obstacle::SlowDecay => vocabulary::Difficulty::SlowDecay,
        Obstacle::TooFine => vocabulary::Difficulty::TooFine,
        Obstacle::Contradiction => vocabulary::Difficulty::Contradiction,
    };
    NotCertified::Difficulty { quantity, difficulty }.into()
}
