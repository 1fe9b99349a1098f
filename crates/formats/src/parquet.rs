//! Parquet tables (feature `parquet`): flat columns of numbers, truth values and text, in any
//! compression this build knows.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

// For who writes such files, as tests do.
pub use parquet as library;

/// What stands in one place of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum ParquetCell {
    Missing,
    Truth(bool),
    /// A whole number, exact up to 2^53.
    Whole(f64),
    Real(f64),
    Text(String),
    /// Anything else, in words.
    Other(String),
}

impl ParquetCell {
    fn of(field: &Field) -> Self {
        match field {
            Field::Null => Self::Missing,
            Field::Bool(value) => Self::Truth(*value),
            Field::Byte(value) => Self::Whole(f64::from(*value)),
            Field::Short(value) => Self::Whole(f64::from(*value)),
            Field::Int(value) => Self::Whole(f64::from(*value)),
            Field::Long(value) => Self::Whole(*value as f64),
            Field::UByte(value) => Self::Whole(f64::from(*value)),
            Field::UShort(value) => Self::Whole(f64::from(*value)),
            Field::UInt(value) => Self::Whole(f64::from(*value)),
            Field::ULong(value) => Self::Whole(*value as f64),
            Field::Float(value) => Self::Real(f64::from(*value)),
            Field::Double(value) => Self::Real(*value),
            Field::Str(text) => Self::Text(text.clone()),
            other => Self::Other(other.to_string()),
        }
    }
}

/// A file whose table is still to be read.
pub struct ParquetTable {
    reader: SerializedFileReader<File>,
    /// The names of its columns.
    pub columns: Vec<String>,
}

impl ParquetTable {
    /// Reads what a file says about its columns.
    ///
    /// # Errors
    /// What is wrong with it, as a fragment for "FILE: …".
    pub fn open(file: File) -> Result<Self, String> {
        let reader =
            guarded(|| SerializedFileReader::new(file).map_err(|error| error.to_string()))?;
        let schema = reader.metadata().file_metadata().schema();
        let columns = schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
        Ok(Self { reader, columns })
    }

    /// Keeps these columns, in this order.
    ///
    /// # Errors
    /// A column that is not there.
    pub fn keep(&mut self, names: &[&str]) -> Result<(), String> {
        for name in names {
            if !self.columns.iter().any(|column| column == name) {
                return Err(format!("there is no column `{name}`"));
            }
        }
        self.columns = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(())
    }

    /// Gives `each` every row, with its number from 1; the problem of a row that cannot be read
    /// comes in place of its cells.
    ///
    /// # Errors
    /// Those of `each`, and `broken` of what is wrong with the file.
    pub fn rows<E>(
        &self,
        broken: impl Fn(String) -> E,
        mut each: impl FnMut(u64, Result<Vec<ParquetCell>, String>) -> Result<(), E>,
    ) -> Result<(), E> {
        let schema = self.reader.metadata().file_metadata().schema();
        let fields = schema.get_fields();
        let kept = self
            .columns
            .iter()
            .filter_map(|name| fields.iter().find(|field| field.name() == name).cloned());
        let wanted = Type::group_type_builder(schema.name())
            .with_fields(kept.collect())
            .build()
            .map_err(|error| broken(error.to_string()))?;
        let mut rows =
            guarded(|| self.reader.get_row_iter(Some(wanted)).map_err(|error| error.to_string()))
                .map_err(&broken)?;
        let mut number = 0;
        loop {
            let next = guarded(|| match rows.next() {
                Some(Ok(row)) => Ok(Some(Ok(row
                    .get_column_iter()
                    .map(|(_, field)| ParquetCell::of(field))
                    .collect()))),
                Some(Err(error)) => Ok(Some(Err(error.to_string()))),
                None => Ok(None),
            });
            number += 1;
            match next.map_err(&broken)? {
                Some(row) => each(number, row)?,
                None => return Ok(()),
            }
        }
    }
}

/// The decoder underneath panics on some damaged pages; that is a bad file, not a bug here.
fn guarded<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let damaged = "is damaged: a page cannot be decoded";
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(damaged.into()))
}
