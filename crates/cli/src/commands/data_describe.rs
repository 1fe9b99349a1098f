//! `data describe`: a CSV file as the beginning of a `[data]` table.

use crate::args::Format;
use crate::console::Console;
use crate::exit;
use answers::Refusal;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use training::data::{Holds, Sketch, SketchedColumn, sketch_csv};

pub(super) fn run(path: &Path, format: Format, console: &mut Console) -> Result<u8, Refusal> {
    let sketch = sketch_csv(path).map_err(|error| {
        let failure = Refusal::bad_input(error.to_string());
        let other = "`data describe` reads CSV; other formats need no table of columns";
        if path.is_file() { failure.hint(other) } else { failure }
    })?;
    if format == Format::Json {
        console.json(&DataDescription::new(path, &sketch))?;
    } else {
        console.answer(&skeleton(path, &sketch))?;
        console.hint(
            "the last column is taken as the label. Categories and classes were read from the records: keep what is public knowledge. \
             Means and deviations are yours to state. Add [run], [model] and [optimizer], then \
             `dosimeter train`",
        );
    }
    Ok(exit::ANSWERED)
}

/// The table, with what is left to decide as comments.
fn skeleton(path: &Path, sketch: &Sketch) -> String {
    let mut text = format!(
        "# {}: {} {}, {} {}\n[data]\npath = {}\n",
        path.display().to_string().replace(['\n', '\r'], " "),
        sketch.rows,
        if sketch.rows == 1 { "row" } else { "rows" },
        sketch.columns.len(),
        if sketch.columns.len() == 1 { "column" } else { "columns" },
        quoted(&path.display().to_string())
    );
    if !sketch.header {
        text.push_str("header = false\n");
    }
    let Some((label, columns)) = sketch.columns.split_last() else { return text };
    text.push_str(&format!("label = {}\n{}\n", quoted(&label.name), classes(label)));
    text.push_str("column = [\n");
    for column in columns {
        let name = quoted(&column.name);
        text.push_str(&match &column.holds {
            Holds::Numbers => format!(
                "  {{ name = {name}, mean = 0, deviation = 1 }},  # public mean and deviation\n"
            ),
            Holds::Texts(values) => {
                format!("  {{ name = {name}, categories = {} }},\n", list(values))
            }
            Holds::ManyTexts => {
                format!("  # {name} has too many different texts for a list; it is left out\n")
            }
        });
    }
    text.push_str("]\n");
    text
}

fn classes(label: &SketchedColumn) -> String {
    match (&label.holds, label.largest) {
        (Holds::Numbers, Some(largest)) if largest < 100 => format!("classes = {}", largest + 1),
        (Holds::Numbers, _) => {
            "classes = 2  # the last column holds numbers that are no classes: name another label"
                .into()
        }
        (Holds::Texts(values), _) => format!("classes = {}", list(values)),
        (Holds::ManyTexts, _) => {
            "classes = 2  # the last column holds too many texts: name another label".into()
        }
    }
}

fn list(values: &[String]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| self::quoted(value)).collect();
    format!("[{}]", quoted.join(", "))
}

/// A text in TOML: JSON's way to quote is one of TOML's but for DEL.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// The `dosimeter.data-description/1` document.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DataDescription {
    schema: &'static str,
    path: String,
    /// Whether the first line names the columns.
    header: bool,
    rows: u64,
    columns: Vec<Column>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Column {
    name: String,
    #[serde(flatten)]
    holds: Content,
}

/// What a column holds.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "holds", rename_all = "kebab-case")]
enum Content {
    Numbers,
    /// Few different texts: all of them.
    Texts {
        values: Vec<String>,
    },
    ManyTexts,
}

impl DataDescription {
    pub(super) const SCHEMA: &'static str = "dosimeter.data-description/1";

    fn new(path: &Path, sketch: &Sketch) -> Self {
        let column = |column: &SketchedColumn| Column {
            name: column.name.clone(),
            holds: match &column.holds {
                Holds::Numbers => Content::Numbers,
                Holds::Texts(values) => Content::Texts { values: values.clone() },
                Holds::ManyTexts => Content::ManyTexts,
            },
        };
        Self {
            schema: Self::SCHEMA,
            path: path.display().to_string(),
            header: sketch.header,
            rows: sketch.rows,
            columns: sketch.columns.iter().map(column).collect(),
        }
    }
}
