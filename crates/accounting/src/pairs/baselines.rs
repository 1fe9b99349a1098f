//! Gaussian pairs that stand for a whole run: the full-batch baseline and the central limit.
//!
//! *Full batch* (Steinke et al., equation 4): every record in every batch, noise scaled so that the
//! expected update is the same; mu = sqrt(sum_i T_i q_i^2 / sigma_i^2). Exact for full batches.
//!
//! *Central limit* (Bu et al. 2020): the summed log-likelihood ratio is nearly normal with
//! mu^2 = sum_i T_i K_i, K the chi-square-like distance of one step. With N, M independent
//! Bin(k, q) uses of a group of k, K = E e^{NM/sigma^2} - 1 when the group is absent on the other
//! side (q^2 (e^{1/sigma^2} - 1) for k = 1) and K = 2 E e^{NM/sigma^2} - 2 E e^{-NM/sigma^2} when
//! it is replaced by its opposite (4 q^2 sinh(1/sigma^2) for k = 1). An estimate without a side.

use super::Gaussian;
use crate::AccountingError;
use numerics::elementary::{exp, exp_m1, ln_1p, powi};
use numerics::special::{Binomial, ROUND};
use vocabulary::{Adjacency, NotCovered, Phase, Run, Sampling};

impl Gaussian {
    /// The full-batch baseline of a run: mu = k sqrt(sum T q^2/sigma^2), twice that when a record
    /// is replaced (it may push the other way).
    ///
    /// # Errors
    /// `Unsupported` for shuffled and fixed-size batches; `OutsideDomain` for mu above 1e7.
    pub fn full_batch(run: &Run) -> Result<Self, AccountingError> {
        by_coins(run, "the full-batch baseline holds")?;
        let sum: f64 = run
            .phases()
            .iter()
            .map(|p| p.steps as f64 * powi(p.sample_rate / p.noise_multiplier, 2))
            .sum();
        let reach = f64::from(run.group_size())
            * if run.adjacency() == Adjacency::Substitute { 2.0 } else { 1.0 };
        Self::computed(reach * sum.sqrt(), ROUND * (4.0 + run.phases().len() as f64))
    }

    /// The central-limit estimate of a run's composition.
    ///
    /// # Errors
    /// `Unsupported` for shuffled and fixed-size batches; `OutsideDomain` for mu above 1e7.
    pub fn central_limit(run: &Run) -> Result<Self, AccountingError> {
        by_coins(run, "the central-limit estimate holds")?;
        let sum: f64 = run
            .phases()
            .iter()
            .map(|phase| {
                phase.steps as f64 * step_distance(phase, run.group_size(), run.adjacency())
            })
            .sum();
        Self::new(sum.sqrt())
    }
}

/// K of one step.
fn step_distance(phase: &Phase, group: u32, adjacency: Adjacency) -> f64 {
    let (q, gain) = (phase.sample_rate, powi(phase.noise_multiplier, -2));
    // E over M of e^{n M gain}, less 1.
    let inner = |n: f64, sign: f64| exp_m1(f64::from(group) * ln_1p(q * exp_m1(sign * n * gain)));
    let both = |n: f64| match adjacency {
        Adjacency::AddRemove | Adjacency::ZeroOut => inner(n, 1.0),
        Adjacency::Substitute => 2.0 * (inner(n, 1.0) - inner(n, -1.0)),
    };
    match Binomial::new(u64::from(group), q) {
        Some(law) => {
            (1..=group).map(|n| exp(law.log_pmf(f64::from(n)).0) * both(f64::from(n))).sum()
        }
        None => both(f64::from(group)),
    }
}

/// Poisson and full batches only.
pub(crate) fn by_coins(run: &Run, what: &'static str) -> Result<(), NotCovered> {
    let (found, covered) = (run.sampling(), &[Sampling::Poisson, Sampling::Full]);
    if covered.contains(&found) {
        return Ok(());
    }
    Err(NotCovered::Sampling { what, found, covered, elsewhere: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocabulary::Sampling;

    fn run(sigma: f64, q: f64, steps: u64) -> vocabulary::RunBuilder {
        Run::builder().phase(sigma, q, steps)
    }

    #[test]
    fn distances_have_their_known_forms() {
        let one = Gaussian::central_limit(&run(1.0, 1e-3, 100_000).build().unwrap()).unwrap();
        assert!((one.mu() / (1e-3 * (1e5 * 1f64.exp_m1()).sqrt()) - 1.0).abs() < 1e-14);
        let swapped = run(2.0, 1e-3, 100_000).adjacency(Adjacency::Substitute).build().unwrap();
        let swapped = Gaussian::central_limit(&swapped).unwrap();
        assert!((swapped.mu() / (2e-3 * (1e5 * 0.25f64.sinh()).sqrt()) - 1.0).abs() < 1e-14);
        // A group that is always there is one record with k times the reach.
        let group = run(3.0, 1.0, 7).sampling(Sampling::Full).group_size(4).build().unwrap();
        let certain = Gaussian::central_limit(&group).unwrap();
        assert!((certain.mu() / (7.0 * (16.0f64 / 9.0).exp_m1()).sqrt() - 1.0).abs() < 1e-14);
        // Two records, spelled out: N, M in {0, 1, 2}.
        let (q, g) = (0.3f64, 0.25f64);
        let b = [0.49, 0.42, 0.09];
        let mut want = -1.0;
        for (i, x) in b.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                want += x * y * (g * (i * j) as f64).exp();
            }
        }
        let pair = Gaussian::central_limit(&run(2.0, q, 1).group_size(2).build().unwrap()).unwrap();
        assert!((pair.mu().powi(2) / want - 1.0).abs() < 1e-12, "{}", pair.mu());
    }

    #[test]
    fn shuffling_is_refused() {
        let shuffled = run(1.0, 0.01, 100).sampling(Sampling::Shuffle).build().unwrap();
        assert!(matches!(Gaussian::full_batch(&shuffled), Err(AccountingError::Unsupported(_))));
        assert!(matches!(Gaussian::central_limit(&shuffled), Err(AccountingError::Unsupported(_))));
    }
}
