//! Curves as figures: the title says what is seen, solid lines are proven, dashed ones
//! heuristic, dotted ones estimates.

use super::{Curve, CurveKind, CurvePoint};
use numerics::elementary::ln;
use vocabulary::figure::{Axis, Figure, Hue, Series, Stroke};
use vocabulary::rounding::about;
use vocabulary::{AtMost, Quoted, Standing};

/// The figure of a curve.
pub fn figure(curve: &Curve) -> Figure {
    let figure = match curve.kind {
        CurveKind::Tradeoff => tradeoff(curve),
        CurveKind::Profile => profile(curve),
        CurveKind::Steps => steps(curve),
    };
    figure.subtitle(curve.run.phases_in_words())
}

fn stroke(standing: Standing) -> Stroke {
    match standing {
        Standing::Proven | Standing::Measured => Stroke::Solid,
        Standing::Heuristic => Stroke::Dashed,
        Standing::Estimate => Stroke::Dotted,
    }
}

fn tradeoff(curve: &Curve) -> Figure {
    let mut figure = Figure::new(
        tradeoff_title(curve),
        "An attack on a curve's run stays below the curve; the diagonal is guessing.",
    )
    .x(Axis::log("false positive rate").domain(1e-5, 1.0))
    .y(Axis::log("true positive rate").domain(1e-5, 1.0))
    .with(
        Series::line("guessing", [(1e-5, 1e-5), (1.0, 1.0)]).hue(Hue::Muted).stroke(Stroke::Dotted),
    );
    for line in curve.lines() {
        let points = line.points.iter().filter_map(|point| match *point {
            // The safe side of the power is one minus the lower end of the misses.
            CurvePoint::Tradeoff { fpr, lower, .. } if (1e-5..1.0).contains(&fpr) => {
                Some((fpr, 1.0 - lower))
            }
            _ => None,
        });
        figure =
            figure.with(Series::line(line.lens.as_str(), points).stroke(stroke(line.standing)));
    }
    figure
}

/// The finding: what the first lens allows near the false positive rate 0.001.
fn tradeoff_title(curve: &Curve) -> String {
    let distance = |fpr: f64| (ln(fpr) - ln(1e-3)).abs();
    let nearest = curve
        .line
        .points
        .iter()
        .filter_map(|point| match *point {
            CurvePoint::Tradeoff { fpr, lower, .. } if fpr > 0.0 => Some((fpr, 1.0 - lower)),
            _ => None,
        })
        .min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)));
    match nearest {
        Some((fpr, tpr)) if distance(fpr) < 1.0 => {
            format!(
                "At a false positive rate of {} %, {} allows a true positive rate of {} %",
                about(100.0 * fpr, 2),
                curve.line.lens,
                AtMost::new(tpr).percent()
            )
        }
        _ => "What an attacker can gain at each false positive rate".into(),
    }
}

fn profile(curve: &Curve) -> Figure {
    let mut figure = Figure::new(
        profile_title(curve),
        "The run is (epsilon, delta)-private for every point on or above its curve.",
    )
    .x(Axis::linear("epsilon"))
    .y(Axis::log("delta"));
    for line in curve.lines() {
        let points = line.points.iter().filter_map(|point| match *point {
            CurvePoint::Profile { epsilon, upper, .. } => Some((epsilon, upper)),
            _ => None,
        });
        figure =
            figure.with(Series::line(line.lens.as_str(), points).stroke(stroke(line.standing)));
    }
    figure
}

/// The finding: from which epsilon on delta is below one in a hundred thousand.
fn profile_title(curve: &Curve) -> String {
    let points = || {
        curve.line.points.iter().filter_map(|point| match *point {
            CurvePoint::Profile { epsilon, upper, .. } => Some((epsilon, upper)),
            _ => None,
        })
    };
    let small = points().find(|(_, delta)| *delta <= 1e-5);
    match (points().next(), small) {
        (Some((_, first)), Some((epsilon, delta))) => format!(
            "{}: delta falls from {} to {} by epsilon {}",
            curve.line.lens,
            AtMost::new(first),
            AtMost::new(delta).digits(2),
            Quoted::about(epsilon)
        ),
        _ => "The privacy profile: every (epsilon, delta) at once".into(),
    }
}

fn steps(curve: &Curve) -> Figure {
    let delta = curve.delta.unwrap_or(f64::NAN);
    let mut figure = Figure::new(
        steps_title(curve),
        format!("Each point is epsilon at delta {delta:e} if training stopped there."),
    )
    .x(Axis::log("steps"))
    .y(Axis::log("epsilon"));
    for line in curve.lines() {
        let points = line.points.iter().filter_map(|point| match *point {
            CurvePoint::Steps { steps, upper, .. } => {
                Some((steps as f64, upper.unwrap_or(f64::INFINITY)))
            }
            _ => None,
        });
        figure =
            figure.with(Series::line(line.lens.as_str(), points).stroke(stroke(line.standing)));
    }
    figure
}

/// The finding: epsilon at the first and at the last number of steps.
fn steps_title(curve: &Curve) -> String {
    let ends: Vec<(u64, f64)> = curve
        .line
        .points
        .iter()
        .filter_map(|point| match *point {
            CurvePoint::Steps { steps, upper: Some(upper), .. } => Some((steps, upper)),
            _ => None,
        })
        .collect();
    match (ends.first(), ends.last()) {
        (Some(first), Some(last)) if first.0 < last.0 => format!(
            "{}: epsilon is {} after {} step{} and {} after {}",
            curve.line.lens,
            AtMost::new(first.1),
            first.0,
            if first.0 == 1 { "" } else { "s" },
            AtMost::new(last.1),
            last.0
        ),
        _ => "Epsilon against the number of steps".into(),
    }
}
