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
use super::{Order, Pair};
use crate::AccountingError;
use crate::directions::mu;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use vocabulary::{Direction, Interval, Phase, Run};

/// How closely a maximum is searched.
#[derive(Clone, Copy)]
struct StopSearch {
    /// Ranges whose bound exceeds the attained maximum by no more than this (relative) are not split.
    tolerance: f64,
    /// Solves after which the search stops with the bound it has.
    most: usize,
}

const OF_POINTS: StopSearch = StopSearch { tolerance: 1e-8, most: 5000 };
/// Curves take more values to tell apart the closer they are.
const OF_MU: StopSearch = StopSearch { tolerance: 2e-4, most: 400 };
/// Values of a profile that are looked at to tell whether a Gaussian curve covers it.
const MOST_VALUES: usize = 200;

/// The maximum over t <= T of the last-iterate pair of the first t steps. It answers the
/// questions of a pair, each as the maximum (or minimum) over t.
///
/// ```
/// use accounting::{Order, Pair, pairs::LastIterateMax};
/// use vocabulary::Run;
/// // One step leaks 1.000, two steps .573, five steps .397, twenty .417.
/// let run = Run::builder().phase(0.7764, 0.01, 20).build().unwrap();
/// let epsilon = LastIterateMax::for_run(&run)?.epsilon(1e-6, Order::Remove)?;
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

    /// The maximum over all prefixes of a quantity that grows with leakage. `is_below` says whether that of
    /// a pair is certainly at most a level, if that is cheaper to tell than the quantity.
    fn largest(
        &self,
        ask: impl Fn(&BinomialGaussian) -> Result<Interval, AccountingError>,
        is_below: impl Fn(&BinomialGaussian, f64) -> Option<bool>,
        search: StopSearch,
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
        // The largest level above what is attained that a range was shown to be below.
        let mut loosest = f64::NEG_INFINITY;
        while let Some(range) = ranges.pop() {
            let enough = found.lower + search.tolerance * found.lower.abs() + 2.0 * TINY;
            if range.bound <= enough || solves > search.most || found.lower == f64::INFINITY {
                // The heap's largest: no other range exceeds it.
                dropped = range.bound;
                ranges.push(range);
                break;
            }
            crate::patience::look();
            for part in split(range) {
                solves += 1;
                let (first, last) = (part.first, part.last);
                let pair = self.pair(part.phase, last, first)?;
                // Below the upper end of what is attained, nothing widens the answer; a short range need
                // not be told from the maximum more closely than the tolerance.
                let short =
                    first < last && ((last - first) as f64) < search.tolerance * last as f64;
                let below = match is_below(&pair, found.upper) {
                    Some(false) if short => {
                        let level = found.upper + search.tolerance * found.upper.abs();
                        let below = is_below(&pair, level);
                        if below == Some(true) {
                            loosest = loosest.max(level);
                        }
                        below
                    }
                    below => below,
                };
                match below {
                    Some(true) => continue,
                    Some(false) if first < last => {
                        ranges.push(part);
                        continue;
                    }
                    _ => {}
                }
                let hugs_the_end = last + 1 == self.phases[part.phase].steps;
                if first == last {
                    found = found.max(ask(&pair)?);
                } else if hugs_the_end && first > 2 {
                    // Beside the last step, the usual maximum, the bound is of no use until the
                    // range is short: keep the parent's and split on.
                    ranges.push(part);
                } else {
                    ranges.push(Range { bound: ask(&pair)?.upper, ..part });
                }
            }
        }
        if dropped == f64::INFINITY && found.upper < f64::INFINITY {
            // The search was given up: what is left is bounded range by range.
            dropped = f64::NEG_INFINITY;
            for range in ranges {
                let pair = self.pair(range.phase, range.last, range.first)?;
                dropped = dropped.max(range.bound.min(ask(&pair)?.upper));
            }
        }
        Ok(Interval { upper: found.upper.max(dropped).max(loosest), ..found })
    }

    fn smallest(
        &self,
        ask: impl Fn(&BinomialGaussian) -> Result<Interval, AccountingError>,
        is_above: impl Fn(&BinomialGaussian, f64) -> Option<bool>,
    ) -> Result<Interval, AccountingError> {
        let negative = |x: Interval| Interval { lower: -x.upper, value: -x.value, upper: -x.lower };
        let found = self.largest(
            |pair| Ok(negative(ask(pair)?)),
            |pair, level| is_above(pair, -level),
            OF_POINTS,
        )?;
        Ok(negative(found))
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
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        self.largest(
            |pair| pair.delta(epsilon, order),
            |pair, level| pair.is_below(epsilon, order, level),
            OF_POINTS,
        )
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        self.smallest(
            |pair| pair.one_minus_delta(epsilon, order),
            // Next to 0 and to 1 delta has too few digits to tell.
            |pair, level| {
                let tells = (0.1..1.0 - 1e-7).contains(&level);
                pair.is_below(epsilon, order, (1.0 - level).next_down()).filter(|_| tells)
            },
        )
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval, AccountingError> {
        self.largest(
            |pair| pair.epsilon(delta, order),
            |pair, level| pair.is_below(level, order, delta),
            OF_POINTS,
        )
    }

    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        self.largest(
            |pair| pair.tpr(fpr, order),
            |pair, level| pair.most_power(fpr, order).map(|most| most <= level),
            OF_POINTS,
        )
    }

    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        self.smallest(|pair| pair.fnr(fpr, order), |_, _| None)
    }

    fn is_below(&self, epsilon: f64, order: Order, delta: f64) -> Option<bool> {
        let mut ranges = Vec::new();
        for (phase, p) in self.phases.iter().enumerate() {
            let bound = f64::INFINITY;
            let range = |first, last| Range { phase, first, last, bound };
            if p.steps > 2 {
                ranges.push(range(2, p.steps - 1));
            }
            ranges.extend([range(1, 1), range(p.steps, p.steps)]);
        }
        // Single stopping times first: they tell soonest that it is not.
        ranges.sort_by_key(|range| range.first == range.last);
        let mut looks = 0;
        while let Some(range) = ranges.pop() {
            looks += 1;
            let pair = self.pair(range.phase, range.last, range.first).ok()?;
            let below = match pair.is_below(epsilon, order, delta) {
                Some(below) => below,
                None => pair.delta(epsilon, order).ok()?.upper <= delta,
            };
            if below {
                continue;
            }
            if range.first == range.last || looks > OF_POINTS.most {
                return Some(false);
            }
            ranges.extend(split(range));
        }
        Some(true)
    }

    /// The largest mu over stopping times: that of the largest profile, since the mu through a point rises
    /// with its delta.
    fn mu(&self, delta: f64, direction: Direction) -> Option<Result<Interval, AccountingError>> {
        let covered = |pair: &BinomialGaussian, mu: f64| {
            let covered = || mu::is_covered(pair, mu, delta, direction, MOST_VALUES).ok();
            (mu > 0.0).then(covered).flatten()
        };
        Some(self.largest(|pair| mu::of(pair, delta, direction), covered, OF_MU))
    }

    fn log_slopes(&self, fpr: f64, order: Order) -> Vec<f64> {
        let mut slopes = Vec::new();
        for (phase, p) in self.phases.iter().enumerate().rev() {
            for steps in [p.steps, 1] {
                if let Ok(pair) = self.pair(phase, steps, steps) {
                    slopes.extend(pair.log_slopes(fpr, order));
                }
            }
        }
        slopes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directions;

    type Question<'a> = &'a dyn Fn(&dyn Pair) -> Interval;

    /// Every stopping time by itself: mu, epsilon and advantage of the maximum are theirs.
    #[test]
    fn the_maximum_is_that_of_every_stopping_time() {
        for (noise, rate, steps) in [(0.7764, 0.01, 20), (2.0, 0.3, 40), (1.0, 0.1, 60)] {
            let run = |steps: u64| Run::builder().phase(noise, rate, steps).build().unwrap();
            let all: Vec<BinomialGaussian> =
                (1..=steps).map(|t| BinomialGaussian::for_run(&run(t)).unwrap()).collect();
            let max = LastIterateMax::for_run(&run(steps)).unwrap();
            let largest =
                |ask: Question<'_>| all.iter().map(|pair| ask(pair)).reduce(Interval::max).unwrap();
            let questions: [Question<'_>; 4] = [
                &|pair| directions::mu::of(pair, 1e-5, Direction::Both).unwrap(),
                &|pair| directions::epsilon(pair, 1e-5, Direction::Both).unwrap(),
                &|pair| directions::advantage(pair).unwrap(),
                &|pair| directions::delta(pair, 0.5, Direction::Both).unwrap(),
            ];
            for (index, ask) in questions.iter().enumerate() {
                let (found, want) = (ask(&max), largest(ask));
                assert!(
                    found.lower <= want.upper && want.lower <= found.upper,
                    "question {index} of {noise} {rate} {steps}: {found:?} {want:?}"
                );
                assert!(found.width() <= 3e-4 * found.upper, "{index}: {found:?}");
            }
            // The power of either order belongs to the largest profile: at least every one's.
            let power = directions::tpr(&max, 0.01, Direction::Both).unwrap();
            let alone = largest(&|pair| directions::tpr(pair, 0.01, Direction::Both).unwrap());
            assert!(alone.lower <= power.upper && power.width() < 1e-6, "{power:?} {alone:?}");
        }
    }
}
