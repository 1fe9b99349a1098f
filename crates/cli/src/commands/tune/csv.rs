//! The answers of `tune` as rows.

use crate::print::csv_line;
use tuning::Ranking;
use tuning::profiles::Profiles;
use tuning::regression::Regression;
use tuning::selection::Selection;

pub(super) fn regression(found: &Regression) -> String {
    let head = ["name", "estimate", "standard_error", "statistic", "p_value", "lower", "upper"];
    let mut text = csv_line(head);
    for e in found.coefficients.iter().chain(&found.contrasts) {
        let numbers = [e.estimate, e.standard_error, e.statistic, e.p_value, e.lower, e.upper];
        let cells = numbers.iter().map(f64::to_string);
        text.push_str(&csv_line(std::iter::once(e.name.clone()).chain(cells)));
    }
    text
}

pub(super) fn ranking(found: &Ranking) -> String {
    let head = [
        "epsilon",
        "delta",
        "batch_size",
        "steps",
        "learning_rate",
        "clip_norm",
        "runs",
        "score",
        "utility",
        "audit_epsilon",
    ];
    let mut text = csv_line(head);
    for group in &found.groups {
        for c in &group.configurations {
            text.push_str(&csv_line([
                group.epsilon.to_string(),
                group.delta.to_string(),
                c.batch_size.to_string(),
                c.steps.to_string(),
                c.learning_rate.to_string(),
                optional(c.clip_norm),
                c.run_scores.len().to_string(),
                c.score.to_string(),
                optional(c.utility),
                optional(c.audit_epsilon),
            ]));
        }
    }
    text
}

pub(super) fn selection(found: &Selection) -> String {
    let head = [
        "epsilon",
        "threshold",
        "candidates",
        "chooser",
        "configuration",
        "utility",
        "score",
        "excess",
        "normalised",
    ];
    let mut text = csv_line(head);
    for group in &found.groups {
        for at in &group.at {
            for choice in &at.choices {
                text.push_str(&csv_line([
                    group.epsilon.to_string(),
                    at.threshold.to_string(),
                    at.candidates.to_string(),
                    choice.chooser.as_str().to_owned(),
                    choice.name.clone().unwrap_or_default(),
                    optional(choice.utility),
                    choice.score.to_string(),
                    optional(choice.excess),
                    choice.normalised.to_string(),
                ]));
            }
        }
    }
    text
}

pub(super) fn profiles(found: &Profiles) -> String {
    let head = [
        "epsilon",
        "delta",
        "batch_size",
        "steps",
        "noise_multiplier",
        "last_iterate",
        "last_iterate_max",
        "advantage",
        "tpr_at_fpr_0.01",
        "score",
    ];
    let mut text = csv_line(head);
    for group in &found.groups {
        for m in &group.mechanisms {
            let numbers = [
                m.noise_multiplier,
                m.last_iterate,
                m.last_iterate_max,
                m.advantage,
                m.tpr,
                m.score,
            ];
            let start = [
                m.epsilon.to_string(),
                group.delta.to_string(),
                m.batch_size.to_string(),
                m.steps.to_string(),
            ];
            let cells = start.into_iter().chain(numbers.iter().map(f64::to_string));
            text.push_str(&csv_line(cells));
        }
    }
    text
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
