//! Parquet tables (feature `parquet`): flat columns of numbers, truth values and text.

use super::bytes::digest;
use super::columns::{Cell, Classes, Column, Encoder};
use super::error::{DataError, refuse, refuse_row};
use super::{Dataset, Provenance};
use std::path::Path;

/// A table with its labels; `label` is the last column when absent.
///
/// # Errors
/// What is wrong with the file, with the row where there is one.
pub(crate) fn read_parquet(
    path: &Path,
    label: Option<&str>,
    classes: &Classes,
    columns: &[Column],
) -> Result<Dataset, DataError> {
    let broken = |problem: String| refuse(path, format!("cannot be read: {problem}"));
    let file = std::fs::File::open(path).map_err(|error| broken(error.to_string()))?;
    let table = formats::parquet::ParquetTable::open(file).map_err(broken)?;
    let header = &table.columns;
    let last = header.last().cloned().unwrap_or_default();
    let mut encoder = Encoder::new(header, label.unwrap_or(&last), classes, columns)
        .map_err(|problem| refuse(path, problem))?;
    table.rows(broken, |number, row| {
        let refuse = |problem: String| refuse_row(path, number, problem);
        let row = row.map_err(refuse)?;
        let cells = header.iter().zip(&row).map(|(name, found)| {
            cell(found).ok_or_else(|| format!("column `{name}` is neither a number nor text"))
        });
        cells
            .collect::<Result<Vec<_>, _>>()
            .and_then(|cells| encoder.push(&cells[..]))
            .map_err(refuse)
    })?;
    let (sha256, _) = digest(path).map_err(|error| broken(error.to_string()))?;
    let provenance = Provenance {
        name: path.display().to_string(),
        sha256: vec![sha256],
        ..Provenance::default()
    };
    encoder.finish(provenance).map_err(|problem| refuse(path, problem))
}

fn cell(found: &formats::parquet::ParquetCell) -> Option<Cell<'_>> {
    use formats::parquet::ParquetCell as Found;
    Some(match found {
        Found::Truth(value) => Cell::Number(f64::from(u8::from(*value))),
        Found::Whole(value) | Found::Real(value) => Cell::Number(*value),
        Found::Text(text) => Cell::Text(text),
        Found::Missing | Found::Other(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use formats::parquet::library::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type};
    use formats::parquet::library::file::properties::WriterProperties;
    use formats::parquet::library::file::writer::SerializedFileWriter;
    use formats::parquet::library::schema::parser::parse_message_type;
    use std::sync::Arc;

    fn read(numbers: &[f64], words: &[&str], labels: &[i32]) -> Result<Dataset, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.parquet");
        let message = "message table { REQUIRED DOUBLE a; REQUIRED BINARY b (UTF8); \
                       REQUIRED INT32 y; }";
        let schema = Arc::new(parse_message_type(message).unwrap());
        let file = std::fs::File::create(&path).unwrap();
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(numbers, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let words: Vec<ByteArray> = words.iter().map(|word| ByteArray::from(*word)).collect();
        column.typed::<ByteArrayType>().write_batch(&words, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(labels, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        let categories = vec!["red".to_owned(), "blue".to_owned()];
        let columns = [
            Column { name: "b".to_owned(), categories, ..Column::default() },
            Column { name: "a".to_owned(), mean: Some(1.0), ..Column::default() },
        ];
        read_parquet(&path, None, &Classes::Count(3), &columns).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_words_and_labels() {
        let data = read(&[1.5, 3.0], &["blue", "red"], &[2, 0]).unwrap();
        assert_eq!(data.features, [0.0, 1.0, 0.5, 1.0, 0.0, 2.0]);
        assert_eq!((data.labels, data.classes), (vec![2, 0], 3));
        assert_eq!(data.provenance.sha256.len(), 1);
    }

    #[test]
    fn broken_rows_are_named() {
        for (numbers, words, labels, problem) in [
            ([1.0, f64::NAN], ["red", "red"], [0, 0], "row 2: column `a`: NaN"),
            ([1.0, 1.0], ["red", "green"], [0, 0], "row 2: column `b`: `green`"),
            ([1.0, 1.0], ["red", "red"], [3, 0], "row 1: column `y`: class 3"),
        ] {
            let found = read(&numbers, &words, &labels).unwrap_err();
            assert!(found.contains(problem), "{found}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.parquet");
        std::fs::write(&path, b"PAR1 but nothing else").unwrap();
        let found = read_parquet(&path, None, &Classes::Count(2), &[]).unwrap_err().to_string();
        assert!(found.contains("table.parquet: cannot be read"), "{found}");
    }
}
