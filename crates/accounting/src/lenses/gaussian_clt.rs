//! `gaussian-clt`: the central limit of the privacy loss (Dong, Roth, Su 2022, Theorem 11;
//! Bu, Dong, Long, Su 2020): a Gaussian with mu^2 = sum over phases of T c, where c is the
//! chi-square divergence of one step, q^2 (e^{1/sigma^2} - 1) for one record and add/remove.
//! For k records the number in a batch is Bin(k, q): c = sum_ij b_i b_j e^{ij/sigma^2} - 1. For
//! substitution 4 q^2 sinh(1/sigma^2), whose square root is 2 q sqrt(sinh). An estimate: it
//! has no side, and is poor where q e^{3/(2 sigma^2)} is not small.

use super::{Lens, View, batches, full_batch};
use crate::AccountingError;
use crate::pairs::Gaussian;
use vocabulary::{Adjacency, LensName, Release, Run, Sampling, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::GaussianClt,
    release: Release::AllIterates,
    standing: |_| Standing::Estimate,
    assumptions: |run| {
        vec![
            "the attacker sees every iterate".into(),
            batches(run),
            "the privacy loss is already normal (central limit; no error bound)".into(),
        ]
    },
    look: |run| {
        let mu = mu(run)?;
        if !(mu > 0.0 && mu <= 1e3) {
            return Err(AccountingError::Unsupported(format!(
                "its mu would be {mu:e}; the central limit says nothing at so little noise"
            )));
        }
        Ok(View::pair(Gaussian::new(mu)?))
    },
};

pub(crate) fn mu(run: &Run) -> Result<f64, AccountingError> {
    if run.sampling() == Sampling::Full {
        return full_batch::mu(run);
    }
    if run.adjacency() == Adjacency::Substitute && run.group_size() > 1 {
        return Err(AccountingError::Unsupported(
            "its formula for replaced records is for one record; use group size 1".into(),
        ));
    }
    let mut sum = 0.0;
    for phase in run.phases() {
        let (q, inverse) = (phase.sample_rate, phase.noise_multiplier.powi(-2));
        let divergence = match (run.adjacency(), run.group_size()) {
            (Adjacency::Substitute, _) => 4.0 * q * q * inverse.sinh(),
            (Adjacency::AddRemove, 1) => q * q * inverse.exp_m1(),
            (Adjacency::AddRemove, size) => group_divergence(size, q, inverse),
        };
        sum += phase.steps as f64 * divergence;
    }
    Ok(sum.sqrt())
}

/// sum_ij b_i b_j (e^{ij/sigma^2} - 1) over the binomial number of the group in a batch.
fn group_divergence(size: u32, q: f64, inverse: f64) -> f64 {
    let mut weights = vec![0.0; size as usize + 1];
    weights[0] = 1.0;
    for done in 1..=size as usize {
        for count in (0..=done).rev() {
            let from_below = if count > 0 { weights[count - 1] * q } else { 0.0 };
            weights[count] = weights[count] * (1.0 - q) + from_below;
        }
    }
    let mut sum = 0.0;
    for (i, a) in weights.iter().enumerate().skip(1) {
        for (j, b) in weights.iter().enumerate().skip(1) {
            if a * b > 0.0 {
                sum += a * b * (i as f64 * j as f64 * inverse).exp_m1();
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_one_is_one_record() {
        let inverse = 1.0 / (0.8_f64 * 0.8);
        let direct = 0.01 * 0.01 * inverse.exp_m1();
        assert!((group_divergence(1, 0.01, inverse) / direct - 1.0).abs() < 1e-14);
    }

    #[test]
    fn a_group_at_rate_one_moves_by_its_size() {
        let direct = (9.0_f64 / 4.0).exp_m1();
        assert!((group_divergence(3, 1.0, 0.25) / direct - 1.0).abs() < 1e-14);
    }
}
