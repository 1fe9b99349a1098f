//! The sections below the verdict, each with what it answers; a section without data is absent.

use super::escape::{escape, prose};
use super::figure::figure;
use super::parts::{
    NOT_PRIVATE, claim, exact, number, power_of_ten, share, signed, standing, table,
};
use super::training;
use crate::Report;
use crate::grid::grid;
use crate::words::{confidence, percent, sign, with_commas};
use vocabulary::rounding::{DIGITS, about};
use vocabulary::{Audit, LensName, Measured, Quantity, Quoted, Release, Standing};

/// In place of a number that there is not.
const DASH: &str = "\u{2013}";

/// A section: where it is, what the contents call it, and its markup.
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) short: String,
    pub(super) markup: String,
}

/// A section from its parts; none when there is nothing in it.
fn section(id: &'static str, title: &str, mark: &str, lede: &str, body: String) -> Option<Section> {
    if body.is_empty() {
        return None;
    }
    let markup = format!(
        "<section id=\"{id}\" class=\"row\" aria-labelledby=\"{id}-heading\">\n<div class=\"aside\">\n\
         <h2 id=\"{id}-heading\">{}{mark}</h2>\n<p>{lede}</p>\n</div>\n<div class=\"body\">\n{body}</div>\n\
         </section>\n",
        escape(title)
    );
    Some(Section { id, short: title.to_owned(), markup })
}

pub(super) fn all(report: &Report) -> Vec<Section> {
    [
        section(
            "statement",
            "Privacy statement",
            "",
            "Ready to paste into a paper or a model card.",
            statement(report),
        ),
        section(
            "tradeoff",
            "Trade-off",
            "",
            "What any attacker can gain at each rate of false alarms: the whole guarantee, of \
             which \u{3b5} and \u{3b4} are one point.",
            shown(report, "tradeoff"),
        ),
        section(
            "claims",
            "Every lens",
            "",
            "The same run through every analysis that holds for it. Quote proven numbers; the \
             others say what to expect.",
            claims(report),
        ),
        section(
            "bayes",
            "Bayes security",
            "",
            "How often the best attacker is right, who knows everything but one record\u{2019}s \
             membership.",
            bayes(report),
        ),
        section(
            "profile",
            "Privacy profile",
            "",
            "Every (\u{3b5}, \u{3b4}) that the run satisfies, not only the quoted one.",
            shown(report, "profile"),
        ),
        section(
            "steps",
            "Budget over training",
            "",
            "How \u{3b5} grows, and what stopping earlier would have saved.",
            shown(report, "steps"),
        ),
        section(
            "audit",
            "Audit",
            NOT_PRIVATE,
            "What the scores of an attack prove about the training that made them. A bound above \
             the proven claim would refute it.",
            audit(report),
        ),
        section(
            "trials",
            "Evidence over time",
            NOT_PRIVATE,
            "Trainings with and without the canary in the order in which they were made. What is shown holds \
             whenever one stops.",
            shown(report, "evidence") + &shown(report, "bound"),
        ),
        section(
            "scores",
            "Canary scores",
            NOT_PRIVATE,
            "What the attack saw with and without the canary.",
            shown(report, "scores"),
        ),
        section(
            "training",
            "The training",
            "",
            "What the training recorded about itself: settings and means, nothing computed from \
             records.",
            training::record(report),
        ),
        section(
            "health",
            "Training health",
            NOT_PRIVATE,
            "How it went. Most gradients clipped: the direction counts, not the size. None \
             clipped: the clip norm, and with it the noise, may be lower.",
            training::health(report),
        ),
        section(
            "search",
            "Hyper-parameters",
            NOT_PRIVATE,
            "What trainings with other settings and the same guarantee memorised.",
            training::search(report),
        ),
        section(
            "changes",
            "What would change it",
            "",
            "The claimed \u{3b5} if one thing about the run or the question were different.",
            changes(report),
        ),
        section("map", "Calibration map", "", "ε for more or less noise, and for more or fewer \
                                               steps.", shown(report, "map")),
        section(
            "missing",
            "What is not shown",
            "",
            "Analyses that do not hold for this run, warnings, and parts left out.",
            missing(report),
        ),
        section(
            "provenance",
            "Provenance",
            "",
            "Where the numbers come from, and how to make them again.",
            provenance(report),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub(super) fn shown(report: &Report, id: &str) -> String {
    report.figure(id).map(figure).unwrap_or_default()
}

fn statement(report: &Report) -> String {
    if report.statement.is_empty() {
        return String::new();
    }
    let paragraphs: String =
        report.statement.iter().map(|text| format!("<p>{}</p>\n", escape(text))).collect();
    format!("<blockquote>\n{paragraphs}</blockquote>\n")
}

fn claims(report: &Report) -> String {
    let Some(account) = &report.account else { return String::new() };
    let grid = grid(account);
    if grid.rows.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = grid
        .rows
        .iter()
        .map(|row| {
            let sees = match row.first.release {
                Release::AllIterates => "all iterates",
                Release::LastIterate => "last iterate",
            };
            let mut cells = vec![
                escape(row.lens.label()),
                format!("{}<span class=\"why\">{sees}</span>", standing(row.first.standing)),
            ];
            cells.extend(row.cells.iter().map(|cell| cell.map_or_else(|| DASH.to_owned(), claim)));
            cells
        })
        .collect();
    let names: Vec<String> = grid.columns.iter().map(|name| format!("#{name}")).collect();
    let mut headings = vec!["lens", "standing"];
    headings.extend(names.iter().map(String::as_str));
    let mut text = table("Claims of every lens", &headings, &rows);
    text.push_str(&format!(
        "<p class=\"note\">\u{3b5} and \u{3bc} at \u{3b4} = {}. \u{2264} is rounded up, \u{2265} \
         down, \u{2248} has no side. Proven: a theorem covers it. Heuristic: true under an \
         assumption that training does not satisfy. Estimate: an approximation that may err \
         either way.</p>\n",
        power_of_ten(report.delta)
    ));
    text
}

fn bayes(report: &Report) -> String {
    let mut text = String::new();
    let security = report.account.as_ref().and_then(|account| {
        account.claims.iter().find(|claim| {
            claim.source == LensName::SIGNED && claim.quantity == Quantity::BayesSecurity
        })
    });
    let Some(security) = security else { return text };
    let word = if security.standing == Standing::Proven { "proven" } else { "heuristic" };
    text.push_str(&format!(
        "<p>Bayes security {} ({word}): of the mistakes that someone who guesses makes, the best \
         attacker still makes at least this share. 1 would be perfect secrecy, 0 certainty.</p>\n",
        claim(security)
    ));
    text.push_str(&accuracy_table(report));
    text.push_str(&shown(report, "accuracy"));
    text
}

/// Rows are priors, columns the lenses.
fn accuracy_table(report: &Report) -> String {
    let all = &report.attack_accuracy;
    let mut priors: Vec<f64> = all.iter().filter_map(|claim| claim.at.prior).collect();
    priors.sort_by(|a, b| b.total_cmp(a));
    priors.dedup();
    let mut lenses: Vec<LensName> = all.iter().filter_map(|claim| claim.source.lens()).collect();
    lenses.dedup();
    lenses.sort_by_key(|lens| LensName::ALL.iter().position(|other| other == lens));
    lenses.dedup();
    if priors.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = priors
        .iter()
        .map(|prior| {
            let guess = prior.max(1.0 - prior);
            let mut row = vec![percent(*prior), percent(guess)];
            for lens in &lenses {
                let found = all
                    .iter()
                    .find(|claim| claim.source == *lens && claim.at.prior == Some(*prior));
                row.push(found.map_or_else(|| DASH.into(), |claim| share(claim.quoted())));
            }
            row
        })
        .collect();
    let names: Vec<String> = lenses
        .iter()
        .map(|lens| {
            let word = all
                .iter()
                .find(|claim| claim.source == *lens)
                .map_or("", |claim| claim.standing.as_str());
            format!("#{}, {word}", lens.label())
        })
        .collect();
    let mut columns = vec!["prior of membership", "#right by guessing"];
    columns.extend(names.iter().map(String::as_str));
    table("Accuracy of the best attacker", &columns, &rows)
}

fn audit(report: &Report) -> String {
    let Some(audit) = &report.audit else { return String::new() };
    let mut text = shown(report, "ladder");
    let rows: Vec<Vec<String>> = audit
        .bounds
        .iter()
        .map(|bound| {
            let rule = match &bound.threshold_rule {
                None => String::new(),
                Some(rule) => format!(", {}", escape(rule)),
            };
            let headline = if bound.primary { " (the headline)" } else { "" };
            let name = format!(
                "{}{rule}{headline}<span class=\"why\">{}</span>",
                bound.method(),
                escape(&bound.valid_for)
            );
            vec![name, claim(&bound.claim), confidence(bound)]
        })
        .collect();
    let epsilon = format!("#\u{3b5} at \u{3b4} = {}", power_of_ten(report.delta));
    text.push_str(&table(
        "Bounds of the audit",
        &["method, threshold rule, what it holds for", &epsilon, "#confidence"],
        &rows,
    ));
    text.push_str(&quality(audit));
    text
}

/// How good the attack was, apart from any epsilon.
fn quality(audit: &Audit) -> String {
    let row = |name: String, measured: &Measured| {
        vec![
            name,
            number(Quoted::about(measured.value), DIGITS),
            number(measured.at_least(), DIGITS),
            number(measured.at_most(), DIGITS),
        ]
    };
    let mut rows =
        vec![row("AUROC".into(), &audit.auroc), row("advantage".into(), &audit.advantage)];
    for power in &audit.tpr {
        rows.push(row(format!("TPR at FPR {}", percent(power.fpr)), &power.measured));
    }
    table("Quality of the attack", &["the attack itself", "#measured", "#from", "#to"], &rows)
}

fn changes(report: &Report) -> String {
    let mut text = shown(report, "changes");
    if report.changes.is_empty() {
        return text;
    }
    let rows: Vec<Vec<String>> = report
        .changes
        .iter()
        .map(|change| {
            let epsilon = change.quoted().map_or_else(|| DASH.into(), signed);
            let factor = change.factor.map_or_else(
                || DASH.into(),
                |factor| {
                    let shown = about(factor, 3);
                    format!("\u{d7}\u{a0}<data value=\"{}\">{shown}</data>", exact(factor))
                },
            );
            let note = change.reason.as_deref().unwrap_or(&change.note);
            vec![
                format!("{}<span class=\"why\">{}</span>", escape(&change.name), escape(note)),
                epsilon,
                factor,
                change.standing.map_or_else(|| DASH.into(), standing),
            ]
        })
        .collect();
    text.push_str(&table(
        "What would change the answer",
        &["if", "#\u{3b5}", "#against the claim", "standing"],
        &rows,
    ));
    text
}

fn missing(report: &Report) -> String {
    let mut items: Vec<String> = Vec::new();
    if let Some(account) = &report.account {
        items.extend(account.warnings.iter().map(|text| escape(text)));
        for aside in &account.asides {
            let end = aside.quoted();
            items.push(format!(
                "{}: {} {}; {}",
                escape(&aside.name),
                sign(end.side()),
                number(end, DIGITS),
                escape(&aside.note)
            ));
        }
        // Lenses that fail for the same reason share a line.
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for entry in &account.unsupported {
            match reasons.iter_mut().find(|(reason, _)| *reason == entry.reason) {
                Some((_, names)) => names.push(entry.lens.label()),
                None => reasons.push((&entry.reason, vec![entry.lens.label()])),
            }
        }
        for (reason, names) in reasons {
            items.push(format!("{}: {}", escape(&names.join(", ")), prose(reason)));
        }
    }
    if let Some(audit) = &report.audit {
        items.extend(audit.warnings.iter().map(|text| format!("audit: {}", escape(text))));
    }
    items.extend(report.left_out.iter().map(|text| escape(text)));
    if items.is_empty() {
        return String::new();
    }
    let list: String = items.iter().map(|item| format!("<li>{item}</li>\n")).collect();
    format!("<ul class=\"plain\">\n{list}</ul>\n")
}

fn provenance(report: &Report) -> String {
    let provenance = &report.provenance;
    let mut text = String::new();
    if !provenance.commands.is_empty() {
        let commands = provenance.commands.join("\n");
        text.push_str(&format!("<pre>{}</pre>\n", escape(&commands)));
    }
    text.push_str("<dl class=\"facts\">\n");
    let mut fact = |name: &str, value: String| {
        text.push_str(&format!("<dt>{}</dt><dd>{value}</dd>\n", escape(name)));
    };
    fact("program", format!("dosimeter {}", escape(&report.version)));
    if let Some(run) = &report.run {
        let json = serde_json::to_string(run).unwrap_or_default();
        fact("run", format!("<code>{}</code>", escape(&json)));
    }
    for input in &provenance.inputs {
        let name = format!("{} {}", input.role, input.name);
        fact(&name, format!("<code>sha256:{}</code>", escape(&input.sha256)));
    }
    for seed in &provenance.seeds {
        fact(&format!("seed, {}", seed.purpose), with_commas(seed.seed));
    }
    for note in &provenance.notes {
        fact("method", escape(note));
    }
    text.push_str("</dl>\n");
    text
}
