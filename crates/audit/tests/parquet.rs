//! Parquet tables, written here and read back.
#![cfg(feature = "parquet")]

use audit::Table;
use formats::parquet::library::basic::Compression;
use formats::parquet::library::data_type::{BoolType, DoubleType, Int64Type};
use formats::parquet::library::file::properties::WriterProperties;
use formats::parquet::library::file::writer::SerializedFileWriter;
use formats::parquet::library::schema::parser::parse_message_type;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes `scores` beside integer or boolean members; returns the path.
fn write(name: &str, scores: &[f64], members: &[i64], boolean: bool) -> PathBuf {
    let path = std::env::temp_dir().join(format!("{}-{name}.parquet", std::process::id()));
    let kind = if boolean { "BOOLEAN" } else { "INT64" };
    let message = format!("message scores {{ REQUIRED {kind} member; REQUIRED DOUBLE score; }}");
    let schema = Arc::new(parse_message_type(&message).unwrap());
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    if boolean {
        let bits: Vec<bool> = members.iter().map(|member| *member == 1).collect();
        column.typed::<BoolType>().write_batch(&bits, None, None).unwrap();
    } else {
        column.typed::<Int64Type>().write_batch(members, None, None).unwrap();
    }
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(scores, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    path
}

fn read(path: &Path) -> Result<Table, String> {
    let mut table = Table::default();
    let outcome = table.add_file(path).map_err(|error| error.to_string());
    std::fs::remove_file(path).unwrap();
    outcome.map(|()| table)
}

#[test]
fn columns_are_found_by_name() {
    for boolean in [false, true] {
        let path =
            write(&format!("good-{boolean}"), &[1.5, -2.0, f64::INFINITY], &[1, 0, 1], boolean);
        let table = read(&path).unwrap();
        assert_eq!(*table.members, [1.5, f64::INFINITY]);
        assert_eq!(*table.nonmembers, [-2.0]);
    }
}

#[test]
fn refusals_name_the_row() {
    let problem = read(&write("nan", &[1.0, f64::NAN], &[1, 0], false)).unwrap_err();
    assert!(problem.contains("row 2: the score is NaN"), "{problem}");
    let problem = read(&write("member", &[1.0, 2.0], &[1, 7], false)).unwrap_err();
    assert!(problem.contains("row 2: member is not 1 or 0"), "{problem}");
    let broken = std::env::temp_dir().join(format!("{}-broken.parquet", std::process::id()));
    std::fs::write(&broken, b"PAR1 this is not a table PAR1").unwrap();
    assert!(read(&broken).is_err());
}

/// A damaged table is refused, never a crash: every byte of a good file spoilt in turn.
#[test]
fn damaged_tables_are_refused() {
    let scores: Vec<f64> = (0..50).map(f64::from).collect();
    let members: Vec<i64> = (0..50).map(|i| i % 2).collect();
    let good = write("whole", &scores, &members, false);
    let bytes = std::fs::read(&good).unwrap();
    std::fs::remove_file(&good).unwrap();
    let mut refused = 0;
    for place in 0..bytes.len() {
        let mut spoilt = bytes.clone();
        spoilt[place] ^= 0xa5;
        let path =
            std::env::temp_dir().join(format!("{}-spoilt-{place}.parquet", std::process::id()));
        std::fs::write(&path, &spoilt[..]).unwrap();
        refused += usize::from(read(&path).is_err());
        std::fs::write(&path, &bytes[..place]).unwrap();
        assert!(read(&path).is_err(), "cut at {place}");
    }
    assert!(refused > bytes.len() / 4, "{refused} of {}", bytes.len());
}
