//! Score files: CSV, JSONL, NumPy and (feature `parquet`) Parquet.
//!
//! A file is streamed: memory is what the scores take, eight bytes each, whatever the file's
//! size. Every refusal names the file and the row.

mod csv;
mod jsonl;
mod matrix;
mod npy;
#[cfg(feature = "parquet")]
mod parquet;
mod runs;

pub use matrix::Matrix;

use crate::{AuditError, Column, Design, Scores};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Scores as they stand in files, before sorting.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub members: Column,
    pub nonmembers: Column,
    /// The design that a file states about itself.
    pub design: Option<Design>,
    runs: runs::Runs,
}

impl Table {
    /// Adds the rows of a file with `score` and `member`; the format is told by the extension,
    /// CSV when it is none of the others.
    ///
    /// # Errors
    /// What is wrong with the file, with its row where there is one.
    pub fn add_file(&mut self, path: &Path) -> Result<(), AuditError> {
        let file = open(path)?;
        match extension(path).as_str() {
            "jsonl" | "ndjson" => self.add_jsonl(file, path),
            "npy" => Err(refuse(
                path,
                None,
                "a .npy file has no member column; use --members A.npy --nonmembers B.npy",
            )),
            "npz" => Err(refuse(
                path,
                None,
                "a .npz file holds several arrays; save each side with numpy.save, and use --members \
                 A.npy --nonmembers B.npy",
            )),
            "parquet" => self.add_parquet(path),
            _ => {
                // A row has at least four bytes; most have five times as many.
                let length = file.metadata().map_or(0, |data| data.len());
                let rows = usize::try_from(length / 4).unwrap_or(usize::MAX);
                self.members.expect(rows);
                self.nonmembers.expect(rows);
                self.add_csv(file, path)
            }
        }
    }

    /// Adds rows of CSV text from any source; `path` is only for messages.
    ///
    /// # Errors
    /// As [`Table::add_file`].
    pub fn add_csv(&mut self, source: impl Read, path: &Path) -> Result<(), AuditError> {
        csv::read(self, source, path)
    }

    /// Adds rows of JSON lines from any source.
    ///
    /// # Errors
    /// As [`Table::add_file`].
    pub fn add_jsonl(&mut self, source: impl Read, path: &Path) -> Result<(), AuditError> {
        jsonl::read(self, source, path)
    }

    #[cfg(feature = "parquet")]
    fn add_parquet(&mut self, path: &Path) -> Result<(), AuditError> {
        parquet::read(self, path)
    }

    #[cfg(not(feature = "parquet"))]
    fn add_parquet(&mut self, path: &Path) -> Result<(), AuditError> {
        Err(refuse(
            path,
            None,
            "this build does not read Parquet; build with the feature `parquet`, or convert to CSV",
        ))
    }

    /// Adds files of each side, the two sides at the same time.
    ///
    /// # Errors
    /// As [`Table::add_file`].
    pub fn add_sides(
        &mut self,
        members: &[PathBuf],
        nonmembers: &[PathBuf],
    ) -> Result<(), AuditError> {
        let add = |values: &mut Column, files: &[PathBuf]| {
            files.iter().try_for_each(|path| read_side(values, path))
        };
        let (left, right) = (&mut self.members, &mut self.nonmembers);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| add(right, nonmembers));
            add(left, members)?;
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Settles how the rows came about: by the column `run` where there is one (every row its own
    /// training, or all rows of one training), else by what the file says. Only a settled table
    /// gives scores.
    ///
    /// # Errors
    /// Rows of which some share a training and some do not, for which no bound is valid; a column
    /// that contradicts what a file states about itself.
    pub fn settle(mut self) -> Result<SettledTable, AuditError> {
        let told =
            std::mem::take(&mut self.runs).grouping(self.members.len(), self.nonmembers.len());
        let design = match (told, self.design) {
            (runs::Grouping::Nothing, stated) => stated,
            (runs::Grouping::Mixed, _) => {
                return Err(AuditError::Scores(
                    "some rows share an entry of the column `run` and some do not: rows of one training are not independent, and several trainings are not one; keep one row per training and side, or audit each training alone".to_owned(),
                ));
            }
            (runs::Grouping::Design(told), Some(stated)) if told != stated => {
                return Err(AuditError::Scores(format!(
                    "the file says `design: {stated}`, but its column `run` says {told}: {}",
                    match told {
                        Design::Runs => "every row is a training of its own",
                        Design::OneRun => "all rows are of one training",
                    }
                )));
            }
            (runs::Grouping::Design(told), _) => Some(told),
        };
        Ok(SettledTable { members: self.members, nonmembers: self.nonmembers, design })
    }

    fn note_design(&mut self, design: Design, path: &Path) -> Result<(), AuditError> {
        match self.design {
            Some(known) if known != design => Err(refuse(
                path,
                None,
                &format!("this file says design {design}, an earlier one says {known}"),
            )),
            _ => {
                self.design = Some(design);
                Ok(())
            }
        }
    }
}

/// Scores whose design is settled.
#[derive(Clone, Debug)]
pub struct SettledTable {
    members: Column,
    nonmembers: Column,
    design: Option<Design>,
}

impl SettledTable {
    /// What the rows say about how they came about; nothing where they do not.
    pub fn design(&self) -> Option<Design> {
        self.design
    }

    /// Members and non-members in the order of their rows.
    pub fn sides(&self) -> (&[f64], &[f64]) {
        (&self.members, &self.nonmembers)
    }

    /// Sorts what was read; `asked` is the design where the rows do not say it.
    ///
    /// # Errors
    /// A side without scores; a design that the rows contradict.
    pub fn into_scores(self, asked: Design) -> Result<Scores, AuditError> {
        match self.design {
            Some(stated) if stated != asked => Err(AuditError::other_design(stated, asked)),
            _ => Scores::of_columns(asked, self.members, self.nonmembers),
        }
    }
}

/// Reads the values of one side from .npy bytes of any source; `length` is the source's size
/// where it is known, and must then match the header.
///
/// # Errors
/// What is wrong with the header or the data.
pub fn read_npy(source: impl Read, length: Option<u64>, path: &Path) -> Result<Column, AuditError> {
    let mut values = Column::default();
    npy::read(&mut values, source, length, path)?;
    Ok(values)
}

fn read_side(values: &mut Column, path: &Path) -> Result<(), AuditError> {
    let file = open(path)?;
    if extension(path) == "npy" {
        let length = file.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
        npy::read(values, file, length, path)
    } else {
        csv::read_column(values, file, path)
    }
}

fn extension(path: &Path) -> String {
    path.extension().and_then(|text| text.to_str()).unwrap_or_default().to_ascii_lowercase()
}

fn open(path: &Path) -> Result<File, AuditError> {
    let file =
        File::open(path).map_err(|error| AuditError::Open { file: path.to_owned(), error })?;
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        return Err(refuse(path, None, "is a folder; give the file itself"));
    }
    Ok(file)
}

/// A refusal in one line, whatever the file's text does to the message.
pub(crate) fn refuse(path: &Path, row: Option<u64>, problem: &str) -> AuditError {
    let mut problem: String = problem
        .chars()
        .take(LONGEST_MESSAGE)
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .collect();
    if problem.chars().count() == LONGEST_MESSAGE {
        problem.push('…');
    }
    AuditError::File { file: PathBuf::from(path), row, problem }
}

const LONGEST_MESSAGE: usize = 300;
