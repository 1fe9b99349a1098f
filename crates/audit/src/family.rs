//! Bounds inside a one-parameter family of pairs: the least noise that the observed rates rule
//! out, and the epsilon of the pair at that noise.
//!
//! The family is indexed by the noise multiplier; its trade-off curve f_s rises with s. If
//! f_s(FPR_upper) > FNR_upper, the curve at s is violated, and so is every curve with more noise:
//! true rates satisfy FNR >= f(FPR) and f falls, so FNR_upper >= FNR >= f(FPR) >= f(FPR_upper). So
//! with the confidence of the two rate bounds the true noise is below the smallest violated s,
//! and epsilon is at least epsilon(s, delta). (Nasr et al., "Tight auditing of differentially
//! private machine learning", 2023, as used by Steinke et al., arXiv 2410.06186.)
//!
//! Direction: the curve is taken at its certified lower end ([`crate::violation`]) and epsilon at
//! its certified lower end, so the result is a lower bound, *within the family only*. Both orders
//! of the pair have to be violated, so that it holds whichever of them the attack faces.

use crate::violation::{self, ByNoise};
use crate::{AuditError, RateBounds};
use accounting::{AccountingError, OneWay, Pair, directions, pairs};
use vocabulary::{Direction, Run};

/// Epsilon of N(mu, 1) against N(0, 1) at delta, from below; infinite at delta = 0 for mu > 0.
///
/// ```
/// assert!((audit::gaussian_epsilon(1.0, 1e-5) - 4.377178095681).abs() < 1e-9);
/// assert_eq!(audit::gaussian_epsilon(0.0, 1e-5), 0.0);
/// ```
pub fn gaussian_epsilon(mu: f64, delta: f64) -> f64 {
    if mu.is_nan() || mu <= 0.0 {
        return 0.0;
    }
    if delta <= 0.0 || mu == f64::INFINITY {
        return f64::INFINITY;
    }
    // Above mu = 1e7 the domain of the pair ends; its epsilon at the edge is still a lower bound.
    let epsilon =
        pairs::Gaussian::new(mu.min(1e7)).and_then(|pair| pair.epsilon(delta, OneWay::Remove));
    epsilon.map_or(0.0, |epsilon| epsilon.lower.max(0.0))
}

/// A family of DP-SGD pairs with known sampling rate and steps; the noise is the parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Family {
    /// All iterates: the composition of the steps.
    Composition { sample_rate: f64, steps: u64 },
    /// The last iterate of linear losses (Steinke et al.).
    LastIterate { sample_rate: f64, steps: u64 },
}

impl Family {
    /// The pair at a noise multiplier.
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn pair(&self, noise_multiplier: f64) -> Result<Box<dyn Pair>, AuditError> {
        let (Self::Composition { sample_rate, steps } | Self::LastIterate { sample_rate, steps }) =
            *self;
        let run = Run::builder()
            .phase(noise_multiplier, sample_rate, steps)
            .build()
            .map_err(|error| AuditError::InvalidInput(error.to_string()))?;
        Ok(match self {
            Self::Composition { .. } => Box::new(pairs::Composed::for_run(&run)?),
            Self::LastIterate { .. } => Box::new(pairs::BinomialGaussian::for_run(&run)?),
        })
    }

    /// The family's name for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Composition { sample_rate, steps } => format!(
                "DP-SGD with every iterate seen, sample rate {sample_rate}, {steps} steps, any noise"
            ),
            Self::LastIterate { sample_rate, steps } => format!(
                "the last iterate of DP-SGD on linear losses, sample rate {sample_rate}, {steps} steps, any noise"
            ),
        }
    }

    /// Epsilon of the member with this noise, from below.
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn epsilon(&self, noise_multiplier: f64, delta: f64) -> Result<f64, AuditError> {
        if delta <= 0.0 {
            return Ok(f64::INFINITY);
        }
        // More noise has less epsilon, so where the accounting cannot certify this noise a
        // somewhat larger one still gives a lower bound.
        let mut noise = noise_multiplier;
        loop {
            let found = self
                .pair(noise)
                .and_then(|pair| Ok(directions::epsilon(pair.as_ref(), delta, Direction::Both)?));
            match found {
                Ok(epsilon) => return Ok(epsilon.lower.max(0.0)),
                Err(AuditError::Accounting(
                    AccountingError::NotCertified(_) | AccountingError::OutsideDomain(_),
                )) if noise < 2.0 * noise_multiplier => noise *= 1.05,
                Err(error) => return Err(error),
            }
        }
    }

    /// The noise multipliers between which the search stays: where the accounting certifies.
    pub fn noise_domain(&self) -> (f64, f64) {
        match self {
            Self::Composition { .. } => (0.2, 100.0),
            Self::LastIterate { .. } => (0.02, 1e5),
        }
    }

    /// The smallest noise multiplier whose curve the rates violate, from above; `None` when no
    /// noise is ruled out.
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn violated_noise(&self, rates: &RateBounds) -> Result<Option<f64>, AuditError> {
        violation::least_violated_noise(self, std::slice::from_ref(rates))
    }

    /// The smallest violated noise over several rates that hold together.
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn least_violated_noise(&self, points: &[RateBounds]) -> Result<Option<f64>, AuditError> {
        violation::least_violated_noise(self, points)
    }
}

impl ByNoise for Family {
    fn member(&self, noise: f64) -> Result<Box<dyn Pair>, AuditError> {
        self.pair(noise)
    }

    fn domain(&self) -> (f64, f64) {
        self.noise_domain()
    }

    fn start(&self, mu: f64) -> f64 {
        match *self {
            Self::Composition { sample_rate, steps } => {
                let scaled = mu / sample_rate;
                1.0 / (scaled * scaled / steps as f64).ln_1p().sqrt()
            }
            Self::LastIterate { sample_rate, steps } => sample_rate * (steps as f64).sqrt() / mu,
        }
    }
}
