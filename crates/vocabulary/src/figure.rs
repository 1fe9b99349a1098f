//! A figure as data: what is shown, never how it is drawn.
//!
//! A figure says its finding in the title and how to read it in the caption. It holds two
//! [`Axis`] and a list of [`Series`]; each series is one [`Mark`] with a label. Everything a
//! drawing needs is here, so that an SVG, a table and a live page show the same figure.
//!
//! Coordinates are in the units of the axes. On an axis with [`Scale::Category`] the
//! coordinate of the i-th name is `i`. A coordinate that is not finite is written as `null`
//! in JSON, is read back as NaN, and is a gap: a line is interrupted there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod mark;

pub use mark::{Bar, ColourScale, Heat, Mark, Measurement, Orientation, Point, Ramp, Range, Rung};

/// The version of the serialised figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FigureSchema {
    #[default]
    #[serde(rename = "dosimeter.figure/1")]
    V1,
}

/// One figure.
///
/// ```
/// use vocabulary::figure::{Axis, Figure, Series};
///
/// let figure = Figure::new("Leakage grows like the square root of the steps", "Lower is better.")
///     .x(Axis::log("steps"))
///     .y(Axis::log("epsilon").domain(0.1, 10.0))
///     .with(Series::line("composition", [(1.0, 0.2), (100.0, 2.0)]));
/// let json = serde_json::to_string(&figure).unwrap();
/// assert!(json.starts_with(r#"{"schema":"dosimeter.figure/1","#));
/// assert_eq!(serde_json::from_str::<Figure>(&json).unwrap(), figure);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    pub schema: FigureSchema,
    /// The finding, as a sentence.
    pub title: String,
    /// What was looked at: the run, the delta, the number of trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<String>,
    /// How to read the figure, in one sentence.
    pub caption: String,
    pub x: Axis,
    pub y: Axis,
    #[serde(default)]
    pub labels: Labels,
    /// In drawing order: the first lies at the bottom.
    pub series: Vec<Series>,
}

impl Figure {
    /// A figure without series, on linear axes without labels.
    pub fn new(title: impl Into<String>, caption: impl Into<String>) -> Figure {
        Figure {
            schema: FigureSchema::V1,
            title: title.into(),
            subtitle: None,
            caption: caption.into(),
            x: Axis::linear(""),
            y: Axis::linear(""),
            labels: Labels::Auto,
            series: Vec::new(),
        }
    }

    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Figure {
        self.subtitle = Some(subtitle.into());
        self
    }

    pub fn x(mut self, axis: Axis) -> Figure {
        self.x = axis;
        self
    }

    pub fn y(mut self, axis: Axis) -> Figure {
        self.y = axis;
        self
    }

    pub fn labels(mut self, labels: Labels) -> Figure {
        self.labels = labels;
        self
    }

    /// Adds a series on top of the others.
    pub fn with(mut self, series: Series) -> Figure {
        self.series.push(series);
        self
    }
}

/// Where the names of series stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Labels {
    /// At the ends of the lines where that is readable, otherwise in a legend.
    #[default]
    Auto,
    AtLineEnds,
    Legend,
    None,
}

/// How coordinates are spread along an axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    #[default]
    Linear,
    /// Logarithm to base 10; coordinates at or below 0 have no place on it.
    Log10,
    /// Quantiles of the standard normal: for rates in (0, 1), on which the trade-off curve
    /// of a Gaussian is a straight line.
    Probit,
    /// Names side by side; on a vertical axis the first is at the top.
    Category(Vec<String>),
}

/// How the numbers at the ticks are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TickFormat {
    /// Plain numbers, or powers of ten where plain numbers would be long.
    #[default]
    Auto,
    /// 0.25 is written 25%.
    Percent,
}

/// One axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    #[serde(default)]
    pub scale: Scale,
    /// What is shown; absent: what the series need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Range>,
    #[serde(default)]
    pub format: TickFormat,
}

impl Axis {
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), ..Axis::default() }
    }

    pub fn log(label: impl Into<String>) -> Axis {
        Axis { scale: Scale::Log10, ..Axis::linear(label) }
    }

    pub fn probit(label: impl Into<String>) -> Axis {
        Axis { scale: Scale::Probit, ..Axis::linear(label) }
    }

    pub fn category<N: Into<String>>(
        label: impl Into<String>,
        names: impl IntoIterator<Item = N>,
    ) -> Axis {
        Axis {
            scale: Scale::Category(names.into_iter().map(Into::into).collect()),
            ..Axis::linear(label)
        }
    }

    pub fn unit(mut self, unit: impl Into<String>) -> Axis {
        self.unit = Some(unit.into());
        self
    }

    pub fn domain(mut self, lower: f64, upper: f64) -> Axis {
        self.domain = Some(Range { lower, upper });
        self
    }

    pub fn percent(mut self) -> Axis {
        self.format = TickFormat::Percent;
        self
    }
}

/// The pattern of a line. It carries meaning in print: solid for proven, dashed for
/// heuristic, dotted for an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stroke {
    Solid,
    LongDash,
    Dashed,
    DashDot,
    Dotted,
}

/// The colour of a series, by role in a palette that colour-blind readers can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hue {
    Blue,
    Vermilion,
    Green,
    Purple,
    Orange,
    Sky,
    /// The colour of the text.
    Ink,
    /// For references that should stay in the background.
    Muted,
}

/// One mark with its name and look. An empty label is not listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Series {
    pub label: String,
    /// Absent: the next colour that no series has asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hue: Option<Hue>,
    /// Absent: the next pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stroke: Option<Stroke>,
    pub mark: Mark,
}

impl Series {
    pub fn new(label: impl Into<String>, mark: Mark) -> Series {
        Series { label: label.into(), hue: None, stroke: None, mark }
    }

    /// Points joined by straight lines.
    pub fn line(label: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series::new(label, Mark::Line(points.into_iter().map(Into::into).collect()))
    }

    /// A right-continuous step function: each value holds until the next point.
    pub fn step(label: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series::new(label, Mark::Step(points.into_iter().map(Into::into).collect()))
    }

    /// Single points without error bars.
    pub fn scatter(
        label: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Series {
        let measurements = points.into_iter().map(|(x, y)| Measurement::new(x, y));
        Series::new(label, Mark::Scatter(measurements.collect()))
    }

    /// The area between a lower and an upper curve, given as (x, lower, upper).
    pub fn band(
        label: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64, f64)>,
    ) -> Series {
        let points = points.into_iter().collect::<Vec<_>>();
        let curve = |of: fn(&(f64, f64, f64)) -> f64| {
            points.iter().map(|p| Point { x: p.0, y: of(p) }).collect()
        };
        Series::new(label, Mark::Band { lower: curve(|p| p.1), upper: curve(|p| p.2) })
    }

    /// A horizontal line across the whole figure, named beside it.
    pub fn horizontal_rule(label: impl Into<String>, at: f64) -> Series {
        let orientation = Orientation::Horizontal;
        Series::new(label, Mark::Rule { orientation, at })
    }

    /// A vertical line across the whole figure, named beside it.
    pub fn vertical_rule(label: impl Into<String>, at: f64) -> Series {
        let orientation = Orientation::Vertical;
        Series::new(label, Mark::Rule { orientation, at })
    }

    /// A point with its words beside it.
    pub fn pin(text: impl Into<String>, x: f64, y: f64) -> Series {
        Series::new(text, Mark::Pin(Point { x, y }))
    }

    /// A histogram: (from, to, height) of each bin.
    pub fn histogram(
        label: impl Into<String>,
        bins: impl IntoIterator<Item = (f64, f64, f64)>,
    ) -> Series {
        let bars = bins.into_iter().map(|(from, to, value)| Bar { from, to, base: 0.0, value });
        Series::new(label, Mark::Bars { orientation: Orientation::Vertical, bars: bars.collect() })
    }

    /// Dots with whiskers on a vertical axis of names.
    pub fn ladder(label: impl Into<String>, rungs: impl IntoIterator<Item = Rung>) -> Series {
        Series::new(label, Mark::Ladder(rungs.into_iter().collect()))
    }

    pub fn hue(mut self, hue: Hue) -> Series {
        self.hue = Some(hue);
        self
    }

    pub fn stroke(mut self, stroke: Stroke) -> Series {
        self.stroke = Some(stroke);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_survives_json_as_null() {
        let figure = Figure::new("t", "c").with(Series::line("a", [(1.0, f64::INFINITY)]));
        let json = serde_json::to_string(&figure).unwrap();
        assert!(json.contains("[1.0,null]"), "{json}");
        let back: Figure = serde_json::from_str(&json).unwrap();
        let Mark::Line(points) = &back.series[0].mark else { panic!("not a line: {back:?}") };
        assert!(points[0].x == 1.0 && points[0].y.is_nan());
    }

    #[test]
    fn unknown_keys_and_schemas_are_refused() {
        let json = serde_json::to_value(Figure::new("t", "c")).unwrap();
        let mut other = json.clone();
        other["schema"] = "dosimeter.figure/2".into();
        assert!(serde_json::from_value::<Figure>(other).is_err());
        let mut other = json;
        other["colour"] = "red".into();
        assert!(serde_json::from_value::<Figure>(other).is_err());
    }

    #[test]
    fn every_mark_round_trips() {
        let figure = Figure::new("t", "c")
            .subtitle("s")
            .x(Axis::probit("p").unit("u").domain(0.1, 0.9))
            .y(Axis::category("c", ["a", "b"]).percent())
            .labels(Labels::Legend)
            .with(Series::step("s", [(0.0, 1.0)]).hue(Hue::Ink))
            .with(Series::band("b", [(0.0, 1.0, 2.0)]).stroke(Stroke::Dotted))
            .with(Series::scatter("s", [(0.0, 1.0)]))
            .with(Series::horizontal_rule("h", 1.0))
            .with(Series::vertical_rule("v", 1.0))
            .with(Series::pin("p", 1.0, 2.0))
            .with(Series::histogram("h", [(0.0, 1.0, 2.0)]))
            .with(Series::ladder("l", [Rung::at_least(1, 2.0).note("n")]))
            .with(Series::new(
                "span",
                Mark::Span { orientation: Orientation::Vertical, from: 0.0, to: 1.0 },
            ))
            .with(Series::new(
                "heat",
                Mark::Heat(Heat {
                    x_edges: vec![0.0, 1.0],
                    y_edges: vec![0.0, 1.0],
                    values: vec![vec![None]],
                    colours: ColourScale::default(),
                    contours: vec![0.5],
                    print_values: true,
                }),
            ));
        let json = serde_json::to_string(&figure).unwrap();
        assert_eq!(serde_json::from_str::<Figure>(&json).unwrap(), figure);
    }
}
