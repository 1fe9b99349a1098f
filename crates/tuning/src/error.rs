use std::path::PathBuf;
use vocabulary::Problem;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum TuningError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The file is not a table of results; the place is `file`, or `file:line`.
    #[error("{place}: {problem}")]
    Table { place: String, problem: String },
    #[error("{0}")]
    InvalidInput(Problem),
    /// There are too few runs, or they do not vary, for the question.
    #[error("{0}")]
    TooLittle(String),
    #[error(transparent)]
    Accounting(#[from] accounting::AccountingError),
    #[error(transparent)]
    Run(#[from] vocabulary::RunError),
}

impl TuningError {
    /// The question itself is malformed.
    pub fn invalid(problem: impl Into<Problem>) -> Self {
        Self::InvalidInput(problem.into())
    }
}
