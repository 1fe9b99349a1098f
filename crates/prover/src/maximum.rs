//! The largest last-iterate profile over all stopping times, by branch and bound on ranges of t.
//!
//! **Lemma.** For P = K + N(0, v), Q = N(0, v), K >= 0, a stochastically larger K or a smaller v raises
//! both orders' delta at every epsilon: the likelihood ratio rises in x, so best tests are
//! half-lines {X > x}, and a larger K raises P(X > x) and leaves Q alone; dividing by the deviation, a
//! smaller v is a larger K. So for stopping times t in [a, b] of one phase the pair with the count of b and
//! the noise of a dominates all of them.

use crate::arithmetic::{Ball, Float};
use crate::model::Model;
use crate::obstacle::{Obstacle, spend};
use crate::pairs::Part;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use vocabulary::Run;

/// A phase, and the steps of it that are counted and that are noisy.
type Key = (usize, u64, u64);

pub struct Maximum<const N: usize> {
    run: Run,
    depth: i64,
    pairs: RefCell<BTreeMap<Key, Rc<Model<N>>>>,
    looked: Cell<usize>,
}

/// A range whose bound exceeds what is attained by less than 2^-this of it is not split.
const TOLERANCE: i64 = 46;
const MOST_PAIRS: usize = 4000;

struct Range<const N: usize> {
    phase: usize,
    first: u64,
    last: u64,
    bound: Ball<N>,
}

impl<const N: usize> Maximum<N> {
    pub(crate) fn new(run: &Run, depth: i64) -> Result<Self, Obstacle> {
        let maximum =
            Self { run: run.clone(), depth, pairs: RefCell::default(), looked: Cell::new(0) };
        // The whole run must be within reach.
        let last = run.phases().len() - 1;
        maximum.pair((last, run.phases()[last].steps, run.phases()[last].steps))?;
        Ok(maximum)
    }

    pub(crate) fn path(&self) -> String {
        format!("branch and bound over stopping times, {} pairs", self.looked.get())
    }

    fn pair(&self, key: Key) -> Result<Rc<Model<N>>, Obstacle> {
        if let Some(known) = self.pairs.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        spend(1.0)?;
        let (phase, counted, noisy) = key;
        let phases = self.run.phases()[..=phase].to_vec();
        let part = self.run.with_phases(phases).map_err(|error| error.to_string())?;
        let model = Model::last_iterate(&part, self.depth, |index, steps| {
            if index == phase { (counted, noisy) } else { (steps, steps) }
        })?;
        let model = Rc::new(model);
        self.pairs.borrow_mut().insert(key, Rc::clone(&model));
        self.looked.set(self.looked.get() + 1);
        Ok(model)
    }

    /// Single stopping times that are looked at first: whole phases, and their first steps.
    pub(crate) fn usual(&self) -> Result<Vec<Rc<Model<N>>>, Obstacle> {
        let keys = self.run.phases().iter().enumerate().rev();
        keys.flat_map(|(phase, p)| [(phase, p.steps, p.steps), (phase, 1, 1)])
            .map(|key| self.pair(key))
            .collect()
    }

    /// Whether the leakage of all stopping times is at most `bound`, or that of some is above it: the mean, or minus
    /// the mean for [`Part::Least`]. None where neither could be shown.
    pub(crate) fn is_at_most(
        &self,
        t: Ball<N>,
        part: Part,
        bound: Ball<N>,
    ) -> Result<Option<bool>, Obstacle> {
        let sign = |x: Ball<N>| if part == Part::Least { -x } else { x };
        let ask = |key: Key| -> Result<Ball<N>, Obstacle> {
            Ok(sign(self.pair(key)?.mean(t, part, 0.0, 0.0)?))
        };
        let mut ranges = Vec::new();
        for (phase, p) in self.run.phases().iter().enumerate() {
            if p.steps > 2 {
                ranges.push((phase, 2, p.steps - 1));
            }
            ranges.extend([(phase, 1, 1), (phase, p.steps, p.steps)]);
        }
        // Single ones first: they tell soonest that it is not.
        ranges.sort_by_key(|range| range.1 == range.2);
        let mut looks = 0;
        while let Some((phase, first, last)) = ranges.pop() {
            looks += 1;
            if looks > MOST_PAIRS {
                return Err("too many stopping times are close to the maximum".into());
            }
            let most = ask((phase, last, first))?;
            if most.is_at_most(&bound) {
                continue;
            }
            if first == last {
                return Ok(bound.is_below(&most).then_some(false));
            }
            let middle = middle(first, last);
            ranges.extend([(phase, first, middle), (phase, middle + 1, last)]);
        }
        Ok(Some(true))
    }

    /// The largest mean over stopping times; the smallest for [`Part::Least`].
    pub(crate) fn mean(&self, t: Ball<N>, part: Part) -> Result<Ball<N>, Obstacle> {
        // Leakage as a number that is to be maximised.
        let sign = |x: Ball<N>| if part == Part::Least { -x } else { x };
        let ask = |key: Key| -> Result<Ball<N>, Obstacle> {
            Ok(sign(self.pair(key)?.mean(t, part, 0.0, 0.0)?))
        };
        let mut best: Option<Ball<N>> = None;
        let mut attain = |value: Ball<N>| {
            best = Some(best.map_or(value, |known| known.maximum(value)));
        };
        let mut ranges: Vec<Range<N>> = Vec::new();
        for (phase, p) in self.run.phases().iter().enumerate() {
            attain(ask((phase, p.steps, p.steps))?);
            attain(ask((phase, 1, 1))?);
            if p.steps > 2 {
                ranges.push(Range {
                    phase,
                    first: 2,
                    last: p.steps - 1,
                    bound: Ball::everything(),
                });
            }
        }
        let mut best = best.ok_or("a run has at least one phase")?;
        let mut count = 0;
        while let Some(range) = ranges.pop() {
            if range.bound.is_finite() && self.is_near(&range.bound, &best) {
                if range.bound.is_at_most(&best) {
                    continue;
                }
                // Nearly the same: the maximum lies between what is attained and this bound.
                let top = range.bound.upper().maximum(best.upper());
                best = best.lower().hull(&top);
                continue;
            }
            count += 1;
            if count > MOST_PAIRS {
                return Err("too many stopping times are close to the maximum".into());
            }
            let (first, last) = (range.first, range.last);
            if first == last {
                let value = ask((range.phase, first, first))?;
                best = best.maximum(value);
                continue;
            }
            let middle = middle(first, last);
            for (first, last) in [(first, middle), (middle + 1, last)] {
                let bound = ask((range.phase, last, first))?;
                ranges.push(Range { phase: range.phase, first, last, bound });
            }
        }
        Ok(sign(best))
    }

    /// Whether the bound exceeds what is attained by next to nothing.
    fn is_near(&self, bound: &Ball<N>, best: &Ball<N>) -> bool {
        let excess = bound.upper() - best.lower();
        let slack = Ball::exact(Float::from_magnitude(best.above())).scaled(-TOLERANCE);
        excess.is_at_most(&slack)
    }
}

/// Where a range is cut: in ratio while it is wide, in length when it is narrow.
fn middle(first: u64, last: u64) -> u64 {
    if last / first >= 4 {
        ((first as f64).sqrt() * (last as f64).sqrt()) as u64
    } else {
        first + (last - first) / 2
    }
    .clamp(first, last - 1)
}
