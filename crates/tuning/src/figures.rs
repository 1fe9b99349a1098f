//! The answers as figures.

use crate::profiles::Profiles;
use crate::regression::Regression;
use crate::selection::{Chooser, Selection};
use crate::{Configuration, Ranking};
use vocabulary::figure::{Axis, Figure, Hue, Labels, Mark, Measurement, Rung, Series, Stroke};
use vocabulary::rounding::{about, plain};

/// A delta for a caption: as given where that is short.
fn short(delta: f64) -> String {
    let given = plain(delta);
    if given.len() <= 7 { given } else { about(delta, 3) }
}

/// The scores of all configurations at each epsilon, with two standard errors of seed noise.
pub fn ranking(ranking: &Ranking) -> Figure {
    let widest = ranking
        .groups
        .iter()
        .filter_map(|g| Some((g, g.spread.ratio?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let title = match widest {
        Some((group, ratio)) if ratio >= 1.05 => format!(
            "At epsilon {} one configuration memorises {:.1} times as much as another",
            plain(group.epsilon),
            ratio
        ),
        _ => "What configurations of one epsilon memorise".to_owned(),
    };
    let names: Vec<String> =
        ranking.groups.iter().map(|g| format!("epsilon {}", plain(g.epsilon))).collect();
    let mut points = Vec::new();
    for (column, group) in ranking.groups.iter().enumerate() {
        let n = group.configurations.len() as f64;
        for (i, c) in group.configurations.iter().enumerate() {
            // Side by side within the column, in the order of the score.
            let x = column as f64 + 0.7 * ((i as f64 + 0.5) / n - 0.5);
            let mut point = Measurement::new(x, c.score);
            if let Some(noise) = group.spread.seed_noise {
                let reach = 2.0 * noise / (c.run_scores.len() as f64).sqrt();
                point = point.y_range(c.score - reach, c.score + reach);
            }
            points.push(point);
        }
    }
    Figure::new(
        title,
        "Each dot is a configuration's mean over seeds; whiskers are two standard errors of seed noise. All dots of a column have the same (epsilon, delta).",
    )
    .subtitle(format!("score {}", ranking.score))
    .x(Axis::category("", names))
    .y(Axis::linear(ranking.score.clone()))
    .labels(Labels::None)
    .with(Series::new("configurations", Mark::Scatter(points)).hue(Hue::Blue))
}

/// The coefficients with their intervals.
pub fn regression(regression: &Regression) -> Figure {
    let effects: Vec<_> =
        regression.coefficients.iter().filter(|e| e.name.starts_with("log ")).collect();
    let strongest = effects.iter().max_by(|a, b| a.statistic.abs().total_cmp(&b.statistic.abs()));
    let title = match strongest {
        Some(effect) if effect.p_value < 1.0 - regression.confidence => format!(
            "{} has the clearest effect on {}: {} per unit",
            effect.name.trim_start_matches("log "),
            regression.score,
            format_args!("{:+.3}", effect.estimate)
        ),
        _ => format!("No hyper-parameter has a clear effect on {}", regression.score),
    };
    let all: Vec<_> = effects.into_iter().chain(&regression.contrasts).collect();
    let rungs = all.iter().enumerate().map(|(i, effect)| {
        Rung::between(i, effect.lower, effect.estimate, effect.upper)
            .note(format!("p {:.2e}", effect.p_value))
    });
    Figure::new(
        title,
        "Change of the score for one unit of the logarithm, with its interval. The differences below are what the heuristics predict to be negative.",
    )
    .subtitle(format!(
        "{} observations, R^2 {:.2}, {} % intervals",
        regression.observations,
        regression.r_squared,
        100.0 * regression.confidence
    ))
    .x(Axis::linear("effect"))
    .y(Axis::category("", all.iter().map(|effect| effect.name.clone())))
    .labels(Labels::None)
    .with(Series::vertical_rule("none", 0.0).hue(Hue::Muted).stroke(Stroke::Dotted))
    .with(Series::ladder("effects", rungs).hue(Hue::Blue))
}

/// Utility against memorisation at one (epsilon, delta), the rules' choices marked.
pub fn selection(selection: &Selection, group: usize) -> Figure {
    let group = &selection.groups[group];
    let place = |c: &Configuration| Some((c.utility?, c.score));
    let mut figure = Figure::new(
        "Less memorisation costs utility; the rules choose along the edge",
        "Each dot is a configuration's mean over seeds; below is safer. Utility below the threshold is not a candidate.",
    )
    .subtitle(format!("epsilon {}, delta {}", plain(group.epsilon), short(group.delta)))
    .x(Axis::linear("utility"))
    .y(Axis::linear(selection.score.clone()))
    .with(
        Series::scatter("configurations", group.configurations.iter().filter_map(place))
            .hue(Hue::Muted),
    );
    let Some(at) = group.at.first() else { return figure };
    let average = |chooser: Chooser| {
        group.average.iter().find(|a| a.chooser == chooser).map(|a| a.normalised)
    };
    if let (Some(ours), Some(best)) = (average(Chooser::Algorithm1), average(Chooser::BestUtility))
    {
        figure.title = format!(
            "Algorithm 1 takes {:.0} % of the avoidable memorisation, best utility {:.0} %",
            100.0 * ours,
            100.0 * best
        );
    }
    figure = figure.with(
        Series::vertical_rule("utility threshold", at.threshold)
            .hue(Hue::Muted)
            .stroke(Stroke::Dotted),
    );
    for choice in &at.choices {
        let Some(c) = choice.configuration.map(|i| &group.configurations[i]) else { continue };
        let Some((x, y)) = place(c) else { continue };
        // Several rules may choose one configuration: one pin with all their names.
        let same = figure.series.iter_mut().find(
            |series| matches!(&series.mark, Mark::Pin(point) if point.x == x && point.y == y),
        );
        match same {
            Some(series) => series.label = format!("{}, {}", series.label, choice.chooser.as_str()),
            None => figure = figure.with(Series::pin(choice.chooser.as_str(), x, y).hue(Hue::Ink)),
        }
    }
    figure
}

/// The privacy profiles of one (epsilon, delta).
pub fn profiles(profiles: &Profiles, group: usize) -> Figure {
    let group = &profiles.groups[group];
    let mut mechanisms: Vec<_> = group.mechanisms.iter().collect();
    mechanisms.sort_by(|a, b| a.advantage.total_cmp(&b.advantage));
    let mut figure = Figure::new(
        format!(
            "One epsilon, {} profiles: they agree at the calibrated point only",
            mechanisms.len()
        ),
        "delta at each epsilon, all iterates; lower is safer. The last-iterate numbers of the same configurations differ more.",
    )
    .subtitle(format!(
        "epsilon {}, delta {}; last-iterate epsilon from {:.2} to {:.2}",
        plain(group.epsilon),
        short(group.delta),
        group.smallest_last_iterate,
        group.largest_last_iterate
    ))
    .x(Axis::linear("epsilon"))
    .y(Axis::log("delta"))
    .with(Series::vertical_rule("calibrated", group.epsilon).hue(Hue::Muted).stroke(Stroke::Dotted));
    let last = mechanisms.len().saturating_sub(1);
    for (i, mechanism) in mechanisms.iter().enumerate() {
        let named = i == 0 || i == last;
        let label = if named {
            format!("b {}, T {}", plain(mechanism.batch_size), mechanism.steps)
        } else {
            String::new()
        };
        let points =
            mechanism.profile.iter().map(|&(e, d)| (e, if d > 0.0 { d } else { f64::NAN }));
        let hue = if i == 0 {
            Hue::Green
        } else if i == last {
            Hue::Vermilion
        } else {
            Hue::Sky
        };
        figure = figure.with(Series::line(label, points).hue(hue).stroke(Stroke::Solid));
    }
    figure
}
