//! Shuffled batches: a data-independent random order, cut into S batches; a new order for every epoch
//! (`fresh`) or one for all (`kept`). No amplification is counted.
//!
//! **Upper end.** Reveal the order; then participation is certain, and Theorem A (`poisson.rs`) with a
//! point mass gives, for E uses, mu = sqrt(E)/sigma when the record is zeroed out and 2 sqrt(E)/sigma
//! when it is replaced; k times that for a group of k. After E S + r steps a record has E or E + 1
//! uses; the first r batches of an epoch hold it with probability r q (q = b/n), and the attacker sees
//! which: delta = r q delta_{E+1} + (1 - r q) delta_E. Unless b divides n, S is rounded down:
//! dropping or keeping the short batch, a record has no more uses than that.
//!
//! Adding or removing a record changes n, hence all batches, possibly the number of steps: refused.
//!
//! **Lower ends** (for the worst data set; of one record, hence of groups that hold it). *Zeroing out*: the published
//! event bound (Chua et al. 2024, [`crate::pairs::shuffle_lower_bound`]), and balls and bins, to which
//! shuffling is equal when all other gradients are 0. *Replacing*: let the record's gradient be +1 and every other
//! one -1, and that of its replacement m - 1, 0 <= m <= 1. Every batch sums to -b, but that of the record to -b + 2, of
//! its replacement to -b + m: the event bound with moves 2 and m, and for m = 0 balls and bins at half the noise.
//! A larger m costs distance and shows the attacker where to look. Data sets may be exchanged, so that an order
//! holds for both. With one order for all epochs the epochs of a
//! batch add up: the one-epoch bound at noise sigma/sqrt(E).
//!
//! *1/rate not whole*, between S and S + 1: none is given. The event bound is about records that are in every
//! epoch, and here one may be dropped. A bound exists: let all other gradients be 0, and let the attacker forget
//! the short batch, if it is kept. Of at least T/(S+1) epochs, rounded down, he sees
//! W = 1 - S q + q (Y_1 + ... + Y_S) each. With 1/(S+1) < q in place of q, P becomes a mixture of P and Q, and by convexity H_g
//! does not grow: these are S of the S + 1 batches of epochs of balls and bins. But parts of epochs go by lattices
//! (`balls_and_bins.rs`), a tenth of a second to a second for a number that stands beside another one.

use super::either_way::EitherWay;
use super::mixed::MixedGaussians;
use super::profile::{FromProfile, complement};
use super::{BoxedPair, Rates, Result, Scheme, balls_and_bins, even_batches, same_records};
use crate::pairs::{Gaussian, ShuffleLowerBound, shuffle_lower_bound};
use crate::{AccountingError, Order, Pair};
use numerics::elementary::powi;
use vocabulary::{
    Adjacency, Interval, NotCovered, Permutation, Problem, Quantity, Run, Sampling,
    batches_per_pass,
};

pub(super) const SCHEME: Scheme = Scheme {
    sampling: Sampling::Shuffle,
    words: |run| {
        let order = match run.drawing().permutation {
            Permutation::Fresh => "a new random order for every epoch",
            Permutation::Kept => "one random order for all epochs",
        };
        format!(
            "shuffled batches: {order}, chosen without looking at the records, cut into batches; a \
             record is at most once in an epoch"
        )
    },
    supports,
    pair,
    at_least,
    rates: |_| Rates::Any,
    costly: false,
};

fn supports(run: &Run) -> Result<()> {
    same_records(run)?;
    let all = run.phases().len();
    for (index, phase) in run.phases().iter().enumerate().take(all - 1) {
        let batches = batches_per_pass(phase.sample_rate, false);
        if !phase.steps.is_multiple_of(batches) {
            let why = format!(
                "phase {} of {all} ends within an epoch of {batches} batches; shuffled phases are \
                 covered when all but the last have whole epochs",
                index + 1
            );
            let expected = format!("a multiple of {batches}");
            let problem = Problem::from(why).about("steps", phase.steps, &expected);
            return Err(NotCovered::Value(problem).into());
        }
    }
    Ok(())
}

fn pair(run: &Run) -> Result<BoxedPair> {
    let reach = if run.adjacency() == Adjacency::Substitute { 2.0 } else { 1.0 };
    let shift = f64::from(run.group_size()) * reach;
    // Squared distances of E and of E + 1 uses, and the probability of the latter.
    let (mut square, mut more, mut weight) = (0.0, 0.0, 0.0);
    for phase in run.phases() {
        let batches = batches_per_pass(phase.sample_rate, false);
        let (epochs, rest) = (phase.steps / batches, phase.steps % batches);
        let unit = powi(shift / phase.noise_multiplier, 2);
        square += epochs as f64 * unit;
        if rest > 0 {
            more = unit;
            weight = (rest as f64 * phase.sample_rate * f64::from(run.group_size())).min(1.0);
        }
    }
    let rounding = 8.0 * f64::EPSILON * (2.0 + run.phases().len() as f64);
    let gaussian = |square: f64| Gaussian::computed(square.sqrt(), rounding);
    if weight == 0.0 {
        return Ok(Box::new(gaussian(square)?));
    }
    Ok(Box::new(FromProfile(MixedGaussians(vec![
        (weight, gaussian(square + more)?),
        (1.0 - weight, gaussian(square)?),
    ]))))
}

/// The published bound, of a record that is zeroed out, for the whole epochs of one phase whose batches have equal size.
pub(crate) fn event_bound(run: &Run) -> Option<ShuffleLowerBound> {
    let [phase] = run.phases() else { return None };
    let batches = even_batches(phase.sample_rate)?;
    let (noise, epochs) = (phase.noise_multiplier, phase.steps / batches);
    if is_fresh(run, epochs) {
        return shuffle_lower_bound(noise, batches, epochs).ok();
    }
    // The epochs of a batch add up to one with less noise; more is the safe side of the rounding.
    let noise = noise / (epochs as f64).sqrt() * (1.0 + 4.0 * f64::EPSILON);
    shuffle_lower_bound(noise, batches, 1).ok()
}

/// Whether no batch comes twice: within the first epoch an order that is kept is as good as a new one.
fn is_fresh(run: &Run, epochs: u64) -> bool {
    run.drawing().permutation == Permutation::Fresh || epochs == 0
}

/// Of one phase whose batches have equal size. What follows the last whole epoch can only show more, so
/// the event bound of the whole epochs holds; balls and bins count the part too.
fn at_least(run: &Run) -> Option<BoxedPair> {
    let [phase] = run.phases() else { return None };
    let batches = even_batches(phase.sample_rate)?;
    let replaced = run.adjacency() == Adjacency::Substitute;
    let event = event_bound(run).into_iter();
    let events = if replaced {
        event.flat_map(|bound| REPLACEMENTS.map(|m| bound.with_moves(2.0, m))).collect()
    } else {
        event.collect()
    };
    let noise = phase.noise_multiplier;
    let seen = if replaced { 0.5 * noise } else { noise };
    let thrown = is_fresh(run, phase.steps / batches)
        .then(|| balls_and_bins::coarse(seen, batches, phase.steps))
        .flatten();
    let ends = LowerEnds { events, thrown };
    let any = !ends.events.is_empty() || ends.thrown.is_some();
    any.then(|| {
        if replaced { Box::new(EitherWay(Box::new(ends))) } else { Box::new(ends) as BoxedPair }
    })
}

/// Moves of the batch that holds a replacement; each gives a lower end.
const REPLACEMENTS: [f64; 4] = [0.0, 0.1, 0.3, 1.0];

/// Lower ends of epsilon and delta; nothing is said from above.
struct LowerEnds {
    events: Vec<ShuffleLowerBound>,
    thrown: Option<BoxedPair>,
}

impl LowerEnds {
    /// The largest lower end.
    fn least(
        &self,
        order: Order,
        event: impl Fn(ShuffleLowerBound) -> Result<Interval>,
        thrown: impl Fn(&dyn Pair) -> Result<Interval>,
    ) -> Result<f64> {
        let mut least = 0.0;
        for bound in &self.events {
            least = f64::max(least, event(bound.in_order(order))?.lower);
        }
        if let Some(pair) = &self.thrown {
            least = f64::max(least, thrown(pair.as_ref())?.lower);
        }
        Ok(least)
    }
}

impl Pair for LowerEnds {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        let least =
            self.least(order, |bound| bound.delta(epsilon), |pair| pair.delta(epsilon, order))?;
        Ok(Interval { lower: least, value: least, upper: 1.0 })
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        Ok(complement(self.delta(epsilon, order)?))
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval> {
        let least =
            self.least(order, |bound| bound.epsilon(delta), |pair| pair.epsilon(delta, order))?;
        Ok(Interval { lower: least, value: least, upper: f64::INFINITY })
    }

    fn tpr(&self, _: f64, _: Order) -> Result<Interval> {
        Err(no_curve())
    }

    fn fnr(&self, _: f64, _: Order) -> Result<Interval> {
        Err(no_curve())
    }
}

fn no_curve() -> AccountingError {
    let asked = &[Quantity::Tpr, Quantity::Mu];
    NotCovered::Quantities { asked, why: "the lower end is known for epsilon and delta only" }
        .into()
}
