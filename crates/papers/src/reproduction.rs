//! What a reproduction consists of, and its files: `data.json`, a CSV per table, an SVG per figure,
//! and `README.md` with the words.

use crate::{Entry, PaperError};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;
use vocabulary::Figure;

/// A row of a table, from a tuple or a list.
pub(crate) fn row(cells: impl Serialize) -> Vec<Value> {
    match json!(cells) {
        Value::Array(row) => row,
        one => vec![one],
    }
}

/// A table with named columns.
#[derive(Clone, Debug, Serialize)]
pub struct PaperTable {
    pub name: String,
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<Value>>,
}

impl PaperTable {
    pub fn new(name: impl Into<String>, columns: &[&'static str]) -> Self {
        Self { name: name.into(), columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row: a tuple, or a list.
    pub fn push(&mut self, cells: impl Serialize) {
        let row = row(cells);
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    fn csv(&self) -> String {
        let cell = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let mut text = formats::csv::line(&self.columns);
        for row in &self.rows {
            text.push_str(&formats::csv::line(row.iter().map(cell)));
        }
        text
    }

    fn markdown(&self) -> String {
        let cell = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            Value::Number(number) if number.is_f64() => {
                let x = number.as_f64().unwrap_or(f64::NAN);
                if x != 0.0 && x.abs() < 1e-3 { format!("{x:.3e}") } else { format!("{x:.5}") }
            }
            other => other.to_string(),
        };
        let mut text =
            format!("| {} |\n|{}\n", self.columns.join(" | "), "---|".repeat(self.columns.len()));
        for row in &self.rows {
            text.push_str(&format!(
                "| {} |\n",
                row.iter().map(cell).collect::<Vec<_>>().join(" | ")
            ));
        }
        text
    }
}

/// What was computed, and what it says.
#[derive(Clone, Debug)]
pub struct Reproduction {
    pub parameters: Value,
    /// What we get, with its numbers.
    pub we_get: String,
    /// Where and why it differs from the paper.
    pub differs: String,
    pub tables: Vec<PaperTable>,
    /// By file name.
    pub figures: Vec<(String, Figure)>,
}

/// Writes a reproduction into its folder and returns the names of the files.
///
/// # Errors
/// When a file cannot be written.
pub fn write(
    entry: &Entry,
    found: &Reproduction,
    folder: &Path,
) -> Result<Vec<String>, PaperError> {
    let mut names = Vec::new();
    let mut put = |name: String, text: &str| {
        let path = folder.join(&name);
        names.push(name);
        std::fs::create_dir_all(folder)
            .and_then(|()| formats::files::write(&path, text))
            .map_err(|source| PaperError::Write { path, source })
    };
    let mut page = format!(
        "# {}: {}\n\n{}\n\n**The paper shows.** {}\n\n**We get.** {}\n\n**Differences.** {}\n\n**Parameters.** `{}`\n\nCommand: `dosimeter reproduce {} --out DIR`\n",
        entry.id,
        entry.title,
        entry.paper,
        entry.shows,
        found.we_get,
        found.differs,
        found.parameters,
        entry.id
    );
    for (name, figure) in &found.figures {
        put(format!("{name}.svg"), &figures::to_svg(figure, &figures::Options::default()))?;
        page.push_str(&format!("\n![{}]({name}.svg)\n\n{}\n", figure.title, figure.caption));
    }
    for table in &found.tables {
        put(format!("{}.csv", table.name), &table.csv())?;
        page.push_str(&format!("\n## {}\n\n{}", table.name, table.markdown()));
    }
    let figures: serde_json::Map<String, Value> = found
        .figures
        .iter()
        .map(|(name, figure)| (name.clone(), serde_json::to_value(figure).unwrap_or(Value::Null)))
        .collect();
    let names_in_order: Vec<&str> = found.figures.iter().map(|(name, _)| name.as_str()).collect();
    let document = json!({
        "schema": "dosimeter.reproduction/1",
        "id": entry.id,
        "paper": entry.paper,
        "title": entry.title,
        "parameters": found.parameters,
        "paper_shows": entry.shows,
        "we_get": found.we_get,
        "differs": found.differs,
        "tables": found.tables,
        "figures": figures,
        "figure_names": names_in_order,
    });
    let mut text = serde_json::to_string_pretty(&document).expect("plain data");
    text.push('\n');
    put("data.json".to_owned(), &text)?;
    put("README.md".to_owned(), &page)?;
    Ok(names)
}
