//! The report as a list of blocks, for everything that is read from top to bottom: Markdown
//! and PDF. The blocks hold words only; how they look is up to whoever writes them.

use crate::grid::grid;
use crate::words::trained;
use crate::words::{
    capital, confidence, method, percent, quoted, sentence, sign, signed, with_commas,
};
use crate::{Fact, Report, Shown};
use vocabulary::LensName;
use vocabulary::rounding::{about, plain};

/// In place of a number that does not exist.
const DASH: &str = "\u{2013}";

/// A piece of the report.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Block<'a> {
    /// 2 for a part of the report, 3 for a section of the part.
    Heading(u16, String),
    /// Words in bold, then the rest.
    Paragraph(String, String),
    /// Paragraphs that are quoted as they stand.
    Quote(Vec<String>),
    Table {
        columns: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    /// Lines for a shell.
    Code(Vec<String>),
    /// Items; backquotes mark names of files.
    List(Vec<String>),
    Figure(&'a Shown),
}

fn heading<'a>(text: &str) -> Block<'a> {
    Block::Heading(3, text.to_owned())
}

fn table<'a>(columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Block<'a> {
    Block::Table {
        columns: columns.iter().map(|&name| name.to_owned()).collect(),
        rows: rows.into_iter().collect(),
    }
}

/// Everything, in reading order.
pub(crate) fn content(report: &Report) -> Vec<Block<'_>> {
    let mut blocks = vec![Block::Heading(2, "Privacy".into())];
    if let Some(run) = &report.run {
        blocks.push(Block::Paragraph(String::new(), format!("DP-SGD, {}.", trained(run))));
    }
    let verdict = &report.verdict;
    let reason = capital(&sentence(&verdict.reason));
    blocks.push(Block::Paragraph(
        format!("{}.", verdict.status.badge()),
        format!("{}. {reason}", verdict.headline),
    ));
    blocks.extend(readings(report));
    if !report.statement.is_empty() {
        blocks.push(heading("Privacy statement"));
        blocks.push(Block::Quote(report.statement.clone()));
    }
    section(&mut blocks, report, "Trade-off", Vec::new(), &["tradeoff"]);
    section(&mut blocks, report, "Every lens", claims(report), &["profile", "steps"]);
    section(&mut blocks, report, "Accuracy of the best attacker", accuracy(report), &["accuracy"]);
    section(
        &mut blocks,
        report,
        "Audit (not private)",
        audit(report),
        &["ladder", "scores", "evidence", "bound"],
    );
    if let Some(training) = &report.training {
        section(&mut blocks, report, "The training", facts(&training.facts), &[]);
        section(
            &mut blocks,
            report,
            "Training health (not private)",
            facts(&training.health),
            &["norms", "loss"],
        );
    }
    section(
        &mut blocks,
        report,
        "Hyper-parameters (not private)",
        search(report),
        &["search", "selection"],
    );
    section(
        &mut blocks,
        report,
        "What would change the answer",
        changes(report),
        &["changes", "map"],
    );
    section(&mut blocks, report, "What is not shown", missing(report), &[]);
    if !report.assumptions.is_empty() {
        let rows = report.assumptions.iter().map(|assumption| {
            vec![assumption.text.clone(), assumption.mark.words().into(), assumption.note.clone()]
        });
        section(
            &mut blocks,
            report,
            "Assumptions",
            vec![table(&["assumption", "mark", "note"], rows)],
            &[],
        );
    }
    section(&mut blocks, report, "Provenance", provenance(report), &[]);
    blocks
}

/// Adds a section: its words and then its figures. A section that has figures only carries no
/// heading of its own, because a figure states its finding as a title.
fn section<'a>(
    blocks: &mut Vec<Block<'a>>,
    report: &'a Report,
    title: &str,
    words: Vec<Block<'a>>,
    figures: &[&str],
) {
    if !words.is_empty() {
        blocks.push(heading(title));
        blocks.extend(words);
    }
    blocks.extend(figures.iter().filter_map(|id| report.figure(id)).map(Block::Figure));
}

fn readings(report: &Report) -> Option<Block<'_>> {
    let mut rows = Vec::new();
    for claim in [&report.verdict.claim, &report.verdict.heuristic].into_iter().flatten() {
        rows.push(vec![
            claim.source.label().to_owned(),
            claim.standing.as_str().to_owned(),
            format!("\u{3b5} {}", quoted(claim)),
        ]);
    }
    if let (Some(measured), Some(audit)) = (&report.verdict.measured, &report.audit) {
        let bound = if measured.epsilon().is_finite() {
            format!("\u{3b5} {}", quoted(&measured.claim))
        } else {
            "unbounded".into()
        };
        rows.push(vec![
            format!(
                "audit, {}, {} + {} scores",
                method(measured),
                with_commas(audit.members),
                with_commas(audit.nonmembers)
            ),
            format!("measured, {} confidence, not private", confidence(measured)),
            bound,
        ]);
    }
    let number = format!("at \u{3b4} = {}", plain(report.delta));
    (!rows.is_empty()).then(|| table(&["lens", "standing", &number], rows))
}

fn claims(report: &Report) -> Vec<Block<'_>> {
    let Some(account) = &report.account else { return Vec::new() };
    let grid = grid(account);
    if grid.rows.is_empty() {
        return Vec::new();
    }
    let rows = grid.rows.iter().map(|row| {
        let mut cells = vec![row.lens.label().to_owned(), row.first.standing.as_str().to_owned()];
        cells.extend(row.cells.iter().map(|cell| cell.map_or_else(|| DASH.to_owned(), quoted)));
        cells
    });
    let mut names = vec!["lens", "standing"];
    names.extend(grid.columns.iter().map(String::as_str));
    vec![table(&names, rows)]
}

/// Rows are priors, columns the lenses.
fn accuracy(report: &Report) -> Vec<Block<'_>> {
    let all = &report.attack_accuracy;
    let mut priors: Vec<f64> = all.iter().filter_map(|claim| claim.at.prior).collect();
    priors.sort_by(|a, b| b.total_cmp(a));
    priors.dedup();
    let lenses: Vec<LensName> = LensName::ALL
        .into_iter()
        .filter(|lens| all.iter().any(|claim| claim.source == *lens))
        .collect();
    if priors.is_empty() {
        return Vec::new();
    }
    let rows = priors.iter().map(|prior| {
        let mut row = vec![percent(*prior), percent(prior.max(1.0 - prior))];
        row.extend(lenses.iter().map(|lens| {
            all.iter()
                .find(|claim| claim.source == *lens && claim.at.prior == Some(*prior))
                .map_or_else(
                    || DASH.into(),
                    |claim| format!("{} %", signed(claim.quoted().times(100.0))),
                )
        }));
        row
    });
    let names: Vec<String> = lenses
        .iter()
        .map(|lens| {
            let claim = all.iter().find(|claim| claim.source == *lens);
            let standing = claim.map_or("", |claim| claim.standing.as_str());
            format!("{} ({standing})", lens.label())
        })
        .collect();
    let mut columns = vec!["prior of membership", "right by guessing"];
    columns.extend(names.iter().map(String::as_str));
    vec![table(&columns, rows)]
}

fn audit(report: &Report) -> Vec<Block<'_>> {
    let Some(audit) = &report.audit else { return Vec::new() };
    let rows = audit.bounds.iter().map(|bound| {
        let headline = if bound.primary { " (headline)" } else { "" };
        vec![
            format!("{}{headline}", bound.method()),
            bound.threshold_rule.clone().unwrap_or_default(),
            quoted(&bound.claim),
            confidence(bound),
            bound.valid_for.clone(),
        ]
    });
    vec![table(&["method", "threshold", "\u{3b5}", "confidence", "holds for"], rows)]
}

fn facts(facts: &[Fact]) -> Vec<Block<'_>> {
    if facts.is_empty() {
        return Vec::new();
    }
    let rows = facts.iter().map(|fact| {
        vec![fact.name.clone(), fact.text.clone(), fact.note.clone().unwrap_or_default()]
    });
    vec![table(&["property", "value", "note"], rows)]
}

fn search(report: &Report) -> Vec<Block<'_>> {
    let Some(search) = &report.search else { return Vec::new() };
    let rows = search.groups.iter().map(|group| {
        let number = |value: f64| about(value, 3);
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
    let words = format!("Score: {}. {}.", search.score, capital(&search.statement));
    vec![table(&columns, rows), Block::Paragraph(String::new(), words)]
}

fn changes(report: &Report) -> Vec<Block<'_>> {
    if report.changes.is_empty() {
        return Vec::new();
    }
    let rows = report.changes.iter().map(|change| {
        let epsilon = change.quoted().map_or_else(|| DASH.into(), signed);
        let factor =
            change.factor.map_or_else(|| DASH.into(), |x| format!("\u{d7} {}", about(x, 3)));
        let standing = change.standing.map_or(DASH, |standing| standing.as_str());
        let note = change.reason.as_ref().unwrap_or(&change.note);
        vec![change.name.clone(), epsilon, factor, standing.to_owned(), note.clone()]
    });
    vec![table(&["if", "\u{3b5}", "against the claim", "standing", "note"], rows)]
}

/// Warnings, analyses that do not hold, and parts left out.
fn missing(report: &Report) -> Vec<Block<'_>> {
    let mut items: Vec<String> = Vec::new();
    if let Some(account) = &report.account {
        items.extend(account.warnings.iter().cloned());
        for aside in &account.asides {
            let end = aside.quoted();
            items.push(format!("{}: {} {end}; {}", aside.name, sign(end.side()), aside.note));
        }
        // Lenses that fail for the same reason share a line.
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for entry in &account.unsupported {
            match reasons.iter_mut().find(|(reason, _)| *reason == entry.reason) {
                Some((_, names)) => names.push(entry.lens.label()),
                None => reasons.push((&entry.reason, vec![entry.lens.label()])),
            }
        }
        items.extend(
            reasons.iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))),
        );
    }
    if let Some(audit) = &report.audit {
        items.extend(audit.warnings.iter().map(|text| format!("audit: {text}")));
    }
    items.extend(report.left_out.iter().cloned());
    if items.is_empty() { Vec::new() } else { vec![Block::List(items)] }
}

fn provenance(report: &Report) -> Vec<Block<'_>> {
    let provenance = &report.provenance;
    let mut blocks = Vec::new();
    let mut made = |end: char| {
        let text = format!("Made by dosimeter {}{end}", report.version);
        blocks.push(Block::Paragraph(String::new(), text));
    };
    if provenance.commands.is_empty() {
        made('.');
    } else {
        made(':');
        blocks.push(Block::Code(provenance.commands.clone()));
    }
    let mut items = Vec::new();
    for input in &provenance.inputs {
        let name = input.name.replace('`', "'");
        items.push(format!("{} `{name}`: sha256:{}", input.role, input.sha256));
    }
    for seed in &provenance.seeds {
        items.push(format!("seed, {}: {}", seed.purpose, seed.seed));
    }
    items.extend(provenance.notes.iter().cloned());
    if !items.is_empty() {
        blocks.push(Block::List(items));
    }
    blocks
}
