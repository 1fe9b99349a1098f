//! Parquet: the same column names, numbers of any type.

use super::{Builder, Cell, TrainingTable};
use crate::TuningError;
use formats::parquet::ParquetCell as Found;
use std::path::Path;

pub(super) fn read(path: &Path) -> Result<TrainingTable, TuningError> {
    let place = path.display().to_string();
    let broken = |problem: String| TuningError::Table { place: place.clone(), problem };
    let file = std::fs::File::open(path)
        .map_err(|source| TuningError::Read { path: path.to_owned(), source })?;
    let table = formats::parquet::ParquetTable::open(file).map_err(broken)?;
    let mut builder = Builder::new(table.columns.iter().map(String::as_str), &place)?;
    table.rows(broken, |number, row| {
        let cells = row.map_err(broken)?.into_iter().map(|found| match found {
            Found::Missing => Cell::Missing,
            Found::Whole(number) | Found::Real(number) => Cell::Number(number),
            Found::Truth(truth) => Cell::Text(truth.to_string()),
            Found::Text(text) | Found::Other(text) => Cell::Text(text),
        });
        builder.row(cells.collect(), &format!("{place}, row {number}"))
    })?;
    builder.finish(&place)
}
