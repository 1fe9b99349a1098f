//! Records one after the other: for P -> Q -> R and every a,
//!
//! ```text
//! H_{e^eps}(P || R) <= H_{e^a}(P || Q) + e^a H_{e^(eps-a)}(Q || R),
//! ```
//!
//! since (p - e^eps r)_+ <= (p - e^a q)_+ + e^a (q - e^(eps-a) r)_+. What a claim states of a chain, and what is enclosed here,
//! is this bound: for two links the least over all a in [0, eps], for more links the first one has its equal part of eps
//! and the rest goes on. Below epsilon 0 it is 1 - e^eps + e^eps times the bound of the chain seen from its other end.
//! It is at most 1.
//!
//! For two links the bound is, with g = e^a, H_g(P || Q) + integral of (g q - e^eps r)_+: convex in (g, e^eps), so its
//! least value over g is enclosed by three splits, and it is convex in e^eps on either side of 1.

use crate::arithmetic::Ball;
use crate::model::{Model, Order};
use crate::obstacle::Obstacle;
use std::cell::Cell;

/// Which pair, and in which order.
type Link = (usize, Order);

pub struct Chain<const N: usize> {
    pairs: Vec<Model<N>>,
    links: Vec<Link>,
    /// The part of epsilon at which the last search ended: where the next one begins.
    share: Cell<f64>,
}

/// Epsilons below this are not split by a search.
const SMALLEST: f64 = 1e-9;

impl Order {
    pub(crate) fn reversed(self) -> Self {
        match self {
            Self::Remove => Self::Add,
            Self::Add => Self::Remove,
        }
    }
}

/// How exactly: 2^-bits of e^log_scale.
#[derive(Clone, Copy)]
pub(crate) struct Care {
    pub(crate) log_scale: f64,
    pub(crate) bits: f64,
}

impl<const N: usize> Chain<N> {
    pub(crate) fn new(pairs: Vec<Model<N>>, links: Vec<Link>) -> Self {
        Self { pairs, links, share: Cell::new(0.5) }
    }

    pub(crate) fn path(&self) -> String {
        format!("a chain of {} records; {}", self.links.len(), self.pairs[0].path())
    }

    pub(crate) fn records(&self) -> usize {
        self.links.len()
    }

    /// What the bound is made of where each record has the part `part` of epsilon: the profiles of all records but the last
    /// two, and the least bound of these.
    pub(crate) fn pieces(
        &self,
        order: Order,
        part: f64,
        care: Care,
    ) -> Result<Vec<Ball<N>>, Obstacle> {
        let links = if order == Order::Remove { self.links.clone() } else { self.turned() };
        let (first, last) = links.split_at(links.len() - 2);
        let (at, mut care) = (Ball::from_f64(part), care);
        let mut pieces = Vec::new();
        for link in first {
            pieces.push(self.of(*link, at, care)?);
            care.log_scale -= part;
        }
        pieces.push(self.bound(last, at.scaled(1), care)?);
        Ok(pieces)
    }

    fn turned(&self) -> Vec<Link> {
        self.links.iter().rev().map(|(pair, order)| (*pair, order.reversed())).collect()
    }

    pub(crate) fn is_symmetric(&self) -> bool {
        let mirrored = |pair: &Model<N>| pair.is_symmetric();
        self.turned() == self.links || (self.pairs.len() == 1 && self.pairs.iter().all(mirrored))
    }

    /// The bound at epsilon in one order.
    pub(crate) fn delta(
        &self,
        epsilon: Ball<N>,
        order: Order,
        log_scale: f64,
        bits: f64,
    ) -> Result<Ball<N>, Obstacle> {
        let care = Care { log_scale, bits };
        let (mut links, mut other) = (self.links.clone(), self.turned());
        if order == Order::Add {
            std::mem::swap(&mut links, &mut other);
        }
        let one = Ball::one();
        if epsilon.is_not_negative() {
            return Ok(self.bound(&links, epsilon, care)?.minimum(one));
        }
        if !epsilon.is_negative() {
            return Err(Obstacle::precision("the sign of the threshold is not certain"));
        }
        let level = epsilon.exponential();
        let care = Care { log_scale: log_scale - epsilon.to_f64(), ..care };
        let below = self.bound(&other, -epsilon, care)?.minimum(one);
        Ok(level * below - epsilon.exponential_minus_one())
    }

    fn of(&self, (pair, order): Link, epsilon: Ball<N>, care: Care) -> Result<Ball<N>, Obstacle> {
        let pair = &self.pairs[pair];
        let found = pair.delta(epsilon, order, care.log_scale, care.bits);
        // One moment may be all that is known, and enough.
        match found {
            Err(reason) if !reason.asks_for_words(N) => {
                pair.by_moment(epsilon, order).ok_or(reason)
            }
            found => found,
        }
    }

    /// The two parts of the bound with the first link at a.
    fn split(
        &self,
        links: &[Link],
        epsilon: Ball<N>,
        a: f64,
        care: Care,
    ) -> Result<Split<N>, Obstacle> {
        let at = Ball::from_f64(a);
        let here = self.of(links[0], at, care)?;
        let rest = Care { log_scale: care.log_scale - a, ..care };
        let growth = at.exponential();
        let there = growth * self.bound(&links[1..], epsilon - at, rest)?;
        Ok(Split { a, growth, here, there })
    }

    fn bound(&self, links: &[Link], epsilon: Ball<N>, care: Care) -> Result<Ball<N>, Obstacle> {
        let length = epsilon.to_f64();
        match links {
            [] => Ok(Ball::ZERO),
            [one] => self.of(*one, epsilon, care),
            _ if links.len() > 2 || length < SMALLEST => {
                let part = length / links.len() as f64;
                self.split(links, epsilon, part, care).map(|split| split.whole())
            }
            _ => self.least(links, epsilon, care),
        }
    }

    /// The least over all splits of two links: from above by the best split that was looked at, from below on each gap
    /// between neighbours.
    fn least(&self, links: &[Link], epsilon: Ball<N>, care: Care) -> Result<Ball<N>, Obstacle> {
        let length = epsilon.lower().to_f64();
        let goal = care.log_scale - care.bits * std::f64::consts::LN_2;
        let mut splits: Vec<Split<N>> = Vec::new();
        let look = |splits: &mut Vec<Split<N>>, a: f64| -> Result<(), Obstacle> {
            let a = a.clamp(0.0, length);
            if splits.iter().all(|split| split.a != a) {
                let found = self.split(links, epsilon, a, care)?;
                let index = splits.partition_point(|split| split.a < a);
                splits.insert(index, found);
            }
            Ok(())
        };
        // Where the last search ended, and a little on both sides.
        let (start, step) = (self.share.get() * length, 0.04 * length);
        for a in [start - step, start, start + step] {
            look(&mut splits, a)?;
        }
        let mut found = enclosed(&splits, epsilon);
        for _ in 0..26 {
            if (found.radius.order() as f64) * std::f64::consts::LN_2 < goal + 3.0 {
                break;
            }
            let values: Vec<f64> = splits.iter().map(|split| split.whole().to_f64()).collect();
            let best = (0..values.len()).fold(0, |b, i| if values[i] < values[b] { i } else { b });
            let a = splits[best].a;
            if best == 0 && a > 0.0 {
                let gap = splits[1].a - a;
                look(&mut splits, a - 2.0 * gap)?;
            } else if best + 1 == splits.len() && a < length {
                let gap = a - splits[best - 1].a;
                look(&mut splits, a + 2.0 * gap)?;
            } else {
                // Neighbours of the vertex, as close as a part of the gap; of an end, beside it.
                let left = if best > 0 { a - splits[best - 1].a } else { 0.0 };
                let right = if best + 1 < splits.len() { splits[best + 1].a - a } else { 0.0 };
                let vertex = if left > 0.0 && right > 0.0 {
                    let (down, up) = (
                        (values[best - 1] - values[best]) / left,
                        (values[best + 1] - values[best]) / right,
                    );
                    let place = a + 0.5 * (right * down - left * up) / (down + up).max(1e-300);
                    if place.is_finite() { place } else { a }
                } else {
                    a
                };
                let gap = 0.1 * left.max(right);
                if gap < 1e-13 * length {
                    break;
                }
                for place in [vertex - gap, vertex, vertex + gap] {
                    if place > a - left && place < a + right {
                        look(&mut splits, place)?;
                    }
                }
                if best == 0 || best + 1 == splits.len() {
                    look(&mut splits, if best == 0 { gap } else { length - gap })?;
                }
            }
            found = enclosed(&splits, epsilon);
        }
        let best = splits.iter().map(|split| (split.a, split.whole().to_f64())).fold(
            (0.5 * length, f64::INFINITY),
            |best, one| if one.1 < best.1 { one } else { best },
        );
        self.share.set(best.0 / length);
        Ok(found)
    }
}

/// One split: e^a, H_g(P || Q), and e^a times the rest, which rises with a.
struct Split<const N: usize> {
    a: f64,
    growth: Ball<N>,
    here: Ball<N>,
    there: Ball<N>,
}

impl<const N: usize> Split<N> {
    fn whole(&self) -> Ball<N> {
        self.here + self.there
    }
}

/// The least over a in [0, eps] of a convex function of g = e^a with these values. On a gap it is at least what the
/// secants beside it say at the gap's other end, and at least the falling part at the right end with the rising one at
/// the left end.
fn enclosed<const N: usize>(splits: &[Split<N>], epsilon: Ball<N>) -> Ball<N> {
    let whole: Vec<Ball<N>> = splits.iter().map(Split::whole).collect();
    let slope = |i: usize| (whole[i + 1] - whole[i]).over(splits[i + 1].growth - splits[i].growth);
    let count = splits.len();
    let mut lower: Option<Ball<N>> = None;
    // Gap i lies left of split i.
    for i in 0..=count {
        let mut bounds: Vec<Ball<N>> = vec![Ball::ZERO];
        let left = if i > 0 { splits[i - 1].growth } else { Ball::one() };
        let right = if i < count { splits[i].growth } else { epsilon.exponential() };
        if i >= 2 {
            bounds.push(whole[i - 1] + slope(i - 2).minimum(Ball::ZERO) * (right - left));
        }
        if i + 1 < count {
            bounds.push(whole[i] - slope(i).maximum(Ball::ZERO) * (right - left));
        }
        match (i.checked_sub(1).map(|i| splits[i].there), splits.get(i).map(|one| one.here)) {
            (Some(there), Some(here)) => bounds.push(there + here),
            (Some(one), None) | (None, Some(one)) => bounds.push(one),
            (None, None) => {}
        }
        let here = bounds
            .into_iter()
            .map(|bound| bound.lower())
            .fold(Ball::ZERO, |best, one| if best.is_below(&one) { one } else { best });
        lower = Some(match lower {
            Some(known) if !here.is_below(&known) => known,
            _ => here,
        });
    }
    let upper = whole.iter().fold(None, |best: Option<&Ball<N>>, one| match best {
        Some(best) if !one.upper().is_below(&best.upper()) => Some(best),
        _ => Some(one),
    });
    match (lower, upper) {
        (Some(lower), Some(upper)) => lower.lower().hull(&upper.upper()),
        _ => Ball::everything(),
    }
}
