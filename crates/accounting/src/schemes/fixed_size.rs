//! Batches of fixed size b out of n, drawn anew for every step, without or with replacement.
//!
//! **Theorem B.** k targets; p_j the probability that j of them are drawn: hypergeometric, or with
//! replacement Binomial(b, k/n) (copies count). q = sum over j >= 1 of p_j, mu_j = 2j/sigma.
//! - *Substitution*, hence zeroing out: each step is dominated by the symmetric profile
//!   h(g) = sum p_j H_{g'}(N(mu_j) || N(0)), g' = 1 + (g-1)/q, for g >= 1, and
//!   h(g) = 1 - g + g h(1/g) for g < 1.
//! - *Adding or removing*: by (1-q) N(0) + sum p_j N(2j) against N(0), n the larger size, both orders.
//!   Exact. For one record it is the Poisson pair **at noise sigma/2**.
//!
//! *Proof.* P = (1-q) P_0 + sum p_j P_j, Q = (1-q) P_0 + sum p_j Q_j. For g >= 1,
//! P - g Q = q [P' - g' ((1-c) P_0 + c Q')] with P', Q' the means of P_j, Q_j and c = g/g'. By
//! convexity H_g <= sum p_j [(1-c) H_{g'}(P_j || P_0) + c H_{g'}(P_j || Q_j)]. Couple the other
//! records: P_j and P_0, and P_j and Q_j, differ by a shift of at most 2j. Exchanging P and Q gives
//! g < 1. Adding or removing: reveal the others and which of them give way; then Theorem A
//! (`poisson.rs`) with shifts of at most 2j. Adaptive steps: Zhu, Dong, Wang 2022, Theorem 10. QED.
//!
//! For one record every h(g) is attained, but by different data for g > 1 and g < 1, so products may
//! be loose. **Lower ends**, for any number of targets, with and without replacement: let all gradients be
//! constant, the targets' +1. *Substitution*: others -1, replaced -1. A batch without targets sums to -b,
//! one with j of them (copies count) to -b + 2j, and after the replacement every batch to -b. That is the pair
//! (1-q) N(0) + sum p_j N(2j) against N(0) in every step, independently: the pair of adding or removing
//! the targets. Data sets may be exchanged, so that its remove order holds for both. *Zeroing out*: others
//! 0; the sums are j against 0: the same pair at twice the noise. For one record, others -1: a batch sums to -b
//! without it, with it to -b + 2, and to -b + 1 where it is zeroed out: (1-q) N(0) + q N(2) against
//! (1-q) N(0) + q N(1). That leaks more (noise 2, rate 0.01, 1,000 steps, delta 1e-5: 1.2045 against 0.6220); the larger is
//! given.

use super::either_way::{EitherWay, Larger};
use super::law_pair::LawPair;
use super::profile::{FromProfile, Profile};
use super::{BoxedPair, Rates, Result, Scheme, about, sizes};
use crate::pairs::{Composed, Gaussian, OneStep};
use crate::{AccountingError, Order, Pair};
use numerics::elementary::{exp, exp_m1, ln, ln_1p, powi};
use numerics::inversion::{Law, Times};
use numerics::mixture::{Component, FARTHEST_TURNED, MixtureRatio};
use vocabulary::{Adjacency, Interval, NotCovered, Phase, Run, Sampling};

pub(super) const SCHEME: Scheme = Scheme {
    sampling: Sampling::FixedSize,
    words: |run| {
        let how = if run.drawing().replacement { "with" } else { "without" };
        format!(
            "batches of fixed size: each is drawn anew, uniformly and {how} replacement, from all \
             records at every step; a shuffled loader does not do this"
        )
    },
    supports: |run| {
        let counted = run.group_size() == 1 && !run.drawing().replacement;
        let known = |phase: &Phase| sizes(run, phase.sample_rate).is_some();
        if counted || run.phases().iter().all(known) {
            return Ok(());
        }
        Err(NEEDS_SIZES.into())
    },
    pair,
    at_least,
    rates: |_| Rates::Any,
    costly: false,
};

/// Probabilities p_j that j >= 1 targets are drawn, and the sum of those that are left out.
#[derive(Clone)]
pub(super) struct Shares {
    pub(super) shares: Vec<(u64, f64)>,
    pub(super) left_out: f64,
    pub(super) error: f64,
}

/// Shares below this are given away: added to delta once per step.
const LIGHTEST: f64 = 1e-40;

fn pair(run: &Run) -> Result<BoxedPair> {
    let plain = run.group_size() == 1 && !run.drawing().replacement;
    if run.adjacency() == Adjacency::AddRemove && plain {
        return Ok(Box::new(Composed::for_run(&halved(run)?)?));
    }
    let phases: Vec<(Phase, Shares)> = run
        .phases()
        .iter()
        .map(|phase| Ok((*phase, shares(run, phase)?)))
        .collect::<Result<_>>()?;
    if phases.iter().all(|(_, found)| found.shares.len() == 1 && found.shares[0].1 == 1.0) {
        // Every record in every batch.
        let distance = |(phase, found): &(Phase, Shares)| {
            phase.steps as f64 * powi(2.0 * found.shares[0].0 as f64 / phase.noise_multiplier, 2)
        };
        let square: f64 = phases.iter().map(distance).sum();
        let rounding = f64::EPSILON * (8.0 + phases.len() as f64);
        return Ok(Box::new(Gaussian::computed(square.sqrt(), rounding)?));
    }
    let one_sided_pair = run.adjacency() == Adjacency::AddRemove;
    if let [(phase, found)] = phases.as_slice()
        && phase.steps == 1
    {
        let (distances, _) = found.distances(phase.noise_multiplier, 0.0);
        return Ok(if one_sided_pair {
            let step = one_sided(&distances, found.error).with_left_out(found.left_out);
            Box::new(OneStep::new(step))
        } else {
            Box::new(FromProfile(OneStepProfile::new(&distances, found)?))
        });
    }
    let steps: f64 = phases.iter().map(|(phase, _)| phase.steps as f64).sum();
    let make = move |lightest: f64| {
        let mut given_away = 0.0;
        let parts = phases
            .iter()
            .map(|(phase, found)| {
                let (distances, left_out) = found.distances(phase.noise_multiplier, lightest);
                given_away += phase.steps as f64 * left_out;
                // Given that nothing of it is drawn, the other shares are larger by that part.
                let error = found.error + 2.0 * left_out;
                let law = if one_sided_pair {
                    Law::of_pair(one_sided(&distances, error))
                } else {
                    Law::symmetric(&distances, error)
                };
                Times { law, times: phase.steps as f64 }
            })
            .collect();
        (parts, given_away)
    };
    Ok(Box::new(FromProfile(LawPair::by_size(Box::new(make), steps, !one_sided_pair))))
}

impl Shares {
    /// Shares of at least `lightest` with their distances, and the sum of the others.
    fn distances(&self, noise_multiplier: f64, lightest: f64) -> (Vec<(f64, f64)>, f64) {
        let mut kept = Vec::new();
        let mut left_out = self.left_out;
        for &(j, share) in &self.shares {
            if share >= lightest || kept.is_empty() {
                kept.push((share, 2.0 * j as f64 / noise_multiplier));
            } else {
                left_out += share * (1.0 + self.error);
            }
        }
        (kept, left_out)
    }
}

fn one_sided(distances: &[(f64, f64)], error: f64) -> MixtureRatio {
    let list = distances.iter().map(|&(weight, centre)| Component { weight, centre }).collect();
    let rest = 1.0 - distances.iter().map(|(weight, _)| weight).sum::<f64>();
    MixtureRatio::new(1.0, list, Vec::new()).with_rest(rest.max(0.0)).with_weight_error(error)
}

/// The Poisson run whose pair is that of adding or removing one record.
fn halved(run: &Run) -> Result<Run> {
    let phases = run
        .phases()
        .iter()
        .map(|phase| Phase { noise_multiplier: 0.5 * phase.noise_multiplier, ..*phase })
        .collect();
    run.with_sampling(Sampling::Poisson)
        .and_then(|run| run.with_phases(phases))
        .map_err(AccountingError::invalid)
}

const NEEDS_SIZES: NotCovered = NotCovered::Missing {
    key: "dataset_size",
    why: "groups and draws with replacement need --dataset-size and a whole --batch-size: how many of the records are \
          drawn depends on both",
};

/// The law of the number of targets in a batch.
pub(super) fn shares(run: &Run, phase: &Phase) -> Result<Shares> {
    let targets = u64::from(run.group_size());
    if targets == 1 && !run.drawing().replacement {
        return Ok(Shares { shares: vec![(1, phase.sample_rate)], left_out: 0.0, error: 0.0 });
    }
    let Some((batch, records)) = sizes(run, phase.sample_rate) else {
        return Err(NEEDS_SIZES.into());
    };
    if targets > records {
        return Err(AccountingError::invalid(format!(
            "a group of {targets} does not fit into {records} records"
        )));
    }
    let (law, error) = if run.drawing().replacement {
        with_replacement(batch, targets, records)
    } else {
        without_replacement(batch, targets, records)
    };
    let mut all = Vec::new();
    let mut left_out = 0.0;
    for (j, share) in law {
        if share >= LIGHTEST {
            all.push((j, share.min(1.0)));
        } else if all.is_empty() {
            left_out += share + 1e-300;
        } else {
            // Beyond the mode shares fall by more than half each from here on.
            left_out += 2.0 * share.max(1e-300);
            break;
        }
    }
    Ok(Shares { shares: all, left_out, error })
}

/// Binomial(b, k/n), j >= 1, and a bound on the relative error: from Pr[0], each from the one before with five
/// roundings, and the odds themselves have one.
fn with_replacement(batch: u64, targets: u64, records: u64) -> (Vec<(u64, f64)>, f64) {
    if targets == records {
        return (vec![(batch, 1.0)], 0.0);
    }
    let draws = batch as f64;
    let odds = targets as f64 / (records - targets) as f64;
    let log_first = -draws * ln_1p(odds);
    let mut all = Vec::new();
    // In logarithms up to the first share of any size: Pr[0] may underflow.
    let (mut log, mut share) = (log_first, exp(log_first));
    let mut uses = 0;
    while uses < batch {
        let factor = (batch - uses) as f64 / (uses + 1) as f64 * odds;
        log += ln(factor);
        share = if share > 1e-280 { share * factor } else { exp(log) };
        uses += 1;
        all.push((uses, share));
        if factor < 0.5 && share < 0.1 * LIGHTEST {
            break;
        }
    }
    let reached = all.len() as f64;
    let size = log_first.abs() + reached * (1.0 + ln(draws).max(ln(odds).abs()));
    (all, f64::EPSILON * (8.0 + 6.0 * reached + 4.0 * size))
}

/// Hypergeometric, j >= 1: C(k, j) [b]_j [n-b]_{k-j} / [n]_k, falling factorials factor by factor, and a bound
/// on the relative error: four roundings for each of k factors.
fn without_replacement(batch: u64, targets: u64, records: u64) -> (Vec<(u64, f64)>, f64) {
    let share = |j: u64| -> f64 {
        let mut product = 1.0;
        for i in 0..targets {
            let drawn = if i < j { (i, batch) } else { (i - j, records - batch) };
            let left = drawn.1.saturating_sub(drawn.0) as f64;
            let chosen = if i < j { (targets - i) as f64 / (j - i) as f64 } else { 1.0 };
            product *= left / (records - i) as f64 * chosen;
        }
        product
    };
    let all = (1..=batch.min(targets)).map(|j| (j, share(j))).collect();
    (all, f64::EPSILON * (2.0 + 4.0 * targets as f64))
}

/// One step of the symmetric profile, in closed form.
struct OneStepProfile {
    parts: Vec<(f64, Gaussian)>,
    rate: f64,
    given_away: f64,
    /// Relative error of the shares.
    error: f64,
}

impl OneStepProfile {
    fn new(distances: &[(f64, f64)], found: &Shares) -> Result<Self> {
        let parts = distances
            .iter()
            .map(|&(p, mu)| Ok((p, Gaussian::computed(mu, 4.0 * f64::EPSILON)?)))
            .collect::<Result<Vec<_>>>()?;
        let rate = parts.iter().map(|(p, _)| p).sum::<f64>().min(1.0);
        let error = found.error + 2.0 * found.left_out;
        Ok(Self { parts, rate, given_away: found.left_out, error })
    }

    /// h at g = e^epsilon >= 1.
    fn upper_half(&self, epsilon: f64) -> Result<Interval> {
        // ln g' = ln(1 + (g-1)/q), its rounding included on either side.
        let inner = ln_1p(exp_m1(epsilon) / self.rate);
        let slack = 8.0 * f64::EPSILON * (1.0 + inner) + 2.0 * self.error;
        let mut total = Interval::exact(0.0);
        for (p, pair) in &self.parts {
            let low = pair.delta(inner + slack, Order::Remove)?;
            let high = pair.delta((inner - slack).max(0.0), Order::Remove)?;
            total.lower += p * low.lower;
            total.value += p * 0.5 * (low.value + high.value);
            total.upper += p * high.upper;
        }
        let slack = 16.0 * f64::EPSILON * (2.0 + self.parts.len() as f64) + 2.0 * self.error;
        total.lower *= 1.0 - slack;
        total.upper = total.upper * (1.0 + slack) + self.given_away;
        Ok(Interval::new(total.lower, total.value, total.upper))
    }
}

impl Profile for OneStepProfile {
    fn symmetric(&self) -> bool {
        true
    }

    fn delta(&self, epsilon: f64, _: Order) -> Result<Interval> {
        if epsilon >= 0.0 {
            return self.upper_half(epsilon);
        }
        let other = self.upper_half(-epsilon)?;
        let (sure, weight) = (-exp_m1(epsilon), exp(epsilon));
        let slack = 16.0 * f64::EPSILON;
        Ok(Interval::new(
            (sure + weight * other.lower) * (1.0 - slack),
            sure + weight * other.value,
            (sure + weight * other.upper) * (1.0 + slack),
        ))
    }
}

/// The pair of adding or removing the targets, at this or at twice the noise: see the top of the file.
fn at_least(run: &Run) -> Option<BoxedPair> {
    let plain = run.group_size() == 1 && !run.drawing().replacement;
    let scale = match run.adjacency() {
        // Exact; so is one step, by every h(g).
        Adjacency::AddRemove => return None,
        Adjacency::Substitute if plain && run.steps() == 1 => return None,
        Adjacency::Substitute => 1.0,
        Adjacency::ZeroOut => 2.0,
    };
    let scaled =
        |phase: &Phase| Phase { noise_multiplier: scale * phase.noise_multiplier, ..*phase };
    let phases = run.phases().iter().map(scaled).collect();
    let removed = about(run, Adjacency::AddRemove, run.group_size(), phases).ok()?;
    let removed = pair(&removed).ok()?;
    Some(match run.adjacency() {
        Adjacency::Substitute => Box::new(EitherWay(removed)),
        _ if plain => match against_opposed(run) {
            Some(opposed) => Box::new(Larger(opposed, removed)),
            None => removed,
        },
        _ => removed,
    })
}

/// One record that is zeroed out while all others' gradients are opposed to its own.
fn against_opposed(run: &Run) -> Option<BoxedPair> {
    let part = |phase: &Phase| {
        let (rate, shift) = (phase.sample_rate, 1.0 / phase.noise_multiplier);
        (rate < 1.0 && shift <= FARTHEST_TURNED).then(|| Times {
            law: Law::of_pair(MixtureRatio::turned(rate, shift)),
            times: phase.steps as f64,
        })
    };
    let parts = run.phases().iter().map(part).collect::<Option<Vec<Times>>>()?;
    Some(Box::new(FromProfile(LawPair::new(parts, false, 0.0))))
}
