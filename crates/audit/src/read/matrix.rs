//! A matrix of numbers from NumPy's .npy format: models by records.

use super::{open, refuse};
use crate::AuditError;
use formats::npy::Header;
use std::io::Read;
use std::path::Path;

/// Numbers row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<f64>,
}

impl Matrix {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with the file: not two dimensions, or cut off.
    pub fn read(path: &Path) -> Result<Self, AuditError> {
        let mut file = open(path)?;
        let length = file.metadata().map_or(0, |data| data.len());
        let header = Header::read(&mut file).map_err(|problem| refuse(path, None, &problem))?;
        let [rows, columns] = header.shape[..] else {
            return Err(refuse(
                path,
                None,
                &format!("the shape {:?} is not models by records", header.shape),
            ));
        };
        // The length of the file is believed, the header's promise is not.
        let there = length.saturating_sub(header.bytes);
        if header.data_bytes() != Some(there) {
            return Err(refuse(
                path,
                None,
                &format!(
                    "the header promises {rows} times {columns} numbers, and {there} bytes follow"
                ),
            ));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| refuse(path, None, &error.to_string()))?;
        let mut values = Vec::with_capacity(bytes.len() / header.width().max(1));
        header.decode(&bytes, |value| values.push(value));
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let (rows, columns) = (size(rows), size(columns));
        if header.fortran_order {
            // Column by column.
            values = (0..rows * columns)
                .map(|place| values[place % columns * rows + place / columns])
                .collect();
        }
        Ok(Self { rows, columns, values })
    }
}
