//! The figure in words: for a screen reader, and for what could not be drawn.

use crate::label;
use crate::scale::Spread;
use vocabulary::Figure;
use vocabulary::figure::{Mark, Measurement, Point, Scale};

/// Why a point is left out.
#[derive(Default)]
struct Missing {
    not_finite: usize,
    off_scale: usize,
}

/// What the figure holds and its drawing leaves out, one sentence a reason. Empty when
/// everything has a place. Points outside of the domain are not left out, only cut off.
///
/// ```
/// use vocabulary::figure::{Axis, Figure, Series};
/// let figure = Figure::new("", "").x(Axis::log("rate")).with(Series::line("a", [(0.0, 1.0)]));
/// assert_eq!(
///     figures::omitted(&figure),
///     ["Not drawn: 1 point at 0 or below on a logarithmic axis."]
/// );
/// ```
pub fn omitted(figure: &Figure) -> Vec<String> {
    let mut missing = Missing::default();
    for series in &figure.series {
        match &series.mark {
            Mark::Line(points) | Mark::Step(points) => {
                for point in points {
                    count(figure, point, &mut missing);
                }
            }
            Mark::Scatter(measurements) => {
                for Measurement { at, .. } in measurements {
                    count(figure, at, &mut missing);
                }
            }
            Mark::Pin(point) => count(figure, point, &mut missing),
            _ => {}
        }
    }
    let points = |n: usize| if n == 1 { "1 point".into() } else { format!("{n} points") };
    let mut notes = Vec::new();
    if missing.off_scale > 0 {
        let probit = figure.x.scale == Scale::Probit || figure.y.scale == Scale::Probit;
        let place = if probit {
            "outside of what the axis can show"
        } else {
            "at 0 or below on a logarithmic axis"
        };
        notes.push(format!("Not drawn: {} {place}.", points(missing.off_scale)));
    }
    if missing.not_finite > 0 {
        notes.push(format!("Not drawn: {} without a finite value.", points(missing.not_finite)));
    }
    notes
}

fn count(figure: &Figure, point: &Point, missing: &mut Missing) {
    let lost = |scale: &Scale, value: f64| Spread::of(scale).transform(value).is_none();
    if !point.x.is_finite() || !point.y.is_finite() {
        missing.not_finite += 1;
    } else if lost(&figure.x.scale, point.x) || lost(&figure.y.scale, point.y) {
        missing.off_scale += 1;
    }
}

/// The description for a reader who cannot see the drawing.
pub(crate) fn description(figure: &Figure) -> String {
    let mut words = String::new();
    let mut say = |sentence: String| {
        if !sentence.trim().is_empty() {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(sentence.trim());
        }
    };
    say(figure.subtitle.clone().unwrap_or_default());
    say(figure.caption.clone());
    for (name, axis) in [("Horizontal", &figure.x), ("Vertical", &figure.y)] {
        let spread = match axis.scale {
            Scale::Linear => "",
            Scale::Log10 => ", logarithmic",
            Scale::Probit => ", on the normal quantile scale",
            Scale::Category(_) => ", by name",
        };
        if !axis.label.is_empty() {
            say(format!("{name} axis: {}{spread}.", axis.label));
        }
    }
    for series in figure.series.iter().take(24) {
        say(series_in_words(&series.label, &series.mark));
    }
    omitted(figure).into_iter().for_each(say);
    words
}

fn series_in_words(label: &str, mark: &Mark) -> String {
    let named = |kind: &str| {
        if label.is_empty() { kind.to_string() } else { format!("{kind} \u{201c}{label}\u{201d}") }
    };
    match mark {
        Mark::Line(points) => format!("{}{}.", named("Line"), ends(points)),
        Mark::Step(points) => format!("{}{}.", named("Step line"), ends(points)),
        Mark::Scatter(points) => format!("{}: {} points.", named("Dots"), points.len()),
        Mark::Band { .. } => format!("{}.", named("Band")),
        Mark::Rule { at, .. } => format!("{} at {}.", named("Rule"), number(*at)),
        Mark::Span { from, to, .. } => {
            format!("{} from {} to {}.", named("Span"), number(*from), number(*to))
        }
        Mark::Pin(point) => {
            format!("{} at ({}, {}).", named("Note"), number(point.x), number(point.y))
        }
        Mark::Bars { bars, .. } => format!("{}: {} bars.", named("Bars"), bars.len()),
        Mark::Ladder(rungs) => format!("{}: {} rows.", named("Intervals"), rungs.len()),
        Mark::Heat(heat) => {
            let columns = heat.x_edges.len().saturating_sub(1);
            let rows = heat.y_edges.len().saturating_sub(1);
            format!("{}: {columns} by {rows} cells.", named("Heat map"))
        }
    }
}

fn ends(points: &[Point]) -> String {
    let mut drawn = points.iter().filter(|p| p.x.is_finite() && p.y.is_finite());
    let place = |p: &Point| format!("({}, {})", number(p.x), number(p.y));
    match (drawn.next(), drawn.next_back()) {
        (Some(first), Some(last)) => format!(" from {} to {}", place(first), place(last)),
        (Some(only), None) => format!(" at {}", place(only)),
        _ => String::from(" without points"),
    }
}

fn number(value: f64) -> String {
    if !value.is_finite() {
        return "no finite value".into();
    }
    let label = label::short(value);
    match label.exponent {
        None => label.base,
        Some(exponent) => format!("{}^{exponent}", label.base),
    }
}
