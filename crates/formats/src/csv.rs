//! Comma-separated text as in RFC 4180, one record per line: a cell with a comma, a quote or a line
//! end stands in quotes, in which a quote is doubled.

use std::fmt::{Display, Write as _};

/// The cells of a line. A quoted cell ends at its quote; a doubled quote inside is one.
///
/// # Errors
/// A quote that is not closed in its line, or text behind a closing quote.
///
/// ```
/// let mut cells = Vec::new();
/// formats::csv::split("a,\"b,c\",\"d\"\"e\",", &mut cells)?;
/// assert_eq!(cells, ["a", "b,c", "d\"e", ""]);
/// assert!(formats::csv::split("a,\"b", &mut cells).is_err());
/// # Ok::<(), String>(())
/// ```
pub fn split(line: &str, cells: &mut Vec<String>) -> Result<(), String> {
    cells.clear();
    let mut rest = line;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut cell = String::new();
            let mut inner = quoted;
            rest = loop {
                let Some(end) = inner.find('"') else {
                    return Err("a quote is not closed in its line".to_owned());
                };
                cell.push_str(&inner[..end]);
                inner = &inner[end + 1..];
                match inner.strip_prefix('"') {
                    Some(more) => {
                        cell.push('"');
                        inner = more;
                    }
                    None => break inner,
                }
            };
            cells.push(cell);
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            cells.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Ok(()),
            None => return Err("text follows a closing quote".to_owned()),
        }
    }
}

/// A small table, whole: its header and its rows. Empty lines and those that begin with `#` are left out, and white
/// space around a cell is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvTable {
    header: Vec<String>,
    rows: Vec<(usize, Vec<String>)>,
}

impl CsvTable {
    /// Reads a table.
    ///
    /// # Errors
    /// Those of [`split`], with the number of the line.
    ///
    /// ```
    /// let table = formats::csv::CsvTable::read("# made today\nname, size\n\n\"a, b\",2\n")?;
    /// assert_eq!((table.column("size"), table.column("weight")), (Some(1), None));
    /// let rows: Vec<_> = table.rows().collect();
    /// assert_eq!(rows[0].0, 4);
    /// assert_eq!(rows[0].1, ["a, b", "2"]);
    /// assert!(formats::csv::CsvTable::read("name\n\"a").unwrap_err().starts_with("line 2: "));
    /// # Ok::<(), String>(())
    /// ```
    pub fn read(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = (1..).zip(text.lines());
        let mut rows = Vec::new();
        for (number, line) in lines {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let mut cells = Vec::new();
            // White space at the ends would stand before or behind a quote.
            split(line.trim(), &mut cells).map_err(|error| format!("line {number}: {error}"))?;
            rows.push((number, cells.iter().map(|cell| cell.trim().to_owned()).collect()));
        }
        let header = if rows.is_empty() { Vec::new() } else { rows.remove(0).1 };
        Ok(Self { header, rows })
    }

    /// The names of the columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Where a column stands.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|known| known == name)
    }

    /// The rows below the header, with the numbers of their lines, of which the first is 1.
    pub fn rows(&self) -> impl Iterator<Item = (usize, &[String])> {
        self.rows.iter().map(|(number, cells)| (*number, cells.as_slice()))
    }
}

/// The first cell of a line in bytes, and what follows its comma; nothing where a quote is not closed, or text follows
/// it. A quoted cell has no quotes inside.
///
/// ```
/// assert_eq!(formats::csv::cell(b"0.5,1"), Some((&b"0.5"[..], Some(&b"1"[..]))));
/// assert_eq!(formats::csv::cell(b"\"a,b\""), Some((&b"a,b"[..], None)));
/// assert_eq!(formats::csv::cell(b"\"a"), None);
/// ```
#[cfg(feature = "scores")]
#[inline]
pub fn cell(line: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    if line.first() == Some(&b'"') {
        let close = 1 + memchr::memchr(b'"', &line[1..])?;
        let after = &line[close + 1..];
        let next = if after.is_empty() { None } else { Some(after.strip_prefix(b",")?) };
        return Some((&line[1..close], next));
    }
    Some(match memchr::memchr(b',', line) {
        Some(comma) => (&line[..comma], Some(&line[comma + 1..])),
        None => (line, None),
    })
}

/// One line with its end, quoted where needed.
///
/// ```
/// assert_eq!(formats::csv::line(["a", "b,c", "d\"e"]), "a,\"b,c\",\"d\"\"e\"\n");
/// ```
pub fn line<S: AsRef<str>>(cells: impl IntoIterator<Item = S>) -> String {
    let mut text = String::new();
    for (place, cell) in cells.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        let start = text.len();
        text.push_str(cell.as_ref());
        quote_from(&mut text, start);
    }
    text.push('\n');
    text
}

/// Adds a line to a table: values as they print themselves, quoted where needed.
///
/// ```
/// let mut table = "score,member\n".to_owned();
/// formats::csv::row(&mut table, &[&0.25, &1]);
/// assert_eq!(table, "score,member\n0.25,1\n");
/// ```
pub fn row(table: &mut String, cells: &[&dyn Display]) {
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            table.push(',');
        }
        let start = table.len();
        // A text takes everything.
        let _ = write!(table, "{cell}");
        quote_from(table, start);
    }
    table.push('\n');
}

/// Puts the cell that starts there into quotes, where it needs them.
fn quote_from(text: &mut String, start: usize) {
    if text[start..].contains([',', '"', '\n', '\r']) {
        let cell = text.split_off(start).replace('"', "\"\"");
        text.extend(["\"", &cell, "\""]);
    }
}
