//! A pair from the law of its loss ([`numerics::inversion`]): the composition of steps whose losses
//! are not those of Gaussian mixtures on the whole line.

use super::Result;
use super::profile::Profile;
use crate::{AccountingError, OneWay};
use numerics::contour::{Ends, Zone};
use numerics::inversion::{Composition, Obstacle, Times};
use vocabulary::Interval;

/// Makes the laws when shares below a probability may be given away; tells what was.
type Make = Box<dyn Fn(f64) -> (Vec<Times>, f64) + Send + Sync>;

/// A composition of laws. Symmetric laws have the same profile in both orders.
pub(super) struct LawPair {
    make: Make,
    steps: f64,
    symmetric: bool,
    /// Parts of a delta that may be given away, one after the other.
    given_away: &'static [f64],
}

/// Rare far jumps are what the contour of few steps fails at: more of them are given away where it
/// does, and the upper end says so.
const GIVEN_AWAY: &[f64] = &[1e-10, 1e-6, 1e-3];

impl LawPair {
    /// Laws of which nothing needs to be given away but events of this probability.
    pub(super) fn new(parts: Vec<Times>, symmetric: bool, given_away: f64) -> Self {
        let make = Box::new(move |_| (parts.clone(), given_away));
        Self { make, steps: 1.0, symmetric, given_away: &[0.0] }
    }

    /// Laws with rare far jumps: those too rare to matter at the size of the answer are given away,
    /// that is, their probability is added to delta.
    pub(super) fn by_size(make: Make, steps: f64, symmetric: bool) -> Self {
        Self { make, steps, symmetric, given_away: GIVEN_AWAY }
    }

    /// Asks the laws for a number of some size, and what is given away with it.
    fn ask<T>(
        &self,
        size: f64,
        question: impl Fn(&Composition, f64) -> std::result::Result<T, Obstacle>,
    ) -> std::result::Result<(T, f64), Obstacle> {
        let mut refused = Obstacle::TooFine;
        for part in self.given_away {
            let (parts, given_away) = (self.make)(part * size / self.steps);
            match question(&Composition::new(parts), given_away) {
                Ok(found) => return Ok((found, given_away)),
                Err(obstacle) => refused = obstacle,
            }
        }
        Err(refused)
    }

    /// delta at t in an order, when it is about `size`.
    fn delta_at(&self, t: f64, way: OneWay, size: f64) -> Result<Interval> {
        let (found, given_away) = self
            .ask(size, |composition, _| match way {
                OneWay::Remove => composition.average(Zone::Above, 1.0, t),
                OneWay::Add => composition.average(Zone::Below, 0.0, -t),
            })
            .map_err(refusal)?;
        let mut found = interval(found);
        // A mean of a function that is above 0; where doubles end, all that is known is that it is tiny.
        found.lower = found.lower.max(0.0);
        found.value = found.value.max(found.lower);
        found.upper = (found.upper + given_away).max(super::profile::LEAST);
        Ok(found)
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
    AccountingError::NotCertified(match obstacle {
        Obstacle::SlowDecay => {
            "the loss of so few steps is too uneven for the contour, and no other route is \
             certified for this way to draw batches; give more steps, or account for one"
                .into()
        }
        Obstacle::TooFine => {
            "the transform of the loss would need too many points to be certified".into()
        }
    })
}

impl Profile for LawPair {
    fn delta(&self, epsilon: f64, way: OneWay) -> Result<Interval> {
        let way = if self.symmetric { OneWay::Remove } else { way };
        let mut found = self.delta_at(epsilon, way, 1e-3)?;
        if found.width() > 1e-7 * found.value && found.value < 1e-3 {
            // What may be given away depends on the answer.
            found = self.delta_at(epsilon, way, found.value.max(1e-250))?;
        }
        if found.value < 0.9 {
            return Ok(found);
        }
        Ok(match self.one_minus_delta(epsilon, way) {
            Ok(rest) => super::profile::complement(rest),
            Err(_) => found,
        })
    }

    fn one_minus_delta(&self, epsilon: f64, way: OneWay) -> Result<Interval> {
        let way = if self.symmetric { OneWay::Remove } else { way };
        let (rest, given_away) = self
            .ask(1e-2, |composition, _| match way {
                // 1 - E(W - e^t)_+ = E min(W, e^t).
                OneWay::Remove => composition.average(Zone::Between, 1.0, epsilon),
                OneWay::Add => composition.average(Zone::Between, 0.0, -epsilon),
            })
            .map_err(refusal)?;
        let mut rest = interval(rest);
        rest.lower = (rest.lower - given_away).max(0.0);
        rest.value = rest.value.max(rest.lower);
        Ok(rest)
    }

    fn symmetric(&self) -> bool {
        self.symmetric
    }

    fn is_below(&self, epsilon: f64, way: OneWay, delta: f64) -> Option<bool> {
        let way = if self.symmetric { OneWay::Remove } else { way };
        let asked = self.ask(delta, |composition, _| match way {
            OneWay::Remove => composition.rough_average(Zone::Above, 1.0, epsilon),
            OneWay::Add => composition.rough_average(Zone::Below, 0.0, -epsilon),
        });
        let (found, given_away) = asked.ok()?;
        let found = interval(found);
        if found.upper + given_away <= delta {
            return Some(true);
        }
        // Too close to tell in three digits: the caller asks for all of them.
        if found.lower > delta { Some(false) } else { None }
    }

    fn epsilon(&self, delta: f64, way: OneWay) -> Option<Result<Interval>> {
        let way = if self.symmetric { OneWay::Remove } else { way };
        let solve =
            |composition: &Composition, delta: f64| match way {
                OneWay::Remove => composition.threshold(Zone::Above, 1.0, delta).map(interval),
                OneWay::Add => composition.threshold(Zone::Below, 0.0, delta).map(|ends| {
                    Interval { lower: -ends.upper, value: -ends.value, upper: -ends.lower }
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
        // Where no threshold is found the caller goes by values of delta.
        asked.ok().map(|(found, _)| Ok(found))
    }
}
