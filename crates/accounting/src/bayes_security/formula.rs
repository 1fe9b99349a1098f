//! The Gaussian that a closed form puts in place of a run: one number mu, from which Bayes
//! security is 1 - erf(mu / (2 sqrt 2)) = 2 Phi(-mu/2).
//!
//! *The paper's* (Cherubin, Köpf, Paverd, Tople, Wutschitz, Zanella-Béguelin 2024, Corollary 7
//! without its error term): the mixture of each step is replaced by the Gaussian of the same
//! mean, so mu^2 = sum_t (p D / sigma)^2 with D = 2 for replacing a record, 1 for adding or
//! removing one. It is an **estimate that errs on the unsafe side**: it lies above the exact Bayes
//! security in 580 of the 600 cells of the paper's grid, by up to .44, and below it by at most 1.2e-5
//! in the others (rates of .005 and more with much noise; docs/record-level.md).
//!
//! *The central limit's*: the log-likelihood ratio of many steps is nearly normal, with
//! mu^2 = sum_t p^2 K and K = 4 sinh(1/sigma^2) for replacing a record, e^{1/sigma^2} - 1 for
//! adding or removing one ([`Gaussian::central_limit`]). Both agree as sigma grows. An **estimate**
//! whose relative error in 1 - beta is about p e^{3/(2 sigma^2)}; it was on the safe side wherever
//! it was checked, which proves nothing. Cost: tens of nanoseconds.

use crate::AccountingError;
use crate::pairs::Gaussian;
use numerics::elementary::{exp_m1, ln_1p, powf, powi, sinh};
use numerics::special::{inverse_normal_cdf, normal_sf};
use vocabulary::{Adjacency, Run};

/// mu of the paper's closed form.
///
/// ```
/// use accounting::bayes_security::{closed_form_mu, security_of_mu};
/// use vocabulary::{Adjacency, Run};
/// let run = Run::builder().phase(1.0, 1e-3, 100_000).adjacency(Adjacency::Substitute).build()?;
/// assert!((security_of_mu(closed_form_mu(&run)?) - 0.7518).abs() < 5e-5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `Unsupported` for shuffled and fixed-size batches.
pub fn closed_form_mu(run: &Run) -> Result<f64, AccountingError> {
    Ok(Gaussian::full_batch(run)?.mu())
}

/// mu of the central limit; see the module.
///
/// # Errors
/// `Unsupported` for shuffled and fixed-size batches; `OutsideDomain` for mu above 1e7.
pub fn central_limit_mu(run: &Run) -> Result<f64, AccountingError> {
    // Always in the batch: the step is normal itself, and its exponential would be wrong.
    if run.phases().iter().all(|phase| phase.sample_rate == 1.0) {
        return closed_form_mu(run);
    }
    Ok(Gaussian::central_limit(run)?.mu())
}

/// Bayes security of a Gaussian pair, 1 - erf(mu / (2 sqrt 2)).
pub fn security_of_mu(mu: f64) -> f64 {
    (2.0 * normal_sf(0.5 * mu)).min(1.0)
}

/// The Gaussian mu of a Bayes security.
pub fn mu_of_security(security: f64) -> f64 {
    -2.0 * inverse_normal_cdf((0.5 * security).max(1e-300))
}

/// Noise, sample rate or steps in closed form, for a run of one phase; methods of the paper's
/// section on calibration, and the same for the central limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    Paper,
    CentralLimit,
}

impl Formula {
    /// K of one step at this noise, such that mu^2 = T p^2 K.
    fn step(self, noise_multiplier: f64, adjacency: Adjacency) -> f64 {
        let gain = powi(noise_multiplier, -2);
        match (self, adjacency) {
            (Self::Paper, Adjacency::AddRemove | Adjacency::ZeroOut) => gain,
            (Self::Paper, Adjacency::Substitute) => 4.0 * gain,
            (Self::CentralLimit, Adjacency::AddRemove | Adjacency::ZeroOut) => exp_m1(gain),
            (Self::CentralLimit, Adjacency::Substitute) => 4.0 * sinh(gain),
        }
    }

    /// The noise at which the formula says `security`, for one record.
    ///
    /// ```
    /// use accounting::bayes_security::Formula;
    /// use vocabulary::Adjacency;
    /// let rate = 256.0 / 26048.0;
    /// let noise = |formula: Formula| formula.noise_multiplier(0.9, rate, 2020, Adjacency::Substitute);
    /// assert!((noise(Formula::Paper) - 3.5151).abs() < 5e-5);
    /// assert!((noise(Formula::CentralLimit) - 3.5170).abs() < 5e-5);
    /// ```
    pub fn noise_multiplier(
        self,
        security: f64,
        sample_rate: f64,
        steps: u64,
        adjacency: Adjacency,
    ) -> f64 {
        let mu = mu_of_security(security);
        let step = powi(mu / sample_rate, 2) / steps as f64;
        let gain = match (self, adjacency) {
            (Self::Paper, Adjacency::AddRemove | Adjacency::ZeroOut) => step,
            (Self::Paper, Adjacency::Substitute) => 0.25 * step,
            (Self::CentralLimit, Adjacency::AddRemove | Adjacency::ZeroOut) => ln_1p(step),
            (Self::CentralLimit, Adjacency::Substitute) => (0.25 * step).asinh(),
        };
        powf(gain, -0.5)
    }

    /// The sample rate at which the formula says `security`.
    pub fn sample_rate(
        self,
        security: f64,
        noise_multiplier: f64,
        steps: u64,
        adjacency: Adjacency,
    ) -> f64 {
        mu_of_security(security) / (steps as f64 * self.step(noise_multiplier, adjacency)).sqrt()
    }

    /// The steps, not rounded, at which the formula says `security`.
    pub fn steps(
        self,
        security: f64,
        noise_multiplier: f64,
        sample_rate: f64,
        adjacency: Adjacency,
    ) -> f64 {
        powi(mu_of_security(security) / sample_rate, 2) / self.step(noise_multiplier, adjacency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_values_of_the_paper() {
        // T = 5000, beta .98: p = 3.5453e-4 sigma.
        let rate = Formula::Paper.sample_rate(0.98, 1.0, 5000, Adjacency::Substitute);
        assert!((rate - 3.5453e-4).abs() < 5e-9, "{rate}");
        // Purchase: the whole 197,324 records, batches of 512, 20 epochs.
        let (q, steps) = (512.0 / 197_324.0, 20 * (197_324 / 512));
        for (formula, want) in [(Formula::Paper, 1.8119), (Formula::CentralLimit, 1.8255)] {
            let noise = formula.noise_multiplier(0.9, q, steps, Adjacency::Substitute);
            assert!((noise - want).abs() < 5e-5, "{noise} {want}");
        }
    }

    #[test]
    fn inverses_return() {
        for formula in [Formula::Paper, Formula::CentralLimit] {
            for adjacency in [Adjacency::AddRemove, Adjacency::Substitute] {
                let noise = formula.noise_multiplier(0.8, 0.01, 3000, adjacency);
                let rate = formula.sample_rate(0.8, noise, 3000, adjacency);
                let steps = formula.steps(0.8, noise, rate, adjacency);
                assert!((rate / 0.01 - 1.0).abs() < 1e-12 && (steps / 3000.0 - 1.0).abs() < 1e-12);
                let run = Run::builder().phase(noise, 0.01, 3000).adjacency(adjacency);
                let run = run.build().unwrap();
                let mu = match formula {
                    Formula::Paper => closed_form_mu(&run).unwrap(),
                    Formula::CentralLimit => central_limit_mu(&run).unwrap(),
                };
                assert!((security_of_mu(mu) - 0.8).abs() < 1e-12);
            }
        }
    }
}
