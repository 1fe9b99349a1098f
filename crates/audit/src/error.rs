use std::path::PathBuf;
use vocabulary::{Design, Problem};

/// Why no bound is given. Every message names the place and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A file cannot be opened.
    #[error("cannot read {}: {error}", file.display())]
    Open { file: PathBuf, error: std::io::Error },
    /// A file does not hold scores, or breaks off.
    #[error("{}: {problem}", place(file, *row))]
    File { file: PathBuf, row: Option<u64>, problem: String },
    /// The scores do not allow the question (one class only, too few for the rule).
    #[error("{0}")]
    Scores(String),
    /// The question itself is malformed.
    #[error("{0}")]
    InvalidInput(Problem),
    /// The method does not hold for the design of these data.
    #[error("{0}")]
    NotValid(String),
    /// The accounting behind a family bound could not answer.
    #[error(transparent)]
    Accounting(#[from] accounting::AccountingError),
}

impl AuditError {
    /// The question itself is malformed.
    pub fn invalid(problem: impl Into<Problem>) -> Self {
        Self::InvalidInput(problem.into())
    }

    /// Scores of one design, asked about as if they were of the other.
    pub(crate) fn other_design(stated: Design, asked: Design) -> Self {
        Self::NotValid(format!("the scores are of design {stated}, and {asked} was asked for"))
    }
}

impl From<vocabulary::UnknownName> for AuditError {
    fn from(error: vocabulary::UnknownName) -> Self {
        Self::invalid(error.to_string())
    }
}

fn place(file: &std::path::Path, row: Option<u64>) -> String {
    match row {
        Some(row) => format!("{}, row {row}", file.display()),
        None => file.display().to_string(),
    }
}
