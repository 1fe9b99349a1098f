use vocabulary::Problem;

/// Why no number is given. Never a wrong number instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AccountingError {
    /// The question lies outside the domain for which numbers are certified (exit 5).
    #[error("{0}")]
    OutsideDomain(Problem),
    /// The computation could not be certified to a useful width (exit 5).
    #[error("{0}")]
    NotCertified(String),
    /// The lens does not hold for this run (listed as unsupported; exit 2 if asked for by name).
    #[error("{0}")]
    Unsupported(String),
    /// The question itself is malformed (exit 2).
    #[error("{0}")]
    InvalidInput(Problem),
}

impl AccountingError {
    /// The question itself is malformed.
    pub fn invalid(problem: impl Into<Problem>) -> Self {
        Self::InvalidInput(problem.into())
    }

    /// The question lies outside the domain.
    pub fn outside_domain(problem: impl Into<Problem>) -> Self {
        Self::OutsideDomain(problem.into())
    }
}
