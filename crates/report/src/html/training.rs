//! The sections of a training's ledger and of a search over settings.

use super::escape::escape;
use super::parts::{exact, number, power_of_ten, table};
use super::sections::shown;
use crate::words::{capital, with_commas};
use crate::{Fact, Report};
use vocabulary::Quoted;
use vocabulary::rounding::plain;

/// What was done.
pub(super) fn record(report: &Report) -> String {
    report.training.as_ref().map(|training| facts(&training.facts)).unwrap_or_default()
}

/// How it went; not private.
pub(super) fn health(report: &Report) -> String {
    let Some(training) = &report.training else { return String::new() };
    if training.health.is_empty() {
        return String::new();
    }
    let mut text = facts(&training.health);
    text.push_str(&shown(report, "norms"));
    text.push_str(&shown(report, "loss"));
    text
}

fn facts(all: &[Fact]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut text = String::from("<dl class=\"facts\">\n");
    for fact in all {
        let value = match fact.value {
            Some(value) => {
                format!("<data value=\"{}\">{}</data>", exact(value), escape(&fact.text))
            }
            None => escape(&fact.text),
        };
        let note = fact
            .note
            .as_ref()
            .map(|note| format!("<span class=\"why\">{}</span>", escape(note)))
            .unwrap_or_default();
        text.push_str(&format!("<dt>{}</dt><dd>{value}{note}</dd>\n", escape(&fact.name)));
    }
    text.push_str("</dl>\n");
    text
}

pub(super) fn search(report: &Report) -> String {
    let Some(search) = &report.search else { return String::new() };
    let rows: Vec<Vec<String>> = search
        .groups
        .iter()
        .map(|group| {
            let maybe = |value: Option<f64>| {
                value.map_or_else(|| "\u{2013}".into(), |value| number(Quoted::about(value), 3))
            };
            vec![
                format!(
                    "\u{3b5} = {}, \u{3b4} = {}<span class=\"why\">least: {}</span>",
                    format_args!(
                        "<data value=\"{}\">{}</data>",
                        exact(group.epsilon),
                        plain(group.epsilon)
                    ),
                    power_of_ten(group.delta),
                    escape(&group.least)
                ),
                with_commas(group.configurations as u64),
                with_commas(group.runs as u64),
                number(Quoted::about(group.smallest), 3),
                number(Quoted::about(group.largest), 3),
                maybe(group.between),
                maybe(group.seed_noise),
                maybe(group.p_value),
            ]
        })
        .collect();
    let mut text = shown(report, "search");
    text.push_str(&table(
        "Settings with one epsilon",
        &[
            "guarantee",
            "#settings",
            "#runs",
            "#least",
            "#most",
            "#between settings",
            "#between seeds",
            "#p",
        ],
        &rows,
    ));
    text.push_str(&format!(
        "<p class=\"note\">Score: {}, larger memorises more. Between: standard deviations, seed \
         noise removed from the first. p: that all settings memorise alike. {}.</p>\n",
        escape(&search.score),
        escape(&capital(&search.statement))
    ));
    text.push_str(&shown(report, "selection"));
    text
}
