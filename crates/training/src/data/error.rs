//! Why data could not be read: always the file, and the row or record where there is one.

use std::path::{Path, PathBuf};

/// A file that is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {problem}", file.display(), place(*row))]
pub struct DataError {
    pub file: PathBuf,
    /// Of text, the line, a header counted; of other files, the record. From 1.
    pub row: Option<u64>,
    pub problem: String,
}

fn place(row: Option<u64>) -> String {
    row.map(|row| format!(", row {row}")).unwrap_or_default()
}

pub(super) fn refuse(file: &Path, problem: impl Into<String>) -> DataError {
    DataError { file: file.to_owned(), row: None, problem: problem.into() }
}

pub(super) fn refuse_row(file: &Path, row: u64, problem: impl Into<String>) -> DataError {
    DataError { file: file.to_owned(), row: Some(row), problem: problem.into() }
}
