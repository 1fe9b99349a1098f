//! The report as Markdown: words and tables, no figures.

use crate::content::{Block, content};
use crate::{Report, cover};

/// The whole report.
pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    if let Some(title) = &report.cover.title {
        text.push_str(&format!("# {}\n\n", inline(title)));
    }
    if let Some(line) = cover::line(&report.cover) {
        text.push_str(&format!("{}\n\n", inline(&line)));
    }
    for block in content(report) {
        text.push_str(&markup(&block));
    }
    while text.ends_with("\n\n") {
        text.pop();
    }
    text
}

fn markup(block: &Block<'_>) -> String {
    match block {
        Block::Heading(level, title) => {
            format!("{} {}\n\n", "#".repeat(usize::from(*level)), inline(title))
        }
        Block::Paragraph(strong, rest) if strong.is_empty() => format!("{}\n\n", inline(rest)),
        Block::Paragraph(strong, rest) => format!("**{}** {}\n\n", inline(strong), inline(rest)),
        Block::Quote(paragraphs) => {
            let quoted: Vec<String> =
                paragraphs.iter().map(|text| format!("> {}\n", inline(text))).collect();
            format!("{}\n", quoted.join(">\n"))
        }
        Block::Table { columns, rows } => table(columns, rows),
        Block::Code(lines) => {
            let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
            format!("```sh\n{lines}```\n\n")
        }
        Block::List(items) => {
            let items: String = items.iter().map(|item| format!("- {}\n", escaped(item))).collect();
            format!("{items}\n")
        }
        Block::Figure(_) => String::new(),
    }
}

fn table(columns: &[String], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|", columns.join(" | "));
    text.push_str(&"---|".repeat(columns.len()));
    text.push('\n');
    for row in rows {
        let cells: Vec<String> = row.iter().map(|text| inline(text)).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push('\n');
    text
}

/// Text that cannot end a cell or begin other markup.
fn inline(text: &str) -> String {
    escaped(text).replace('`', "'")
}

fn escaped(text: &str) -> String {
    text.replace(['\n', '\r'], " ").replace('|', "\\|").replace('<', "&lt;")
}
