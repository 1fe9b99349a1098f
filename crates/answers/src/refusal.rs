//! Why a question was not answered: a document, `dosimeter.error/1`, like any answer.

use accounting::AccountingError;
use audit::AuditError;
use experiments::ExperimentError;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use vocabulary::{BadField, Problem, RunDescription, RunError};

/// What a process says when it ends. Scripts rely on these numbers.
pub mod exit {
    /// The question was answered.
    pub const ANSWERED: u8 = 0;
    /// A bug in this program.
    pub const BUG: u8 = 1;
    /// The input or the configuration is wrong.
    pub const BAD_INPUT: u8 = 2;
    /// A check failed: the run breaks its policy, or a measurement contradicts a proven claim.
    pub const CHECK_FAILED: u8 = 3;
    /// Work is missing; running the same command again resumes it.
    pub const INCOMPLETE: u8 = 4;
    /// Refused: outside of the domain, or beyond what can be certified.
    pub const REFUSED: u8 = 5;
    /// Interrupted; can be resumed.
    pub const INTERRUPTED: u8 = 130;
}

/// The kinds of refusals that a program may want to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The question is malformed or contradicts itself.
    BadInput,
    /// A lens was asked for by name that does not hold for the run.
    Unsupported,
    /// Outside of the domain, or beyond what can be certified.
    NotCertified,
    /// Work is missing or the machine is busy: ask again.
    Incomplete,
    /// Stopped on request; the same command goes on, or starts over, as it says.
    Interrupted,
    /// A bug in this program.
    Bug,
}

impl Kind {
    /// What the command line exits with.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::BadInput | Self::Unsupported => exit::BAD_INPUT,
            Self::NotCertified => exit::REFUSED,
            Self::Incomplete => exit::INCOMPLETE,
            Self::Interrupted => exit::INTERRUPTED,
            Self::Bug => exit::BUG,
        }
    }
}

/// A question that got no answer. `Display` is the sentence.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub kind: Kind,
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The field it is about, where it is about one.
    pub field: Option<Box<BadField>>,
}

/// A refusal as every door shows it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RefusalDocument<'a> {
    /// `dosimeter.error/1`
    schema: &'static str,
    error: &'a str,
    kind: Kind,
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    /// Which field is wrong, its value and what was expected, where it is one.
    #[serde(flatten)]
    field: Option<&'a BadField>,
}

impl RefusalDocument<'_> {
    pub const SCHEMA: &'static str = "dosimeter.error/1";
}

impl Refusal {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: plainly(message.into()), hint: None, field: None }
    }

    /// The question is malformed or contradicts itself.
    pub fn bad_input(message: impl Into<String>) -> Self {
        Self::new(Kind::BadInput, message)
    }

    /// A file could not be written.
    pub fn unwritable(path: &Path, error: &std::io::Error) -> Self {
        Self::bad_input(format!("cannot write {}: {error}", path.display()))
            .hint("choose another place, or run in a folder you may write to")
    }

    /// Something needs a feature that this build was made without.
    pub fn absent(what: &str, feature: &str) -> Self {
        Self::bad_input(format!("{what} is not part of this build")).hint(format!(
            "build it in with `cargo build --release --features {feature}`, or everything with \
             `--features full`; released binaries and wheels have everything"
        ))
    }

    /// Adds an action the user can take.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Puts the place where it happened in front of the sentence; nothing where it has no name.
    #[must_use]
    pub fn at(mut self, place: impl std::fmt::Display) -> Self {
        let place = place.to_string();
        if !place.is_empty() {
            self.message = format!("{place}: {}", self.message);
        }
        self
    }

    /// Puts in front of the sentence who gave the value that is wrong: the flag, where the flags
    /// state it, or else the file.
    #[must_use]
    pub fn of(self, flags: &RunDescription, file: impl std::fmt::Display) -> Self {
        match self.field.as_deref().filter(|wrong| flags.states(&wrong.field)) {
            Some(wrong) => {
                let flag = format!("--{}", wrong.field.replace('_', "-"));
                self.at(flag)
            }
            None => self.at(file),
        }
    }

    /// The refusal as a document.
    pub fn document(&self) -> RefusalDocument<'_> {
        RefusalDocument {
            schema: RefusalDocument::SCHEMA,
            error: &self.message,
            kind: self.kind,
            exit_code: self.kind.exit_code(),
            hint: self.hint.as_deref(),
            field: self.field.as_deref(),
        }
    }
}

/// A sentence with what the system said about a file in words, and without its numbers.
pub fn plainly(message: String) -> String {
    const SAID: [(&str, &str); 10] = [
        ("No such file or directory (os error 2)", "there is no such file or folder"),
        (
            "The system cannot find the file specified. (os error 2)",
            "there is no such file or folder",
        ),
        (
            "The system cannot find the path specified. (os error 3)",
            "there is no such file or folder",
        ),
        ("Is a directory (os error 21)", "it is a folder"),
        ("Permission denied (os error 13)", "permission denied"),
        ("No space left on device (os error 28)", "the disk is full"),
        ("Read-only file system (os error 30)", "it can only be read"),
        ("Not a directory (os error 20)", "a part of the path is a file and not a folder"),
        ("File name too long (os error 36)", "the name is too long"),
        ("stream did not contain valid UTF-8", "it is not text in UTF-8"),
    ];
    SAID.iter().fold(message, |message, (said, meant)| message.replace(said, meant))
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Self {
        Problem::from(error).into()
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let field = problem.field().cloned().map(Box::new);
        Self { field, ..Self::bad_input(problem.to_string()) }
    }
}

impl From<AccountingError> for Refusal {
    fn from(error: AccountingError) -> Self {
        match error {
            AccountingError::InvalidInput(problem) => problem.into(),
            AccountingError::OutsideDomain(problem) => {
                Self { kind: Kind::NotCertified, ..problem.into() }
            }
            AccountingError::NotCertified(reason) => {
                Self::new(Kind::NotCertified, reason.to_string())
            }
            AccountingError::Unsupported(reason) => {
                let field = reason.field().map(Box::new);
                Self { field, ..Self::new(Kind::Unsupported, reason.to_string()) }
            }
        }
    }
}

impl From<AuditError> for Refusal {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Accounting(error) => error.into(),
            AuditError::InvalidInput(problem) => problem.into(),
            other => Self::bad_input(other.to_string()),
        }
    }
}

impl From<ExperimentError> for Refusal {
    fn from(error: ExperimentError) -> Self {
        use std::io::ErrorKind;
        let kind = match &error {
            ExperimentError::Io { source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                    Kind::Incomplete
                }
                _ => Kind::BadInput,
            },
            ExperimentError::ChunkFailed { .. } => Kind::Bug,
            _ => Kind::BadInput,
        };
        Self::new(kind, error.to_string())
    }
}
