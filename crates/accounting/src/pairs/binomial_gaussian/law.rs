//! How often the record is in a batch: a binomial, or a sum of binomials of several phases.

use crate::AccountingError;
use numerics::special::Binomial;

/// A log-concave law on 0..=largest.
#[derive(Clone, Debug)]
pub(super) enum CountLaw {
    One(Binomial),
}

impl CountLaw {
    /// `certain` sure uses plus the binomials (rate, draws); at least one binomial.
    ///
    /// # Errors
    /// `OutsideDomain` where a sum of several laws would be too large a table.
    pub(super) fn new(certain: u64, parts: &[(f64, u64)]) -> Result<Self, AccountingError> {
        if let (0, [(rate, draws)]) = (certain, parts)
            && let Some(law) = Binomial::new(*draws, *rate)
        {
            return Ok(CountLaw::One(law));
        }
        Err(AccountingError::OutsideDomain("phases with different sample rates".to_owned()))
    }

    pub(super) fn largest(&self) -> f64 {
        match self {
            CountLaw::One(law) => law.trials(),
        }
    }

    pub(super) fn mean(&self) -> f64 {
        match self {
            CountLaw::One(law) => law.mean(),
        }
    }

    pub(super) fn variance(&self) -> f64 {
        match self {
            CountLaw::One(law) => law.variance(),
        }
    }

    /// P(k+1)/P(k).
    #[inline]
    pub(super) fn ratio(&self, k: f64) -> f64 {
        match self {
            CountLaw::One(law) => law.ratio(k),
        }
    }

    /// ln of the ratio; minus infinity at the end of the support.
    #[inline]
    pub(super) fn log_ratio(&self, k: f64) -> f64 {
        self.ratio(k).ln()
    }

    /// Relative error of P(k)/P(j) beyond what the rounding of the ratios between them explains.
    #[inline]
    pub(super) fn entry_error(&self) -> f64 {
        match self {
            CountLaw::One(_) => 0.0,
        }
    }

    /// ln P(k) and a bound on its absolute error.
    pub(super) fn log_pmf(&self, k: f64) -> (f64, f64) {
        match self {
            CountLaw::One(law) => law.log_pmf(k),
        }
    }
}
