//! `hidden-state` and `hidden-state-renyi`: the last iterate under named assumptions on the loss
//! ([`crate::hidden_state`]). Without the loss's constants they do not hold for any run; with them
//! `account` looks through [`crate::hidden_state::look`].

use super::{Lens, batches};
use crate::AccountingError;
use crate::hidden_state::NEEDS_CONSTANTS;
use vocabulary::{LensName, Release, Run, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::HiddenState,
    release: Release::LastIterate,
    standing: |run| {
        let full = run.phases().iter().all(|phase| phase.sample_rate == 1.0);
        if full { Standing::Proven } else { Standing::Estimate }
    },
    assumptions,
    look: |_| Err(AccountingError::Unsupported(NEEDS_CONSTANTS.into())),
};

pub(super) const RENYI_LENS: Lens = Lens {
    name: LensName::HiddenStateRenyi,
    release: Release::LastIterate,
    standing: |_| Standing::Proven,
    assumptions: |run| {
        let mut all = assumptions(run);
        all.push(
            "the model starts at random: N(0, 2 sigma^2/m) in the paper's units, projected".into(),
        );
        all
    },
    look: |_| Err(AccountingError::Unsupported(NEEDS_CONSTANTS.into())),
};

fn assumptions(run: &Run) -> Vec<String> {
    vec!["the attacker sees the last iterate only".into(), batches(run)]
}
