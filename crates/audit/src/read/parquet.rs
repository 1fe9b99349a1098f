//! Parquet with columns `score` (double or float), `member` (boolean or integer) and perhaps
//! `run`, in any compression this build knows.

use super::{Table, refuse};
use crate::AuditError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, RowAccessor};
use parquet::schema::types::Type;
use std::fs::File;
use std::path::Path;

pub(super) fn read(table: &mut Table, path: &Path) -> Result<(), AuditError> {
    // The decoder underneath panics on some damaged pages; that is a bad file, not a bug here.
    let rows = std::panic::catch_unwind(|| {
        let mut rows = Table::default();
        read_rows(&mut rows, path).map(|()| rows)
    });
    let rows = rows.map_err(|_| refuse(path, None, "is damaged: a page cannot be decoded"))??;
    table.members.extend_from_slice(&rows.members);
    table.nonmembers.extend_from_slice(&rows.nonmembers);
    table.runs.append(rows.runs);
    Ok(())
}

fn read_rows(table: &mut Table, path: &Path) -> Result<(), AuditError> {
    let broken = |error: parquet::errors::ParquetError| refuse(path, None, &error.to_string());
    let file = File::open(path).map_err(|error| refuse(path, None, &error.to_string()))?;
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let schema = reader.metadata().file_metadata().schema().clone();
    let find = |name: &str| schema.get_fields().iter().find(|field| field.name() == name).cloned();
    let column = |name: &str| {
        find(name).ok_or_else(|| refuse(path, None, &format!("there is no column `{name}`")))
    };
    let mut columns = vec![column("score")?, column("member")?];
    let run = find("run");
    columns.extend(run.clone());
    let wanted =
        Type::group_type_builder(schema.name()).with_fields(columns).build().map_err(broken)?;
    let mut rows = 0_u64;
    for row in reader.get_row_iter(Some(wanted)).map_err(broken)? {
        let row = row.map_err(broken)?;
        rows += 1;
        let score = row
            .get_double(0)
            .or_else(|_| row.get_float(0).map(f64::from))
            .map_err(|_| refuse(path, Some(rows), "the score is not a number"))?;
        if score.is_nan() {
            return Err(refuse(
                path,
                Some(rows),
                "the score is NaN; an audit needs ordered scores",
            ));
        }
        let member = row
            .get_bool(1)
            .map(i64::from)
            .or_else(|_| row.get_long(1))
            .or_else(|_| row.get_int(1).map(i64::from))
            .or_else(|_| row.get_byte(1).map(i64::from))
            .or_else(|_| row.get_ubyte(1).map(i64::from));
        if let (Some(_), Ok(member), Some((_, field))) =
            (&run, &member, row.get_column_iter().nth(2))
            && *field != Field::Null
        {
            table.runs.note(field.to_string().as_bytes(), *member == 1);
        }
        match member {
            Ok(1) => table.members.push(score),
            Ok(0) => table.nonmembers.push(score),
            _ => return Err(refuse(path, Some(rows), "member is not 1 or 0")),
        }
    }
    if rows == 0 {
        return Err(refuse(path, None, "holds no rows"));
    }
    Ok(())
}
