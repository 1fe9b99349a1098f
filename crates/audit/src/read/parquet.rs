//! Parquet with columns `score` (double or float), `member` (boolean or integer) and perhaps
//! `run`.

use super::{Table, open, refuse};
use crate::AuditError;
use formats::parquet::ParquetCell;
use std::path::Path;

pub(super) fn read(table: &mut Table, path: &Path) -> Result<(), AuditError> {
    let broken = |problem: String| refuse(path, None, &problem);
    let mut file = formats::parquet::ParquetTable::open(open(path)?).map_err(broken)?;
    let has_run = file.columns.iter().any(|column| column == "run");
    let columns = ["score", "member", "run"];
    file.keep(&columns[..if has_run { 3 } else { 2 }]).map_err(broken)?;
    // Nothing is kept of a file that breaks off.
    let mut found = Table::default();
    file.rows(broken, |number, row| {
        let refuse = |problem: &str| refuse(path, Some(number), problem);
        let row = row.map_err(broken)?;
        let score = match row[0] {
            ParquetCell::Real(score) => score,
            _ => return Err(refuse("the score is not a number")),
        };
        if score.is_nan() {
            return Err(refuse("the score is NaN; an audit needs ordered scores"));
        }
        let member = match row[1] {
            ParquetCell::Truth(member) => member,
            ParquetCell::Whole(0.0) => false,
            ParquetCell::Whole(1.0) => true,
            _ => return Err(refuse("member is not 1 or 0")),
        };
        match row.get(2) {
            None | Some(ParquetCell::Missing) => {}
            Some(run) => found.runs.note(format!("{run:?}").as_bytes(), member),
        }
        if member {
            found.members.push(score);
        } else {
            found.nonmembers.push(score);
        }
        Ok(())
    })?;
    if found.members.is_empty() && found.nonmembers.is_empty() {
        return Err(refuse(path, None, "holds no rows"));
    }
    table.members.extend_from_slice(&found.members);
    table.nonmembers.extend_from_slice(&found.nonmembers);
    table.runs.append(found.runs);
    Ok(())
}
