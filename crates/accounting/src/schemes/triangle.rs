//! Several one-record steps in a row: for P -> Q -> R,
//! H_{e^eps}(P || R) <= H_{e^a}(P || Q) + e^a H_{e^{eps-a}}(Q || R) for every a,
//! because (p - e^eps r)_+ <= (p - e^a q)_+ + e^a (q - e^{eps-a} r)_+. Every split is a valid bound;
//! the best one is looked for. A group of k is a chain of k links in one order; replacing a record is
//! zeroing it out and the other in: one link in either order.

use super::profile::{Profile, complement};
use super::{BoxedPair, Result};
use crate::OneWay;
use numerics::elementary::{exp, exp_m1};
use vocabulary::Interval;

/// A chain of links, each one of the pairs in an order (seen from the chain's own `Remove`).
pub(super) struct Chain {
    pairs: Vec<BoxedPair>,
    links: Vec<Link>,
}

/// Which pair, and in which order.
type Link = (usize, OneWay);

impl Chain {
    /// Links that are all the same pair.
    pub(super) fn new(pair: BoxedPair, links: Vec<OneWay>) -> Self {
        Self { pairs: vec![pair], links: links.into_iter().map(|way| (0, way)).collect() }
    }

    /// One link for each pair, all in the chain's own order.
    pub(super) fn of(pairs: Vec<BoxedPair>) -> Self {
        let links = (0..pairs.len()).map(|index| (index, OneWay::Remove)).collect();
        Self { pairs, links }
    }

    fn delta_of(&self, (index, way): Link, epsilon: f64) -> Result<Interval> {
        self.pairs[index].delta(epsilon, way)
    }

    /// delta >= 0 half: the chain's bound at epsilon >= 0.
    fn bound(&self, links: &[Link], epsilon: f64) -> Result<f64> {
        match links {
            [] => Ok((-exp_m1(epsilon)).max(0.0)),
            [one] => Ok(self.delta_of(*one, epsilon)?.upper),
            [first, rest @ ..] => {
                let share = 1.0 / links.len() as f64;
                let at = |a: f64| -> Result<f64> {
                    let here = self.delta_of(*first, a)?.upper;
                    let there = self.bound(rest, epsilon - a)?;
                    Ok((here + exp(a) * there) * (1.0 + 8.0 * f64::EPSILON))
                };
                if links.len() > 2 {
                    // Equal parts: a search inside a search would be slow, and gains little.
                    return at(share * epsilon);
                }
                // Golden section over the split; the bound has one valley in practice, and any
                // point of it is valid.
                const GOLDEN: f64 = 0.618_033_988_749_894_9;
                let (mut low, mut high) = (0.0, epsilon);
                let (mut a, mut b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
                let (mut fa, mut fb) = (at(a)?, at(b)?);
                let mut best = fa.min(fb).min(at(0.5 * epsilon)?);
                for _ in 0..30 {
                    if fa < fb {
                        (high, b, fb) = (b, a, fa);
                        a = high - GOLDEN * (high - low);
                        fa = at(a)?;
                    } else {
                        (low, a, fa) = (a, b, fb);
                        b = low + GOLDEN * (high - low);
                        fb = at(b)?;
                    }
                    best = best.min(fa).min(fb);
                    if high - low < 1e-6 * epsilon {
                        break;
                    }
                }
                Ok(best)
            }
        }
    }

    fn links(&self, way: OneWay) -> Vec<Link> {
        let turned = |(index, way): &Link| (*index, way.reversed());
        match way {
            OneWay::Remove => self.links.clone(),
            OneWay::Add => self.links.iter().rev().map(turned).collect(),
        }
    }
}

impl Profile for Chain {
    fn delta(&self, epsilon: f64, way: OneWay) -> Result<Interval> {
        if epsilon >= 0.0 {
            let links = self.links(way);
            let bound = self.bound(&links, epsilon)?.min(1.0);
            // No split is below what the first link has at the whole epsilon.
            let least = self.delta_of(links[0], epsilon)?.lower.min(bound);
            return Ok(Interval { lower: least, value: bound, upper: bound });
        }
        // 1 - e^eps + e^eps delta'(-eps), delta' of the other order.
        let other = self.bound(&self.links(way.reversed()), -epsilon)?.min(1.0);
        let bound = (-exp_m1(epsilon) + exp(epsilon) * other) * (1.0 + 8.0 * f64::EPSILON);
        let bound = bound.min(1.0);
        Ok(Interval {
            lower: -exp_m1(epsilon) * (1.0 - 4.0 * f64::EPSILON),
            value: bound,
            upper: bound,
        })
    }

    fn one_minus_delta(&self, epsilon: f64, way: OneWay) -> Result<Interval> {
        Ok(complement(self.delta(epsilon, way)?))
    }
}
