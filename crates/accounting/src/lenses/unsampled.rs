//! `unsampled`: the run as if every record were in every batch, with the noise that it has. A batch that leaves the
//! record out shows nothing of it, so by joint convexity a sampled step never leaks more: an upper bound, and a loose one.
//! A Gaussian with mu^2 = sum over phases of T (k/sigma)^2 for k records, twice the shift for substitution.

use super::{Lens, PLAIN, View};
use crate::AccountingError;
use crate::pairs::Gaussian;
use numerics::elementary::powi;
use vocabulary::{Adjacency, LensName, Run};

pub(super) const LENS: Lens = Lens {
    name: LensName::Unsampled,
    assumptions: |_| {
        vec![
            "the attacker sees every iterate; every record counts as if it were in every batch"
                .into(),
        ]
    },
    look: |subject| Ok(View::gaussian(pair(subject.run)?)),
    ..PLAIN
};

fn pair(run: &Run) -> Result<Gaussian, AccountingError> {
    let once = |phase: &vocabulary::Phase| phase.steps as f64 * powi(phase.noise_multiplier, -2);
    let reach = if run.adjacency() == Adjacency::Substitute { 2.0 } else { 1.0 };
    let mu =
        reach * f64::from(run.group_size()) * run.phases().iter().map(once).sum::<f64>().sqrt();
    Gaussian::computed(mu, 8.0 * f64::EPSILON * (3.0 + run.phases().len() as f64))
}
