//! The largest last-iterate leakage over all stopping times t <= T, without T solves.
//!
//! The heuristic is not monotone in the number of steps: epsilon_t falls and then rises. A run
//! whose loss zeroes the past leaks like its last few steps, so the maximum over t is the robust
//! form of the heuristic. It is found by branch and bound on ranges of t, from one true fact:
//!
//! **Lemma.** Let P = K + N(0, v), Q = N(0, v) with K >= 0. Replacing K by a stochastically larger
//! K', or v by a smaller v', raises H(P, Q) and H(Q, P) at every epsilon, and the power of every
//! optimal test. *Proof.* The likelihood ratio of P to Q is a mixture of exp(k(2x-k)/(2v)), each
//! increasing in x for k >= 0; so optimal events are half-lines, and H(P, Q) = sup_y P(X > y) -
//! e^eps Q(X > y), H(Q, P) = sup_y Q(X < y) - e^eps P(X < y). A larger K raises P(X > y) and lowers
//! P(X < y) and leaves Q alone. Dividing by sqrt(v), a smaller v is a larger K/sqrt(v). []
//!
//! For t in [a, b] the count Bin(t, q) is stochastically at most Bin(b, q), and the variance
//! t sigma^2 is at least a sigma^2: the pair with the count of b and the noise of a dominates
//! every t of the range. (The same with earlier phases added to both.) Ranges whose bound is
//! below what some t attains are dropped; the bound's excess is half the range's relative length,
//! so ranges need to shrink only in proportion to their distance from the maximum, and a few
//! dozen solves do for T = 1e9. Both ends of the answer are certified: `lower` is attained,
//! `upper` bounds every t.

use super::binomial_gaussian::{BinomialGaussian, Stretch, supports_last_iterate};
use super::ends::TINY;
use super::{OneWay, Pair};
use crate::AccountingError;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use vocabulary::{Interval, Phase, Run};

/// Ranges whose bound exceeds the attained maximum by no more than this (relative) are not split.
const TOLERANCE: f64 = 1e-8;
/// Solves after which the search stops with the bound it has.
const LARGEST_SEARCH: usize = 5000;

/// The maximum over t <= T of the last-iterate pair of the first t steps. It answers the
/// questions of a pair, each as the maximum (or minimum) over t.
///
/// ```
/// use accounting::{OneWay, Pair, pairs::LastIterateMax};
/// use vocabulary::Run;
/// // One step leaks 1.000, two steps .573, five steps .397, twenty .417.
/// let run = Run::builder().phase(0.7764, 0.01, 20).build().unwrap();
/// let epsilon = LastIterateMax::for_run(&run)?.epsilon(1e-6, OneWay::Remove)?;
/// assert!((epsilon.value - 1.0).abs() < 1e-3 && epsilon.relative_width() < 1e-9);
/// # Ok::<(), accounting::AccountingError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LastIterateMax {
    phases: Vec<Phase>,
    group: u64,
}

/// Prefixes that end in phase `phase` after `first..=last` of its steps.
#[derive(Clone, Copy, Debug)]
struct Range {
    phase: usize,
    first: u64,
    last: u64,
    bound: f64,
}

impl PartialEq for Range {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Range {}
impl PartialOrd for Range {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Range {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound)
    }
}

impl LastIterateMax {
    /// The maximum over the prefixes of a run.
    ///
    /// # Errors
    /// As [`BinomialGaussian::for_run`].
    pub fn for_run(run: &Run) -> Result<Self, AccountingError> {
        supports_last_iterate(run)?;
        BinomialGaussian::for_run(run)?;
        Ok(Self { phases: run.phases().to_vec(), group: u64::from(run.group_size()) })
    }

    /// The pair with the count after `counted` and the noise after `noisy` steps of a phase.
    fn pair(
        &self,
        phase: usize,
        counted: u64,
        noisy: u64,
    ) -> Result<BinomialGaussian, AccountingError> {
        let stretches = self.phases[..=phase].iter().enumerate().map(|(index, p)| {
            let here = index == phase;
            Stretch {
                sample_rate: p.sample_rate,
                noise_multiplier: p.noise_multiplier,
                counted_steps: if here { counted } else { p.steps },
                noisy_steps: if here { noisy } else { p.steps },
            }
        });
        BinomialGaussian::of_stretches(stretches, self.group)
    }

    /// The maximum over all prefixes of a quantity that grows with leakage.
    fn largest(
        &self,
        ask: impl Fn(&BinomialGaussian) -> Result<Interval, AccountingError>,
    ) -> Result<Interval, AccountingError> {
        let mut best: Option<Interval> = None;
        let mut ranges = BinaryHeap::new();
        let mut dropped = f64::NEG_INFINITY;
        let mut attain = |interval: Interval| match &mut best {
            None => best = Some(interval),
            Some(best) => *best = best.max(interval),
        };
        for (phase, p) in self.phases.iter().enumerate().rev() {
            attain(ask(&self.pair(phase, p.steps, p.steps)?)?);
            attain(ask(&self.pair(phase, 1, 1)?)?);
            if p.steps == 3 {
                attain(ask(&self.pair(phase, 2, 2)?)?);
            } else if p.steps > 3 {
                ranges.push(Range { phase, first: 2, last: p.steps - 1, bound: f64::INFINITY });
            }
        }
        let mut found = best.unwrap_or(Interval::exact(0.0));
        let mut solves = 0;
        while let Some(range) = ranges.pop() {
            let enough = found.lower + TOLERANCE * found.lower.abs() + 2.0 * TINY;
            if range.bound <= enough || solves > LARGEST_SEARCH || found.lower == f64::INFINITY {
                // The heap's largest: no other range exceeds it.
                dropped = range.bound;
                break;
            }
            crate::patience::look();
            for part in split(range) {
                solves += 1;
                let hugs_the_end = part.last + 1 == self.phases[part.phase].steps;
                if part.first == part.last {
                    found = found.max(ask(&self.pair(part.phase, part.first, part.first)?)?);
                } else if hugs_the_end && part.first > 2 {
                    // Beside the last step, the usual maximum, the bound is of no use until the
                    // range is short: keep the parent's and split on.
                    ranges.push(part);
                } else {
                    let bound = ask(&self.pair(part.phase, part.last, part.first)?)?.upper;
                    ranges.push(Range { bound, ..part });
                }
            }
        }
        Ok(Interval { upper: found.upper.max(dropped), ..found })
    }

    fn smallest(
        &self,
        ask: impl Fn(&BinomialGaussian) -> Result<Interval, AccountingError>,
    ) -> Result<Interval, AccountingError> {
        let negative = |x: Interval| Interval { lower: -x.upper, value: -x.value, upper: -x.lower };
        Ok(negative(self.largest(|pair| Ok(negative(ask(pair)?)))?))
    }
}

/// Two halves: in ratio while the range is wide, in length when it is narrow.
fn split(range: Range) -> [Range; 2] {
    let (first, last) = (range.first, range.last);
    let middle = if last / first >= 4 {
        ((first as f64).sqrt() * (last as f64).sqrt()) as u64
    } else {
        first + (last - first) / 2
    };
    let middle = middle.clamp(first, last - 1);
    [Range { last: middle, ..range }, Range { first: middle + 1, ..range }]
}

impl Pair for LastIterateMax {
    fn delta(&self, epsilon: f64, way: OneWay) -> Result<Interval, AccountingError> {
        self.largest(|pair| pair.delta(epsilon, way))
    }

    fn one_minus_delta(&self, epsilon: f64, way: OneWay) -> Result<Interval, AccountingError> {
        self.smallest(|pair| pair.one_minus_delta(epsilon, way))
    }

    fn epsilon(&self, delta: f64, way: OneWay) -> Result<Interval, AccountingError> {
        self.largest(|pair| pair.epsilon(delta, way))
    }

    fn tpr(&self, fpr: f64, way: OneWay) -> Result<Interval, AccountingError> {
        self.largest(|pair| pair.tpr(fpr, way))
    }

    fn fnr(&self, fpr: f64, way: OneWay) -> Result<Interval, AccountingError> {
        self.smallest(|pair| pair.fnr(fpr, way))
    }
}
