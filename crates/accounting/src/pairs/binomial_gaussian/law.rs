//! How often the record is in a batch: a binomial, or a sum of binomials of several phases.

use numerics::special::Binomial;

/// A log-concave law on 0..=largest.
#[derive(Clone, Debug)]
pub(super) enum CountLaw {
    One(Binomial),
}

impl CountLaw {
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

    /// Relative error of `ratio` beyond twelve roundings.
    #[inline]
    pub(super) fn ratio_error(&self) -> f64 {
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
