//! `tune` for a person.

use crate::print::{Align, TextTable, WIDTH, plain, wrap};
use answers::legends;
use tuning::Ranking;
use tuning::heuristics::Accuracy;
use tuning::profiles::Profiles;
use tuning::ranks::Correlation;
use tuning::regression::{Effect, Errors, Regression, Unit};
use tuning::search::SearchCost;
use tuning::selection::Selection;
use vocabulary::{AtMost, Quoted};

/// A number that is neither a bound nor exact.
fn about(value: f64) -> String {
    crate::print::about(value, 3)
}

fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), about)
}

fn closing(text: &mut String, statement: &str) {
    text.push('\n');
    text.push_str(&wrap(statement, "Note: ", 6, WIDTH));
}

pub(super) fn regression(found: &Regression) -> String {
    let unit = match found.unit {
        Unit::Configurations => "configurations (means over seeds)",
        Unit::Runs => "runs",
    };
    let errors = match found.errors {
        Errors::Classical => "classical errors".to_owned(),
        Errors::Hc1 => "HC1 errors".to_owned(),
        Errors::Hc3 => "HC3 errors".to_owned(),
        Errors::Configuration => {
            format!("errors clustered by configuration ({})", found.clusters.unwrap_or(0))
        }
        Errors::Seed => format!("errors clustered by seed ({})", found.clusters.unwrap_or(0)),
    };
    let base = if found.log_base == std::f64::consts::E {
        "natural logarithms".to_owned()
    } else {
        format!("logarithms to base {}", plain(found.log_base))
    };
    let epsilons: Vec<String> = found.epsilons.iter().map(|e| plain(*e)).collect();
    let head = format!(
        "{} on {base}: {} {unit}, epsilon {}, {errors}",
        found.score,
        found.observations,
        epsilons.join(", ")
    );
    let mut text = wrap(&head, "", 2, WIDTH) + "\n";
    text.push_str(&effects(&found.coefficients, found.confidence).render_within(0, 1, WIDTH));
    text.push_str(&format!(
        "\nR^2 {}, adjusted {}",
        about(found.r_squared),
        about(found.adjusted_r_squared)
    ));
    if let Some(joint) = &found.joint {
        text.push_str(&format!(
            "; F {}, p {} if no hyper-parameter matters",
            about(joint.statistic),
            about(joint.p_value)
        ));
    }
    text.push('\n');
    if !found.contrasts.is_empty() {
        text.push_str("\nWhat the heuristics predict to be below 0:\n");
        text.push_str(&effects(&found.contrasts, found.confidence).render_within(0, 1, WIDTH));
    }
    if !found.composites.is_empty() {
        text.push_str("\nComposites in place of their factors (C = bT, U = bT eta):\n");
        for composite in &found.composites {
            let slopes: Vec<String> = composite
                .coefficients
                .iter()
                .map(|e| format!("{} {} (p {})", e.name, about(e.estimate), about(e.p_value)))
                .collect();
            let against = composite.restriction.as_ref().map_or_else(String::new, |joint| {
                format!("; test that {}: p {}", joint.says, about(joint.p_value))
            });
            let line =
                format!("{}, R^2 {}{against}", slopes.join(", "), about(composite.r_squared));
            text.push_str(&wrap(&line, "  ", 4, WIDTH));
        }
    }
    closing(&mut text, &found.statement);
    text
}

fn effects(effects: &[Effect], confidence: f64) -> TextTable {
    let interval = format!("{} % interval", plain(100.0 * confidence));
    let mut table = TextTable::new([
        ("", Align::Left),
        ("estimate", Align::Right),
        ("std. error", Align::Right),
        ("t", Align::Right),
        ("p", Align::Right),
        (interval.as_str(), Align::Left),
    ]);
    for e in effects {
        table.row([
            e.name.clone(),
            about(e.estimate),
            about(e.standard_error),
            about(e.statistic),
            about(e.p_value),
            format!("{} to {}", about(e.lower), about(e.upper)),
        ]);
    }
    table
}

pub(super) fn ranking(found: &Ranking) -> String {
    let mut text = String::new();
    for group in &found.groups {
        let spread = &group.spread;
        text.push_str(&format!(
            "epsilon {}, delta {}: {} configurations, {} runs, score {}\n\n",
            plain(group.epsilon),
            plain(group.delta),
            spread.configurations,
            spread.runs,
            found.score
        ));
        let mut line = format!(
            "from {} to {} (range {}{}), mean {}",
            about(spread.smallest),
            about(spread.largest),
            about(spread.range),
            spread.ratio.map_or_else(String::new, |r| format!(", ratio {}", about(r))),
            about(spread.mean)
        );
        if let Some(observed) = spread.observed {
            line.push_str(&format!("; standard deviation of configurations {}", about(observed)));
        }
        if let Some(between) = spread.between {
            line.push_str(&format!(
                ", {} with seed noise removed ({} to {})",
                about(between),
                maybe(spread.between_lower),
                maybe(spread.between_upper)
            ));
        }
        if let (Some(noise), Some(p)) = (spread.seed_noise, spread.p_value) {
            line.push_str(&format!(
                "; seed noise {} per run; p = {} if all configurations memorised alike",
                about(noise),
                about(p)
            ));
        }
        text.push_str(&wrap(&line, "spread: ", 8, WIDTH));
        text.push('\n');
        let mut table = TextTable::new([
            ("batch size", Align::Right),
            ("steps", Align::Right),
            ("learning rate", Align::Right),
            ("clip", Align::Right),
            ("runs", Align::Right),
            ("score", Align::Right),
            ("utility", Align::Right),
            ("audit epsilon", Align::Right),
        ]);
        for c in &group.configurations {
            table.row([
                plain(c.batch_size),
                c.steps.to_string(),
                plain(c.learning_rate),
                c.clip_norm.map_or_else(|| "-".into(), plain),
                c.run_scores.len().to_string(),
                about(c.score),
                maybe(c.utility),
                maybe(c.audit_epsilon),
            ]);
        }
        text.push_str(&table.render(0));
        if !group.correlations.is_empty() {
            text.push('\n');
            text.push_str(&correlations(&group.correlations));
        }
        text.push('\n');
    }
    let together = if found.groups.len() > 1 { " over all epsilons" } else { "" };
    text.push_str(&format!("How often the heuristics are right{together} (guessing: 0.5)\n"));
    text.push_str(&accuracies(&found.heuristics));
    closing(&mut text, &found.statement);
    text
}

fn accuracies(all: &[Accuracy]) -> String {
    let mut table = TextTable::new([
        ("rule", Align::Left),
        ("pairs", Align::Right),
        ("accuracy", Align::Right),
        ("interval", Align::Left),
        ("beyond seed noise", Align::Left),
    ]);
    for a in all {
        let clear = match (a.clear_pairs, a.clear_accuracy) {
            (Some(pairs), Some(accuracy)) => format!("{} of {pairs} pairs", about(accuracy)),
            (Some(_), None) => "no pair".into(),
            _ => "-".into(),
        };
        table.row([
            a.rule.as_str().to_owned(),
            a.pairs.to_string(),
            maybe(a.accuracy),
            match (a.lower, a.upper) {
                (Some(lower), Some(upper)) => format!("{} to {}", about(lower), about(upper)),
                _ => "-".into(),
            },
            clear,
        ]);
    }
    table.render(0)
}

fn correlations(all: &[Correlation]) -> String {
    let mut table = TextTable::new([
        ("rank correlation", Align::Left),
        ("Spearman", Align::Right),
        ("interval", Align::Left),
        ("p", Align::Right),
        ("Kendall", Align::Right),
    ]);
    for c in all {
        table.row([
            format!("{} with {}", c.of, c.with),
            about(c.spearman),
            format!("{} to {}", about(c.lower), about(c.upper)),
            about(c.p_value),
            about(c.kendall),
        ]);
    }
    table.render(0)
}

pub(super) fn selection(found: &Selection) -> String {
    let mut text = String::new();
    let score = format!("\n{}", found.score);
    for group in &found.groups {
        for at in &group.at {
            text.push_str(&format!(
                "epsilon {}, delta {}, utility threshold {}:\n{} of {} configurations are candidates\n\n",
                plain(group.epsilon),
                plain(group.delta),
                plain(at.threshold),
                at.candidates,
                group.configurations.len()
            ));
            let mut table = TextTable::new([
                ("\nchoice by", Align::Left),
                ("\nconfiguration", Align::Left),
                ("\nutility", Align::Right),
                (score.as_str(), Align::Right),
                ("\nexcess", Align::Right),
                ("of\nrange", Align::Right),
            ]);
            for c in &at.choices {
                table.row([
                    c.chooser.as_str().to_owned(),
                    c.name.clone().unwrap_or_else(|| "average of the candidates".into()),
                    maybe(c.utility),
                    about(c.score),
                    maybe(c.excess),
                    about(c.normalised),
                ]);
            }
            text.push_str(&table.render_within(0, 2, WIDTH));
            text.push('\n');
        }
    }
    if let Some(first) = found.average.first() {
        text.push_str(&format!(
            "Averaged over all {} thresholds with a choice:\n",
            first.thresholds
        ));
        let mut table = TextTable::new([
            ("choice by", Align::Left),
            ("excess", Align::Right),
            ("of range", Align::Right),
        ]);
        for a in &found.average {
            table.row([a.chooser.as_str().to_owned(), maybe(a.excess), about(a.normalised)]);
        }
        text.push_str(&table.render(0));
    }
    text.push_str(
        "\nexcess: (score - oracle) / oracle\nof range: (score - oracle) / (worst - oracle)\n",
    );
    closing(&mut text, &found.statement);
    text
}

pub(super) fn profiles(found: &Profiles) -> String {
    let mut text = String::new();
    for (group, search) in found.groups.iter().zip(&found.search) {
        text.push_str(&format!(
            "epsilon {}, delta {}, {} records: {} mechanisms (batch size, steps)\n\n",
            plain(group.epsilon),
            plain(group.delta),
            found.dataset_size,
            group.mechanisms.len()
        ));
        let mut table = TextTable::new([
            ("\nbatch\nsize", Align::Right),
            ("\n\nsteps", Align::Right),
            ("\nnoise\n(sigma)", Align::Right),
            (legends::MECHANISM_COLUMNS[0], Align::Right),
            (legends::MECHANISM_COLUMNS[1], Align::Right),
            ("\n\nadvantage", Align::Right),
            ("\nTPR\n@ FPR 0.01", Align::Right),
            ("\n\nscore", Align::Right),
        ]);
        for m in &group.mechanisms {
            let [epsilon, last_iterate, advantage, tpr] = m.at_most().map(AtMost::shown);
            table.row([
                plain(m.batch_size),
                m.steps.to_string(),
                Quoted::about(m.noise_multiplier).to_string(),
                epsilon,
                last_iterate,
                advantage,
                tpr,
                about(m.score),
            ]);
        }
        text.push_str(&table.render_within(0, 2, WIDTH));
        let line = format!(
            "{} of {} pairs of profiles cross at the calibrated point; their largest difference is {} in delta, at epsilon {}; last-iterate epsilons run from {} to {}",
            group.crossing_pairs,
            group.pairs,
            about(group.largest_gap),
            about(group.largest_gap_at),
            about(group.smallest_last_iterate),
            about(group.largest_last_iterate)
        );
        text.push('\n');
        text.push_str(&wrap(&line, "", 0, WIDTH));
        if !group.correlations.is_empty() {
            text.push('\n');
            text.push_str(&correlations(&group.correlations));
        }
        let line = match (search.epsilon_at_most(), &search.reason) {
            (Some(epsilon), _) => format!(
                "releasing all {} models: epsilon {} at delta {} {}",
                search.runs,
                epsilon.shown(),
                plain(search.delta),
                legends::ALL_MODELS_ARE
            ),
            (None, reason) => format!(
                "releasing all {} models: no epsilon ({})",
                search.runs,
                reason.as_deref().unwrap_or("not bounded")
            ),
        };
        text.push('\n');
        text.push_str(&wrap(&line, "", 0, WIDTH));
        text.push('\n');
    }
    text.push_str("Assumptions:\n");
    for assumption in &found.assumptions {
        text.push_str(&wrap(assumption, "  - ", 4, WIDTH));
    }
    closing(&mut text, &found.statement);
    text
}

pub(super) fn search(found: &SearchCost) -> String {
    let [one_run, search] = found.at_most().map(AtMost::shown);
    let mut table = TextTable::new([("", Align::Left), ("epsilon", Align::Right)]);
    table.row(["one run (the largest of them)".into(), one_run]);
    table.row([
        format!(
            "the search, {} number of trials, mean {}",
            found.trials.as_str(),
            plain(found.expected_trials)
        ),
        search,
    ]);
    table.row([
        format!("{} trials, all released", found.fixed_trials),
        found.all_released_at_most().map_or_else(|| "-".into(), AtMost::shown),
    ]);
    let mut text = format!(
        "A search over {} mechanisms at delta {}, {}\n\n",
        found.configurations,
        plain(found.delta),
        legends::SEARCH_IS
    );
    text.push_str(&table.render(0));
    text.push_str("\nAssumptions:\n");
    for assumption in &found.assumptions {
        text.push_str(&wrap(assumption, "  - ", 4, WIDTH));
    }
    closing(&mut text, &found.statement);
    text
}
