//! Parquet tables (feature `parquet`): flat columns of numbers, truth values and text.

use super::bytes::digest;
use super::columns::{Cell, Classes, Column, Encoder};
use super::error::{DataError, refuse, refuse_row};
use super::{Dataset, Provenance};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::path::Path;

/// A table with its labels; `label` is the last column when absent.
///
/// # Errors
/// What is wrong with the file, with the row where there is one.
pub fn read_parquet(
    path: &Path,
    label: Option<&str>,
    classes: &Classes,
    columns: &[Column],
) -> Result<Dataset, DataError> {
    let broken = |error: &dyn std::fmt::Display| refuse(path, format!("cannot be read: {error}"));
    let file = std::fs::File::open(path).map_err(|error| broken(&error))?;
    let reader = SerializedFileReader::new(file).map_err(|error| broken(&error))?;
    let schema = reader.metadata().file_metadata().schema();
    let header: Vec<String> =
        schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
    let last = header.last().cloned().unwrap_or_default();
    let mut encoder = Encoder::new(&header, label.unwrap_or(&last), classes, columns)
        .map_err(|problem| refuse(path, problem))?;
    let rows = reader.get_row_iter(None).map_err(|error| broken(&error))?;
    for (number, row) in (1..).zip(rows) {
        let row = row.map_err(|error| refuse_row(path, number, error.to_string()))?;
        let cells = row
            .get_column_iter()
            .map(|(name, field)| {
                cell(field)
                    .ok_or_else(|| format!("column `{name}`: {field} is neither a number nor text"))
            })
            .collect::<Result<Vec<_>, _>>()
            .and_then(|cells| encoder.push(&cells));
        cells.map_err(|problem| refuse_row(path, number, problem))?;
    }
    let (sha256, _) = digest(path).map_err(|error| broken(&error))?;
    let provenance = Provenance {
        name: path.display().to_string(),
        sha256: vec![sha256],
        ..Provenance::default()
    };
    encoder.finish(provenance).map_err(|problem| refuse(path, problem))
}

fn cell(field: &Field) -> Option<Cell<'_>> {
    Some(match field {
        Field::Bool(value) => Cell::Number(f64::from(u8::from(*value))),
        Field::Byte(value) => Cell::Number(f64::from(*value)),
        Field::Short(value) => Cell::Number(f64::from(*value)),
        Field::Int(value) => Cell::Number(f64::from(*value)),
        Field::Long(value) => Cell::Number(*value as f64),
        Field::UByte(value) => Cell::Number(f64::from(*value)),
        Field::UShort(value) => Cell::Number(f64::from(*value)),
        Field::UInt(value) => Cell::Number(f64::from(*value)),
        Field::ULong(value) => Cell::Number(*value as f64),
        Field::Float(value) => Cell::Number(f64::from(*value)),
        Field::Double(value) => Cell::Number(*value),
        Field::Str(text) => Cell::Text(text),
        _ => return None,
    })
}
