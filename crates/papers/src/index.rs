//! The page that lists what was reproduced: plain HTML, no script, figures by reference.

use crate::{Entry, PaperError};
use serde_json::Value;
use std::path::Path;

/// Writes `index.html` into a folder, with every entry that has been written below it.
///
/// # Errors
/// When the page cannot be written.
pub fn write_index(entries: &[Entry], folder: &Path) -> Result<(), PaperError> {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Reproduced figures and tables</title>\n<style>body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem}img{max-width:100%}dt{font-weight:600}section{border-top:1px solid #ccc;margin-top:2rem}</style>\n<h1>Reproduced figures and tables</h1>\n",
    );
    for entry in entries {
        let Ok(text) = std::fs::read_to_string(folder.join(entry.id).join("data.json")) else {
            continue;
        };
        let Ok(data) = serde_json::from_str::<Value>(&text) else { continue };
        let words = |key: &str| escape(data[key].as_str().unwrap_or(""));
        page.push_str(&format!(
            "<section id=\"{id}\">\n<h2>{}</h2>\n<p>{}</p>\n<dl><dt>The paper shows</dt><dd>{}</dd><dt>We get</dt><dd>{}</dd><dt>Differences</dt><dd>{}</dd></dl>\n",
            escape(entry.title),
            escape(entry.paper),
            words("paper_shows"),
            words("we_get"),
            words("differs"),
            id = entry.id
        ));
        for (name, figure) in data["figures"].as_object().into_iter().flatten() {
            let title = escape(figure["title"].as_str().unwrap_or(name));
            page.push_str(&format!(
                "<p><img src=\"{}/{name}.svg\" alt=\"{title}\"></p>\n",
                entry.id
            ));
        }
        page.push_str("<p>Data: <a href=\"");
        page.push_str(&format!("{id}/data.json\">data.json</a>", id = entry.id));
        for table in data["tables"].as_array().into_iter().flatten() {
            let name = escape(table["name"].as_str().unwrap_or(""));
            page.push_str(&format!(", <a href=\"{}/{name}.csv\">{name}.csv</a>", entry.id));
        }
        page.push_str(&format!(
            ". Command: <code>dosimeter reproduce {} --out DIR</code></p>\n</section>\n",
            entry.id
        ));
    }
    page.push_str("</html>\n");
    let path = folder.join("index.html");
    std::fs::write(&path, page).map_err(|source| PaperError::Write { path, source })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
