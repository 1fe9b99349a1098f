//! The table behind a figure, arranged as a person would: curves over the same places side by
//! side, a heat map as a grid, a ladder with its ends.

use std::collections::BTreeMap;
use vocabulary::figure::{Axis, Figure, Mark, Orientation, Scale};
use vocabulary::rounding::about;

/// Column names and rows of cells, all text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PageTable {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// One table for each kind of mark that a figure holds.
pub(crate) fn tables(figure: &Figure) -> Vec<PageTable> {
    let mut tables = Vec::new();
    tables.extend(curves(figure));
    tables.extend(bars(figure));
    tables.extend(ladder(figure));
    tables.extend(heat(figure));
    tables.extend(notes(figure));
    tables
}

/// A column: its name, and its value at each place.
type Column = (String, BTreeMap<u64, f64>);

/// Lines, steps, dots and bands over the union of their places.
fn curves(figure: &Figure) -> Option<PageTable> {
    let mut columns: Vec<Column> = Vec::new();
    for series in &figure.series {
        let mut add = |name: String, points: &mut dyn Iterator<Item = (f64, f64)>| {
            columns.push((name, points.map(|(x, y)| (key(x), y)).collect()));
        };
        let label = &series.label;
        match &series.mark {
            Mark::Line(points) | Mark::Step(points) => {
                add(label.clone(), &mut points.iter().map(|p| (p.x, p.y)));
            }
            Mark::Scatter(points) => {
                add(label.clone(), &mut points.iter().map(|m| (m.at.x, m.at.y)));
            }
            Mark::Band { lower, upper } => {
                add(format!("{label}, from"), &mut lower.iter().map(|p| (p.x, p.y)));
                add(format!("{label}, to"), &mut upper.iter().map(|p| (p.x, p.y)));
            }
            _ => {}
        }
    }
    if columns.is_empty() {
        return None;
    }
    let mut places: Vec<u64> =
        columns.iter().flat_map(|(_, values)| values.keys().copied()).collect();
    places.sort_unstable();
    places.dedup();
    let rows = places.iter().map(|place| {
        let mut row = vec![number(at(*place))];
        row.extend(
            columns
                .iter()
                .map(|(_, values)| values.get(place).copied().map_or_else(String::new, number)),
        );
        row
    });
    let mut names = vec![axis_name(&figure.x)];
    names.extend(columns.iter().map(|(name, _)| name.clone()));
    Some(PageTable { rows: rows.collect(), columns: names })
}

/// Numbers as keys in their order; NaN and both zeros have a place, too.
fn key(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

fn at(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

/// Histograms side by side; bars of a list with their names.
fn bars(figure: &Figure) -> Option<PageTable> {
    let mut all = figure.series.iter().filter_map(|series| match &series.mark {
        Mark::Bars { orientation, bars } => Some((series, *orientation, bars)),
        _ => None,
    });
    let (first, orientation, bars) = all.next()?;
    if orientation == Orientation::Horizontal {
        let names = categories(&figure.y);
        let rows = bars.iter().map(|bar| {
            let place = (0.5 * (bar.from + bar.to)).round().max(0.0) as usize;
            let name = names.get(place).cloned().unwrap_or_default();
            vec![name, number(bar.base), number(bar.value)]
        });
        let columns = vec![String::new(), "from".into(), axis_name(&figure.x)];
        return Some(PageTable { rows: rows.collect(), columns });
    }
    let mut columns = vec!["from".into(), "to".into(), first.label.clone()];
    let mut rows: Vec<Vec<String>> =
        bars.iter().map(|bar| vec![number(bar.from), number(bar.to), number(bar.value)]).collect();
    for (series, _, bars) in all {
        columns.push(series.label.clone());
        for (row, bar) in rows.iter_mut().zip(bars) {
            row.push(number(bar.value));
        }
    }
    Some(PageTable { columns, rows })
}

fn ladder(figure: &Figure) -> Option<PageTable> {
    let names = categories(&figure.y);
    let mut rungs: Vec<_> = figure
        .series
        .iter()
        .filter_map(|series| match &series.mark {
            Mark::Ladder(rungs) => Some(rungs),
            _ => None,
        })
        .flatten()
        .collect();
    if rungs.is_empty() {
        return None;
    }
    rungs.sort_by_key(|rung| rung.category);
    let end = |value: Option<f64>| value.map_or_else(String::new, number);
    let rows = rungs.iter().map(|rung| {
        vec![
            names.get(rung.category).cloned().unwrap_or_default(),
            end(rung.lower),
            end(rung.value),
            end(rung.upper),
            rung.note.clone().unwrap_or_default(),
        ]
    });
    let columns = ["", "at least", "value", "at most", "note"].map(String::from).to_vec();
    Some(PageTable { rows: rows.collect(), columns })
}

/// Rows are the vertical axis, top to bottom as drawn; cells are named by their centres.
fn heat(figure: &Figure) -> Option<PageTable> {
    let heat = figure.series.iter().find_map(|series| match &series.mark {
        Mark::Heat(heat) => Some(heat),
        _ => None,
    })?;
    let centre = |axis: &Axis, pair: &[f64]| match axis.scale {
        Scale::Log10 => number((pair[0] * pair[1]).sqrt()),
        _ => number(0.5 * (pair[0] + pair[1])),
    };
    let mut columns = vec![format!("{} \\ {}", axis_name(&figure.y), axis_name(&figure.x))];
    columns.extend(heat.x_edges.windows(2).map(|pair| centre(&figure.x, pair)));
    let mut rows: Vec<Vec<String>> = heat
        .y_edges
        .windows(2)
        .zip(&heat.values)
        .map(|(pair, values)| {
            let mut row = vec![centre(&figure.y, pair)];
            row.extend(values.iter().map(|value| value.map_or_else(String::new, number)));
            row
        })
        .collect();
    rows.reverse();
    Some(PageTable { columns, rows })
}

/// Rules and pins, which the drawing names.
fn notes(figure: &Figure) -> Option<PageTable> {
    let rows: Vec<Vec<String>> = figure
        .series
        .iter()
        .filter_map(|series| {
            let (x, y) = match &series.mark {
                Mark::Rule { orientation: Orientation::Horizontal, at } => {
                    (String::new(), number(*at))
                }
                Mark::Rule { orientation: Orientation::Vertical, at } => {
                    (number(*at), String::new())
                }
                Mark::Pin(point) => (number(point.x), number(point.y)),
                _ => return None,
            };
            Some(vec![series.label.clone(), x, y])
        })
        .collect();
    let columns = vec!["mark".into(), axis_name(&figure.x), axis_name(&figure.y)];
    (!rows.is_empty()).then_some(PageTable { columns, rows })
}

fn categories(axis: &Axis) -> Vec<String> {
    match &axis.scale {
        Scale::Category(names) => names.clone(),
        _ => Vec::new(),
    }
}

fn axis_name(axis: &Axis) -> String {
    axis.label.clone()
}

/// Five digits to the nearest; the exact numbers are in the report's JSON.
fn number(value: f64) -> String {
    if value.is_finite() && value.fract() == 0.0 && value.abs() < 1e7 {
        return format!("{value}");
    }
    about(value, 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocabulary::figure::Series;

    #[test]
    fn curves_over_the_same_places_stand_side_by_side() {
        let figure = Figure::new("", "")
            .x(Axis::linear("x"))
            .with(Series::line("a", [(-1.0, 0.5), (2.0, 4.0)]))
            .with(Series::band("b", [(2.0, 0.25, f64::INFINITY)]))
            .with(Series::pin("here", 2.0, 3.0));
        let tables = tables(&figure);
        assert_eq!(tables[0].columns, ["x", "a", "b, from", "b, to"]);
        assert_eq!(tables[0].rows, [["-1", "0.50000", "", ""], ["2", "4", "0.25000", "inf"]]);
        assert_eq!(tables[1].rows, [["here", "2", "3"]]);
    }
}
