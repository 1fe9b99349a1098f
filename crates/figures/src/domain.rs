//! Which part of an axis is shown: what the figure asks for, or what its series need.

use crate::scale::{AxisScale, Spread};
use vocabulary::Figure;
use vocabulary::figure::{Axis, Mark, Orientation, Point, Scale, Series};

/// Which of the two axes is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    X,
    Y,
}

/// The scale of an axis. Always has a width, whatever the figure holds.
pub(crate) fn axis_scale(figure: &Figure, which: Which) -> AxisScale {
    let axis = match which {
        Which::X => &figure.x,
        Which::Y => &figure.y,
    };
    let spread = Spread::of(&axis.scale);
    let (lower, upper) = match &axis.scale {
        Scale::Category(names) => (-0.5, names.len().max(1) as f64 - 0.5),
        _ => asked(axis, spread).unwrap_or_else(|| needed(figure, which, spread)),
    };
    let (lower, upper) = widened(lower, upper);
    AxisScale { spread, lower, upper }
}

fn asked(axis: &Axis, spread: Spread) -> Option<(f64, f64)> {
    let range = axis.domain?;
    let (a, b) = (spread.transform(range.lower)?, spread.transform(range.upper)?);
    (a != b).then(|| (a.min(b), a.max(b)))
}

fn needed(figure: &Figure, which: Which, spread: Spread) -> (f64, f64) {
    let mut extent: Option<(f64, f64)> = None;
    for series in &figure.series {
        coordinates(series, which, &mut |value| {
            if let Some(place) = spread.transform(value) {
                let (lower, upper) = extent.unwrap_or((place, place));
                extent = Some((lower.min(place), upper.max(place)));
            }
        });
    }
    let Some((lower, upper)) = extent else {
        return match spread {
            Spread::Log10 => (-1.0, 0.0),
            Spread::Probit => (-2.3, 2.3),
            _ => (0.0, 1.0),
        };
    };
    // Lines and cells fill the plot from side to side; dots keep a distance from the frame.
    let flush = figure.series.iter().any(|series| match &series.mark {
        Mark::Heat(_) => true,
        Mark::Line(_) | Mark::Step(_) | Mark::Band { .. } => which == Which::X,
        _ => false,
    });
    if flush {
        return (lower, upper);
    }
    let margin = 0.05 * (upper - lower);
    let from_zero = spread == Spread::Linear && lower >= 0.0 && lower < 0.35 * upper;
    let to_zero = spread == Spread::Linear && upper <= 0.0 && upper > 0.35 * lower;
    (if from_zero { 0.0 } else { lower - margin }, if to_zero { 0.0 } else { upper + margin })
}

/// Gives a domain without width some, relative to where it lies.
fn widened(lower: f64, upper: f64) -> (f64, f64) {
    let size = lower.abs().max(upper.abs()).max(1e-280);
    if upper - lower > 1e-9 * size {
        (lower, upper)
    } else {
        let half = if size <= 1e-280 { 0.5 } else { 0.1 * size };
        (lower - half, upper + half)
    }
}

/// Every coordinate of a series along an axis.
fn coordinates(series: &Series, which: Which, visit: &mut dyn FnMut(f64)) {
    let of = |point: &Point| match which {
        Which::X => point.x,
        Which::Y => point.y,
    };
    match &series.mark {
        Mark::Line(points) | Mark::Step(points) => points.iter().map(of).for_each(visit),
        Mark::Scatter(measurements) => {
            for measurement in measurements {
                visit(of(&measurement.at));
                let range = match which {
                    Which::X => measurement.x_range,
                    Which::Y => measurement.y_range,
                };
                if let Some(range) = range {
                    visit(range.lower);
                    visit(range.upper);
                }
            }
        }
        Mark::Band { lower, upper } => lower.iter().chain(upper).map(of).for_each(visit),
        Mark::Rule { orientation, at } => {
            if across(*orientation) == which {
                visit(*at);
            }
        }
        Mark::Span { orientation, from, to } => {
            if across(*orientation) == which {
                visit(*from);
                visit(*to);
            }
        }
        Mark::Pin(point) => visit(of(point)),
        Mark::Bars { orientation, bars } => {
            for bar in bars {
                if across(*orientation) == which {
                    visit(bar.from);
                    visit(bar.to);
                } else {
                    visit(bar.base);
                    visit(bar.value);
                }
            }
        }
        Mark::Ladder(rungs) => {
            if which == Which::X {
                let values = |rung: &vocabulary::figure::Rung| [rung.value, rung.lower, rung.upper];
                rungs.iter().flat_map(values).flatten().for_each(visit);
            }
        }
        Mark::Heat(heat) => match which {
            Which::X => heat.x_edges.iter().copied().for_each(visit),
            Which::Y => heat.y_edges.iter().copied().for_each(visit),
        },
    }
}

/// The axis on which a rule of this orientation has its place.
fn across(orientation: Orientation) -> Which {
    match orientation {
        Orientation::Horizontal => Which::Y,
        Orientation::Vertical => Which::X,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(figure: &Figure, which: Which) -> (f64, f64) {
        let scale = axis_scale(figure, which);
        (scale.lower, scale.upper)
    }

    #[test]
    fn a_line_fills_the_width_and_a_small_start_means_zero() {
        let figure = Figure::new("", "").with(Series::line("", [(2.0, 1.0), (4.0, 10.0)]));
        assert_eq!(domain(&figure, Which::X), (2.0, 4.0));
        assert_eq!(domain(&figure, Which::Y), (0.0, 10.45));
    }

    #[test]
    fn what_has_no_place_does_not_count() {
        let figure = Figure::new("", "")
            .x(Axis::log(""))
            .with(Series::line("", [(0.0, 1.0), (0.01, f64::NAN), (1.0, 1.0)]));
        assert_eq!(domain(&figure, Which::X), (-2.0, 0.0));
        let (lower, upper) = domain(&figure, Which::Y);
        assert!(lower < 1.0 && upper > 1.0);
    }

    #[test]
    fn a_domain_that_makes_no_sense_is_replaced() {
        for (lower, upper) in [(-1.0, 1.0), (2.0, 2.0), (f64::NAN, 1.0)] {
            let figure = Figure::new("", "").x(Axis::log("").domain(lower, upper));
            assert_eq!(domain(&figure, Which::X), (-1.0, 0.0));
        }
        let figure = Figure::new("", "").x(Axis::log("").domain(10.0, 0.1));
        assert_eq!(domain(&figure, Which::X), (-1.0, 1.0));
    }
}
