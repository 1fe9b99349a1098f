//! CSV: a header, then one row per line; quotes where a field holds a comma. Lines that start with
//! `#` are comments.

use super::{Builder, Cell, Table, shown};
use crate::TuningError;

pub(super) fn read(text: &str, place: &str) -> Result<Table, TuningError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder: Option<Builder> = None;
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let here = format!("{place}, row {}", index + 1);
        let fields = split(line).ok_or_else(|| TuningError::Table {
            place: here.clone(),
            problem: format!("a quote is not closed in `{}`", shown(line)),
        })?;
        match &mut builder {
            None => builder = Some(Builder::new(fields.iter().map(|field| field.trim()), &here)?),
            Some(builder) => {
                let cells = fields.into_iter().map(|field| {
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

fn split(line: &str) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut characters = line.chars().peekable();
    let (mut quoted, mut fresh) = (false, true);
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if fresh => quoted = true,
            ',' if !quoted => {
                fields.push(std::mem::take(&mut field));
                fresh = true;
                continue;
            }
            other => field.push(other),
        }
        fresh = false;
    }
    fields.push(field);
    (!quoted).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn quotes_and_commas() {
        assert_eq!(split("a,\"b,c\",\"d\"\"e\",").unwrap(), ["a", "b,c", "d\"e", ""]);
        assert!(split("a,\"b").is_none());
    }
}
