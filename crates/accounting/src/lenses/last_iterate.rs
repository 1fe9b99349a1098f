//! `last-iterate`: the heuristic of Steinke et al. 2025 (Theorem 1). If the loss were linear,
//! only the sum of the noisy updates would matter, and the last iterate would leak like
//! Bin(T, q) + N(0, T sigma^2) against N(0, T sigma^2). Training is not linear, and there are
//! losses for which the last iterate leaks more: heuristic. It is not monotone in T, so
//! `last-iterate-max` takes the largest profile over all t <= T; its attack terms are those of
//! that largest profile, which is at least the largest of the attack terms.

use super::{Lens, View, batches};
use crate::pairs::{BinomialGaussian, LastIterateMax};
use vocabulary::{LensName, Release, Run, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::LastIterate,
    release: Release::LastIterate,
    standing: |_| Standing::Heuristic,
    assumptions,
    look: |run| Ok(View::pair(BinomialGaussian::for_run(run)?)),
};

pub(super) const MAX_LENS: Lens = Lens {
    name: LensName::LastIterateMax,
    release: Release::LastIterate,
    standing: |_| Standing::Heuristic,
    assumptions: |run| {
        let mut all = assumptions(run);
        all.push("training may stop after any number of steps up to the last".into());
        all
    },
    look: |run| Ok(View::pair(LastIterateMax::for_run(run)?)),
};

fn assumptions(run: &Run) -> Vec<String> {
    vec![
        "the attacker sees the last iterate only".into(),
        batches(run),
        "the loss is linear, so that gradients do not depend on the model (training does not \
         satisfy this; there are losses for which the last iterate leaks more)"
            .into(),
    ]
}
