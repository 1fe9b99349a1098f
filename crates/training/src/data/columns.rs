//! From a table's cells to numbers: columns standardised and categories one-hot, with constants
//! that the description states. Nothing is learnt from the records; a category or a class that
//! the description does not list is an error that names the row.

use super::{Constants, Dataset, Preprocessing, Provenance, Shape};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One column of a table and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub name: String,
    /// Subtracted from a number; 0 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Then divided by; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// The values of a category: one indicator for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Standardise the indicators as if each category had this share p of the population:
    /// (indicator - p) / sqrt(p (1 - p)).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<f64>,
}

/// The classes of the label column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "`classes` is a whole number of classes or a list of their names")]
pub enum Classes {
    /// Labels are the integers below this number.
    Count(usize),
    /// Labels are these words, in this order.
    Names(Vec<String>),
}

/// A cell of a table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    Text(&'a str),
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    Number(f64),
}

impl Cell<'_> {
    fn number(self) -> Result<f64, String> {
        let number = match self {
            Self::Number(number) => number,
            Self::Text(text) => {
                text.trim().parse().map_err(|_| format!("`{}` is not a number", shortened(text)))?
            }
        };
        // Beyond f32 it would become infinite later, where nobody knows the row any more.
        if number.is_finite() && number.abs() <= f64::from(f32::MAX) {
            Ok(number)
        } else {
            Err(format!("{number:?} is not a finite number"))
        }
    }
}

/// What is done to a table, checked; then the rows that went through it.
pub(super) struct Encoder {
    plan: Vec<Step>,
    label_cell: usize,
    label_name: String,
    classes: ClassTable,
    cells: usize,
    features: Vec<f32>,
    labels: Vec<u32>,
    names: Vec<String>,
    /// Columns that no step reads.
    unused: Vec<String>,
    preprocessing: Vec<Preprocessing>,
}

enum ClassTable {
    Count(usize),
    Names(HashMap<String, u32>),
}

enum Step {
    Number { cell: usize, name: String, mean: f64, deviation: f64 },
    Category { cell: usize, name: String, index: HashMap<String, usize>, values: Vec<(f32, f32)> },
}

impl Encoder {
    /// `header` are the names of the cells; with no `columns`, every cell but the label is a
    /// number taken as it is.
    pub(super) fn new(
        header: &[String],
        label: &str,
        classes: &Classes,
        columns: &[Column],
    ) -> Result<Self, String> {
        let find = |name: &str| {
            let mut found = header.iter().enumerate().filter(|(_, known)| known.as_str() == name);
            match (found.next(), found.next()) {
                (Some((index, _)), None) => Ok(index),
                (None, _) => Err(format!("there is no column `{}`", shortened(name))),
                _ => Err(format!("there are several columns `{}`", shortened(name))),
            }
        };
        let label_cell = find(label)?;
        let every: Vec<Column> = header
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != label_cell)
            .map(|(_, name)| Column { name: name.clone(), ..Column::default() })
            .collect();
        // Unlisted columns may share a name; listed ones are looked up by it.
        let plan = if columns.is_empty() {
            let cells = (0..header.len()).filter(|cell| *cell != label_cell);
            every.iter().zip(cells).map(|(column, cell)| Step::new(column, cell)).collect()
        } else {
            columns
                .iter()
                .map(|column| Step::new(column, find(&column.name)?))
                .collect::<Result<Vec<_>, _>>()
        }?;
        if plan.is_empty() {
            return Err("there is no column besides the label".to_owned());
        }
        let names: Vec<String> = plan.iter().flat_map(Step::names).collect();
        let read = |cell: usize| cell == label_cell || plan.iter().any(|step| step.cell() == cell);
        let unused = (0..header.len()).filter(|cell| !read(*cell));
        let unused = unused.map(|cell| header[cell].clone()).collect();
        Ok(Self {
            label_cell,
            label_name: label.to_owned(),
            classes: ClassTable::new(classes)?,
            cells: header.len(),
            features: Vec::new(),
            labels: Vec::new(),
            preprocessing: described(columns),
            names,
            unused,
            plan,
        })
    }

    /// Adds a record.
    pub(super) fn push(&mut self, cells: &[Cell<'_>]) -> Result<(), String> {
        if cells.len() != self.cells {
            return Err(format!("{} cells where the first row has {}", cells.len(), self.cells));
        }
        for step in &self.plan {
            step.encode(cells, &mut self.features)?;
        }
        let label = self
            .classes
            .number(cells[self.label_cell])
            .map_err(|problem| format!("column `{}`: {problem}", self.label_name))?;
        self.labels.push(label);
        Ok(())
    }

    pub(super) fn finish(self, mut provenance: Provenance) -> Result<Dataset, String> {
        if self.labels.is_empty() {
            return Err("holds no record".to_owned());
        }
        provenance.preprocessing.extend(self.preprocessing);
        provenance.unused = self.unused;
        Ok(Dataset {
            features: self.features,
            labels: self.labels,
            classes: self.classes.len(),
            shape: Shape::Flat(self.names.len()),
            columns: self.names,
            provenance,
        })
    }
}

impl ClassTable {
    fn new(classes: &Classes) -> Result<Self, String> {
        let table = match classes {
            Classes::Count(count) => Self::Count(*count),
            Classes::Names(names) => {
                let table: HashMap<String, u32> = names.iter().cloned().zip(0..).collect();
                if table.len() != names.len() {
                    return Err("two classes have the same name".to_owned());
                }
                Self::Names(table)
            }
        };
        if table.len() < 2 {
            return Err(format!("{} classes; a classifier needs two", table.len()));
        }
        Ok(table)
    }

    fn len(&self) -> usize {
        match self {
            Self::Count(count) => *count,
            Self::Names(names) => names.len(),
        }
    }

    fn number(&self, cell: Cell<'_>) -> Result<u32, String> {
        match (self, cell) {
            (Self::Names(names), Cell::Text(text)) => {
                names.get(text.trim()).copied().ok_or_else(|| {
                    format!("class `{}` is not one of the stated classes", shortened(text))
                })
            }
            (Self::Names(_), Cell::Number(number)) => {
                Err(format!("class {number} is not among the classes"))
            }
            (Self::Count(count), cell) => {
                let number = cell.number()?;
                if number.fract() == 0.0 && number >= 0.0 && number < *count as f64 {
                    Ok(number as u32)
                } else {
                    Err(format!("class {number} is not an integer below {count}"))
                }
            }
        }
    }
}

impl Step {
    fn new(column: &Column, cell: usize) -> Result<Self, String> {
        let name = column.name.clone();
        let about = |problem: &str| format!("column `{}`: {problem}", shortened(&name));
        if column.categories.is_empty() {
            let (mean, deviation) = (column.mean.unwrap_or(0.0), column.deviation.unwrap_or(1.0));
            if !column.shares.is_empty() {
                return Err(about("`shares` without `categories`"));
            }
            if !(mean.is_finite() && deviation > 0.0 && deviation.is_finite()) {
                return Err(about(&format!(
                    "mean {mean}, deviation {deviation}: not a usable scale"
                )));
            }
            return Ok(Self::Number { cell, name, mean, deviation });
        }
        if column.mean.is_some() || column.deviation.is_some() {
            return Err(about("a category has no mean; use `shares`"));
        }
        if !column.shares.is_empty() && column.shares.len() != column.categories.len() {
            return Err(about("as many shares as categories are needed"));
        }
        if let Some(share) = column.shares.iter().find(|share| !(**share > 0.0 && **share < 1.0)) {
            return Err(about(&format!("share {share} is outside (0, 1)")));
        }
        let index: HashMap<String, usize> = column.categories.iter().cloned().zip(0..).collect();
        if index.len() != column.categories.len() {
            return Err(about("a category is listed twice"));
        }
        let values = (0..column.categories.len())
            .map(|category| match column.shares.get(category) {
                None => (0.0, 1.0),
                Some(&share) => {
                    let deviation = (share * (1.0 - share)).sqrt();
                    ((-share / deviation) as f32, ((1.0 - share) / deviation) as f32)
                }
            })
            .collect();
        Ok(Self::Category { cell, name, index, values })
    }

    fn cell(&self) -> usize {
        match self {
            Self::Number { cell, .. } | Self::Category { cell, .. } => *cell,
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Number { name, .. } => vec![name.clone()],
            Self::Category { name, index, .. } => {
                let mut names = vec![String::new(); index.len()];
                for (category, &place) in index {
                    names[place] = format!("{name}={category}");
                }
                names
            }
        }
    }

    fn encode(&self, cells: &[Cell<'_>], out: &mut Vec<f32>) -> Result<(), String> {
        match self {
            Self::Number { cell, name, mean, deviation } => {
                let number = cells[*cell]
                    .number()
                    .map_err(|problem| format!("column `{}`: {problem}", shortened(name)))?;
                let scaled = ((number - mean) / deviation) as f32;
                if !scaled.is_finite() {
                    return Err(format!("column `{}`: {number} is too large", shortened(name)));
                }
                out.push(scaled);
            }
            Self::Category { cell, name, index, values } => {
                let text = match cells[*cell] {
                    Cell::Text(text) => text.trim().to_owned(),
                    Cell::Number(number) => number.to_string(),
                };
                let Some(&here) = index.get(&text) else {
                    let (name, text) = (shortened(name), shortened(&text));
                    return Err(format!("column `{name}`: `{text}` is not among its categories"));
                };
                let indicators = values.iter().enumerate();
                out.extend(
                    indicators.map(|(place, (out, yes))| if place == here { *yes } else { *out }),
                );
            }
        }
        Ok(())
    }
}

fn described(columns: &[Column]) -> Vec<Preprocessing> {
    let mut steps = Vec::new();
    let mut add = |step: &str| {
        steps.push(Preprocessing { step: step.to_owned(), constants: Constants::Public });
    };
    if columns.iter().any(|column| column.mean.is_some() || column.deviation.is_some()) {
        add("numbers standardised by stated means and deviations");
    }
    if columns.iter().any(|column| !column.categories.is_empty()) {
        add("categories one-hot over stated lists");
    }
    if columns.iter().any(|column| !column.shares.is_empty()) {
        add("indicators standardised by stated shares");
    }
    steps
}

/// User text in a message: no control characters, not a page of it.
fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str) -> Column {
        Column { name: name.to_owned(), ..Column::default() }
    }

    fn names(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn numbers_and_categories() {
        let columns = [
            Column { mean: Some(10.0), deviation: Some(4.0), ..column("a") },
            Column { categories: names("x y"), shares: vec![0.2, 0.8], ..column("b") },
            Column { categories: names("u v w"), ..column("c") },
        ];
        let classes = Classes::Names(names("no yes"));
        let mut encoder = Encoder::new(&names("c l a b"), "l", &classes, &columns).unwrap();
        let row = [Cell::Text("w"), Cell::Text(" yes "), Cell::Text("12"), Cell::Text("x")];
        encoder.push(&row).unwrap();
        let data = encoder.finish(Provenance::default()).unwrap();
        assert_eq!(data.features, [0.5, 2.0, -2.0, 0.0, 0.0, 1.0]);
        assert_eq!(data.columns, names("a b=x b=y c=u c=v c=w"));
        assert_eq!((data.labels, data.classes), (vec![1], 2));
        assert_eq!(data.provenance.preprocessing.len(), 3);
    }

    #[test]
    fn what_is_not_listed_is_refused() {
        let columns = [Column { categories: names("x y"), ..column("b") }, column("a")];
        let classes = Classes::Count(3);
        let make = || Encoder::new(&names("a b l"), "l", &classes, &columns).unwrap();
        for (cells, problem) in [
            (["1", "z", "0"], "`z` is not among"),
            (["1e39", "x", "0"], "not a finite number"),
            (["inf", "x", "0"], "inf is not a finite number"),
            (["NaN", "x", "0"], "NaN is not a finite number"),
            (["", "x", "0"], "`` is not a number"),
            (["1", "x", "3"], "class 3 is not an integer below 3"),
            (["1", "x", "0.5"], "class 0.5"),
            (["1", "x", "-1"], "class -1"),
        ] {
            let found = make().push(&cells.map(Cell::Text)).unwrap_err();
            assert!(found.contains(problem), "{found}");
        }
        let found = make().push(&[Cell::Text("1"); 2]).unwrap_err();
        assert!(found.contains("2 cells where the first row has 3"), "{found}");
    }

    #[test]
    fn plans_that_cannot_be() {
        let bad = [
            Column { shares: vec![0.5], ..column("a") },
            Column { categories: names("x y"), shares: vec![1.0, 0.5], ..column("a") },
            Column { categories: names("x x"), ..column("a") },
            Column { categories: names("x y"), mean: Some(0.0), ..column("a") },
            Column { deviation: Some(0.0), ..column("a") },
            column("missing"),
        ];
        for column in bad {
            let plan = Encoder::new(&names("a l"), "l", &Classes::Count(2), &[column]);
            assert!(plan.is_err());
        }
        assert!(Encoder::new(&names("a l"), "x", &Classes::Count(2), &[]).is_err());
        assert!(Encoder::new(&names("a l"), "l", &Classes::Count(1), &[]).is_err());
        assert!(Encoder::new(&names("l"), "l", &Classes::Count(2), &[]).is_err());
    }
}
