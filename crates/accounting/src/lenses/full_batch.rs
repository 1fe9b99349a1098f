//! `full-batch`: the run's expected update with full batches, i.e. sample rate 1 and noise
//! sigma/q, for which last iterate and all iterates leak the same: a Gaussian with
//! mu = sqrt(sum T q^2 / sigma^2) (Steinke et al. 2025, eq. 4), times the group size, times 2
//! for substitution. A baseline below the last-iterate heuristic, not a bound for the run.

use super::{Lens, View};
use crate::AccountingError;
use crate::pairs::Gaussian;
use vocabulary::{Adjacency, LensName, Release, Run, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::FullBatch,
    release: Release::LastIterate,
    standing: |_| Standing::Heuristic,
    assumptions: |_| {
        vec![
            "the run leaks like full-batch training with noise sigma/q and the same expected \
             update; sampling is taken to add nothing"
                .into(),
        ]
    },
    look: |run| Ok(View::pair(Gaussian::new(mu(run)?)?)),
};

/// The mu of the full-batch counterpart, and of a run with full batches.
pub(super) fn mu(run: &Run) -> Result<f64, AccountingError> {
    let sensitivity = match run.adjacency() {
        Adjacency::AddRemove => 1.0,
        Adjacency::Substitute => 2.0,
    };
    let squares: f64 = run
        .phases()
        .iter()
        .map(|phase| {
            let ratio = phase.sample_rate / phase.noise_multiplier;
            phase.steps as f64 * ratio * ratio
        })
        .sum();
    Ok(sensitivity * f64::from(run.group_size()) * squares.sqrt())
}
