//! Parquet: the same column names, numbers of any type.

use super::{Builder, Cell, Table};
use crate::TuningError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::fs::File;
use std::path::Path;

pub(super) fn read(path: &Path) -> Result<Table, TuningError> {
    let place = path.display().to_string();
    let broken = |error: parquet::errors::ParquetError| TuningError::Table {
        place: place.clone(),
        problem: error.to_string(),
    };
    let file =
        File::open(path).map_err(|source| TuningError::Read { path: path.to_owned(), source })?;
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let schema = reader.metadata().file_metadata().schema().clone();
    let mut builder = Builder::new(schema.get_fields().iter().map(|field| field.name()), &place)?;
    for (index, row) in reader.get_row_iter(None).map_err(broken)?.enumerate() {
        let row = row.map_err(broken)?;
        let cells = row.get_column_iter().map(|(_, field)| cell(field)).collect();
        builder.row(cells, &format!("{place}, row {}", index + 1))?;
    }
    builder.finish(&place)
}

fn cell(field: &Field) -> Cell {
    Cell::Number(match field {
        Field::Null => return Cell::Missing,
        Field::Byte(value) => f64::from(*value),
        Field::Short(value) => f64::from(*value),
        Field::Int(value) => f64::from(*value),
        Field::Long(value) => *value as f64,
        Field::UByte(value) => f64::from(*value),
        Field::UShort(value) => f64::from(*value),
        Field::UInt(value) => f64::from(*value),
        Field::ULong(value) => *value as f64,
        Field::Float(value) => f64::from(*value),
        Field::Double(value) => *value,
        other => return Cell::Text(other.to_string()),
    })
}
