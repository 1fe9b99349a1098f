//! The report as Markdown, for a model card: words and tables, no figures.

use crate::words::{DIGITS, percent, quantity_name, quoted, sign, with_commas};
use crate::{Report, describe, evidence, lens_name};
use vocabulary::rounding::{plain, rounded};
use vocabulary::{Claim, Direction, Interval, LensName, Quantity, Side};

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
            lens_name(claim.lens).to_owned(),
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
    let both: Vec<&Claim> =
        account.claims.iter().filter(|claim| claim.direction == Direction::Both).collect();
    let mut columns: Vec<(Quantity, Option<f64>, String)> = Vec::new();
    for claim in &both {
        let column = (claim.quantity, claim.at.fpr, quantity_name(claim));
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let mut rows = Vec::new();
    for lens in LensName::ALL {
        let Some(first) = both.iter().find(|claim| claim.lens == lens) else { continue };
        let mut row = vec![lens_name(lens).to_owned(), first.standing.as_str().to_owned()];
        row.extend(columns.iter().map(|(quantity, fpr, _)| {
            both.iter()
                .find(|claim| {
                    claim.lens == lens && claim.quantity == *quantity && claim.at.fpr == *fpr
                })
                .map_or_else(|| "\u{2013}".to_owned(), |claim| quoted(claim))
        }));
        rows.push(row);
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut names = vec!["lens", "standing"];
    names.extend(columns.iter().map(|(_, _, name)| name.as_str()));
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

fn changes(report: &Report) -> String {
    if report.changes.is_empty() {
        return String::new();
    }
    let rows = report.changes.iter().map(|change| {
        let end = change.epsilon.map(|ends| match change.side {
            Side::Lower => Interval::from(ends).lower,
            _ => Interval::from(ends).upper,
        });
        let epsilon = match end {
            Some(end) if end.is_finite() => {
                format!("{} {}", sign(change.side), rounded(end, DIGITS, change.side))
            }
            Some(_) => "unbounded".into(),
            None => "\u{2013}".into(),
        };
        let factor = change.factor.map_or_else(
            || "\u{2013}".into(),
            |x| format!("\u{d7} {}", rounded(x, 3, Side::Neither)),
        );
        let standing = change.standing.map_or("\u{2013}", |standing| standing.as_str());
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
