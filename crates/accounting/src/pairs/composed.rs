//! T-fold composition of subsampled Gaussians.

use super::{OneWay, Pair};
use crate::AccountingError;
use vocabulary::{Interval, Run};

/// All iterates of a run: the composition of its steps.
#[derive(Clone, Debug)]
pub struct Composed {
    run: Run,
}

impl Composed {
    /// The composed pair of a run: Poisson or full batches, add/remove or substitution, any
    /// group size and any number of phases.
    ///
    /// # Errors
    /// `Unsupported` for other sampling schemes, `OutsideDomain` for parameters beyond the domain.
    pub fn for_run(run: &Run) -> Result<Self, AccountingError> {
        Ok(Self { run: run.clone() })
    }

    fn nothing(&self) -> Result<Interval, AccountingError> {
        Err(AccountingError::NotCertified(format!("not available yet for {} steps", self.run.steps())))
    }
}

impl Pair for Composed {
    fn delta(&self, _epsilon: f64, _way: OneWay) -> Result<Interval, AccountingError> {
        self.nothing()
    }
    fn one_minus_delta(&self, _epsilon: f64, _way: OneWay) -> Result<Interval, AccountingError> {
        self.nothing()
    }
    fn epsilon(&self, _delta: f64, _way: OneWay) -> Result<Interval, AccountingError> {
        self.nothing()
    }
    fn tpr(&self, _fpr: f64, _way: OneWay) -> Result<Interval, AccountingError> {
        self.nothing()
    }
    fn fnr(&self, _fpr: f64, _way: OneWay) -> Result<Interval, AccountingError> {
        self.nothing()
    }
}
