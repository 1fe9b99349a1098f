//! Balls and bins: which epochs a run has, and their means by lines ([`crate::contour::Thrown`]).

use crate::arithmetic::{Ball, Magnitude};
use crate::chain::Chain;
use crate::contour::{Factor, Thrown};
use crate::model::{Model, Order, gaussian};
use crate::obstacle::{Obstacle, spend};
use crate::pairs::{Count, HalfLine, Part};
use crate::shelf::{Shelf, enough};
use std::cell::OnceCell;
use vocabulary::{Adjacency, Phase, Run};

pub struct Epochs<const N: usize> {
    thrown: Thrown,
    /// One batch of an epoch: a step that the record is in with probability 1/S. Who sees all batches sees it.
    pub(crate) steps: Vec<Model<N>>,
    /// E W^m for m = 0, 1, ...
    moments: OnceCell<Vec<Ball<N>>>,
    pub(crate) shelf: Shelf<N>,
}

/// Moments that are looked at.
const MOST_MOMENTS: usize = 96;

impl<const N: usize> Epochs<N> {
    fn new(thrown: Thrown) -> Self {
        let (sigma, least) = thrown.narrowest();
        let steps = vec![one_batch(sigma, least)];
        Self { thrown, steps, moments: OnceCell::new(), shelf: Shelf::default() }
    }

    /// At least delta(0).
    pub(crate) fn sum_of_steps(&self) -> Ball<N> {
        self.thrown.total_variation().upper()
    }

    /// -ln of the least dP/dQ, where there is one.
    pub(crate) fn largest_loss(&self) -> Option<Ball<N>> {
        self.thrown.least().map(|least: Ball<N>| -least.logarithm())
    }

    /// E(W - e^t)_+ <= E W^m e^((1-m)t) (m-1)^(m-1)/m^m for every m >= 2, t > 0: (w - k) / w^m is largest at
    /// w = k m/(m-1).
    pub(crate) fn moment_bound(&self, t: Ball<N>) -> Option<Ball<N>> {
        if !t.is_positive() {
            return None;
        }
        let words = (N * N) as f64 / 4.0;
        spend(words * if self.moments.get().is_some() { 0.1 } else { 10.0 }).ok()?;
        let moments = self.moments.get_or_init(|| self.thrown.moments(MOST_MOMENTS));
        let level = (-t).exponential();
        let mut best: Option<Ball<N>> = None;
        for (m, moment) in (0u64..).zip(moments).skip(2) {
            let part = Ball::from_u64(m - 1).over(Ball::from_u64(m)).power(m - 1).over_u64(m);
            let bound = *moment * level.power(m - 1) * part;
            if best.as_ref().is_none_or(|best| bound.is_below(best)) {
                best = Some(bound);
            }
        }
        best
    }

    /// A bound on delta(epsilon) of one epoch alone, as if all its batches that are seen were one of their size: W is the mean of
    /// a + (n/S) Y_i, and what is asked for a convex function of it, so at most the mean of its values at each.
    pub(crate) fn as_one_batch(&self, epsilon: Ball<N>, order: Order) -> Option<Ball<N>> {
        let (sigma, batches, seen) = self.thrown.alone()?;
        let share = Ball::from_u64(seen).over_u64(batches);
        let rest = Ball::from_u64(batches - seen).over_u64(batches);
        let mu = Ball::from_f64(sigma).reciprocal();
        let t = if order == Order::Remove { epsilon } else { -epsilon };
        let level = (t.exponential() - rest).over(share);
        if order == Order::Remove {
            let above = if level.is_positive() {
                share * gaussian(mu, level.logarithm(), Part::Above)
            } else if level.is_negative() {
                Ball::one() - t.exponential()
            } else {
                return None;
            };
            return Some(above.upper());
        }
        if level.is_positive() {
            let below = share * gaussian(mu, level.logarithm(), Part::Below);
            return Some((below * epsilon.exponential()).upper());
        }
        level.is_negative().then_some(Ball::ZERO)
    }

    /// A mean at threshold t, to 2^-bits of e^log_scale.
    ///
    /// # Errors
    /// Why it cannot be enclosed.
    pub(crate) fn mean(
        &self,
        t: Ball<N>,
        part: Part,
        log_scale: f64,
        bits: f64,
    ) -> Result<Ball<N>, Obstacle> {
        let wanted = (log_scale - bits * std::f64::consts::LN_2).max(-1e12);
        if let Some(found) = self.shelf.find(t, part, wanted)? {
            return Ok(found);
        }
        if part == Part::Above
            && let Some(bound) = self.moment_bound(t)
            && let found = Ball::up_to(bound.above())
            && enough(found.radius, wanted)
        {
            return Ok(found);
        }
        spend(1.0)?;
        // With digits to spare it serves other thresholds, too.
        let line = self.thrown.line::<N>(t.to_f64(), wanted - 4.0)?;
        self.shelf.say(format!(
            "contour Re s = {:e}, {} nodes, moments by rays of up to {} points",
            line.tilt(),
            line.nodes(),
            line.points()
        ));
        self.shelf.put(line, t, part, wanted)
    }
}

/// The pair of one record: epochs of 1/q batches, each batch as likely as the others, and a last one of which only
/// some are seen. A record that is used several times in an epoch is thrown into one batch of each part of it.
/// Groups and replaced records go record by record ([`crate::chain`]).
pub(crate) fn thrown<const N: usize>(run: &Run, phases: &[Phase]) -> Result<Model<N>, Obstacle> {
    let [phase] = phases else { return Err("balls and bins are proven for one phase".into()) };
    let exact = 1.0 / phase.sample_rate;
    let batches = exact.round();
    if (exact - batches).abs() > 1e-9 * exact {
        return Err("an epoch has no whole number of batches".into());
    }
    let batches = batches as u64;
    let uses = run.drawing().uses_per_epoch.unwrap_or(1);
    let (epochs, rest) = (phase.steps / batches, phase.steps % batches);
    if uses == 0 || uses > batches || (uses > 1 && rest > 0) {
        return Err("several uses per epoch need whole epochs".into());
    }
    let (small, larger) = (batches / uses, batches % uses);
    let whole = |batches: u64, times: u64| Factor { batches, seen: batches, times };
    let mut factors =
        vec![whole(small, epochs * (uses - larger)), whole(small + 1, epochs * larger)];
    factors.push(Factor { batches, seen: rest, times: u64::from(rest > 0) });
    factors.retain(|factor| factor.times > 0);
    let links = match run.adjacency() {
        Adjacency::AddRemove | Adjacency::ZeroOut => {
            vec![Order::Remove; run.group_size() as usize]
        }
        Adjacency::Substitute => [Order::Remove, Order::Add].repeat(run.group_size() as usize),
    };
    let one = one_record(phase.noise_multiplier, factors);
    if links.len() == 1 {
        return Ok(one);
    }
    let links = links.into_iter().map(|order| (0, order)).collect();
    Ok(Model::Chain(Box::new(Chain::new(vec![one], links))))
}

fn one_record<const N: usize>(noise: f64, factors: Vec<Factor>) -> Model<N> {
    if factors.iter().all(|factor| factor.batches == 1) {
        let uses = factors.iter().map(|factor| factor.times).sum();
        return Model::Gaussian(Ball::from_u64(uses).root().over(Ball::from_f64(noise)));
    }
    if let [Factor { batches, seen: 1, times: 1 }] = factors.as_slice() {
        return one_batch(noise, *batches);
    }
    Model::Epochs(Box::new(Epochs::new(Thrown::new(noise, factors))))
}

/// One batch of an epoch of this many.
fn one_batch<const N: usize>(noise: f64, batches: u64) -> Model<N> {
    let share = Ball::from_u64(batches).reciprocal();
    let weights = vec![Ball::one() - share, share];
    let (stride, outside) = (1, Magnitude::ZERO);
    let count = Count { first: 0, stride, weights, outside, moments: None };
    Model::HalfLine(HalfLine::new(count, Ball::from_f64(noise).squared(), false))
}
