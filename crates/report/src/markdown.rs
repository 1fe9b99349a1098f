//! The report as Markdown, for a model card: words and tables, no figures.

use crate::grid::grid;
use crate::words::{DIGITS, percent, quoted, sign, with_commas};
use crate::{Report, describe, evidence};
use vocabulary::Side;
use vocabulary::rounding::{plain, rounded};

/// In place of a number that there is not.
const DASH: &str = "\u{2013}";

/// The whole card.
pub fn markdown(report: &Report) -> String {
    let mut text = String::from("## Privacy\n\n");
    if let Some(run) = &report.run {
        text.push_str(&format!("DP-SGD, {}.\n\n", describe(run)));
    }
    let verdict = &report.verdict;
    text.push_str(&format!(
        "**{}.** {}. {}\n\n",
        verdict.status.badge(),
        cell(&verdict.headline),
        capital(&sentence(&cell(&verdict.reason)))
    ));
    text.push_str(&readings(report));
    if !report.statement.is_empty() {
        text.push_str("### Privacy statement\n\n");
        for paragraph in &report.statement {
            text.push_str(&format!("> {}\n>\n", cell(paragraph)));
        }
        text.truncate(text.trim_end_matches(">\n").len());
        text.push('\n');
    }
    text.push_str(&claims(report));
    text.push_str(&audit(report));
    text.push_str(&training(report));
    text.push_str(&changes(report));
    if !report.assumptions.is_empty() {
        let rows = report.assumptions.iter().map(|assumption| {
            vec![assumption.text.clone(), assumption.mark.words().into(), assumption.note.clone()]
        });
        text.push_str("### Assumptions\n\n");
        text.push_str(&table(&["assumption", "mark", "note"], rows));
    }
    text.push_str(&provenance(report));
    text
}

fn readings(report: &Report) -> String {
    let mut rows = Vec::new();
    for claim in [&report.verdict.claim, &report.verdict.heuristic].into_iter().flatten() {
        rows.push(vec![
            claim.source.label().to_owned(),
            claim.standing.as_str().to_owned(),
            format!("\u{3b5} {}", quoted(claim)),
        ]);
    }
    if let Some(evidence) = &report.verdict.evidence {
        let bound = evidence.epsilon_lower.map_or_else(
            || "unbounded".into(),
            |epsilon| format!("\u{3b5} \u{2265} {}", rounded(epsilon, DIGITS, Side::Lower)),
        );
        rows.push(vec![
            format!(
                "audit, {}, {} + {} scores",
                evidence.method,
                with_commas(evidence.members),
                with_commas(evidence.nonmembers)
            ),
            format!("measured, {} confidence, not private", percent(evidence.confidence)),
            bound,
        ]);
    }
    if rows.is_empty() {
        return String::new();
    }
    let number = format!("at \u{3b4} = {}", plain(report.delta));
    table(&["lens", "standing", &number], rows)
}

fn claims(report: &Report) -> String {
    let Some(account) = &report.account else { return String::new() };
    let grid = grid(account);
    if grid.rows.is_empty() {
        return String::new();
    }
    let rows = grid.rows.iter().map(|row| {
        let mut cells = vec![row.lens.label().to_owned(), row.first.standing.as_str().to_owned()];
        cells.extend(row.cells.iter().map(|cell| cell.map_or_else(|| DASH.to_owned(), quoted)));
        cells
    });
    let mut names = vec!["lens", "standing"];
    names.extend(grid.columns.iter().map(String::as_str));
    format!("### Every lens\n\n{}", table(&names, rows))
}

fn audit(report: &Report) -> String {
    let Some(audit) = &report.audit else { return String::new() };
    let rows = evidence::bounds(audit).into_iter().map(|bound| {
        let side = if bound.is_estimate { Side::Neither } else { Side::Lower };
        let epsilon = bound.epsilon.map_or_else(
            || "unbounded".into(),
            |value| format!("{} {}", sign(side), rounded(value, DIGITS, side)),
        );
        let confidence = match (bound.confidence, bound.credible) {
            (Some(level), false) => percent(level),
            (Some(level), true) => format!("{} credible", percent(level)),
            (None, _) => "none".into(),
        };
        let name =
            if bound.primary { format!("{} (headline)", bound.method) } else { bound.method };
        vec![name, bound.rule, epsilon, confidence, bound.valid_for]
    });
    format!(
        "### Audit (not private)\n\n{}",
        table(&["method", "threshold", "\u{3b5}", "confidence", "holds for"], rows)
    )
}

/// The training's record, its health and a search, as tables.
fn training(report: &Report) -> String {
    let mut text = String::new();
    if let Some(training) = &report.training {
        let parts = [
            ("The training", &training.facts),
            ("Training health (not private)", &training.health),
        ];
        for (title, facts) in parts {
            if facts.is_empty() {
                continue;
            }
            let rows = facts.iter().map(|fact| {
                vec![fact.name.clone(), fact.text.clone(), fact.note.clone().unwrap_or_default()]
            });
            text.push_str(&format!("### {title}\n\n{}", table(&["", "", "note"], rows)));
        }
    }
    if let Some(search) = &report.search {
        let rows = search.groups.iter().map(|group| {
            let number = |value: f64| rounded(value, 3, Side::Neither);
            vec![
                format!("\u{3b5} {}, \u{3b4} {}", plain(group.epsilon), plain(group.delta)),
                with_commas(group.configurations as u64),
                with_commas(group.runs as u64),
                number(group.smallest),
                number(group.largest),
                group.least.clone(),
            ]
        });
        let columns =
            ["guarantee", "settings", "runs", "least", "most", "settings that memorised least"];
        text.push_str(&format!(
            "### Hyper-parameters (not private)\n\n{}Score: {}. {}.\n\n",
            table(&columns, rows),
            cell(&search.score),
            capital(&search.statement)
        ));
    }
    text
}

fn changes(report: &Report) -> String {
    if report.changes.is_empty() {
        return String::new();
    }
    let rows = report.changes.iter().map(|change| {
        let epsilon = match change.quoted_end() {
            Some(end) if end.is_finite() => {
                format!("{} {}", sign(change.side), rounded(end, DIGITS, change.side))
            }
            Some(_) => "unbounded".into(),
            None => DASH.into(),
        };
        let factor = change
            .factor
            .map_or_else(|| DASH.into(), |x| format!("\u{d7} {}", rounded(x, 3, Side::Neither)));
        let standing = change.standing.map_or(DASH, |standing| standing.as_str());
        let note = change.reason.as_ref().unwrap_or(&change.note);
        vec![change.name.clone(), epsilon, factor, standing.to_owned(), note.clone()]
    });
    format!(
        "### What would change the answer\n\n{}",
        table(&["if", "\u{3b5}", "against the claim", "standing", "note"], rows)
    )
}

fn provenance(report: &Report) -> String {
    let mut text = format!("### Provenance\n\nMade by dosimeter {}:\n\n```sh\n", report.version);
    for command in &report.provenance.commands {
        text.push_str(command);
        text.push('\n');
    }
    text.push_str("```\n");
    for input in &report.provenance.inputs {
        text.push_str(&format!(
            "\n- {} `{}`: sha256:{}",
            input.role,
            input.name.replace('`', "'"),
            input.sha256
        ));
    }
    for seed in &report.provenance.seeds {
        text.push_str(&format!("\n- seed, {}: {}", seed.purpose, seed.seed));
    }
    text.push('\n');
    text
}

fn table(columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|", columns.join(" | "));
    text.push_str(&"---|".repeat(columns.len()));
    text.push('\n');
    for row in rows {
        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push('\n');
    text
}

/// Text that cannot end a cell or begin other markup.
fn cell(text: &str) -> String {
    text.replace(['\n', '\r'], " ").replace('|', "\\|").replace('<', "&lt;").replace('`', "'")
}

fn sentence(text: &str) -> String {
    if text.is_empty() || text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}
