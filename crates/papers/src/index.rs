//! The page that lists what was reproduced: plain HTML, no script, figures by reference, the data
//! in tables that fold.

use crate::{Entry, PaperError};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

const STYLE: &str = "\
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:84rem;margin:2rem auto;padding:0 1rem}
h1,h2,h3,p,dl{max-width:56rem}
h2{margin-top:3rem}
section{border-top:1px solid #8886;margin-top:2rem}
dl{display:grid;grid-template-columns:10.5rem 1fr;gap:.4rem 1rem}
dt{font-weight:600}dd{margin:0}
@media(max-width:40rem){dl{grid-template-columns:1fr}}
.figures{display:flex;flex-wrap:wrap;gap:1rem}
.figures img{width:100%;max-width:40rem;height:auto}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.15rem .8rem .15rem 0;border-bottom:1px solid #8884}
td.number{text-align:right}
details{margin:.5rem 0}summary{cursor:pointer}";

/// Writes `index.html` into a folder, with every entry that has been written below it.
///
/// # Errors
/// When the page cannot be written.
pub fn write_index(entries: &[Entry], folder: &Path) -> Result<(), PaperError> {
    let written: Vec<(&Entry, Value)> = entries
        .iter()
        .filter_map(|entry| {
            let text = std::fs::read_to_string(folder.join(entry.id).join("data.json")).ok()?;
            Some((entry, serde_json::from_str(&text).ok()?))
        })
        .collect();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n<title>Reproduced figures and tables</title>\n<style>{STYLE}</style></head>\n<body><h1>Reproduced figures and tables</h1>\n<p>Each was computed again from nothing but its parameters: what the paper shows, what we get, and why the two differ.</p>\n"
    );
    let mut paper = "";
    for (entry, _) in &written {
        if entry.paper != paper {
            page.push_str(if paper.is_empty() { "" } else { "</ul>\n" });
            paper = entry.paper;
            push(&mut page, format_args!("<h3>{}</h3>\n<ul>\n", escape(paper)));
        }
        let (id, title) = (entry.id, escape(entry.title));
        push(&mut page, format_args!("<li><a href=\"#{id}\">{title}</a></li>\n"));
    }
    page.push_str(if paper.is_empty() { "" } else { "</ul>\n" });
    for (entry, data) in &written {
        section(&mut page, entry, data);
    }
    page.push_str("</body></html>\n");
    let path = folder.join("index.html");
    formats::files::write(&path, page).map_err(|source| PaperError::Write { path, source })
}

fn section(page: &mut String, entry: &Entry, data: &Value) {
    let id = entry.id;
    let words = |key: &str| escape(data[key].as_str().unwrap_or(""));
    push(
        page,
        format_args!(
            "<section id=\"{id}\">\n<h2>{}</h2>\n<p>{}</p>\n<dl><dt>The paper shows</dt><dd>{}</dd><dt>We get</dt><dd>{}</dd><dt>Differences</dt><dd>{}</dd><dt>Parameters</dt><dd>{}</dd></dl>\n<div class=\"figures\">\n",
            escape(entry.title),
            escape(entry.paper),
            words("paper_shows"),
            words("we_get"),
            words("differs"),
            escape(&plain(&data["parameters"])),
        ),
    );
    for name in data["figure_names"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let title = escape(data["figures"][name]["title"].as_str().unwrap_or(name));
        let name = escape(name);
        push(page, format_args!("<img src=\"{id}/{name}.svg\" alt=\"{title}\">\n"));
    }
    page.push_str("</div>\n");
    for table in data["tables"].as_array().into_iter().flatten() {
        fold(page, id, table);
    }
    push(
        page,
        format_args!(
            "<p>All data: <a href=\"{id}/data.json\">data.json</a>. Command: <code>dosimeter reproduce {id} --out DIR</code></p>\n</section>\n"
        ),
    );
}

/// A table, open when it is short.
fn fold(page: &mut String, id: &str, table: &Value) {
    let name = escape(table["name"].as_str().unwrap_or(""));
    let rows = table["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let open = if rows.len() <= 12 { " open" } else { "" };
    push(
        page,
        format_args!(
            "<details{open}><summary>{name}: {} rows (<a href=\"{id}/{name}.csv\">CSV</a>)</summary>\n<div class=\"scroll\"><table><tr>",
            rows.len()
        ),
    );
    for column in table["columns"].as_array().into_iter().flatten() {
        let column = column.as_str().unwrap_or("").replace('_', " ");
        push(page, format_args!("<th>{}</th>", escape(&column)));
    }
    page.push_str("</tr>\n");
    for row in rows {
        page.push_str("<tr>");
        for cell in row.as_array().into_iter().flatten() {
            let class = if cell.is_number() { " class=\"number\"" } else { "" };
            push(page, format_args!("<td{class}>{}</td>", escape(&plain(cell))));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div></details>\n");
}

/// A value as a person writes it: numbers to five digits, objects as `key value`.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "—".to_owned(),
        Value::Number(number) => match number.as_f64() {
            Some(x) if number.is_f64() => five_digits(x),
            _ => number.to_string(),
        },
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(" · "),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| format!("{} {}", key.replace('_', " "), plain(value)))
            .collect::<Vec<_>>()
            .join(", "),
        Value::Bool(answer) => answer.to_string(),
    }
}

fn five_digits(x: f64) -> String {
    if x != 0.0 && !(1e-3..1e6).contains(&x.abs()) {
        let text = format!("{x:.4e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    let before = if x == 0.0 { 0 } else { x.abs().log10().floor().max(0.0) as usize };
    let text = format!("{x:.*}", 4usize.saturating_sub(before).max(1));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("a string grows");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_short_and_right() {
        for (x, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.05, "0.05"),
            (1e-5, "1e-5"),
            (2.22241070918, "2.2224"),
            (12345.67, "12345.7"),
            (0.000123456, "1.2346e-4"),
        ] {
            assert_eq!(five_digits(x), text);
        }
        assert_eq!(plain(&json!({"a_b": [1, 2.5], "c": null})), "a b 1 · 2.5, c —");
    }
}
