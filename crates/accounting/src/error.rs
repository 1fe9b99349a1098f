use vocabulary::{LensName, NotCertified, NotCovered, Problem};

/// Why no number is given. Never a wrong number instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AccountingError {
    /// The question lies outside the domain for which numbers are certified (exit 5).
    #[error("{0}")]
    OutsideDomain(Problem),
    /// The computation could not be certified to a useful width (exit 5).
    #[error("{0}")]
    NotCertified(NotCertified),
    /// The lens does not hold for this run (listed as unsupported; exit 2 if asked for by name).
    #[error("{0}")]
    Unsupported(NotCovered),
    /// The question itself is malformed (exit 2).
    #[error("{0}")]
    InvalidInput(Problem),
}

impl From<NotCovered> for AccountingError {
    fn from(reason: NotCovered) -> Self {
        Self::Unsupported(reason)
    }
}

impl From<NotCertified> for AccountingError {
    fn from(reason: NotCertified) -> Self {
        Self::NotCertified(reason)
    }
}

impl AccountingError {
    /// The question itself is malformed.
    pub fn invalid(problem: impl Into<Problem>) -> Self {
        Self::InvalidInput(problem.into())
    }

    /// The same of a lens that was asked for by its name.
    #[must_use]
    pub(crate) fn of(self, lens: LensName) -> Self {
        match self {
            Self::Unsupported(reason) => reason.of(lens).into(),
            other => other,
        }
    }

    /// The question lies outside the domain.
    pub fn outside_domain(problem: impl Into<Problem>) -> Self {
        Self::OutsideDomain(problem.into())
    }
}
