//! What a series can be.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// A number; `null`, as which JSON holds what is not finite, is NaN.
fn or_gap<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

fn or_gaps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let numbers = Vec::<Option<f64>>::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}

/// The geometry of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Points joined by straight lines.
    Line(Vec<Point>),
    /// A right-continuous step function.
    Step(Vec<Point>),
    /// Single points, with error bars where they are known.
    Scatter(Vec<Measurement>),
    /// The area between two curves, each with its own points.
    Band { lower: Vec<Point>, upper: Vec<Point> },
    /// A line across the whole figure.
    Rule {
        orientation: Orientation,
        #[serde(deserialize_with = "or_gap")]
        #[schemars(with = "Option<f64>")]
        at: f64,
    },
    /// A shaded stretch across the whole figure. A vertical span covers an interval of the
    /// horizontal axis, as a vertical rule is a point of it.
    Span {
        orientation: Orientation,
        #[serde(deserialize_with = "or_gap")]
        #[schemars(with = "Option<f64>")]
        from: f64,
        #[serde(deserialize_with = "or_gap")]
        #[schemars(with = "Option<f64>")]
        to: f64,
    },
    /// A point that the label names.
    Pin(Point),
    /// A histogram or bars. Vertical bars stand on the horizontal axis.
    Bars { orientation: Orientation, bars: Vec<Bar> },
    /// Dots with whiskers; the vertical axis names the rungs.
    Ladder(Vec<Rung>),
    /// A grid of coloured cells.
    Heat(Heat),
}

/// The direction in which a rule, a span or a bar runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Orientation {
    Horizontal,
    Vertical,
}

/// A place in the figure; in JSON the pair `[x, y]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "NullablePair", into = "NullablePair")]
#[schemars(with = "NullablePair")]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

type NullablePair = (Option<f64>, Option<f64>);

impl From<NullablePair> for Point {
    fn from((x, y): NullablePair) -> Point {
        Point { x: x.unwrap_or(f64::NAN), y: y.unwrap_or(f64::NAN) }
    }
}

impl From<Point> for NullablePair {
    fn from(point: Point) -> NullablePair {
        let finite = |value: f64| value.is_finite().then_some(value);
        (finite(point.x), finite(point.y))
    }
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Point {
        Point { x, y }
    }
}

/// Two ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Range {
    #[serde(deserialize_with = "or_gap")]
    #[schemars(with = "Option<f64>")]
    pub lower: f64,
    #[serde(deserialize_with = "or_gap")]
    #[schemars(with = "Option<f64>")]
    pub upper: f64,
}

/// A point with what is known about its error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    pub at: Point,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_range: Option<Range>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_range: Option<Range>,
}

impl Measurement {
    pub fn new(x: f64, y: f64) -> Measurement {
        Measurement { at: Point { x, y }, x_range: None, y_range: None }
    }

    pub fn x_range(mut self, lower: f64, upper: f64) -> Measurement {
        self.x_range = Some(Range { lower, upper });
        self
    }

    pub fn y_range(mut self, lower: f64, upper: f64) -> Measurement {
        self.y_range = Some(Range { lower, upper });
        self
    }
}

/// A bar from `base` to `value`, which covers `from..to` on the other axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    #[serde(deserialize_with = "or_gap")]
    #[schemars(with = "Option<f64>")]
    pub from: f64,
    #[serde(deserialize_with = "or_gap")]
    #[schemars(with = "Option<f64>")]
    pub to: f64,
    #[serde(default, deserialize_with = "or_gap")]
    #[schemars(with = "Option<f64>")]
    pub base: f64,
    #[serde(deserialize_with = "or_gap")]
    #[schemars(with = "Option<f64>")]
    pub value: f64,
}

/// One row of a ladder. An end that is absent while the other is given is unbounded: the
/// whisker then ends in an arrow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rung {
    /// Which name of the vertical axis, counted from 0.
    pub category: usize,
    /// Where the dot is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    /// Words beside the row: sample size, standing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Rung {
    /// A value without ends.
    pub fn exactly(category: usize, value: f64) -> Rung {
        Rung { category, value: Some(value), ..Rung::default() }
    }

    /// An interval, with the dot at `value`.
    pub fn between(category: usize, lower: f64, value: f64, upper: f64) -> Rung {
        Rung { lower: Some(lower), upper: Some(upper), ..Rung::exactly(category, value) }
    }

    /// A lower bound: the truth is here or to the right.
    pub fn at_least(category: usize, lower: f64) -> Rung {
        Rung { lower: Some(lower), ..Rung::exactly(category, lower) }
    }

    /// An upper bound: the truth is here or to the left.
    pub fn at_most(category: usize, upper: f64) -> Rung {
        Rung { upper: Some(upper), ..Rung::exactly(category, upper) }
    }

    pub fn note(mut self, note: impl Into<String>) -> Rung {
        self.note = Some(note.into());
        self
    }
}

/// Values over a grid. `values[row][column]` belongs to the cell between
/// `x_edges[column]..x_edges[column + 1]` and `y_edges[row]..y_edges[row + 1]`; an absent
/// value is an empty cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Heat {
    #[serde(deserialize_with = "or_gaps")]
    #[schemars(with = "Vec<Option<f64>>")]
    pub x_edges: Vec<f64>,
    #[serde(deserialize_with = "or_gaps")]
    #[schemars(with = "Vec<Option<f64>>")]
    pub y_edges: Vec<f64>,
    pub values: Vec<Vec<Option<f64>>>,
    #[serde(default)]
    pub colours: ColourScale,
    /// Values at which a contour line is drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_gaps")]
    #[schemars(with = "Vec<Option<f64>>")]
    pub contours: Vec<f64>,
    /// Whether the value is written in its cell where there is room.
    #[serde(default)]
    pub print_values: bool,
}

/// How values become colours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ColourScale {
    /// The name of the value, beside the colour bar.
    pub label: String,
    #[serde(default)]
    pub ramp: Ramp,
    /// Whether colours follow the logarithm of the value.
    #[serde(default)]
    pub log: bool,
    /// The values at the ends of the ramp; absent: the extremes of the grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Range>,
}

/// The order of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ramp {
    /// From light to dark, which also orders the cells in a grey print.
    #[default]
    Sequential,
    /// Two colours that meet in white at a value that means "no difference".
    Diverging {
        #[serde(deserialize_with = "or_gap")]
        #[schemars(with = "Option<f64>")]
        centre: f64,
    },
}
