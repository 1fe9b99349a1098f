//! The largest last-iterate profile over all stopping times, by branch and bound on ranges of t.
//!
//! **Lemma.** For P = K + N(0, v), Q = N(0, v), K >= 0, a stochastically larger K or a smaller v raises
//! both orders' delta at every epsilon: the likelihood ratio rises in x, so best tests are
//! half-lines {X > x}, and a larger K raises P(X > x) and leaves Q alone; dividing by the deviation, a
//! smaller v is a larger K. So for stopping times t in [a, b] of one phase the pair with the count of b and
//! the noise of a dominates all of them.
//!
//! What is shown of the dominating pair, that it leaks at most so much, is shown of all of the range. Pairs of single
//! stopping times show the opposite.

use crate::arithmetic::Ball;
use crate::hull::Hull;
use crate::model::{Model, Order};
use crate::mu;
use crate::obstacle::{Obstacle, spend};
use crate::proof::Outcome;
use crate::prove::{self, End, Found, sentence};
use crate::tradeoff;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use vocabulary::{Claim, Direction, Quantity, Run};

/// A phase, and the steps of it that are counted and that are noisy.
type Key = (usize, u64, u64);

pub struct Maximum<const N: usize> {
    run: Run,
    depth: i64,
    pairs: RefCell<BTreeMap<Key, Rc<Model<N>>>>,
    looked: Cell<usize>,
}

const MOST_PAIRS: usize = 4000;

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
        spend(0.3)?;
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

    /// The stopping time with about the highest score.
    pub(crate) fn best(
        &self,
        score: &dyn Fn(&Model<N>) -> Result<f64, Obstacle>,
    ) -> Result<Rc<Model<N>>, Obstacle> {
        let ask = |phase: usize, t: u64| score(self.pair((phase, t, t))?.as_ref());
        let mut best = (0, 1, f64::NEG_INFINITY);
        for (phase, p) in self.run.phases().iter().enumerate() {
            // A grid in ratio, then closer to the best of it.
            let count = 8;
            let grid: Vec<u64> = (0..=count)
                .map(|i| {
                    let part = f64::from(i) / f64::from(count);
                    ((p.steps as f64).powf(part).round() as u64).clamp(1, p.steps)
                })
                .collect();
            let mut here = (0, f64::NEG_INFINITY);
            for (index, t) in grid.iter().enumerate() {
                let found = ask(phase, *t)?;
                if found > here.1 {
                    here = (index, found);
                }
            }
            let (mut low, mut high) =
                (grid[here.0.saturating_sub(1)], grid[(here.0 + 1).min(grid.len() - 1)]);
            let mut top = (grid[here.0], here.1);
            while high - low > 2 {
                let third = (high - low) / 3;
                let (one, two) = (low + third, high - third);
                let (at_one, at_two) = (ask(phase, one)?, ask(phase, two)?);
                for (t, found) in [(one, at_one), (two, at_two)] {
                    if found > top.1 {
                        top = (t, found);
                    }
                }
                if at_one < at_two {
                    low = one
                } else {
                    high = two
                }
                if third < p.steps / 5_000 {
                    break;
                }
            }
            if top.1 > best.2 {
                best = (phase, top.0, top.1);
            }
        }
        self.pair((best.0, best.1, best.1))
    }

    /// `wanted` where `ask` says so of pairs that dominate all stopping times between them; the opposite as soon as
    /// it says that of a single one.
    pub(crate) fn all(
        &self,
        wanted: Outcome,
        ask: &dyn Fn(&Model<N>) -> Result<Outcome, Obstacle>,
    ) -> Result<Outcome, Obstacle> {
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
            let single = first == last;
            let found = match self.pair((phase, last, first)).and_then(|pair| ask(&pair)) {
                Ok(found) => found,
                Err(obstacle) if !single && obstacle.may_pass() => Outcome::Undecided,
                Err(obstacle) => return Err(obstacle),
            };
            if found == wanted {
                continue;
            }
            if single {
                return Ok(found);
            }
            let middle = middle(first, last);
            ranges.extend([(phase, first, middle), (phase, middle + 1, last)]);
        }
        Ok(wanted)
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

/// A maximum over stopping times: all of them leak at most what an end says, or one leaks at least that.
pub(crate) fn check<const N: usize>(
    maximum: &Maximum<N>,
    model: &Model<N>,
    claim: &Claim,
    side: End,
    end: f64,
    bits: f64,
) -> Result<Found, Obstacle> {
    let at_least = (side == End::Lower) != (claim.quantity == Quantity::BayesSecurity);
    let ask =
        |pair: &Model<N>| prove::check(pair, claim, side, end, bits).map(|found| found.outcome);
    let rate = match claim.quantity {
        Quantity::Tpr => claim.at.fpr,
        Quantity::Reconstruction => claim.at.prior,
        _ => None,
    };
    if at_least {
        let epsilon = place(claim, end);
        let score = |pair: &Model<N>| leakage(pair, claim, epsilon, rate);
        let usual = maximum.usual()?.into_iter().map(Ok);
        // The search is made when it is needed.
        for pair in usual.chain(std::iter::once_with(|| maximum.best(&score))) {
            let found = prove::check(pair?.as_ref(), claim, side, end, bits);
            match found {
                Ok(found) if found.outcome == Outcome::Proven => {
                    let statement = format!("for one stopping time, {}", found.statement);
                    return Ok(Found { statement, ..found });
                }
                Err(obstacle) if !obstacle.may_pass() => {
                    return Err(obstacle);
                }
                _ => {}
            }
        }
    }
    let mut together = false;
    let outcome = match (rate, claim.direction) {
        // The curve of both orders is the hull of all: one line has to be above every one of them.
        (Some(rate), Direction::Both) if !at_least => by_line(maximum, model, end, rate)?.0,
        // All of them together may have more power than each, and that it is less has to be shown by one line, too.
        (Some(rate), Direction::Both) => match by_line(maximum, model, end.next_down(), rate)? {
            (Outcome::Proven, _) => Outcome::Wrong,
            (_, Some(first)) if Hull::new(maximum, first, end, rate)?.is_reached()? => {
                together = true;
                Outcome::Proven
            }
            _ => Outcome::Undecided,
        },
        _ => maximum.all(if at_least { Outcome::Wrong } else { Outcome::Proven }, &ask)?,
    };
    let what = format!("{} of every stopping time", claim.quantity.as_str());
    let what = match (together, at_least) {
        (true, _) => format!("{what} together"),
        (_, true) => what.replace("every", "some"),
        _ => what,
    };
    let statement = sentence(&what, side == End::Upper, outcome, &end.to_string());
    Ok(Found { outcome, statement, enclosures: Vec::new() })
}

/// The epsilon where a claim looks.
fn place(claim: &Claim, end: f64) -> f64 {
    match claim.quantity {
        Quantity::Epsilon => end,
        Quantity::Delta => claim.at.epsilon.unwrap_or(0.0),
        Quantity::Mu => mu::end_of_curve(end, claim.at.delta.unwrap_or(0.5)),
        Quantity::AttackAccuracy => claim.at.prior.map_or(0.0, |p| ((1.0 - p) / p).ln().abs()),
        _ => 0.0,
    }
}

/// About how much a pair leaks, where the claim looks: to find the worst stopping time.
fn leakage<const N: usize>(
    pair: &Model<N>,
    claim: &Claim,
    epsilon: f64,
    rate: Option<f64>,
) -> Result<f64, Obstacle> {
    if let (Some(rate), Model::HalfLine(pair), true) =
        (rate, pair, claim.direction != Direction::Add)
    {
        return Ok(pair.power_above(tradeoff::normal_quantile(rate)?).0.to_f64());
    }
    let order = if claim.direction == Direction::Add { Order::Add } else { Order::Remove };
    Ok(pair.delta(Ball::from_f64(epsilon), order, 0.0, 0.0)?.to_f64())
}

/// Whether one line is above the curves of all stopping times: that with the slope of the worst one's threshold, or else that with the
/// slope at which the largest of them is least. The first slope is returned as well, where it was not enough.
fn by_line<const N: usize>(
    maximum: &Maximum<N>,
    model: &Model<N>,
    end: f64,
    fpr: f64,
) -> Result<(Outcome, Option<f64>), Obstacle> {
    let z = tradeoff::normal_quantile(fpr)?;
    let power = |pair: &Model<N>| match pair {
        Model::HalfLine(pair) => pair.power_above(z).0.to_f64(),
        Model::Gaussian(mu) => tradeoff::of_gaussian(*mu, fpr).map_or(0.0, |power| power.to_f64()),
        _ => 0.0,
    };
    let pair = maximum.best(&|pair| Ok(power(pair)))?;
    let loss = match pair.as_ref() {
        Model::HalfLine(pair) => pair.power_above(z).1,
        // x mu - mu^2/2 at the threshold.
        Model::Gaussian(mu) => (*mu * z - mu.squared().scaled(-1)).to_f64(),
        _ => return Err("the worst stopping time has no threshold".into()),
    };
    if is_above(maximum, model, loss, end, fpr)? == Outcome::Proven {
        return Ok((Outcome::Proven, None));
    }
    let slope = Hull::new(maximum, loss, end, fpr)?.slope;
    Ok((is_above(maximum, model, slope, end, fpr)?, Some(loss)))
}

/// Whether the line of this slope that has the value `end` at `fpr` is above all curves.
fn is_above<const N: usize>(
    maximum: &Maximum<N>,
    model: &Model<N>,
    slope: f64,
    end: f64,
    fpr: f64,
) -> Result<Outcome, Obstacle> {
    let at = Ball::from_f64(slope);
    let bound = Ball::from_f64(end) - at.exponential() * Ball::from_f64(fpr);
    let missing = Ball::one() - bound;
    let near_one = bound.to_f64() > 0.9;
    let ask = |pair: &Model<N>| -> Result<Outcome, Obstacle> {
        let mut outcome = Outcome::Proven;
        for order in model.orders(Direction::Both) {
            // Close to 1 the digits are in what is missing. A line above the end proves nothing.
            let holds = if near_one {
                missing.is_at_most(&pair.rest(at, *order, 0.0, 0.0)?)
            } else {
                pair.delta(at, *order, 0.0, 0.0)?.is_at_most(&bound)
            };
            if !holds {
                outcome = Outcome::Undecided;
            }
        }
        Ok(outcome)
    };
    maximum.all(Outcome::Proven, &ask)
}
