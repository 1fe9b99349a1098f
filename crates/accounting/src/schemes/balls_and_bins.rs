//! Balls and bins (random allocation): every record is thrown into one of the S batches of an epoch,
//! independently of all others and of earlier epochs.
//!
//! Theorem A (`poisson.rs`): with Y = exp(g/sigma - 1/(2 sigma^2)), g standard normal, one epoch has
//! W = mean of S independent Y under Q, and epochs multiply. Exact for zeroing out and for adding or
//! removing, both orders. A last epoch of r < S steps has W = (S - r + sum of r Y)/S.
//!
//! **Certified ends.** Whole epochs go by contour ([`numerics::lognormal`]) where the line is not too long. Otherwise
//! ([`numerics::positive`]): delta(eps) = E_Q (W - e^eps)_+ and
//! E_Q (1 - e^eps W)_+ are convex in W, so a law of W that is larger (smaller) in convex order bounds
//! both orders at every epsilon from above (below). Y is spread (lumped) on a grid, sums are taken by
//! doubling, the product over epochs by doubling again, and every result is spread (lumped) on a grid
//! of its own. What lies beyond the last point keeps its Q mass there, and the mean it loses is added
//! to the remove order. Enough noise goes by FFT first (`thrown_lattice.rs`); all terms
//! of the route here are positive, so that it serves for little noise and tiny delta.
//!
//! *k of t* (each record in k of the t batches of an epoch): W = e_k(Y)/C(t, k); a random partition
//! into k blocks with one choice in each gives a uniform k-set, so that k "epochs" of about t/k
//! batches dominate: an upper end. *Substitution* and *groups*: record by record (`triangle.rs`). Their
//! **lower end** is the pair of one record: let one target have gradient 1, replaced by 0, and all other records 0
//! on both sides; then a run shows what it shows of one record that is zeroed out. Replacing goes both ways,
//! so that the remove order holds for both.

use super::either_way::EitherWay;
use super::profile::{FromProfile, LEAST, Profile, complement, crossing, crossing_near};
use super::thrown_lattice::{Epochs as Factor, ThrownLattice, masses_and_means};
use super::triangle::Chain;
use super::{BoxedPair, Rates, Result, Scheme, one_phase};
use crate::pairs::Gaussian;
use crate::{AccountingError, Order, Pair};
use numerics::elementary::{exp, exp_m1, ln_1p};
use numerics::lognormal::{Average, Averages};
use numerics::positive::{Positive, Side, log_sinh_grid, sinh_grid};
use std::sync::OnceLock;
use vocabulary::rounding::plain;
use vocabulary::{Adjacency, Interval, NotCovered, Problem, Run, Sampling, batches_per_pass};

pub(super) const SCHEME: Scheme = Scheme {
    sampling: Sampling::BallsAndBins,
    words: |run| {
        match run.drawing().uses_per_epoch.unwrap_or(1) {
        1 => "balls and bins: every record is thrown into one batch of every epoch, independently of \
              all others; a shuffled loader, whose batches have equal size, does not do this"
            .into(),
        uses => format!(
            "every record is thrown into {uses} different batches of every epoch, independently of \
             all others (an upper end: as if into one batch of each of {uses} parts of the epoch)"
        ),
    }
    },
    supports,
    pair,
    at_least,
    rates,
    costly: true,
};

/// Spacing of the grids for claims, and for lower ends beside other numbers.
const FINE: f64 = 1.0 / 64.0;
const COARSE: f64 = 1.0 / 24.0;

fn supports(run: &Run) -> Result<()> {
    let phase = one_phase(run, "balls and bins is covered")?;
    let exact = 1.0 / phase.sample_rate;
    let batches = batches_per_pass(phase.sample_rate, false);
    if (exact - batches as f64).abs() > 1e-9 * exact {
        let why = format!(
            "1/sample rate = {} is not a whole number of batches per epoch; balls and bins \
             throws every record into one of a whole number of batches; give --sample-rate {} for {}",
            plain((exact * 1e6).round() / 1e6),
            1.0 / exact.round(),
            exact.round()
        );
        let problem =
            Problem::from(why).about("sample rate", phase.sample_rate, "one over a whole number");
        return Err(NotCovered::Value(problem).into());
    }
    if run.drawing().uses_per_epoch.unwrap_or(1) > 1 && !phase.steps.is_multiple_of(batches) {
        let why = format!(
            "{} steps are not whole epochs of {batches} batches, which several uses per epoch \
             need; give a multiple of {batches}",
            phase.steps
        );
        let expected = format!("a multiple of {batches}");
        return Err(
            NotCovered::Value(Problem::from(why).about("steps", phase.steps, &expected)).into()
        );
    }
    Ok(())
}

/// Several uses per epoch need whole epochs.
fn rates(run: &Run) -> Rates {
    if run.drawing().uses_per_epoch.unwrap_or(1) == 1 {
        return Rates::WholeBatches;
    }
    let steps = run.steps();
    let low = (1..=steps.isqrt()).filter(|count| steps.is_multiple_of(*count));
    let mut all: Vec<u64> = low.flat_map(|count| [count, steps / count]).collect();
    all.sort_unstable();
    all.dedup();
    Rates::Batches(all)
}

fn pair(run: &Run) -> Result<BoxedPair> {
    let phase = one_phase(run, "balls and bins is covered")?;
    let batches = batches_per_pass(phase.sample_rate, false);
    let uses = run.drawing().uses_per_epoch.unwrap_or(1);
    if uses > batches {
        return Err(AccountingError::invalid(format!(
            "{uses} uses per epoch do not fit into {batches} batches"
        )));
    }
    let (epochs, rest) = (phase.steps / batches, phase.steps % batches);
    let mut factors = Vec::new();
    let (small, larger) = (batches / uses, batches % uses);
    if epochs > 0 {
        factors.push(Factor { batches: small, seen: small, times: epochs * (uses - larger) });
        if larger > 0 {
            factors.push(Factor { batches: small + 1, seen: small + 1, times: epochs * larger });
        }
    }
    if rest > 0 {
        factors.push(Factor { batches, seen: rest, times: 1 });
    }
    let mut one = one_record(phase.noise_multiplier, factors)?;
    if rest > 0 {
        let whole = |times: u64| {
            let epochs = Factor { batches, seen: batches, times };
            one_record(phase.noise_multiplier, vec![epochs])
        };
        let fewer = if epochs > 0 { Some(whole(epochs)?) } else { None };
        one = Box::new(Part { own: one, fewer, more: whole(epochs + 1)? });
    }
    let group = run.group_size() as usize;
    let links = match run.adjacency() {
        Adjacency::AddRemove | Adjacency::ZeroOut if group == 1 => return Ok(one),
        Adjacency::AddRemove | Adjacency::ZeroOut => vec![Order::Remove; group],
        Adjacency::Substitute => [Order::Remove, Order::Add].repeat(group),
    };
    Ok(Box::new(FromProfile(Chain::new(one, links))))
}

/// The pair of one record. One batch per epoch is no throw at all: W is log-normal, and the pair Gaussian.
fn one_record(noise_multiplier: f64, factors: Vec<Factor>) -> Result<BoxedPair> {
    if factors.iter().all(|factor| factor.batches == 1 && factor.seen == 1) {
        let uses: f64 = factors.iter().map(|factor| factor.times as f64).sum();
        return Ok(Box::new(Gaussian::computed(
            uses.sqrt() / noise_multiplier,
            4.0 * f64::EPSILON,
        )?));
    }
    Ok(Box::new(FromProfile(Thrown::new(noise_multiplier, factors, FINE)?)))
}

/// A part of an epoch: it shows no less than the whole epochs before it, and no more than if it were whole. Both have
/// a contour, and stand in where the lattice of the part itself has no close ends.
struct Part {
    own: BoxedPair,
    fewer: Option<BoxedPair>,
    more: BoxedPair,
}

fn close(found: &Interval) -> bool {
    found.width() <= CLOSE * found.upper
}

impl Part {
    /// A number that grows with what is shown.
    fn within(&self, ask: impl Fn(&dyn Pair) -> Result<Interval>) -> Result<Interval> {
        let own = ask(self.own.as_ref());
        if own.as_ref().is_ok_and(close) {
            return own;
        }
        let Ok(Interval { upper: most, .. }) = ask(self.more.as_ref()) else { return own };
        let least = self.fewer.as_ref().and_then(|fewer| ask(fewer.as_ref()).ok());
        let least = least.map_or(0.0, |fewer| fewer.lower);
        let own = own.unwrap_or(Interval { lower: least, value: most, upper: most });
        let (lower, upper) = (own.lower.max(least), own.upper.min(most));
        Ok(Interval::new(lower, own.value.clamp(lower, upper.max(lower)), upper.max(lower)))
    }
}

impl Pair for Part {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        self.within(|pair| pair.delta(epsilon, order))
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        match self.own.one_minus_delta(epsilon, order) {
            Ok(found) if close(&found) => Ok(found),
            _ => Ok(complement(self.delta(epsilon, order)?)),
        }
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval> {
        self.within(|pair| pair.epsilon(delta, order))
    }

    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval> {
        self.within(|pair| pair.tpr(fpr, order))
    }

    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval> {
        match self.own.fnr(fpr, order) {
            Ok(found) if close(&found) => Ok(found),
            _ => Ok(complement(self.tpr(fpr, order)?)),
        }
    }

    fn is_below(&self, epsilon: f64, order: Order, delta: f64) -> Option<bool> {
        self.own.is_below(epsilon, order, delta)
    }
}

/// The pair of one record, where the pair is a chain of them.
fn at_least(run: &Run) -> Option<BoxedPair> {
    let replaced = run.adjacency() == Adjacency::Substitute;
    let several = run.drawing().uses_per_epoch.unwrap_or(1) > 1;
    if several || !(replaced || run.group_size() > 1) || supports(run).is_err() {
        return None;
    }
    let phase = one_phase(run, "balls and bins is covered").ok()?;
    let batches = batches_per_pass(phase.sample_rate, false);
    let one = coarse(phase.noise_multiplier, batches, phase.steps)?;
    Some(if replaced { Box::new(EitherWay(one)) } else { one })
}

/// Balls and bins on a coarse grid, for its lower ends.
pub(super) fn coarse(noise_multiplier: f64, batches: u64, steps: u64) -> Option<BoxedPair> {
    let whole = Factor { batches, seen: batches, times: steps / batches };
    let part = Factor { batches, seen: steps % batches, times: 1 };
    let factors = [whole, part].into_iter().filter(|one| one.seen > 0 && one.times > 0).collect();
    Some(Box::new(FromProfile(Thrown::new(noise_multiplier, factors, COARSE).ok()?)))
}

/// The law of W over all epochs, from above and below.
struct Thrown {
    noise_multiplier: f64,
    factors: Vec<Factor>,
    eta: f64,
    /// By contour, for whole epochs.
    averages: Option<Averages>,
    /// By FFT.
    lattice: Option<ThrownLattice>,
    /// Made when first asked for; a function of the fields above alone.
    ends: [OnceLock<Positive>; 2],
}

/// Relative error of the mass and the mean of a cell of Y.
const CELL: f64 = 1e-12;

/// P mass of one Y beyond the grid: far below every delta in the domain of double precision.
const BEYOND: f64 = 14.0;

impl Thrown {
    fn new(noise_multiplier: f64, factors: Vec<Factor>, eta: f64) -> Result<Self> {
        if !(noise_multiplier >= 0.3) {
            return Err(AccountingError::outside_domain(format!(
                "noise multiplier {noise_multiplier} is below 0.3, the smallest for which balls and \
                 bins are certified"
            )));
        }
        let most = factors.iter().map(|factor| factor.batches as f64 * factor.times as f64);
        if most.sum::<f64>() > 1e9 {
            return Err(AccountingError::outside_domain(
                "more than 1e9 steps are outside of the domain",
            ));
        }
        let lattice =
            (!factors.is_empty()).then(|| ThrownLattice::new(noise_multiplier, factors.clone()));
        let whole = !factors.is_empty() && factors.iter().all(|f| f.seen == f.batches);
        let averages = whole.then(|| {
            let each: Vec<(u64, u64)> = factors.iter().map(|f| (f.batches, f.times)).collect();
            Averages::new(noise_multiplier, &each)
        });
        let ends = [OnceLock::new(), OnceLock::new()];
        Ok(Self { noise_multiplier, factors, eta, averages, lattice, ends })
    }

    fn law(&self, side: Side) -> &Positive {
        self.ends[usize::from(side == Side::Upper)].get_or_init(|| {
            let mut whole = Grown { law: Positive::certain(1.0), log_variance: 0.0 };
            for factor in &self.factors {
                let epoch = self.epoch(factor, side);
                whole = self.power(whole, epoch, factor.times, side);
            }
            whole.law
        })
    }

    /// The law of one epoch's W.
    fn epoch(&self, factor: &Factor, side: Side) -> Grown {
        let variance = exp_m1(1.0 / (self.noise_multiplier * self.noise_multiplier));
        let sum = self.sum(factor.seen, variance, side);
        let batches = factor.batches as f64;
        let law = sum.scaled(1.0 / batches, (factor.batches - factor.seen) as f64 / batches);
        let relative = factor.seen as f64 * variance / (batches * batches);
        Grown { law, log_variance: ln_1p(relative) }
    }

    /// The law of the sum of `count` Y, by doubling.
    fn sum(&self, count: u64, variance: f64, side: Side) -> Positive {
        let sigma = self.noise_multiplier;
        let largest = exp((BEYOND + 1.0 / sigma) / sigma - 0.5 / (sigma * sigma));
        let grid = |terms: u64| {
            let m = terms as f64;
            let spread = (m * variance).sqrt();
            sinh_grid(m, 0.35 * spread, 2.0 * largest + 2.0 * m + 40.0 * spread, self.eta)
        };
        let single = grid(1);
        let cells: Vec<(f64, f64)> = masses_and_means(&single, sigma)
            .into_iter()
            .map(|(mass, mean)| (mass, mass * mean))
            .collect();
        let one = Positive::from_cells(&single, &cells, side);
        let (mut total, mut terms): (Option<Positive>, u64) = (None, 0);
        for bit in (0..64 - count.leading_zeros()).rev() {
            if let Some(law) = total.take() {
                terms *= 2;
                total = Some(law.combined(&law, &grid(terms), side, |a, b| a + b));
            }
            if count >> bit & 1 == 1 {
                terms += 1;
                total = Some(match total.take() {
                    None => one.clone(),
                    Some(law) => law.combined(&one, &grid(terms), side, |a, b| a + b),
                });
            }
        }
        total.unwrap_or_else(|| Positive::certain(0.0))
    }

    /// `whole` times the power of an epoch's law, by doubling.
    fn power(&self, whole: Grown, epoch: Grown, times: u64, side: Side) -> Grown {
        let product = |a: &Grown, b: &Grown, same: bool| {
            let log_variance = a.log_variance + b.log_variance;
            let scale = 0.35 * log_variance.sqrt().max(1e-9);
            let last = a.top() * b.top();
            let first = (a.bottom() * b.bottom()).max(1e-250);
            let grid = log_sinh_grid(scale, first.min(0.9), last.clamp(1.1, 1e300), self.eta);
            let law = if same {
                a.law.combined(&a.law, &grid, side, |x, y| x * y)
            } else {
                a.law.combined(&b.law, &grid, side, |x, y| x * y)
            };
            Grown { law, log_variance }
        };
        let mut total: Option<Grown> = None;
        for bit in (0..64 - times.leading_zeros()).rev() {
            if let Some(law) = total.take() {
                total = Some(product(&law, &law, true));
            }
            if times >> bit & 1 == 1 {
                total = Some(match total.take() {
                    None => epoch.clone(),
                    Some(law) => product(&law, &epoch, false),
                });
            }
        }
        match total {
            None => whole,
            Some(power) if whole.law.places == [1.0] => power,
            Some(power) => product(&whole, &power, false),
        }
    }

    /// Bound on the relative error of masses and on the error of ln W by rounding. A mass of a
    /// convolution of n and n points is a sum of at most n^2 positive products: off by n^2 u relative
    /// to the exact combination of its factors, whose own errors add, so that m uses have m (n^2 u + r), r
    /// for a mass of Y. Likewise a place is a quotient of two such sums, off by 2 n^2 u at each of the
    /// convolutions it went through: within an epoch errors of places are averaged, over epochs added.
    fn rounding(&self, law: &Positive) -> (f64, f64) {
        let points = law.points as f64;
        let convolution = 0.5 * f64::EPSILON * points * points;
        let uses: f64 = self.factors.iter().map(|f| f.seen as f64 * f.times as f64).sum();
        let epochs: f64 = self.factors.iter().map(|f| f.times as f64).sum();
        let deepest = self.factors.iter().map(|f| 64 - f.seen.leading_zeros()).max().unwrap_or(0);
        let depth = 2.0 * f64::from(deepest) + 4.0;
        (uses * (convolution + CELL), (2.0 * convolution + CELL) * (epochs + 1.0) * depth)
    }

    fn end(&self, epsilon: f64, order: Order, side: Side) -> f64 {
        let law = self.law(side);
        let (relative, shift) = self.rounding(law);
        let sign = if side == Side::Upper { 1.0 } else { -1.0 };
        let level = level(epsilon - sign * shift, side);
        let sum: f64 = law
            .places
            .iter()
            .zip(&law.masses)
            .map(|(w, mass)| {
                mass * match order {
                    Order::Remove => (w - level).max(0.0),
                    Order::Add => payoff(level, *w),
                }
            })
            .sum();
        let lost = if side == Side::Upper && order == Order::Remove {
            law.lost * (1.0 + 1e-6)
        } else {
            0.0
        };
        (sum * (1.0 + sign * relative) + lost).clamp(0.0, 1.0)
    }
}

/// e^x for an end of delta. Beyond the largest number an upper end takes that one, which is on its safe side.
pub(super) fn level(x: f64, side: Side) -> f64 {
    if side == Side::Upper { exp(x).min(f64::MAX) } else { exp(x) }
}

/// (1 - level w)_+, which is 1 at w = 0 for an infinite level, too.
pub(super) fn payoff(level: f64, w: f64) -> f64 {
    if w == 0.0 { 1.0 } else { (1.0 - level * w).max(0.0) }
}

/// A law with the variance of its logarithm, roughly: to choose grids by.
#[derive(Clone)]
struct Grown {
    law: Positive,
    log_variance: f64,
}

impl Grown {
    fn top(&self) -> f64 {
        self.law.places.last().copied().unwrap_or(1.0)
    }

    /// The smallest place above zero.
    fn bottom(&self) -> f64 {
        self.law.places.iter().copied().find(|place| *place > 0.0).unwrap_or(1.0)
    }
}

/// The contour is good enough when its ends are this close, relative to delta: all of what is asked for in epsilon.
const CLOSEST: f64 = 1e-6;
/// An epsilon by contour is good enough when its ends are this close, relative to it.
const ENOUGH: f64 = 2e-5;
/// The route by FFT is good enough when its ends are this close, relative to delta.
const CLOSE: f64 = 2e-3;

impl Thrown {
    /// E(W - e^eps)_+, or e^eps E(e^-eps - W)_+ in the other order.
    fn by_contour(&self, epsilon: f64, order: Order) -> Option<Interval> {
        let averages = self.averages.as_ref()?;
        let factor = if order == Order::Remove { 1.0 } else { exp(epsilon) };
        if factor == f64::INFINITY {
            return None;
        }
        let ends = match order {
            Order::Remove => averages.average(Average::Above, epsilon)?,
            Order::Add => averages.average(Average::Below, -epsilon)?,
        };
        let slack = 4.0 * f64::EPSILON;
        let upper = (ends.upper * factor * (1.0 + slack)).clamp(LEAST, 1.0);
        let lower = (ends.lower * factor * (1.0 - slack)).clamp(0.0, upper);
        Some(Interval { lower, value: (ends.value * factor).clamp(lower, upper), upper })
    }

    fn by_lattice(&self, epsilon: f64, order: Order) -> Option<(f64, f64)> {
        let lattice = self.lattice.as_ref()?;
        let lower = lattice.end(epsilon, order, Side::Lower)?;
        Some((lower, lattice.end(epsilon, order, Side::Upper)?.max(lower)))
    }
}

impl Profile for Thrown {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        let contour = self.by_contour(epsilon, order);
        if let Some(found) = contour.filter(|found| found.width() <= CLOSEST * found.upper) {
            return Ok(found);
        }
        let (mut lower, mut upper) = self.by_lattice(epsilon, order).unwrap_or((0.0, 1.0));
        if upper - lower > CLOSE * upper {
            lower = lower.max(self.end(epsilon, order, Side::Lower));
            upper = upper.min(self.end(epsilon, order, Side::Upper)).max(lower);
        }
        if let Some(found) = contour {
            lower = lower.max(found.lower);
            upper = upper.min(found.upper).max(lower);
        }
        Ok(between(lower, upper.max(LEAST)))
    }

    fn epsilon(&self, delta: f64, order: Order) -> Option<Result<Interval>> {
        let mut by_contour = None;
        if let Some(averages) = &self.averages {
            let contour = |epsilon: f64| {
                let nothing = Interval { lower: 0.0, value: 0.5, upper: 1.0 };
                Ok(self.by_contour(epsilon, order).unwrap_or(nothing))
            };
            // What a normal loss of the same spread would have.
            let guess = Gaussian::new(averages.spread().sqrt())
                .and_then(|normal| normal.epsilon(delta, Order::Remove));
            by_contour = match guess {
                Ok(guess) if guess.value > 0.0 => crossing_near(contour, delta, guess.value).ok(),
                _ => crossing(contour, delta).ok(),
            };
            if let Some(found) = by_contour.filter(|found| found.width() <= ENOUGH * found.value) {
                return Some(Ok(found));
            }
        }
        self.lattice.as_ref()?;
        // On the way to epsilon there are deltas for which the lattice is too coarse: they do no harm.
        let lattice = |epsilon: f64| {
            let (lower, upper) = self.by_lattice(epsilon, order).unwrap_or((0.0, 1.0));
            Ok(between(lower, upper))
        };
        let mut found = crossing(lattice, delta).ok()?;
        if let Some(other) = by_contour {
            // Both enclose it.
            found.lower = found.lower.max(other.lower);
            found.upper = found.upper.min(other.upper).max(found.lower);
            found.value = found.value.clamp(found.lower, found.upper);
        }
        (found.width() <= CLOSE * found.value).then_some(Ok(found))
    }

    /// An upper end by contour or FFT tells, however far its lower end is.
    fn is_below(&self, epsilon: f64, order: Order, delta: f64) -> Option<bool> {
        if let Some(found) = self.by_contour(epsilon, order) {
            return (found.upper <= delta).then_some(true);
        }
        let (_, upper) = self.by_lattice(epsilon, order)?;
        (upper.max(LEAST) <= delta).then_some(true)
    }
}

/// The excess above is about twice what is missing below.
fn between(lower: f64, upper: f64) -> Interval {
    Interval { lower, value: lower + (upper - lower) / 3.0, upper }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game(sigma: f64, batches: u64, epochs: u64) -> FromProfile<Thrown> {
        let factors = vec![Factor { batches, seen: batches, times: epochs }];
        FromProfile(Thrown::new(sigma, factors, FINE).unwrap())
    }

    /// Little noise and a part of an epoch: the lattice has no end near these deltas, and there was no number, or one
    /// with an end at infinity for a replaced record.
    #[test]
    fn parts_of_epochs_lie_between_whole_ones() {
        let run = |steps: u64, adjacency: Adjacency| {
            let built = Run::builder()
                .phase(0.5, 0.5, steps)
                .sampling(Sampling::BallsAndBins)
                .adjacency(adjacency);
            pair(&built.build().unwrap()).unwrap()
        };
        for adjacency in [Adjacency::ZeroOut, Adjacency::Substitute] {
            for delta in [1e-3, 1e-5, 1e-8] {
                let [less, part, more] = [2, 3, 4]
                    .map(|steps| run(steps, adjacency).epsilon(delta, Order::Remove).unwrap());
                assert!(less.lower <= part.upper && part.lower <= more.upper, "{part:?}");
                assert!(part.upper <= more.upper * (1.0 + 1e-4), "{adjacency:?} {part:?} {more:?}");
            }
        }
    }

    /// One batch per epoch is the Gaussian.
    #[test]
    fn one_batch_is_the_gaussian() {
        for (sigma, epochs) in [(1.0, 1), (2.0, 7)] {
            let exact = Gaussian::new((epochs as f64).sqrt() / sigma).unwrap();
            for order in [Order::Remove, Order::Add] {
                for epsilon in [0.0, 0.7, 2.0] {
                    let truth = exact.delta(epsilon, order).unwrap();
                    let found = game(sigma, 1, epochs).delta(epsilon, order).unwrap();
                    assert!(found.lower <= truth.upper && truth.lower <= found.upper);
                    assert!(
                        found.width() < 5e-3 * truth.value,
                        "{sigma} {epochs} {found:?} {truth:?}"
                    );
                }
            }
        }
    }
    /// e^epsilon beyond the largest number is no number times nothing: an upper end of delta, and an epsilon or a
    /// refusal, come back.
    #[test]
    fn an_epsilon_beyond_all_numbers_has_ends() {
        let (sigma, epochs) = (0.3, 20);
        let exact = Gaussian::new((epochs as f64).sqrt() / sigma).unwrap();
        let thrown = game(sigma, 1, epochs);
        for order in [Order::Remove, Order::Add] {
            for epsilon in [150.0, 700.0, 720.0, 1e4, 1e6] {
                let truth = exact.delta(epsilon, order).unwrap();
                let found = thrown.delta(epsilon, order).unwrap();
                assert!(found.lower <= truth.upper, "{epsilon} {found:?} {truth:?}");
                assert!(truth.lower <= found.upper, "{epsilon} {found:?} {truth:?}");
            }
            if let Ok(found) = thrown.epsilon(1e-20, order) {
                let truth = exact.epsilon(1e-20, order).unwrap();
                assert!(found.lower <= truth.upper && truth.lower <= found.upper, "{found:?}");
            }
        }
        // A mass at 0 counts for any level.
        assert_eq!(payoff(f64::INFINITY, 0.0), 1.0);
        assert_eq!(level(1e4, Side::Upper), f64::MAX);
        assert_eq!(level(1e4, Side::Lower), f64::INFINITY);
    }

    /// Ends of epsilon are close where people go: six digits for enough noise and an ordinary delta, four for a
    /// tiny one.
    #[test]
    fn ends_are_close() {
        for sigma in [0.5, 1.0, 2.0] {
            for (batches, epochs) in [(10, 100), (100, 1), (1000, 10)] {
                let thrown = game(sigma, batches, epochs);
                for order in [Order::Remove, Order::Add] {
                    for (delta, wanted) in [(1e-3, 1e-6), (1e-5, 1e-6), (1e-8, 1e-6), (1e-10, 1e-4)]
                    {
                        let found = thrown.epsilon(delta, order).unwrap();
                        assert!(
                            found.width() <= wanted * found.value,
                            "{sigma} {batches} {epochs} {delta} {order:?}: {found:?}"
                        );
                    }
                }
            }
        }
        // Narrow averages of many numbers, and much that little noise leaks: these had no close ends.
        for (sigma, batches, epochs) in [(4.0, 10_000, 10), (0.7, 10_000, 100)] {
            let thrown = game(sigma, batches, epochs);
            for order in [Order::Remove, Order::Add] {
                let found = thrown.epsilon(1e-5, order).unwrap();
                assert!(
                    found.width() <= 1e-6 * found.value,
                    "{sigma} {batches} {epochs}: {found:?}"
                );
            }
        }
    }
}
