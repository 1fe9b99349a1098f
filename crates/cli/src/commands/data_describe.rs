//! `data describe`: a CSV file as the beginning of a `[data]` table.

use crate::args::Format;
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use serde_json::json;
use std::path::Path;
use training::data::{Holds, Sketch, SketchedColumn, sketch_csv};

pub(super) fn run(path: &Path, format: Format, console: &mut Console) -> Result<u8, Failure> {
    let sketch = sketch_csv(path).map_err(|error| {
        Failure::bad_input(error.to_string())
            .hint("`data describe` reads CSV; other formats need no table of columns")
    })?;
    if format == Format::Json {
        let columns: Vec<_> = sketch.columns.iter().map(document).collect();
        console.json(&json!({
            "schema": "dosimeter.data-description/1",
            "path": path.display().to_string(),
            "header": sketch.header,
            "rows": sketch.rows,
            "columns": columns,
        }))?;
    } else {
        console.answer(&skeleton(path, &sketch))?;
        console.hint(
            "categories and classes were read from the records: keep what is public knowledge. \
             Means and deviations are yours to state. Add [run], [model] and [optimizer], then \
             `dosimeter train`",
        );
    }
    Ok(exit::ANSWERED)
}

/// The table, with what is left to decide as comments.
fn skeleton(path: &Path, sketch: &Sketch) -> String {
    let mut text = format!(
        "# {}: {} rows, {} columns\n[data]\npath = {}\n",
        path.display().to_string().replace(['\n', '\r'], " "),
        sketch.rows,
        sketch.columns.len(),
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

fn document(column: &SketchedColumn) -> serde_json::Value {
    match &column.holds {
        Holds::Numbers => json!({"name": column.name, "holds": "numbers"}),
        Holds::Texts(values) => json!({"name": column.name, "holds": "texts", "values": values}),
        Holds::ManyTexts => json!({"name": column.name, "holds": "many-texts"}),
    }
}
