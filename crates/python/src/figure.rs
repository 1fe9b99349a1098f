//! Figures as SVG.

use crate::errors::invalid;
use accounting::curve::Curve;
use pyo3::prelude::*;
use vocabulary::Figure;

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
