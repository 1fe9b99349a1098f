//! A pair from the law of its loss ([`numerics::inversion`]): the composition of steps whose losses
//! are not those of Gaussian mixtures on the whole line. By contour; where few steps leave too much at loss 0 for
//! one, on a lattice (`few_steps.rs`).

use super::Result;
use super::few_steps::FewSteps;
use super::profile::Profile;
use crate::{AccountingError, Order};
use numerics::contour::{Ends, Zone};
use numerics::elementary::{ln, powi};
use numerics::inversion::{Composition, Obstacle, Times};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use vocabulary::{Interval, NotCertified};

/// Makes the laws when shares below a probability may be given away; tells what was.
type Make = Box<dyn Fn(f64) -> (Vec<Times>, f64) + Send + Sync>;

/// A composition of laws. Symmetric laws have the same profile in both orders.
pub(super) struct LawPair {
    make: Make,
    steps: f64,
    symmetric: bool,
    /// Parts of a delta that may be given away, one after the other.
    given_away: &'static [f64],
    /// By the size of the answer, with what is given away; each is a function of the fields above and its key.
    known: Mutex<BTreeMap<u64, Arc<Known>>>,
    /// Lattices by the size of delta, with what is given away.
    few: [OnceLock<(FewSteps, f64)>; SIZES.len()],
    /// Whether so much stays at loss 0 that no contour can do.
    few_only: OnceLock<bool>,
}

/// Laws that some share was given away of, ready to be asked.
struct Known {
    composition: Composition,
    given_away: f64,
}

/// Down to which delta a lattice reaches, and its end in standard deviations.
const SIZES: [(f64, f64); 4] = [(1e-9, 8.5), (1e-35, 14.0), (1e-140, 26.0), (0.0, 37.0)];
/// ln of the mass at loss 0 above which no contour is tried.
const STAYS: f64 = -25.0;

/// Rare far jumps are what the contour of few steps fails at: more of them are given away where it
/// does, and the upper end says so.
const GIVEN_AWAY: &[f64] = &[1e-10, 1e-6, 1e-3];

impl LawPair {
    /// Laws of which nothing needs to be given away but events of this probability.
    pub(super) fn new(parts: Vec<Times>, symmetric: bool, given_away: f64) -> Self {
        let make = Box::new(move |_| (parts.clone(), given_away));
        Self::with(make, 1.0, symmetric, &[0.0])
    }

    /// Laws with rare far jumps: those too rare to matter at the size of the answer are given away,
    /// that is, their probability is added to delta.
    pub(super) fn by_size(make: Make, steps: f64, symmetric: bool) -> Self {
        Self::with(make, steps, symmetric, GIVEN_AWAY)
    }

    fn with(make: Make, steps: f64, symmetric: bool, given_away: &'static [f64]) -> Self {
        let (known, few, few_only) = (Mutex::default(), Default::default(), OnceLock::new());
        Self { make, steps, symmetric, given_away, known, few, few_only }
    }

    /// Whether the lattice is the only way.
    fn few_only(&self) -> bool {
        *self.few_only.get_or_init(|| {
            let (parts, _) = (self.make)(1e-10 / self.steps);
            parts.iter().map(|part| part.times * ln(part.law.atom().max(1e-300))).sum::<f64>()
                > STAYS
        })
    }

    /// The lattice for deltas of a size, and what is given away with it.
    fn few(&self, index: usize) -> &(FewSteps, f64) {
        let (size, sigmas) = SIZES[index];
        self.few[index].get_or_init(|| {
            let (parts, given_away) = (self.make)(1e-10 * size.max(1e-290) / self.steps);
            (FewSteps::new(parts, sigmas), given_away)
        })
    }

    /// A certain upper end of delta, by Chernoff.
    fn at_most(&self, epsilon: f64, order: Order, size: f64) -> Option<f64> {
        if self.few_only() {
            return None;
        }
        let known = self.known(self.given_away[0], size);
        let bound = match order {
            Order::Remove => known.composition.at_most(Zone::Above, 1.0, epsilon),
            Order::Add => known.composition.at_most(Zone::Below, 0.0, -epsilon),
        };
        Some(bound? + known.given_away)
    }

    /// delta where no line can be certified: by lattice, and not above Chernoff's bound.
    fn without_line(&self, epsilon: f64, order: Order) -> Result<Interval> {
        let found = self.by_lattice(epsilon, order);
        let size = found.as_ref().map_or(1e-3, |found| found.value.clamp(1e-250, 1e-3));
        let Some(most) = self.at_most(epsilon, order, size).filter(|most| *most < 1.0) else {
            return found;
        };
        let Interval { lower, value, upper } =
            found.unwrap_or(Interval { lower: 0.0, value: most, upper: most });
        let upper = upper.min(most.max(super::profile::LEAST)).max(lower);
        Ok(Interval { lower, value: value.min(upper), upper })
    }

    /// delta by lattice.
    fn by_lattice(&self, epsilon: f64, order: Order) -> Result<Interval> {
        let mut last = None;
        for (index, (size, _)) in SIZES.iter().enumerate() {
            let (few, given_away) = self.few(index);
            let mut found = match few.delta(epsilon, order) {
                Ok(found) => found,
                // What was found before is below its size: that is an end already.
                Err(refused) => return last.ok_or(refused),
            };
            found.upper = (found.upper + given_away).clamp(super::profile::LEAST, 1.0);
            if found.upper > *size {
                return Ok(found);
            }
            last = Some(found);
        }
        last.ok_or_else(|| refusal(Obstacle::SlowDecay))
    }

    /// Asks the laws for a number of some size, and what is given away with it.
    fn ask<T>(
        &self,
        size: f64,
        question: impl Fn(&Composition, f64) -> std::result::Result<T, Obstacle>,
    ) -> std::result::Result<(T, f64), Obstacle> {
        if self.few_only() {
            return Err(Obstacle::SlowDecay);
        }
        let mut refused = Obstacle::TooFine;
        for part in self.given_away {
            let known = self.known(*part, size);
            match question(&known.composition, known.given_away) {
                Ok(found) => return Ok((found, known.given_away)),
                Err(obstacle) => refused = obstacle,
            }
        }
        Err(refused)
    }

    /// The laws when this part of a number of some size may be given away. Sizes are rounded down to a power of
    /// ten, so that neighbouring questions share their lines.
    fn known(&self, part: f64, size: f64) -> Arc<Known> {
        let decade = powi(10.0, (ln(size) / std::f64::consts::LN_10 + 1e-9).floor() as i32);
        let lightest = part * decade.min(size) / self.steps;
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&lightest.to_bits()) {
            return known.clone();
        }
        let (parts, given_away) = (self.make)(lightest);
        // As much is given away for another size: so are the laws the same.
        let same = all.values().find(|known| known.given_away == given_away).cloned();
        let made = same.unwrap_or_else(|| {
            Arc::new(Known { composition: Composition::new(parts), given_away })
        });
        all.insert(lightest.to_bits(), made.clone());
        made
    }

    /// delta at t in an order, when it is about `size`, and what is given away.
    fn delta_at(&self, t: f64, order: Order, size: f64) -> Result<(Interval, f64)> {
        let (found, given_away) = self
            .ask(size, |composition, _| match order {
                Order::Remove => composition.average(Zone::Above, 1.0, t),
                Order::Add => composition.average(Zone::Below, 0.0, -t),
            })
            .map_err(refusal)?;
        let mut found = interval(found);
        // A mean of a function that is above 0; where doubles end, all that is known is that it is tiny.
        found.lower = found.lower.max(0.0);
        found.value = found.value.max(found.lower);
        found.upper = (found.upper + given_away).max(super::profile::LEAST);
        Ok((found, given_away))
    }
}

/// What is not a number says nothing: neither end of it.
fn interval(ends: Ends) -> Interval {
    let lower = if ends.lower.is_nan() { f64::NEG_INFINITY } else { ends.lower };
    let upper = if ends.upper.is_nan() { f64::INFINITY } else { ends.upper.max(lower) };
    Interval {
        lower,
        value: if ends.value.is_nan() { upper } else { ends.value.clamp(lower, upper) },
        upper,
    }
}

pub(super) fn refusal(obstacle: Obstacle) -> AccountingError {
    let obstacle = match obstacle {
        Obstacle::SlowDecay => vocabulary::Difficulty::FewSteps,
        Obstacle::TooFine => vocabulary::Difficulty::LongTransform,
    };
    NotCertified::OneRoute(obstacle).into()
}

impl Profile for LawPair {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        let order = if self.symmetric { Order::Remove } else { order };
        let Ok((mut found, given_away)) = self.delta_at(epsilon, order, 1e-3) else {
            return self.without_line(epsilon, order);
        };
        if given_away > 1e-8 * found.value && found.value < 1e-3 {
            // What may be given away depends on the answer.
            found = match self.delta_at(epsilon, order, found.value.max(1e-250)) {
                Ok((found, _)) => found,
                Err(_) => return self.without_line(epsilon, order),
            };
        }
        if found.value < 0.9 {
            return Ok(found);
        }
        Ok(match self.one_minus_delta(epsilon, order) {
            Ok(rest) => super::profile::complement(rest),
            Err(_) => found,
        })
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        let order = if self.symmetric { Order::Remove } else { order };
        let asked = self.ask(1e-2, |composition, _| match order {
            // 1 - E(W - e^t)_+ = E min(W, e^t).
            Order::Remove => composition.average(Zone::Between, 1.0, epsilon),
            Order::Add => composition.average(Zone::Between, 0.0, -epsilon),
        });
        let Ok((rest, given_away)) = asked else {
            return Ok(super::profile::complement(self.without_line(epsilon, order)?));
        };
        let mut rest = interval(rest);
        rest.lower = (rest.lower - given_away).max(0.0);
        rest.value = rest.value.max(rest.lower);
        Ok(rest)
    }

    fn symmetric(&self) -> bool {
        self.symmetric
    }

    fn is_below(&self, epsilon: f64, order: Order, delta: f64) -> Option<bool> {
        let order = if self.symmetric { Order::Remove } else { order };
        let asked = self.ask(delta, |composition, _| match order {
            Order::Remove => composition.rough_average(Zone::Above, 1.0, epsilon),
            Order::Add => composition.rough_average(Zone::Below, 0.0, -epsilon),
        });
        let Ok((found, given_away)) = asked else {
            // So far out that no line is certified, as one order is where the other decides.
            return self.at_most(epsilon, order, delta).filter(|most| *most <= delta).map(|_| true);
        };
        let found = interval(found);
        if found.upper + given_away <= delta {
            return Some(true);
        }
        // Too close to tell in three digits: the caller asks for all of them.
        if found.lower > delta { Some(false) } else { None }
    }

    fn epsilon(&self, delta: f64, order: Order) -> Option<Result<Interval>> {
        let order = if self.symmetric { Order::Remove } else { order };
        let solve = |composition: &Composition, delta: f64| match order {
            Order::Remove => composition.threshold(Zone::Above, 1.0, delta).map(interval),
            Order::Add => composition.threshold(Zone::Below, 0.0, delta).map(|ends| Interval {
                lower: -ends.upper,
                value: -ends.value,
                upper: -ends.lower,
            }),
        };
        let asked = self.ask(delta, |composition, given_away| {
            let mut found = solve(composition, delta)?;
            if given_away > 0.0 {
                let stricter = (delta - given_away) * (1.0 - 2.0 * f64::EPSILON);
                if stricter <= 0.0 {
                    return Err(Obstacle::TooFine);
                }
                found.upper = found.upper.max(solve(composition, stricter)?.upper);
            }
            Ok(found)
        });
        if let Ok((found, _)) = asked {
            return Some(Ok(found));
        }
        let index = SIZES.iter().position(|(size, _)| delta > *size).unwrap_or(SIZES.len() - 1);
        let (few, given_away) = self.few(index);
        // Where none is found the caller goes by values of delta.
        few.epsilon(delta, *given_away, order).ok().map(Ok)
    }
}
