//! Lines that were sampled once are kept: whether one is good enough for another threshold, its ball says.

use crate::arithmetic::{Ball, Magnitude};
use crate::contour::{Line, Zone};
use crate::obstacle::{Obstacle, spend};
use crate::pairs::Part;
use std::cell::RefCell;

/// A line, ln of the error it was made for, and what its error was there.
struct Kept<const N: usize> {
    line: Line<N>,
    wanted: f64,
    error: Magnitude,
}

pub(crate) struct Shelf<const N: usize> {
    lines: RefCell<Vec<Kept<N>>>,
    /// What was done last, for the record.
    path: RefCell<String>,
    /// The transform at 0 and at 1.
    mass: Ball<N>,
}

const MOST_LINES: usize = 16;

/// Whether an error is small enough.
pub(crate) fn enough(error: Magnitude, wanted: f64) -> bool {
    (error.order() as f64) * std::f64::consts::LN_2 < wanted + 3.0
}

impl<const N: usize> Default for Shelf<N> {
    fn default() -> Self {
        Self::of_mass(Ball::one())
    }
}

impl<const N: usize> Shelf<N> {
    /// For lines of a measure with this mass, under P as under Q.
    pub(crate) fn of_mass(mass: Ball<N>) -> Self {
        Self { lines: RefCell::default(), path: RefCell::default(), mass }
    }

    pub(crate) fn path(&self) -> String {
        self.path.borrow().clone()
    }

    pub(crate) fn say(&self, path: String) {
        self.path.replace(path);
    }

    /// What is asked, by a line that is known.
    pub(crate) fn find(
        &self,
        t: Ball<N>,
        part: Part,
        wanted: f64,
    ) -> Result<Option<Ball<N>>, Obstacle> {
        for kept in self.lines.borrow().iter().rev() {
            let (line, error) = (&kept.line, kept.line.error(t));
            // Made for such an error, and about as good here: another one would not be better.
            let same = kept.wanted <= wanted && error <= kept.error.scaled(1);
            if !same && !enough(error, wanted) {
                continue;
            }
            spend(line.cost())?;
            let found = convert(line.zone(), line.at(t), t, part, self.mass);
            if found.is_finite() && (same || enough(found.radius, wanted)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// What is asked, by a new line, which is kept.
    pub(crate) fn put(
        &self,
        line: Line<N>,
        t: Ball<N>,
        part: Part,
        wanted: f64,
    ) -> Result<Ball<N>, Obstacle> {
        spend(line.cost())?;
        let found = convert(line.zone(), line.at(t), t, part, self.mass);
        let mut lines = self.lines.borrow_mut();
        let error = line.error(t);
        lines.push(Kept { line, wanted, error });
        if lines.len() > MOST_LINES {
            lines.remove(0);
        }
        if found.is_finite() {
            Ok(found)
        } else {
            Err(Obstacle::Words("the sum has no finite bound".into()))
        }
    }
}

/// From the mean of a line's zone to the one that is asked for: they differ by the mass (1 where the line is that of a whole
/// run) and by e^t times it.
pub(crate) fn convert<const N: usize>(
    zone: Zone,
    found: Ball<N>,
    t: Ball<N>,
    part: Part,
    mass: Ball<N>,
) -> Ball<N> {
    let least = |found: Ball<N>| match zone {
        Zone::Above => mass - found,
        Zone::Between => found,
        Zone::Below => t.exponential() * mass - found,
    };
    match (zone, part) {
        (Zone::Above, Part::Above) | (Zone::Between, Part::Least) | (Zone::Below, Part::Below) => {
            found
        }
        (_, Part::Least) => least(found),
        (_, Part::Above) => mass - least(found),
        (_, Part::Below) => t.exponential() * mass - least(found),
    }
}
