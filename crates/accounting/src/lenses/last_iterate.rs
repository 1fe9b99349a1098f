//! `last-iterate`: the heuristic of Steinke et al. 2025 (Theorem 1). If the loss were linear,
//! only the sum of the noisy updates would matter, and the last iterate would leak like
//! Bin(T, q) + N(0, T sigma^2) against N(0, T sigma^2). Training is not linear, and there are
//! losses for which the last iterate leaks more: heuristic. It is not monotone in T, so
//! `last-iterate-max` takes the largest profile over all t <= T; its attack terms are those of
//! that largest profile, which is at least the largest of the attack terms.

use super::{Lens, PLAIN, View, batches};
use crate::pairs::{BinomialGaussian, LastIterateMax, supports_last_iterate};
use vocabulary::figure::Hue;
use vocabulary::{LensName, Release, Run, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::LastIterate,
    adds_up: true,
    monotone: false,
    hue: Hue::Vermilion,
    release: Release::LastIterate,
    standing: |_| Standing::Heuristic,
    assumptions,
    supports: |subject| {
        (PLAIN.supports)(subject)?;
        supports_last_iterate(subject.run)
    },
    look: |subject| Ok(View::pair(BinomialGaussian::for_run(subject.run)?)),
    beside_audits: true,
    in_profiles: true,
    ..PLAIN
};

pub(super) const MAX_LENS: Lens = Lens {
    name: LensName::LastIterateMax,
    monotone: true,
    hue: Hue::Purple,
    release: Release::LastIterate,
    standing: |_| Standing::Heuristic,
    assumptions: |run| {
        let mut all = assumptions(run);
        all.push("training may stop after any number of steps up to the last".into());
        all
    },
    look: |subject| Ok(View::pair(LastIterateMax::for_run(subject.run)?)),
    // A maximum over pairs is not a pair itself.
    one_pair: false,
    ..LENS
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
