//! Batches in the order of the data: a loader that does not shuffle. Every pass cuts the same order into the
//! same S batches.
//!
//! Everybody knows which batch holds a record, so participation is certain, and Theorem A (`poisson.rs`) with
//! a point mass is the pair: uses with shifts m_1, m_2, ... have mu^2 = (m_1^2 + m_2^2 + ...)/sigma^2 when the
//! record is zeroed out and four times that when it is replaced. It is attained, hence exact; nothing is
//! amplified.
//!
//! *Which record.* After E S + r steps the records of the first r batches have E + 1 uses and the others E. The
//! claim is about the worst: ceil(T/S) uses. Every phase begins with the first record; where it goes on in the
//! middle of a pass, no record has more uses of it than that.
//!
//! *Groups.* A batch of b records holds at most b members, and (shift per batch)^2 is convex: the worst group
//! fills the first batches. Where b is not known, all k members are in the first batch.
//!
//! *1/rate not whole.* A pass has floor(1/rate) batches where the short one is dropped (the pair), and one
//! more where it is kept (the lower end, of one phase).
//!
//! Adding or removing a record moves all that follow into other batches: refused.

use super::{BoxedPair, Rates, Result, Scheme, even_batches, same_records, sizes};
use crate::pairs::Gaussian;
use numerics::elementary::powi;
use vocabulary::{Adjacency, Run, Sampling, batches_per_pass};

pub(super) const SCHEME: Scheme = Scheme {
    sampling: Sampling::InOrder,
    words: |_| {
        "batches in the order of the data: every pass uses every record once, in a batch that everybody \
         knows; the claim is about the records with the most uses"
            .into()
    },
    supports: same_records,
    pair: |run| Ok(Box::new(gaussian(run, false)?)),
    at_least,
    rates: |_| Rates::Any,
    costly: false,
};

fn at_least(run: &Run) -> Option<BoxedPair> {
    let [phase] = run.phases() else { return None };
    if even_batches(phase.sample_rate).is_some() {
        return None;
    }
    Some(Box::new(gaussian(run, true).ok()?))
}

/// The pair, for passes with or without their short batch.
fn gaussian(run: &Run, with_short: bool) -> Result<Gaussian> {
    let reach = if run.adjacency() == Adjacency::Substitute { 2.0 } else { 1.0 };
    let group = u64::from(run.group_size());
    let mut square = 0.0;
    for phase in run.phases() {
        let batches = batches_per_pass(phase.sample_rate, with_short);
        let (passes, rest) = (phase.steps / batches, phase.steps % batches);
        let size = sizes(run, phase.sample_rate).map_or(group, |(size, _)| size.clamp(1, group));
        let full = (group / size).min(batches);
        let left = if full < batches { group % size } else { 0 };
        // Uses of the batches that the group fills, and of the next.
        let filled = full as f64 * passes as f64 + full.min(rest) as f64;
        let next = passes + u64::from(full < rest);
        let shifts = powi(size as f64, 2) * filled + powi(left as f64, 2) * next as f64;
        square += shifts * powi(reach / phase.noise_multiplier, 2);
    }
    let rounding = 8.0 * f64::EPSILON * (3.0 + run.phases().len() as f64);
    Gaussian::computed(square.sqrt(), rounding)
}
