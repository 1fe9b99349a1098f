//! JSONL: one object per line. The columns are all names that occur.

use super::{Builder, Cell, TrainingTable, shown};
use crate::TuningError;
use serde_json::{Map, Value};

pub(super) fn read(text: &str, place: &str) -> Result<TrainingTable, TuningError> {
    let mut rows: Vec<(String, Map<String, Value>)> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for (number, row) in formats::jsonl::objects(text) {
        let here = format!("{place}, row {number}");
        let row = row.map_err(|problem| refuse(&here, problem))?;
        for name in row.keys() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        rows.push((here, row));
    }
    let mut builder = Builder::new(names.iter().map(String::as_str), place)?;
    for (here, row) in rows {
        let mut cells = Vec::with_capacity(names.len());
        for name in &names {
            cells.push(match row.get(name) {
                None | Some(Value::Null) => Cell::Missing,
                Some(Value::Number(number)) => {
                    let number = number.as_f64().filter(|number| number.is_finite());
                    let problem = || format!("{} is too large a number", shown(name));
                    Cell::Number(number.ok_or_else(|| refuse(&here, problem()))?)
                }
                Some(Value::String(text)) => Cell::Text(text.clone()),
                // Only columns that are not read may hold anything else.
                Some(other) => Cell::Text(other.to_string()),
            });
        }
        builder.row(cells, &here)?;
    }
    builder.finish(place)
}

fn refuse(place: &str, problem: String) -> TuningError {
    TuningError::Table { place: place.to_owned(), problem }
}
