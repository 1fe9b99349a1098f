//! Everything in every second step: the first of a phase, the third, and so on. Nobody is in the steps between, which
//! release noise alone. So it is a run with full batches and ceil(T/2) steps per phase, by Theorem A (`poisson.rs`)
//! exact for all neighbours.

use super::{BoxedPair, Rates, Result, Scheme};
use crate::AccountingError;
use crate::pairs::Composed;
use vocabulary::{Phase, Run, Sampling};

pub(super) const SCHEME: Scheme = Scheme {
    sampling: Sampling::Alternating,
    words: |_| "every record is in every second batch, and nobody is in the others".into(),
    supports: |_| Ok(()),
    pair: |run| Ok(Box::new(Composed::for_run(&without_pauses(run)?)?) as BoxedPair),
    at_least: |_| None,
    rates: |_| Rates::Any,
    costly: false,
};

fn without_pauses(run: &Run) -> Result<Run> {
    let used = |phase: &Phase| Phase { sample_rate: 1.0, steps: phase.steps.div_ceil(2), ..*phase };
    run.with_sampling(Sampling::Poisson)
        .and_then(|run| run.with_phases(run.phases().iter().map(used).collect()))
        .map_err(AccountingError::invalid)
}
