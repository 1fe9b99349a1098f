//! Why a command did not answer: an exit code, a sentence, and what to do about it.

use crate::exit;
use accounting::AccountingError;
use answers::{Kind, Refusal};
use audit::AuditError;
use experiments::ExperimentError;
use std::path::Path;
use vocabulary::{BadField, RunError};

/// A command's failure. `Display` is the sentence after `error: `.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: u8,
    pub message: String,
    pub hint: Option<String>,
    /// The field it is about, where it is about one.
    pub field: Option<Box<BadField>>,
    /// A lens was asked for that does not hold for the run.
    pub unsupported: bool,
    /// The reader of our output went away: say nothing.
    pub(crate) silent: bool,
}

impl Failure {
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: answers::plainly(message.into()),
            hint: None,
            field: None,
            unsupported: false,
            silent: false,
        }
    }

    /// Exit 2: the input or the configuration is wrong.
    pub fn bad_input(message: impl Into<String>) -> Self {
        Self::new(exit::BAD_INPUT, message)
    }

    /// Exit 2: a file could not be written.
    pub fn unwritable(path: &Path, error: &std::io::Error) -> Self {
        Refusal::unwritable(path, error).into()
    }

    /// Exit 5: outside of the domain, or beyond what can be certified.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(exit::REFUSED, message)
    }

    /// Adds an action the user can take.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Puts the place where it happened in front of the sentence.
    #[must_use]
    pub fn at(mut self, place: impl std::fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self {
            unsupported: refusal.kind == Kind::Unsupported,
            hint: refusal.hint,
            field: refusal.field,
            ..Self::new(refusal.kind.exit_code(), refusal.message)
        }
    }
}

/// What the crates below refuse with is put into words and kinds by `answers`.
macro_rules! refused_by {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Refusal::from(error).into()
            }
        })*
    };
}

refused_by!(RunError, AccountingError, AuditError, ExperimentError);

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let silent = error.kind() == std::io::ErrorKind::BrokenPipe;
        let code = if silent { exit::ANSWERED } else { exit::BAD_INPUT };
        Self { silent, ..Self::new(code, format!("cannot write the answer: {error}")) }
    }
}
