//! `gaussian-clt`: the central limit of the privacy loss (Dong, Roth, Su 2022, Theorem 11;
//! Bu, Dong, Long, Su 2020): a Gaussian with mu^2 = sum over phases of T times the chi-square
//! distance of one step, q^2 (e^{1/sigma^2} - 1) for one record and add/remove. An estimate:
//! it has no side, and is poor where q e^{3/(2 sigma^2)} is not small. With full batches the
//! loss is normal already and the exact mu is used.

use super::{Lens, PLAIN, View, batches};
use crate::AccountingError;
use crate::pairs::Gaussian;
use vocabulary::{LensName, NotCovered, Problem, Run, Sampling, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::GaussianClt,
    standing: |_| Standing::Estimate,
    assumptions: |run| {
        vec![
            "the attacker sees every iterate".into(),
            batches(run),
            "the privacy loss is already normal (central limit; no error bound)".into(),
        ]
    },
    supports: |subject| {
        (PLAIN.supports)(subject)?;
        pair(subject.run).map(drop)
    },
    look: |subject| Ok(View::gaussian(pair(subject.run)?)),
    in_profiles: true,
    ..PLAIN
};

fn pair(run: &Run) -> Result<Gaussian, AccountingError> {
    if run.sampling() == Sampling::Full {
        return Gaussian::full_batch(run);
    }
    let pair = Gaussian::central_limit(run)?;
    if pair.mu() > 1e3 {
        let why = format!(
            "its mu would be {:.1e}; the central limit theorem gives no number for so little noise",
            pair.mu()
        );
        let noise = run.phases().iter().map(|phase| phase.noise_multiplier);
        let least = noise.fold(f64::INFINITY, f64::min);
        return Err(
            NotCovered::Value(Problem::from(why).about("noise multiplier", least, "")).into()
        );
    }
    Ok(pair)
}
