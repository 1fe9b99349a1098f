//! CSV: a header, then one row per line; quotes where a field holds a comma. Lines that start with
//! `#` are comments.

use super::{Builder, Cell, TrainingTable, shown};
use crate::TuningError;
use formats::csv::split;

pub(super) fn read(text: &str, place: &str) -> Result<TrainingTable, TuningError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder: Option<Builder> = None;
    let mut fields = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let here = format!("{place}, row {}", index + 1);
        split(line, &mut fields).map_err(|problem| TuningError::Table {
            place: here.clone(),
            problem: format!("{problem}: `{}`", shown(line)),
        })?;
        match &mut builder {
            None => builder = Some(Builder::new(fields.iter().map(|field| field.trim()), &here)?),
            Some(builder) => {
                let cells = fields.drain(..).map(|field| {
                    if field.trim().is_empty() { Cell::Missing } else { Cell::Text(field) }
                });
                builder.row(cells.collect(), &here)?;
            }
        }
    }
    let builder = builder.ok_or_else(|| TuningError::Table {
        place: place.to_owned(),
        problem: "is empty; the first line must name the columns".into(),
    })?;
    builder.finish(place)
}
