//! Data sets in memory: rows of numbers with a class, and where they come from.
//!
//! A row is `shape.len()` numbers. An image's row is height x width x channels, the channel
//! running fastest, because convolutions read all channels of a pixel together.

pub mod adult;
mod bytes;
pub mod catalogue;
mod cifar;
mod columns;
mod csv;
mod error;
mod idx;
#[cfg(feature = "images")]
mod images;
mod npy;
#[cfg(feature = "parquet")]
mod parquet;
mod pixels;
mod sampling;
mod sketch;
mod source;

pub use columns::{Classes, Column};
pub use csv::{CsvOptions, read_csv};
pub use error::DataError;
pub use npy::read_npy;
pub use pixels::Pixels;
pub use sketch::{Holds, Sketch, SketchedColumn, sketch_csv};
pub use source::{DataSource, Format};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// This many numbers without an arrangement.
    Flat(usize),
    /// An image; the channel runs fastest.
    Image { height: usize, width: usize, channels: usize },
}

impl Shape {
    /// Numbers in a row.
    pub fn len(self) -> usize {
        match self {
            Self::Flat(length) => length,
            Self::Image { height, width, channels } => height * width * channels,
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Where the constants of a preprocessing step come from. Constants computed from the records
/// are a release that no accountant sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Constants {
    /// Known without looking at the records (a documented range, a published mean).
    Public,
    /// Computed from the records: not covered by the privacy guarantee.
    FromRecords,
}

/// One step between the file and the rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Preprocessing {
    /// In words, for the ledger.
    pub step: String,
    pub constants: Constants,
}

/// Where the rows come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// A short name (`adult`, or the file's name).
    pub name: String,
    /// SHA-256 of each file read, in the order they were read.
    pub sha256: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    pub preprocessing: Vec<Preprocessing>,
    /// Columns of a table that the description does not list: no record has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
}

/// Rows of numbers, each with a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// Row by row, `labels.len()` x `shape.len()`; finite.
    pub features: Vec<f32>,
    /// Each below `classes`.
    pub labels: Vec<u32>,
    pub classes: usize,
    pub shape: Shape,
    /// Names of the columns of a flat data set, or empty.
    pub columns: Vec<String>,
    pub provenance: Provenance,
}

impl Dataset {
    /// Records.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The numbers of one record.
    ///
    /// # Panics
    /// If there is no such record.
    pub fn row(&self, index: usize) -> &[f32] {
        let width = self.shape.len();
        &self.features[index * width..(index + 1) * width]
    }

    /// The records with these numbers, in this order.
    ///
    /// # Panics
    /// If there is no such record.
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            features: rows.iter().flat_map(|&row| self.row(row).iter().copied()).collect(),
            labels: rows.iter().map(|&row| self.labels[row]).collect(),
            ..self.without_rows()
        }
    }

    fn without_rows(&self) -> Self {
        Self {
            features: Vec::new(),
            labels: Vec::new(),
            classes: self.classes,
            shape: self.shape,
            columns: self.columns.clone(),
            provenance: self.provenance.clone(),
        }
    }
}

/// What to train on and what to measure accuracy on.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    pub train: Dataset,
    pub test: Option<Dataset>,
}
