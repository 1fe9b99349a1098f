//! The table behind a figure: one row per point, cell, bar or rung.

use formats::csv::line;
use vocabulary::Figure;
use vocabulary::figure::{Axis, Mark, Orientation, Range, Scale};

/// The columns in order; those that a figure does not use are left out.
const COLUMNS: [&str; 10] =
    ["series", "mark", "x", "x_lower", "x_upper", "y", "y_lower", "y_upper", "value", "note"];

type Row = [String; COLUMNS.len()];

/// The figure's data as CSV with a header (RFC 4180, lines end in `\n`). Numbers are not
/// rounded; a coordinate on an axis of names is the name.
///
/// ```
/// use vocabulary::figure::{Figure, Series};
/// let figure = Figure::new("", "").with(Series::line("a, b", [(1.0, 1e-20)]));
/// assert_eq!(figures::to_csv(&figure), "series,mark,x,y\n\"a, b\",line,1,1e-20\n");
/// ```
pub fn to_csv(figure: &Figure) -> String {
    let rows = rows(figure);
    let used: Vec<usize> = (0..COLUMNS.len())
        .filter(|column| *column < 2 || rows.iter().any(|row| !row[*column].is_empty()))
        .collect();
    let mut csv = line(used.iter().map(|column| COLUMNS[*column]));
    for row in rows {
        csv.push_str(&line(used.iter().map(|column| &row[*column])));
    }
    csv
}

fn rows(figure: &Figure) -> Vec<Row> {
    let x = |value: f64| coordinate(&figure.x, value);
    let y = |value: f64| coordinate(&figure.y, value);
    let mut rows: Vec<Row> = Vec::new();
    for series in &figure.series {
        let mut add = |mark: &str, cells: &[(&str, String)]| {
            let mut row = Row::default();
            row[0] = series.label.clone();
            row[1] = mark.into();
            for (name, cell) in cells {
                if let Some(column) = COLUMNS.iter().position(|column| column == name) {
                    row[column] = cell.clone();
                }
            }
            rows.push(row);
        };
        match &series.mark {
            Mark::Line(points) => {
                for p in points {
                    add("line", &[("x", x(p.x)), ("y", y(p.y))]);
                }
            }
            Mark::Step(points) => {
                for p in points {
                    add("step", &[("x", x(p.x)), ("y", y(p.y))]);
                }
            }
            Mark::Scatter(measurements) => {
                for m in measurements {
                    let end = |range: Option<Range>, of: fn(Range) -> f64| {
                        range.map(of).map(number).unwrap_or_default()
                    };
                    add(
                        "scatter",
                        &[
                            ("x", x(m.at.x)),
                            ("y", y(m.at.y)),
                            ("x_lower", end(m.x_range, |range| range.lower)),
                            ("x_upper", end(m.x_range, |range| range.upper)),
                            ("y_lower", end(m.y_range, |range| range.lower)),
                            ("y_upper", end(m.y_range, |range| range.upper)),
                        ],
                    );
                }
            }
            Mark::Band { lower, upper } => {
                for p in lower {
                    add("band", &[("x", x(p.x)), ("y_lower", y(p.y))]);
                }
                for p in upper {
                    add("band", &[("x", x(p.x)), ("y_upper", y(p.y))]);
                }
            }
            Mark::Rule { orientation, at } => match orientation {
                Orientation::Horizontal => add("rule", &[("y", y(*at))]),
                Orientation::Vertical => add("rule", &[("x", x(*at))]),
            },
            Mark::Span { orientation, from, to } => match orientation {
                Orientation::Horizontal => {
                    add("span", &[("y_lower", y(*from)), ("y_upper", y(*to))])
                }
                Orientation::Vertical => add("span", &[("x_lower", x(*from)), ("x_upper", x(*to))]),
            },
            Mark::Pin(p) => add("pin", &[("x", x(p.x)), ("y", y(p.y))]),
            Mark::Bars { orientation, bars } => {
                for bar in bars {
                    let (from, to) = (number(bar.from), number(bar.to));
                    let (base, value) = (number(bar.base), number(bar.value));
                    match orientation {
                        Orientation::Vertical => add(
                            "bar",
                            &[("x_lower", from), ("x_upper", to), ("y_lower", base), ("y", value)],
                        ),
                        Orientation::Horizontal => add(
                            "bar",
                            &[("y_lower", from), ("y_upper", to), ("x_lower", base), ("x", value)],
                        ),
                    }
                }
            }
            Mark::Ladder(rungs) => {
                for rung in rungs {
                    let cell = |value: Option<f64>| value.map(number).unwrap_or_default();
                    add(
                        "ladder",
                        &[
                            ("y", y(rung.category as f64)),
                            ("x", cell(rung.value)),
                            ("x_lower", cell(rung.lower)),
                            ("x_upper", cell(rung.upper)),
                            ("note", rung.note.clone().unwrap_or_default()),
                        ],
                    );
                }
            }
            Mark::Heat(heat) => {
                for (row, y_edges) in heat.values.iter().zip(heat.y_edges.windows(2)) {
                    for (value, x_edges) in row.iter().zip(heat.x_edges.windows(2)) {
                        add(
                            "heat",
                            &[
                                ("x_lower", number(x_edges[0])),
                                ("x_upper", number(x_edges[1])),
                                ("y_lower", number(y_edges[0])),
                                ("y_upper", number(y_edges[1])),
                                ("value", value.map(number).unwrap_or_default()),
                            ],
                        );
                    }
                }
            }
        }
    }
    rows
}

fn coordinate(axis: &Axis, value: f64) -> String {
    if let Scale::Category(names) = &axis.scale
        && value >= 0.0
        && value.fract() == 0.0
        && let Some(name) = names.get(value as usize)
    {
        return name.clone();
    }
    number(value)
}

/// The shortest digits that read back as the same number.
fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-5..1e16).contains(&size) || !value.is_finite() {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocabulary::figure::{ColourScale, Heat, Measurement, Rung, Series};

    #[test]
    fn rungs_carry_the_names_of_their_rows() {
        let figure = Figure::new("", "")
            .y(Axis::category("", ["claim", "audit \"A\""]))
            .with(Series::ladder("", [Rung::at_least(1, 0.5).note("n = 10")]));
        assert_eq!(
            to_csv(&figure),
            "series,mark,x,x_lower,y,note\n,ladder,0.5,0.5,\"audit \"\"A\"\"\",n = 10\n"
        );
    }

    #[test]
    fn ranges_and_cells_have_their_columns() {
        let figure = Figure::new("", "")
            .with(Series::new(
                "m",
                Mark::Scatter(vec![Measurement::new(1.0, f64::INFINITY).y_range(0.5, 2.0)]),
            ))
            .with(Series::new(
                "h",
                Mark::Heat(Heat {
                    x_edges: vec![0.0, 1.0, 2.0],
                    y_edges: vec![0.0, 1.0],
                    values: vec![vec![Some(0.25), None]],
                    colours: ColourScale::default(),
                    contours: vec![],
                    print_values: false,
                }),
            ));
        assert_eq!(
            to_csv(&figure),
            "series,mark,x,x_lower,x_upper,y,y_lower,y_upper,value\n\
             m,scatter,1,,,inf,0.5,2,\n\
             h,heat,,0,1,,0,1,0.25\n\
             h,heat,,1,2,,0,1,\n"
        );
    }
}
