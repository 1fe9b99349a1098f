//! Where everything goes: heading, legend, plot, axes and caption from top to bottom; axis
//! labels, plot, and the labels at line ends from left to right.

use crate::domain::{Which, axis_scale};
use crate::frame::{Frame, Rect};
use crate::label::Label;
use crate::options::Options;
use crate::placement::spread_out;
use crate::ramp::Colouring;
use crate::summary::omitted;
use crate::text;
use crate::ticks::{Tick, ticks};
use vocabulary::Figure;
use vocabulary::figure::{Axis, Heat, Labels, Mark, Point, Scale, Series};

pub(crate) const MARGIN: f64 = 16.0;
pub(crate) const TITLE: (f64, f64) = (15.0, 20.0);
pub(crate) const BODY: (f64, f64) = (12.0, 17.0);
pub(crate) const CAPTION: (f64, f64) = (11.5, 15.5);
pub(crate) const FOOT: (f64, f64) = (10.5, 14.0);
pub(crate) const TICK: f64 = 11.0;
pub(crate) const LEGEND_ROW: f64 = 19.0;
pub(crate) const SWATCH: f64 = 24.0;
/// Bold letters are wider.
const BOLD: f64 = 1.07;
const LEAST_PLOT: f64 = 120.0;
const LEAST_ROW: f64 = 24.0;

/// A name at the end of a line.
#[derive(Clone, Debug)]
pub(crate) struct EndLabel {
    pub(crate) series: usize,
    /// Where the line ends, in pixels.
    pub(crate) end: (f64, f64),
    /// The middle of the label's height.
    pub(crate) y: f64,
}

/// A name in the legend: its series, row and left edge.
#[derive(Clone, Debug)]
pub(crate) struct LegendItem {
    pub(crate) series: usize,
    pub(crate) row: usize,
    pub(crate) left: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) title: Vec<String>,
    pub(crate) subtitle: Vec<String>,
    pub(crate) legend: Vec<LegendItem>,
    pub(crate) legend_top: f64,
    pub(crate) frame: Frame,
    pub(crate) x_ticks: Vec<Tick>,
    pub(crate) y_ticks: Vec<Tick>,
    pub(crate) x_label: Vec<String>,
    pub(crate) y_label: String,
    pub(crate) caption: Vec<String>,
    pub(crate) footnotes: Vec<String>,
    pub(crate) end_labels: Vec<EndLabel>,
    /// Where the colour bar begins, from the left.
    pub(crate) colour_bar: Option<f64>,
}

/// The layout of a figure. Labels stand at line ends if the figure asks for it, or if it
/// leaves the choice and they stay close to their lines.
pub(crate) fn layout(figure: &Figure, options: &Options) -> Layout {
    match figure.labels {
        Labels::AtLineEnds => attempt(figure, options, true),
        Labels::Legend | Labels::None => attempt(figure, options, false),
        Labels::Auto => {
            let at_ends = attempt(figure, options, true);
            if readable(figure, &at_ends) { at_ends } else { attempt(figure, options, false) }
        }
    }
}

/// Whether each label at a line end is near its line and leaves room for the plot.
fn readable(figure: &Figure, layout: &Layout) -> bool {
    let area = &layout.frame.area;
    let lines = figure.series.iter().filter(|series| is_named_line(series)).count();
    lines == layout.end_labels.len()
        && area.width() >= 0.55 * layout.width
        && layout.end_labels.iter().all(|label| {
            let moved = (label.y - label.end.1).abs();
            moved <= 30.0 && area.right - label.end.0 <= 0.12 * area.width()
        })
}

fn attempt(figure: &Figure, options: &Options, at_ends: bool) -> Layout {
    let (width, asked_height) = options.size();
    let inner = width - 2.0 * MARGIN;
    let lines = |shown: bool, words: &str, size: f64| {
        if shown { text::wrap(words, size, inner) } else { Vec::new() }
    };
    let title = match options.heading {
        true => text::wrap_evenly(&figure.title, TITLE.0 * BOLD, inner),
        false => Vec::new(),
    };
    let subtitle = lines(options.heading, figure.subtitle.as_deref().unwrap_or(""), BODY.0);
    let caption = lines(options.caption, &figure.caption, CAPTION.0);
    let footnotes: Vec<String> =
        omitted(figure).iter().flat_map(|note| text::wrap(note, FOOT.0, inner)).collect();
    let (legend, legend_rows) = legend(figure, at_ends, inner);

    let mut top = MARGIN - 4.0;
    top += title.len() as f64 * TITLE.1 + subtitle.len() as f64 * BODY.1;
    if !title.is_empty() || !subtitle.is_empty() {
        top += 8.0;
    }
    let legend_top = top;
    top += legend_rows as f64 * LEGEND_ROW + if legend_rows > 0 { 4.0 } else { 0.0 };
    top += 6.0;

    let x_label = text::wrap(&axis_title(&figure.x), BODY.0, 0.8 * inner);
    let mut below = 22.0 + x_label.len() as f64 * BODY.1 + MARGIN - 6.0;
    if !caption.is_empty() {
        below += 8.0 + caption.len() as f64 * CAPTION.1;
    }
    below += footnotes.len() as f64 * FOOT.1;
    let rows = match &figure.y.scale {
        Scale::Category(names) => names.len().min(200) as f64 * LEAST_ROW,
        _ => 0.0,
    };
    let height = asked_height.max(top + below + LEAST_PLOT.max(rows)).ceil();
    let bottom = height - below;

    let x = axis_scale(figure, Which::X);
    let y = axis_scale(figure, Which::Y);
    let y_ticks = match &figure.y.scale {
        Scale::Category(names) => named_ticks(names, 0.36 * width),
        _ => ticks(&y, ((bottom - top) / 36.0) as usize, figure.y.format),
    };
    let y_label = text::shorten(&axis_title(&figure.y), BODY.0, bottom - top + 40.0);
    let mut left = MARGIN + widest(&y_ticks) + 8.0;
    if !y_label.is_empty() {
        left += BODY.1 + 2.0;
    }

    let mut right = MARGIN;
    let mut colour_bar = None;
    let named: Vec<usize> = (0..figure.series.len())
        .filter(|index| at_ends && is_named_line(&figure.series[*index]))
        .collect();
    let names = named.iter().map(|index| text::width(&figure.series[*index].label, BODY.0));
    let notes = ladder_notes(figure).map(|note| text::width(note, TICK) + 2.0);
    let beside = names.chain(notes).fold(0.0, f64::max);
    if beside > 0.0 {
        right = beside.min(0.32 * width) + 24.0;
    }
    if let Some(heat) = first_heat(figure) {
        let bar = bar_width(heat);
        colour_bar = Some(width - right - bar + 14.0);
        right += bar;
    }
    // The last label of the horizontal axis may reach past the plot.
    right = right.max(MARGIN + 10.0);

    let area = Rect { left, top, right: (width - right).max(left + 40.0), bottom };
    // A name of a column gives way to its neighbour rather than being cut short.
    let x_ticks = match &figure.x.scale {
        Scale::Category(names) => named_ticks(names, 0.33 * area.width()),
        _ => ticks(&x, (area.width() / 64.0) as usize, figure.x.format),
    };
    let x_ticks =
        without_overlaps(x_ticks, |value| x.unit(value).map_or(0.0, |unit| unit * area.width()));
    let frame = Frame { area, x, y };
    let end_labels = end_labels(figure, &frame, &named);
    Layout {
        width,
        height,
        title,
        subtitle,
        legend,
        legend_top,
        frame,
        x_ticks,
        y_ticks,
        x_label,
        y_label,
        caption,
        footnotes,
        end_labels,
        colour_bar,
    }
}

fn axis_title(axis: &Axis) -> String {
    match axis.unit.as_deref() {
        None | Some("") => axis.label.clone(),
        Some(unit) if axis.label.is_empty() => unit.to_string(),
        Some(unit) => format!("{} ({unit})", axis.label),
    }
}

fn widest(ticks: &[Tick]) -> f64 {
    let widths = ticks.iter().filter_map(|tick| tick.label.as_ref());
    widths.map(|label| label.width(TICK)).fold(0.0, f64::max)
}

fn named_ticks(names: &[String], limit: f64) -> Vec<Tick> {
    let named = names.iter().enumerate();
    named
        .map(|(index, name)| Tick {
            at: index as f64,
            label: Some(Label::plain(text::shorten(name, TICK, limit.max(2.0 * TICK)))),
        })
        .collect()
}

/// Takes the label off every other labelled tick until none touch.
fn without_overlaps(mut ticks: Vec<Tick>, place: impl Fn(f64) -> f64) -> Vec<Tick> {
    loop {
        let mut spans = ticks.iter().filter_map(|tick| {
            let half = 0.5 * tick.label.as_ref()?.width(TICK) + 4.0;
            let middle = place(tick.at);
            Some((middle - half, middle + half))
        });
        let mut end = f64::NEG_INFINITY;
        let touching = spans.any(|(from, to)| {
            let touches = from < end;
            end = to;
            touches
        });
        if !touching {
            return ticks;
        }
        let labelled = ticks.iter_mut().filter(|tick| tick.label.is_some());
        for (index, tick) in labelled.enumerate() {
            if index % 2 == 1 {
                tick.label = None;
            }
        }
    }
}

/// A line that wants its name beside it.
fn is_named_line(series: &Series) -> bool {
    matches!(series.mark, Mark::Line(_) | Mark::Step(_)) && !series.label.trim().is_empty()
}

fn in_legend(figure: &Figure, series: &Series, at_ends: bool) -> bool {
    if series.label.trim().is_empty() || figure.labels == Labels::None {
        return false;
    }
    match &series.mark {
        Mark::Line(_) | Mark::Step(_) => !at_ends,
        Mark::Scatter(_) | Mark::Band { .. } | Mark::Bars { .. } | Mark::Ladder(_) => true,
        _ => false,
    }
}

/// Names in rows, left to right, and the count of rows.
fn legend(figure: &Figure, at_ends: bool, inner: f64) -> (Vec<LegendItem>, usize) {
    let (mut row, mut left) = (0, 0.0);
    let mut items = Vec::new();
    for (index, series) in figure.series.iter().enumerate() {
        if !in_legend(figure, series, at_ends) {
            continue;
        }
        let width = SWATCH + 7.0 + text::width(&series.label, BODY.0);
        if left > 0.0 && left + width > inner {
            row += 1;
            left = 0.0;
        }
        items.push(LegendItem { series: index, row, left: MARGIN + left });
        left += width + 18.0;
    }
    let rows = if items.is_empty() { 0 } else { row + 1 };
    (items, rows)
}

fn end_labels(figure: &Figure, frame: &Frame, named: &[usize]) -> Vec<EndLabel> {
    let near = frame.area.grown(0.5);
    let ends: Vec<(usize, (f64, f64))> = named
        .iter()
        .filter_map(|&index| {
            let points: &[Point] = match &figure.series[index].mark {
                Mark::Line(points) | Mark::Step(points) => points,
                _ => &[],
            };
            let mut places = points.iter().filter_map(|point| frame.place(point));
            let last = places.rfind(|place| near.contains(*place))?;
            Some((index, last))
        })
        .collect();
    let wanted: Vec<f64> = ends.iter().map(|(_, end)| end.1).collect();
    let heights = spread_out(&wanted, 15.0, frame.area.top + 4.0, frame.area.bottom - 4.0);
    let labels = ends.into_iter().zip(heights);
    labels.map(|((series, end), y)| EndLabel { series, end, y }).collect()
}

fn ladder_notes(figure: &Figure) -> impl Iterator<Item = &str> {
    let ladders = figure.series.iter().filter_map(|series| match &series.mark {
        Mark::Ladder(rungs) => Some(rungs),
        _ => None,
    });
    ladders.flatten().filter_map(|rung| rung.note.as_deref())
}

pub(crate) fn first_heat(figure: &Figure) -> Option<&Heat> {
    figure.series.iter().find_map(|series| match &series.mark {
        Mark::Heat(heat) => Some(heat),
        _ => None,
    })
}

/// The ticks beside a colour bar.
pub(crate) fn bar_ticks(heat: &Heat) -> Vec<Tick> {
    let axis = Colouring::of(heat).axis();
    ticks(&axis, 6, vocabulary::figure::TickFormat::Auto)
}

fn bar_width(heat: &Heat) -> f64 {
    let label = if heat.colours.label.is_empty() { 0.0 } else { BODY.1 };
    14.0 + 12.0 + 7.0 + widest(&bar_ticks(heat)) + label
}
