use accounting::AccountingError;
use training::TrainingError;

/// What can go wrong with an attribute.
#[derive(Debug, thiserror::Error)]
pub enum AttributeError {
    /// The attribute, its values or the game do not make sense.
    #[error("{0}")]
    Invalid(String),
    /// Asked to stop.
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    Training(#[from] TrainingError),
    #[error(transparent)]
    Accounting(#[from] AccountingError),
}

pub(super) fn invalid<T>(message: impl Into<String>) -> Result<T, AttributeError> {
    Err(AttributeError::Invalid(message.into()))
}
