//! Several one-record steps in a row: for P -> Q -> R,
//! H_{e^eps}(P || R) <= H_{e^a}(P || Q) + e^a H_{e^{eps-a}}(Q || R) for every a,
//! because (p - e^eps r)_+ <= (p - e^a q)_+ + e^a (q - e^{eps-a} r)_+. Every split is a valid bound. A group of k
//! is a chain of k links in one order; replacing a record is zeroing it out and the other in: one link in either order.
//!
//! The number of a chain of two links is the least over all splits a in [0, eps]. With g = e^a the bound is
//! H_g(P || Q) + integral of (g q - e^eps r)_+, convex in g, so that its least value has two certified ends. Longer
//! chains give the first link its equal part and go on with the rest: their number is that of these splits.

use super::profile::{Profile, complement};
use super::{BoxedPair, Result};
use crate::Order;
use crate::directions::convex::{self, Guess};
use numerics::elementary::{exp, exp_m1};
use vocabulary::{Interval, NotCertified};

/// A chain of links, each one of the pairs in an order (seen from the chain's own `Remove`).
pub(super) struct Chain {
    pairs: Vec<BoxedPair>,
    links: Vec<Link>,
}

/// Which pair, and in which order.
type Link = (usize, Order);

/// Epsilons below this are not split any further.
const SMALLEST: f64 = 1e-9;
/// The exponential of larger ones is not a number.
const LARGEST: f64 = 700.0;

impl Chain {
    /// Links that are all the same pair.
    pub(super) fn new(pair: BoxedPair, links: Vec<Order>) -> Self {
        Self { pairs: vec![pair], links: links.into_iter().map(|order| (0, order)).collect() }
    }

    /// One link for each pair, all in the chain's own order.
    pub(super) fn of(pairs: Vec<BoxedPair>) -> Self {
        let links = (0..pairs.len()).map(|index| (index, Order::Remove)).collect();
        Self { pairs, links }
    }

    fn delta_of(&self, (index, order): Link, epsilon: f64) -> Result<Interval> {
        self.pairs[index].delta(epsilon, order)
    }

    /// The chain's bound at epsilon >= 0.
    fn bound(&self, links: &[Link], epsilon: f64) -> Result<Interval> {
        match links {
            [] => Ok(Interval::exact((-exp_m1(epsilon)).max(0.0))),
            [one] => self.delta_of(*one, epsilon),
            [first, rest @ ..] => {
                let at = |a: f64| -> Result<Interval> {
                    let here = self.delta_of(*first, a)?;
                    let there = self.bound(rest, epsilon - a)?;
                    let (growth, slack) = (exp(a), 8.0 * f64::EPSILON);
                    Ok(Interval::new(
                        (here.lower + growth * there.lower) * (1.0 - slack),
                        here.value + growth * there.value,
                        (here.upper + growth * there.upper) * (1.0 + slack),
                    ))
                };
                if links.len() > 2 || epsilon < SMALLEST {
                    return at(epsilon / links.len() as f64);
                }
                if epsilon > LARGEST {
                    return Err(NotCertified::Beyond { most: LARGEST }.into());
                }
                let guess = Guess { at: exp(0.5 * epsilon), step: 0.05 * epsilon };
                let (_, least) = convex::minimise_from(at, 1.0, exp(epsilon), guess)?;
                Ok(least)
            }
        }
    }

    fn links(&self, order: Order) -> Vec<Link> {
        let turned = |(index, order): &Link| (*index, order.reversed());
        match order {
            Order::Remove => self.links.clone(),
            Order::Add => self.links.iter().rev().map(turned).collect(),
        }
    }
}

impl Profile for Chain {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        if epsilon >= 0.0 {
            return Ok(probability(self.bound(&self.links(order), epsilon)?));
        }
        // 1 - e^eps + e^eps delta'(-eps), delta' of the other order.
        let other = self.bound(&self.links(order.reversed()), -epsilon)?.clamp(0.0, 1.0);
        let (sure, weight, slack) = (-exp_m1(epsilon), exp(epsilon), 8.0 * f64::EPSILON);
        let least = (sure + weight * other.lower) * (1.0 - slack);
        let most = (sure + weight * other.upper) * (1.0 + slack);
        Ok(probability(Interval::new(least, sure + weight * other.value, most)))
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        Ok(complement(self.delta(epsilon, order)?))
    }
}

/// A bound as a delta: at most 1, and no delta of Gaussian noise is 1.
fn probability(bound: Interval) -> Interval {
    let within = bound.clamp(0.0, 1.0);
    Interval { lower: within.lower.min(1.0_f64.next_down()), ..within }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of nine steps of certain loss: its bound is above 1, and the truth is 1 less 1e-190.
    #[test]
    fn a_bound_above_one_leaves_room_below_it() {
        let found = probability(Interval::exact(1.5));
        assert!(found.lower < 1.0 && found.value == 1.0 && found.upper == 1.0);
    }
}
