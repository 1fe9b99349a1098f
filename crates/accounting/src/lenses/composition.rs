//! `composition`: all iterates are seen, so the run is the composition of its steps. Proven for
//! adding and removing records (the subsampled Gaussian pair dominates adaptively: Zhu, Dong,
//! Wang 2022, Theorem 10). For substitution the composition of the pair
//! (1-q)N(0)+qN(1), (1-q)N(0)+qN(-1) is computed, which is not known to dominate (Lebeda,
//! Regehr, Kamath, Steinke 2024): heuristic.

use super::{Lens, View, batches};
use crate::pairs::Composed;
use vocabulary::{Adjacency, LensName, Release, Run, Sampling, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::Composition,
    release: Release::AllIterates,
    standing: |run| {
        if is_proven(run) { Standing::Proven } else { Standing::Heuristic }
    },
    assumptions: |run| {
        let mut all = vec!["the attacker sees every iterate".to_owned(), batches(run)];
        if !is_proven(run) {
            all.push("this pair dominates its composition (unproven)".into());
        }
        all
    },
    look: |run| Ok(View::pair(Composed::for_run(run)?)),
};

/// Full batches are plain Gaussians, for which substitution is proven as well.
fn is_proven(run: &Run) -> bool {
    let full = run.sampling() == Sampling::Full
        || run.phases().iter().all(|phase| phase.sample_rate == 1.0);
    run.adjacency() == Adjacency::AddRemove || full
}
