//! `last-iterate`: the heuristic of Steinke et al. 2025 (Theorem 1). If the loss were linear,
//! only the sum of the noisy updates would matter, and the last iterate would leak like
//! Bin(T, q) + N(0, T sigma^2) against N(0, T sigma^2). Training is not linear, and there are
//! losses for which the last iterate leaks more: heuristic. It is not monotone in T, so
//! `last-iterate-max` takes the largest value over all t <= T.

use super::{Lens, View, batches};
use crate::pairs::BinomialGaussian;
use vocabulary::{LensName, Release, Run, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::LastIterate,
    release: Release::LastIterate,
    standing: |_| Standing::Heuristic,
    assumptions,
    look: |run| Ok(View::pair(BinomialGaussian::for_run(run)?)),
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
