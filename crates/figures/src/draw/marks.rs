//! The series themselves.

use super::Canvas;
use crate::css::line_classes;
use crate::frame::{Pixel, Rect};
use crate::geometry::{clipped, clipped_polygon, path, runs, stepped, thinned};
use crate::layout::TICK;
use crate::palette::{Look, Shape, name};
use crate::svg::{Anchor, number};
use crate::text::{self, escape};
use vocabulary::figure::{Bar, Hue, Mark, Measurement, Orientation, Point, Range, Rung};

/// The length of the arrow of a one-sided interval.
const ARROW: f64 = 26.0;

impl Canvas<'_> {
    pub(super) fn draw_series(&mut self) {
        for (index, series) in self.figure.series.iter().enumerate() {
            let look = self.looks[index];
            // Dots and rungs on the frame stay whole.
            let whole = matches!(series.mark, Mark::Scatter(_) | Mark::Ladder(_) | Mark::Pin(_));
            let clip =
                if whole { String::new() } else { format!(r#" clip-path="url(#{})""#, self.clip) };
            self.svg.raw(&format!("<g{clip}>"));
            if !series.label.is_empty() {
                self.svg.raw(&format!("<title>{}</title>", escape(&series.label)));
            }
            match &series.mark {
                Mark::Line(points) => self.draw_line(points, &look, false),
                Mark::Step(points) => self.draw_line(points, &look, true),
                Mark::Scatter(measurements) => self.draw_scatter(measurements, &look),
                Mark::Band { lower, upper } => self.draw_band(lower, upper, &look),
                Mark::Rule { orientation, at } => self.draw_rule(*orientation, *at, &look),
                Mark::Span { orientation, from, to } => {
                    self.draw_span(*orientation, *from, *to, &look)
                }
                Mark::Pin(point) => self.draw_pin(point, &look),
                Mark::Bars { orientation, bars } => self.draw_bars(*orientation, bars, &look),
                Mark::Ladder(rungs) => self.draw_ladder(index, rungs, &look),
                Mark::Heat(heat) => self.draw_heat(heat),
            }
            self.svg.raw("</g>");
        }
    }

    fn draw_line(&mut self, points: &[Point], look: &Look, steps: bool) {
        let frame = &self.layout.frame;
        let near = frame.area.grown(20.0);
        let mut data = String::new();
        for run in runs(points.iter().map(|point| frame.place(point))) {
            let run = if steps { stepped(&run) } else { run };
            let mut run = thinned(&run);
            if run.len() == 1 {
                // A single point between gaps is still seen, as a dot of the line's width.
                run.push(run[0]);
            }
            for piece in clipped(&run, &near) {
                data += &path(&piece);
                self.clutter.add_curve(&piece);
            }
        }
        self.svg.path(&line_classes("curve", look), &data);
    }

    fn draw_scatter(&mut self, measurements: &[Measurement], look: &Look) {
        let frame = &self.layout.frame;
        let near = frame.area.grown(0.5);
        let mut whiskers = String::new();
        let mut dots = Vec::new();
        for measurement in measurements {
            let Some((x, y)) = frame.place(&measurement.at) else { continue };
            if !near.contains((x, y)) {
                continue;
            }
            if let Some(Range { lower, upper }) = measurement.y_range
                && let (Some(from), Some(to)) = (frame.y_far(lower), frame.y_far(upper))
            {
                whiskers += &whisker((x, y), from, to, &frame.area, Orientation::Vertical);
            }
            if let Some(Range { lower, upper }) = measurement.x_range
                && let (Some(from), Some(to)) = (frame.x_far(lower), frame.x_far(upper))
            {
                whiskers += &whisker((x, y), from, to, &frame.area, Orientation::Horizontal);
            }
            dots.push((x, y));
        }
        let class = format!("whisker stroke-{}", name(look.hue));
        self.svg.path(&class, &whiskers);
        for dot in dots {
            self.draw_marker(dot, look);
            self.clutter.add_curve(&[dot]);
        }
    }

    /// A marker with a rim in the colour of the background, so that neighbours stay apart.
    pub(super) fn draw_marker(&mut self, (x, y): Pixel, look: &Look) {
        let class = if self.has_heat() && look.hue == Hue::Ink {
            "pin-on-heat".to_string()
        } else {
            format!("marker fill-{}", name(look.hue))
        };
        let polygon = |corners: [Pixel; 4]| {
            let corners = corners.map(|(dx, dy)| (x + dx, y + dy));
            path(&corners) + "Z"
        };
        match look.shape {
            Shape::Circle => {
                let (x, y) = (number(x), number(y));
                self.svg.raw(&format!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="3.9"/>"#));
            }
            Shape::Square => {
                let data = polygon([(-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)]);
                self.svg.path(&class, &data);
            }
            Shape::Diamond => {
                let data = polygon([(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)]);
                self.svg.path(&class, &data);
            }
            Shape::Triangle => {
                let data = polygon([(0.0, -4.8), (4.6, 3.6), (0.0, 3.6), (-4.6, 3.6)]);
                self.svg.path(&class, &data);
            }
        }
    }

    fn draw_band(&mut self, lower: &[Point], upper: &[Point], look: &Look) {
        let frame = &self.layout.frame;
        let edge = |points: &[Point]| {
            let places =
                points.iter().filter_map(|point| Some((frame.x(point.x)?, frame.y_far(point.y)?)));
            thinned(&places.collect::<Vec<_>>())
        };
        let mut outline = edge(upper);
        outline.extend(edge(lower).into_iter().rev());
        let cut = clipped_polygon(&outline, &frame.area.grown(20.0));
        if cut.len() > 2 {
            let class = format!("area fill-{}", name(look.hue));
            self.svg.path(&class, &(path(&cut) + "Z"));
        }
    }

    fn draw_rule(&mut self, orientation: Orientation, at: f64, look: &Look) {
        let frame = &self.layout.frame;
        let area = frame.area;
        let ends = match orientation {
            Orientation::Horizontal => frame.y(at).map(|y| [(area.left, y), (area.right, y)]),
            Orientation::Vertical => frame.x(at).map(|x| [(x, area.top), (x, area.bottom)]),
        };
        if let Some([from, to]) = ends.filter(|[from, _]| area.grown(0.5).contains(*from)) {
            self.svg.line(&line_classes("rule", look), from, to);
            self.clutter.add_curve(&[from, to]);
        }
    }

    fn draw_span(&mut self, orientation: Orientation, from: f64, to: f64, look: &Look) {
        let frame = &self.layout.frame;
        let area = frame.area;
        let corners = match orientation {
            Orientation::Horizontal => match (frame.y_far(from), frame.y_far(to)) {
                (Some(a), Some(b)) => Some(((area.left, a), (area.right, b))),
                _ => None,
            },
            Orientation::Vertical => match (frame.x_far(from), frame.x_far(to)) {
                (Some(a), Some(b)) => Some(((a, area.top), (b, area.bottom))),
                _ => None,
            },
        };
        if let Some((a, b)) = corners {
            let class = format!(r#"class="span fill-{}""#, name(look.hue));
            self.svg.rectangle(&class, held(a, &area), held(b, &area));
        }
    }

    fn draw_pin(&mut self, point: &Point, look: &Look) {
        let place = self.layout.frame.place(point);
        if let Some(place) = place.filter(|place| self.layout.frame.area.contains(*place)) {
            self.draw_marker(place, look);
            self.clutter.add_curve(&[place]);
        }
    }

    fn draw_bars(&mut self, orientation: Orientation, bars: &[Bar], look: &Look) {
        let frame = &self.layout.frame;
        let area = frame.area.grown(20.0);
        let class = format!(r#"class="bar fill-{}""#, name(look.hue));
        let mut outline = String::new();
        let mut end: Option<Pixel> = None;
        for bar in bars {
            let corners = match orientation {
                Orientation::Vertical => [
                    (frame.x_far(bar.from), frame.y_far(bar.base)),
                    (frame.x_far(bar.to), frame.y_far(bar.value)),
                ],
                Orientation::Horizontal => [
                    (frame.x_far(bar.base), frame.y_far(bar.from)),
                    (frame.x_far(bar.value), frame.y_far(bar.to)),
                ],
            };
            let [(Some(x0), Some(y0)), (Some(x1), Some(y1))] = corners else { continue };
            let (from, to) = (held((x0, y0), &area), held((x1, y1), &area));
            if from.0 == to.0 || from.1 == to.1 {
                // An empty bin still moves the outline down to its base.
                if orientation == Orientation::Vertical && end.is_some() {
                    outline += &format!("V{}", number(from.1));
                    end = None;
                }
                continue;
            }
            self.svg.rectangle(&class, from, to);
            match orientation {
                Orientation::Vertical => {
                    let joined = end.is_some_and(|(x, _)| (x - from.0).abs() < 0.01);
                    if !joined {
                        if end.is_some() {
                            outline += &format!("V{}", number(from.1));
                        }
                        outline += &format!("M{} {}", number(from.0), number(from.1));
                    }
                    outline += &format!("V{}H{}", number(to.1), number(to.0));
                    end = Some((to.0, from.1));
                    self.clutter.add_curve(&[from, (from.0, to.1), to]);
                }
                Orientation::Horizontal => {
                    outline += &path(&[from, (to.0, from.1), to, (from.0, to.1)]);
                    self.clutter.add_curve(&[from, (to.0, from.1), to, (from.0, to.1)]);
                }
            }
        }
        if let Some((_, base)) = end {
            outline += &format!("V{}", number(base));
        }
        self.svg.path(&line_classes("outline", look), &outline);
    }

    fn draw_ladder(&mut self, series: usize, rungs: &[Rung], look: &Look) {
        let area = self.layout.frame.area;
        let offset = self.rung_offset(series);
        for rung in rungs {
            let frame = &self.layout.frame;
            let Some(y) = frame.y(rung.category as f64).map(|y| y + offset) else { continue };
            if !(area.top..=area.bottom).contains(&y) {
                continue;
            }
            let end = |value: Option<f64>| {
                let x = value.and_then(|value| frame.x_far(value));
                x.map(|x| x.clamp(area.left, area.right))
            };
            let hue = name(look.hue);
            let class = format!("whisker stroke-{hue}");
            let mut data = String::new();
            match (end(rung.lower), end(rung.upper)) {
                (Some(lower), Some(upper)) => {
                    data += &whisker((lower, y), lower, upper, &area, Orientation::Horizontal);
                }
                (Some(lower), None) => data += &arrow(lower, y, (lower + ARROW).min(area.right)),
                (None, Some(upper)) => data += &arrow(upper, y, (upper - ARROW).max(area.left)),
                (None, None) => {}
            }
            self.svg.path(&class, &data);
            let dot = rung.value.and_then(|value| self.layout.frame.x(value));
            if let Some(x) = dot.filter(|x| (area.left..=area.right).contains(x)) {
                self.draw_marker((x, y), look);
                self.clutter.add_curve(&[(x - 8.0, y), (x + 8.0, y)]);
            }
            if let Some(note) = &rung.note {
                let limit = self.layout.width - area.right - 16.0;
                let words = text::shorten(note, TICK, limit);
                let at = (area.right + 12.0, y + 3.8);
                self.svg.text("tick quiet", at, Anchor::Start, &words);
            }
        }
    }

    /// Ladders that share the rows stand a little above each other.
    fn rung_offset(&self, series: usize) -> f64 {
        let of = |index: usize| match &self.figure.series[index].mark {
            Mark::Ladder(rungs) => Some(rungs),
            _ => None,
        };
        let ladders: Vec<usize> =
            (0..self.figure.series.len()).filter(|index| of(*index).is_some()).collect();
        let rows = |index: usize| of(index).into_iter().flatten().map(|rung| rung.category);
        let shared = ladders.iter().any(|&a| {
            ladders.iter().any(|&b| a < b && rows(a).any(|row| rows(b).any(|other| other == row)))
        });
        if !shared {
            return 0.0;
        }
        let rank = ladders.iter().position(|index| *index == series).unwrap_or(0);
        let spacing = 9.0f64.min(18.0 / ladders.len() as f64);
        (rank as f64 - 0.5 * (ladders.len() - 1) as f64) * spacing
    }
}

fn held((x, y): Pixel, area: &Rect) -> Pixel {
    (x.clamp(area.left, area.right), y.clamp(area.top, area.bottom))
}

/// An error bar with caps where it ends inside the area.
fn whisker((x, y): Pixel, from: f64, to: f64, area: &Rect, orientation: Orientation) -> String {
    let (near, far) = (from.min(to), from.max(to));
    match orientation {
        Orientation::Vertical => {
            let (top, bottom) =
                (near.clamp(area.top, area.bottom), far.clamp(area.top, area.bottom));
            let mut data = path(&[(x, top), (x, bottom)]);
            for end in [near, far] {
                if (area.top..=area.bottom).contains(&end) {
                    data += &path(&[(x - 3.0, end), (x + 3.0, end)]);
                }
            }
            data
        }
        Orientation::Horizontal => {
            let (left, right) =
                (near.clamp(area.left, area.right), far.clamp(area.left, area.right));
            let mut data = path(&[(left, y), (right, y)]);
            for end in [near, far] {
                if (area.left..=area.right).contains(&end) {
                    data += &path(&[(end, y - 3.5), (end, y + 3.5)]);
                }
            }
            data
        }
    }
}

/// A bound: the truth lies in the direction of the arrow.
fn arrow(from: f64, y: f64, to: f64) -> String {
    let back = if to > from { -4.5 } else { 4.5 };
    path(&[(from, y), (to, y)]) + &path(&[(to + back, y - 3.5), (to, y), (to + back, y + 3.5)])
}
