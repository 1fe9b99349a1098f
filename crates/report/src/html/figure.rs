//! A figure in the page: the finding as its heading, the drawing in a wide and a narrow form,
//! how to read it, and the table behind it.

use super::escape::escape;
use super::parts::NOT_PRIVATE;
use crate::Shown;
use crate::table::{PageTable, tables};
use figures::Options;
use vocabulary::figure::{Figure, Mark, Scale};

pub(super) fn figure(shown: &Shown) -> String {
    let Shown { id, figure, .. } = shown;
    let mark = if shown.not_private { NOT_PRIVATE } else { "" };
    let mut text = format!(
        "<figure id=\"figure-{id}\" aria-labelledby=\"figure-{id}-heading\">\n\
         <h3 id=\"figure-{id}-heading\">{}{mark}</h3>\n",
        escape(&figure.title)
    );
    if let Some(subtitle) = &figure.subtitle {
        text.push_str(&format!("<p class=\"subtitle\">{}</p>\n", escape(subtitle)));
    }
    for (form, width) in [("wide", 760.0), ("narrow", 328.0)] {
        let options = Options {
            width,
            height: height(figure, width),
            heading: false,
            caption: false,
            background: false,
            id: Some(format!("{id}-{form}")),
            ..Options::default()
        };
        let svg = figures::to_svg(figure, &options);
        text.push_str(&format!("<div class=\"drawing {form}\">\n{svg}</div>\n"));
    }
    text.push_str(&format!("<figcaption>\n<p>{}</p>\n", escape(&figure.caption)));
    for sentence in figures::omitted(figure) {
        text.push_str(&format!("<p>{}</p>\n", escape(&sentence)));
    }
    text.push_str("<details><summary>The numbers behind this figure</summary>\n");
    for (place, table) in tables(figure).iter().enumerate() {
        text.push_str(&behind(table, &figure.title, place + 1));
    }
    text.push_str(&format!(
        "<p><a download=\"{id}.csv\" href=\"data:text/csv;charset=utf-8,{}\">As CSV</a></p>\n",
        csv_link(figure)
    ));
    text.push_str("</details>\n</figcaption>\n</figure>\n");
    text
}

/// Rows of names need their own height; curves look best in the proportions of a page.
pub(crate) fn height(figure: &Figure, width: f64) -> f64 {
    let narrow = width < 500.0;
    if let Scale::Category(names) = &figure.y.scale {
        let legend = if narrow { 130.0 } else { 96.0 };
        return legend + names.len() as f64 * if narrow { 46.0 } else { 34.0 };
    }
    let histogram = figure.series.iter().any(|series| matches!(series.mark, Mark::Bars { .. }));
    match (narrow, histogram) {
        // Names that do not fit beside the curves take a line of the legend each.
        (true, _) => 320.0 + 14.0 * figure.series.len().saturating_sub(3) as f64,
        (false, true) => 320.0,
        (false, false) => 430.0,
    }
}

fn behind(table: &PageTable, title: &str, place: usize) -> String {
    let label = format!("Table {place} behind the figure: {title}");
    let mut text = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><table>\n<thead><tr>",
        escape(&label)
    );
    for (place, column) in table.columns.iter().enumerate() {
        let class = if place > 0 { " class=\"n\"" } else { "" };
        text.push_str(&format!("<th{class} scope=\"col\">{}</th>", escape(column)));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        text.push_str("<tr>");
        for (place, cell) in row.iter().enumerate() {
            let class = if place > 0 { " class=\"n\"" } else { "" };
            text.push_str(&format!("<td{class}>{}</td>", escape(cell)));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>\n");
    text
}

/// All tables of a figure as the address of a CSV file, an empty line between two of them.
fn csv_link(figure: &Figure) -> String {
    let mut text = String::new();
    for table in tables(figure) {
        if !text.is_empty() {
            text.push('\n');
        }
        for row in std::iter::once(&table.columns).chain(&table.rows) {
            text.push_str(&formats::csv::line(row.iter().map(|cell| harmless(cell))));
        }
    }
    percent_encoded(&text)
}

/// A cell that no spreadsheet takes for a formula.
fn harmless(cell: &str) -> String {
    let risky = cell.starts_with(['=', '@', '+'])
        || (cell.starts_with('-') && cell.parse::<f64>().is_err());
    if risky { format!("'{cell}") } else { cell.to_owned() }
}

/// Everything but letters, digits and a few signs that stand for themselves in an address.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 5 / 4);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~,:;=()/@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_survives_its_address() {
        assert_eq!((harmless("=1+1"), harmless("-1.5")), ("'=1+1".into(), "-1.5".into()));
        assert_eq!(percent_encoded("a,1e-5\n\"<&>\u{3b5}"), "a,1e-5%0A%22%3C%26%3E%CE%B5");
    }
}
