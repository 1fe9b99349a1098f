//! Cyclic Poisson: the records are split into c fixed groups, and step t draws a Poisson sample of
//! group t mod c at the sample rate. A record is looked at in at most ceil(T/c) steps, so its pair is
//! the Poisson pair with that many steps (Theorem A; steps of other groups show nothing of it).

use super::{Rates, Result, Scheme};
use crate::AccountingError;
use crate::pairs::Composed;
use vocabulary::{Phase, Run, Sampling};

pub(super) const SCHEME: Scheme = Scheme {
    sampling: Sampling::CyclicPoisson,
    words: |run| {
        format!(
            "cyclic Poisson batches: the records are split into {} groups independently of their \
             content, and each step samples one group, in turn, at the sample rate",
            run.drawing().cycle_length.unwrap_or(1)
        )
    },
    supports: |_| Ok(()),
    pair: |run| Ok(Box::new(Composed::for_run(&turns(run)?)?)),
    at_least: |_| None,
    rates: |_| Rates::Any,
    costly: false,
};

/// The Poisson run of one group: each phase has at most ceil(T/c) turns of a group.
pub(super) fn turns(run: &Run) -> Result<Run> {
    let groups = run.drawing().cycle_length.unwrap_or(1);
    let phases = run
        .phases()
        .iter()
        .map(|phase| Phase { steps: phase.steps.div_ceil(groups), ..*phase })
        .collect();
    run.with_sampling(Sampling::Poisson)
        .and_then(|run| run.with_phases(phases))
        .map_err(AccountingError::invalid)
}
