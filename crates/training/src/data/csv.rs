//! Comma-separated tables: a header line (or none), quoted cells as in RFC 4180, one record per
//! line. Ragged rows, text where a number is expected and numbers that are not finite are errors
//! that name the row: the line of the file, as an editor counts it.

use super::bytes::Source;
use super::columns::{Cell, Classes, Column, Encoder};
use super::error::{DataError, refuse, refuse_row};
use super::{Dataset, Provenance};
use formats::csv::split;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A line longer than this is not a line of a table.
const LONGEST_LINE: usize = 1 << 24;

/// How a comma-separated file is to be read.
#[derive(Clone, Debug)]
pub struct CsvOptions<'a> {
    /// Whether the first line holds the names; without it columns are called `1`, `2`, ….
    pub header: bool,
    /// The name of the label column; the last one when absent.
    pub label: Option<&'a str>,
    pub classes: Classes,
    /// What becomes of each column; when empty, all but the label are numbers taken as they are.
    pub columns: &'a [Column],
}

/// A table with its labels.
///
/// # Errors
/// What is wrong with the file, with the row where there is one.
pub fn read_csv(path: &Path, options: &CsvOptions<'_>) -> Result<Dataset, DataError> {
    let mut lines = BufReader::with_capacity(1 << 17, Source::open(path)?);
    let mut line = Vec::new();
    let mut encoder: Option<Encoder> = None;
    let mut row = 0_u64;
    let mut cells: Vec<String> = Vec::new();
    loop {
        line.clear();
        row += 1;
        let broken =
            |error: std::io::Error| refuse_row(path, row, format!("cannot be read: {error}"));
        let count = lines.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut line);
        if count.map_err(broken)? == 0 {
            break;
        }
        let text = std::str::from_utf8(&line)
            .map_err(|_| refuse_row(path, row, "is not UTF-8 text"))?
            .trim_end_matches(['\n', '\r']);
        if line.len() == LONGEST_LINE && !line.ends_with(b"\n") {
            return Err(refuse_row(path, row, format!("longer than {LONGEST_LINE} bytes")));
        }
        let text = if row == 1 { text.trim_start_matches('\u{feff}') } else { text };
        if text.trim().is_empty() {
            continue;
        }
        split(text, &mut cells).map_err(|problem| refuse_row(path, row, problem))?;
        if encoder.is_none() {
            let header: Vec<String> = if options.header {
                cells.iter().map(|cell| cell.trim().to_owned()).collect()
            } else {
                (1..=cells.len()).map(|number| number.to_string()).collect()
            };
            let last = header.last().cloned().unwrap_or_default();
            let label = options.label.unwrap_or(&last);
            let made = Encoder::new(&header, label, &options.classes, options.columns);
            encoder = Some(made.map_err(|problem| refuse(path, problem))?);
            if options.header {
                continue;
            }
        }
        if let Some(encoder) = &mut encoder {
            let texts: Vec<Cell<'_>> = cells.iter().map(|cell| Cell::Text(cell)).collect();
            encoder.push(&texts).map_err(|problem| refuse_row(path, row, problem))?;
        }
    }
    let provenance = Provenance {
        name: path.display().to_string(),
        sha256: vec![lines.into_inner().end()?],
        ..Provenance::default()
    };
    encoder
        .ok_or_else(|| "is empty".to_owned())
        .and_then(|encoder| encoder.finish(provenance))
        .map_err(|problem| refuse(path, problem))
}

use std::io::Read as _;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], header: bool, label: Option<&str>) -> Result<Dataset, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        std::fs::write(&path, text).unwrap();
        let options = CsvOptions { header, label, classes: Classes::Count(3), columns: &[] };
        read_csv(&path, &options).map_err(|error| error.to_string())
    }

    #[test]
    fn headers_quotes_and_line_ends() {
        let data =
            read(b"\xEF\xBB\xBFa,\"b,c\",y\r\n1,2,0\r\n\r\n\"3\",-4e-1,2", true, None).unwrap();
        assert_eq!(data.features, [1.0, 2.0, 3.0, -0.4]);
        assert_eq!((data.labels, data.columns), (vec![0, 2], vec!["a".into(), "b,c".into()]));
        let data = read(b"\"2\",1,0\n\"1\",0,1\n", false, Some("1")).unwrap();
        assert_eq!((data.features, data.labels), (vec![1.0, 0.0, 0.0, 1.0], vec![2, 1]));
    }

    #[test]
    fn broken_rows_are_named() {
        for (text, problem) in [
            (&b"a,b,y\n1,2,0\n1,0\n"[..], "row 3: 2 cells where the first row has 3"),
            (b"a,b,y\n1,2,0\n1,nan,0\n", "row 3: column `b`: NaN is not a finite number"),
            (b"a,b,y\n\n1,x,0\n", "row 3: column `b`: `x` is not a number"),
            (b"a,b,y\n1,2,7\n", "row 2: column `y`: class 7"),
            (b"a,b,y\n1,\"2,0\n", "row 2: a quote is not closed"),
            (b"a,b,y\n1,\"2\"3,0\n", "row 2: text follows"),
            (b"a,b,y\n1,2\xFF,0\n", "row 2: is not UTF-8"),
            (b"a,a,y\n", "holds no record"),
            (b"", "is empty"),
            (b"y\n0\n", "no column besides"),
        ] {
            let found = read(text, true, None).unwrap_err();
            assert!(found.contains(problem), "{problem}: {found}");
        }
    }
}
