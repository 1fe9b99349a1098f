//! A first look at a table: which columns it has and what they hold, as the beginning of a
//! `[data]` table. The values that are listed were read from records; whoever uses the sketch
//! decides which of them are public.

use super::bytes::Source;
use super::error::{DataError, refuse, refuse_row};
use formats::csv::split;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A column with more different texts than this has no list of categories.
const MOST_CATEGORIES: usize = 60;

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Every cell is a finite number.
    Numbers,
    /// Texts, all of them.
    Texts(Vec<String>),
    /// More different texts than a list is good for.
    ManyTexts,
}

/// A column by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SketchedColumn {
    pub name: String,
    pub holds: Holds,
    /// Whole numbers from 0 to this one, where all cells are such and they are few: classes.
    pub largest: Option<usize>,
}

/// A table by its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    /// Whether the first line holds names.
    pub header: bool,
    pub rows: u64,
    pub columns: Vec<SketchedColumn>,
}

#[derive(Default)]
struct Seen {
    numbers: bool,
    texts: BTreeSet<String>,
    many: bool,
    whole: bool,
    largest: usize,
}

/// Reads a CSV file, gzipped or not, once.
///
/// # Errors
/// A file that cannot be read, rows of different lengths, no rows.
pub fn sketch_csv(path: &Path) -> Result<Sketch, DataError> {
    let mut lines = BufReader::with_capacity(1 << 17, Source::open(path)?);
    let mut line = String::new();
    let mut cells: Vec<String> = Vec::new();
    let mut first: Option<Vec<String>> = None;
    let mut header = true;
    let mut seen: Vec<Seen> = Vec::new();
    let (mut rows, mut place) = (0_u64, 0_u64);
    loop {
        line.clear();
        place += 1;
        let read = lines.read_line(&mut line);
        if read.map_err(|error| refuse_row(path, place, format!("cannot be read: {error}")))? == 0 {
            break;
        }
        let text = line.trim_end_matches(['\n', '\r']).trim_start_matches('\u{feff}');
        if text.trim().is_empty() {
            continue;
        }
        split(text, &mut cells).map_err(|problem| refuse_row(path, place, problem))?;
        for cell in &mut cells {
            *cell = cell.trim().to_owned();
        }
        let Some(names) = &first else {
            // A line that holds a number is a record and not a line of names.
            header = !cells.iter().any(|cell| number(cell).is_some());
            let fresh = || Seen { numbers: true, whole: true, ..Seen::default() };
            seen = cells.iter().map(|_| fresh()).collect();
            first = Some(cells.clone());
            if !header {
                rows += 1;
                seen.iter_mut().zip(&cells).for_each(|(seen, cell)| seen.add(cell));
            }
            continue;
        };
        rows += 1;
        if cells.len() != names.len() {
            let problem = format!("has {} cells, the first line {}", cells.len(), names.len());
            return Err(refuse_row(path, place, problem));
        }
        seen.iter_mut().zip(&cells).for_each(|(seen, cell)| seen.add(cell));
    }
    let names = first.filter(|_| rows > 0).ok_or_else(|| refuse(path, "has no rows"))?;
    if names.len() == 1 {
        return Err(refuse(
            path,
            "has one column; a label and another column, apart by commas, are needed",
        ));
    }
    let columns = names
        .into_iter()
        .zip(seen)
        .enumerate()
        .map(|(place, (name, seen))| SketchedColumn {
            name: if header { name } else { (place + 1).to_string() },
            largest: (seen.numbers && seen.whole).then_some(seen.largest),
            holds: match (seen.numbers, seen.many) {
                (true, _) => Holds::Numbers,
                (false, true) => Holds::ManyTexts,
                (false, false) => Holds::Texts(seen.texts.into_iter().collect()),
            },
        })
        .collect();
    Ok(Sketch { header, rows, columns })
}

impl Seen {
    fn add(&mut self, cell: &str) {
        match number(cell) {
            Some(value) if value >= 0.0 && value.fract() == 0.0 && value < 1000.0 => {
                self.largest = self.largest.max(value as usize);
            }
            Some(_) => self.whole = false,
            None => self.numbers = false,
        }
        if !self.texts.contains(cell) {
            if self.texts.len() < MOST_CATEGORIES {
                self.texts.insert(cell.to_owned());
            } else {
                self.many = true;
            }
        }
    }
}

fn number(cell: &str) -> Option<f64> {
    cell.parse::<f64>().ok().filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(text: &str) -> Result<Sketch, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        std::fs::write(&path, text).unwrap();
        sketch_csv(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_texts_and_labels_are_told_apart() {
        let found = sketch("age,sex,y\n31, F,0\n2.5,M,2\n\n").unwrap();
        assert!(found.header && found.rows == 2);
        assert_eq!(found.columns[0].holds, Holds::Numbers);
        assert_eq!(found.columns[0].largest, None);
        assert_eq!(found.columns[1].holds, Holds::Texts(vec!["F".into(), "M".into()]));
        assert_eq!(found.columns[2].largest, Some(2));
        let found = sketch("1,x\n2,y\n").unwrap();
        assert!(!found.header && found.rows == 2 && found.columns[1].name == "2");
        let ids: String = (0..100).map(|row| format!("id{row},1\n")).collect();
        assert_eq!(sketch(&format!("a,b\n{ids}")).unwrap().columns[0].holds, Holds::ManyTexts);
    }

    #[test]
    fn what_is_no_table_is_refused() {
        assert!(sketch("").is_err() && sketch("a,b\n").is_err());
        assert!(sketch("a,b\n1,2\n3\n").unwrap_err().contains("row 3"));
    }
}
