//! `full-batch`: the run's expected update with full batches, i.e. sample rate 1 and noise
//! sigma/q, for which last iterate and all iterates leak the same: a Gaussian with
//! mu = sqrt(sum T q^2 / sigma^2) (Steinke et al. 2025, eq. 4). A baseline below the
//! last-iterate heuristic, not a bound for the run.

use super::{Lens, PLAIN, View};
use crate::pairs::Gaussian;
use vocabulary::figure::Hue;
use vocabulary::{LensName, Release, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::FullBatch,
    adds_up: true,
    hue: Hue::Orange,
    release: Release::LastIterate,
    standing: |_| Standing::Heuristic,
    assumptions: |_| {
        vec![
            "the run leaks like full-batch training with noise sigma/q and the same expected \
             update; sampling is assumed to add nothing"
                .into(),
        ]
    },
    look: |subject| Ok(View::gaussian(Gaussian::full_batch(subject.run)?)),
    beside_audits: true,
    ..PLAIN
};
