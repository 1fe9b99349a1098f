//! Curves as packed columns of doubles, which NumPy reads without copying, and figures as SVG.

use crate::account::lens_names;
use crate::errors::{from_accounting, invalid};
use crate::interruptible::{self, AtInterrupt};
use crate::run::{Run, choice};
use accounting::curve::{Curve, CurveKind, CurveRequest, Point};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use vocabulary::{Direction, Figure};

const KINDS: &[(&str, CurveKind)] = &[
    ("tradeoff", CurveKind::Tradeoff),
    ("profile", CurveKind::Profile),
    ("steps", CurveKind::Steps),
];
const DIRECTIONS: &[(&str, Direction)] =
    &[("both", Direction::Both), ("add", Direction::Add), ("remove", Direction::Remove)];

/// A curve for every lens: `(lines, warnings, document)`, each line being
/// `(lens, standing, direction, x, y, lower, upper)` with columns as bytes.
#[pyfunction]
#[pyo3(signature = (run, kind, lenses, direction, delta, at, points))]
#[expect(clippy::too_many_arguments, reason = "the keywords of the Python function")]
pub(crate) fn curve<'py>(
    py: Python<'py>,
    run: &Bound<'py, Run>,
    kind: &str,
    lenses: Vec<String>,
    direction: &str,
    delta: Option<f64>,
    at: Vec<f64>,
    points: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    let request = CurveRequest {
        kind: choice(py, "kind", Some(kind), KINDS)?.unwrap_or(CurveKind::Tradeoff),
        lenses: lens_names(py, &lenses)?,
        direction: choice(py, "direction", Some(direction), DIRECTIONS)?.unwrap_or(Direction::Both),
        delta,
        at,
        points,
    };
    let run = run.get().resolved.run.clone();
    let work = move || accounting::curve::curve(&run, &request);
    let answer = interruptible::run(py, &AtInterrupt::Abandon, work)?;
    let curve = answer.map_err(|error| from_accounting(py, &error))?;
    let mut lines = Vec::new();
    for line in curve.lines() {
        let numbers: Vec<[f64; 4]> = line.points.iter().map(numbers).collect();
        let column = |index: usize| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|row| row[index].to_ne_bytes()).collect();
            PyBytes::new(py, &bytes)
        };
        lines.push((
            line.lens.as_str(),
            line.standing.as_str(),
            line.direction.as_str(),
            (column(0), column(1), column(2), column(3)),
        ));
    }
    let document = serde_json::to_string(&curve).expect("a curve is plain data");
    (lines, &curve.warnings, document).into_pyobject(py)
}

fn numbers(point: &Point) -> [f64; 4] {
    let (x, y) = point.coordinates();
    let (lower, upper) = match *point {
        Point::Tradeoff { lower, upper, .. } | Point::Profile { lower, upper, .. } => {
            (lower, upper)
        }
        Point::Steps { lower, upper, .. } => {
            (lower.unwrap_or(f64::INFINITY), upper.unwrap_or(f64::INFINITY))
        }
    };
    [x, y, lower, upper]
}

/// The figure of a curve's document, as a figure document.
#[pyfunction]
pub(crate) fn curve_figure(py: Python<'_>, document: &str) -> PyResult<String> {
    let curve: Curve =
        serde_json::from_str(document).map_err(|error| invalid(py, &error.to_string()))?;
    let figure = accounting::curve::figure(&curve);
    Ok(serde_json::to_string(&figure).expect("a figure is plain data"))
}

/// The SVG of a figure's document.
#[pyfunction]
pub(crate) fn figure_svg(py: Python<'_>, document: &str) -> PyResult<String> {
    let figure: Figure =
        serde_json::from_str(document).map_err(|error| invalid(py, &error.to_string()))?;
    Ok(figures::to_svg(&figure, &figures::Options::default()))
}
