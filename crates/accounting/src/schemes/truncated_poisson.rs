//! Truncated Poisson: a Poisson batch of more than B records is cut to a uniform subset of B of them.
//!
//! tau = Pr[Bin(n-1, q) >= B], q' = (B/n) Pr[Bin(n, q) > B] / tau. **Labelled mixture**: with
//! probability 1 - tau the Poisson pair of the adjacency, with tau the fixed-size pair
//! (`fixed_size.rs`) at rate q': E_Q W^s = (1-tau) K_Poisson(s) + tau K_fixed(s). n is the larger size
//! for adding and removing; a zeroed record still takes a place.
//!
//! *Proof.* Reveal whether the *other* records sampled number B or more. If not, nothing is cut. If
//! so, the kept others are a uniform subset whatever their number, and the record is kept with
//! probability E[q B/(m+1) | m >= B] = q'. QED (Ganesh 2025, arXiv 2508.15089, with a looser second
//! part.) Discarding a whole oversized batch is another mechanism and not covered. Groups: record by
//! record (`triangle.rs`). When k records are added or removed, n falls from link to link: batches are
//! cut more rarely then, but a record stays in a full one more often, so neither pair bounds the other and
//! every link has the tau and q' of its own n. Zeroed and replaced records keep their places, and n.
//!
//! **Lower end.** One record has gradient 1, all others 0, and those with it in the group are 0 on both
//! sides. Then a step shows whether the record is kept: N(1) with probability p = (1-tau) q + tau q',
//! N(0) otherwise, independently of other steps; without the record (or with its gradient 0) N(0), with it
//! replaced by -1 the mixture with N(-1). That is the Poisson pair of the adjacency at rate p, n the larger
//! size. p is rounded down, and Poisson pairs are ordered in the rate (`poisson.rs`).

use super::law_pair::LawPair;
use super::profile::FromProfile;
use super::triangle::Chain;
use super::{BoxedPair, Rates, Result, Scheme, about};
use crate::pairs::Composed;
use crate::{AccountingError, Order};
use numerics::elementary::exp;
use numerics::inversion::{Law, Times};
use numerics::mixture::{Component, MixtureRatio};
use numerics::special::Binomial;
use vocabulary::{Adjacency, Difficulty, NotCertified, Phase, Run, Sampling};

pub(super) const SCHEME: Scheme = Scheme {
    sampling: Sampling::TruncatedPoisson,
    words: |run| {
        format!(
            "truncated Poisson batches: every record joins every batch independently with the sample \
             rate, and of more than {} records a uniform part of that size is kept",
            run.drawing().max_batch_size.unwrap_or(0)
        )
    },
    supports: |_| Ok(()),
    pair,
    at_least,
    rates: |_| Rates::Any,
    costly: false,
};

/// How often a batch is cut, and how often the record then stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truncation {
    /// tau: the probability that the other records alone fill the batch.
    pub probability: f64,
    /// q': the probability that the record is in the batch then.
    pub rate: f64,
    /// Relative error of both.
    pub error: f64,
}

/// tau and q' for n records at rate q, of which at most B are kept.
///
/// ```
/// let cut = accounting::schemes::truncation(50_000, 0.01, 550).unwrap();
/// assert!((cut.probability / 0.01398787973025444 - 1.0).abs() < 1e-10);
/// assert!((cut.rate / 0.00984740061487748 - 1.0).abs() < 1e-10);
/// ```
pub fn truncation(records: u64, rate: f64, largest: u64) -> Option<Truncation> {
    if largest >= records || rate >= 1.0 {
        // Nothing is cut, or everything always.
        let always = rate >= 1.0 && largest < records;
        let rate = if always { largest as f64 / records as f64 } else { 0.0 };
        let probability = if always { 1.0 } else { 0.0 };
        return Some(Truncation { probability, rate, error: 4.0 * f64::EPSILON });
    }
    let (filled, error) = upper_tail(records - 1, rate, largest)?;
    let (more, more_error) = upper_tail(records, rate, largest + 1)?;
    if filled == 0.0 {
        return Some(Truncation { probability: 0.0, rate: 0.0, error: 1.0 });
    }
    let kept = largest as f64 / records as f64 * more / filled;
    let error = error + more_error + 8.0 * f64::EPSILON;
    Some(Truncation { probability: filled, rate: kept.min(rate), error })
}

/// Pr[Bin(n, q) >= k] with a relative error.
fn upper_tail(trials: u64, rate: f64, from: u64) -> Option<(f64, f64)> {
    let law = Binomial::new(trials, rate)?;
    let (mut sum, mut worst, mut lost) = (0.0f64, 0.0f64, 0.0);
    for k in from..=trials {
        let (log, error) = law.log_pmf(k as f64);
        let term = exp(log);
        let next = sum + term;
        lost += (sum - next) + term;
        sum = next;
        worst = worst.max(error + 4.0 * f64::EPSILON * log.abs());
        // Past the mean the terms fall at least geometrically.
        let past = k as f64 > law.mean();
        if past && term <= 1e-19 * sum {
            break;
        }
        if past && sum == 0.0 {
            return Some((0.0, 1.0));
        }
    }
    Some((sum + lost, worst + 1e-15))
}

fn pair(run: &Run) -> Result<BoxedPair> {
    let all = run.dataset_size().unwrap_or(0);
    let largest = run.drawing().max_batch_size.unwrap_or(0);
    let single = |run: &Run, records: u64| -> Result<Alone> {
        let mut parts = Vec::new();
        let mut given_away = 0.0;
        let mut never = true;
        for phase in run.phases() {
            let cut = truncation(records, phase.sample_rate, largest).ok_or_else(|| {
                AccountingError::from(NotCertified::OneRoute(Difficulty::FullBatch))
            })?;
            // A tail that underflows is given away.
            if cut.probability == 0.0 && largest < records {
                given_away += phase.steps as f64 * 1e-300;
            }
            never &= cut.probability == 0.0;
            let (q, mu) = (phase.sample_rate, 1.0 / phase.noise_multiplier);
            let step = |weight: f64, centre: f64| vec![Component { weight, centre }];
            let poisson = match run.adjacency() {
                Adjacency::Substitute => MixtureRatio::new(1.0, step(q, mu), step(q, -mu)),
                _ => MixtureRatio::new(1.0, step(q, mu), Vec::new()),
            };
            let mut law = Law::of_pair(poisson);
            if cut.probability > 0.0 {
                let fixed = match run.adjacency() {
                    Adjacency::AddRemove => {
                        Law::of_pair(MixtureRatio::new(1.0, step(cut.rate, 2.0 * mu), Vec::new()))
                    }
                    _ => Law::symmetric(&[(cut.rate, 2.0 * mu)], cut.error),
                };
                law = law.mixed(fixed, cut.probability, cut.error);
            }
            parts.push(Times { law, times: phase.steps as f64 });
        }
        if never && given_away == 0.0 {
            let plain = run.with_sampling(Sampling::Poisson).map_err(AccountingError::invalid)?;
            return Ok(Alone::Poisson(Composed::for_run(&plain)?));
        }
        let symmetric = run.adjacency() == Adjacency::Substitute;
        Ok(Alone::Law(Box::new(FromProfile(LawPair::new(parts, symmetric, given_away)))))
    };
    let one = about(run, run.adjacency(), 1, run.phases().to_vec())?;
    let first = match single(&one, all)? {
        Alone::Poisson(_) => {
            let plain = run.with_sampling(Sampling::Poisson).map_err(AccountingError::invalid)?;
            return Ok(Box::new(Composed::for_run(&plain)?));
        }
        Alone::Law(pair) => pair,
    };
    let group = run.group_size();
    if group == 1 {
        return Ok(first);
    }
    if run.adjacency() != Adjacency::AddRemove {
        let links = vec![Order::Remove; group as usize];
        return Ok(Box::new(FromProfile(Chain::new(first, links))));
    }
    if u64::from(group) > all {
        return Err(AccountingError::invalid(format!(
            "a group of {group} does not fit into {all} records"
        )));
    }
    let mut pairs: Vec<BoxedPair> = vec![first];
    for removed in 1..u64::from(group) {
        pairs.push(match single(&one, all - removed)? {
            Alone::Poisson(pair) => Box::new(pair),
            Alone::Law(pair) => pair,
        });
    }
    Ok(Box::new(FromProfile(Chain::of(pairs))))
}

enum Alone {
    Poisson(Composed),
    Law(Box<FromProfile<LawPair>>),
}

fn at_least(run: &Run) -> Option<BoxedPair> {
    let (records, largest) = (run.dataset_size()?, run.drawing().max_batch_size?);
    if largest >= records {
        // Nothing is cut: the pair is exact.
        return None;
    }
    let kept = |phase: &Phase| {
        let rate = inclusion(records, phase.sample_rate, largest)?;
        (rate > 0.0).then_some(Phase { sample_rate: rate, ..*phase })
    };
    let phases = run.phases().iter().map(kept).collect::<Option<Vec<_>>>()?;
    let one = about(run, run.adjacency(), 1, run.phases().to_vec()).ok()?;
    let poisson = one.with_sampling(Sampling::Poisson).and_then(|run| run.with_phases(phases));
    Some(Box::new(Composed::for_run(&poisson.ok()?).ok()?))
}

/// The probability p that a record is in a batch, rounded down.
fn inclusion(records: u64, rate: f64, largest: u64) -> Option<f64> {
    let cut = truncation(records, rate, largest)?;
    let (tau, error) = if cut.probability == 0.0 {
        // An underflow: far below any rounding.
        (f64::EPSILON, 0.0)
    } else {
        (cut.probability, cut.error)
    };
    // q - tau (q - q'), and q' <= q.
    let lost = (tau * (1.0 + error)).min(1.0) * (rate - cut.rate * (1.0 - error)).max(0.0);
    Some((rate - lost) * (1.0 - 8.0 * f64::EPSILON) - 4.0 * f64::EPSILON * rate)
}
