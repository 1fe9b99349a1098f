//! Words inside the plot: names of rules and spans, notes at pins, in the least crowded of
//! a few places.

use super::Canvas;
use crate::frame::{Frame, Pixel, Rect};
use crate::geometry::path;
use crate::layout::BODY;
use crate::palette::name;
use crate::svg::Anchor;
use crate::text;
use vocabulary::figure::{Mark, Orientation, Point, Series};

const LINE: f64 = 15.0;
/// Longer notes are broken, at the first width or, where that is less crowded, at the second.
const LONGEST: [f64; 2] = [190.0, 105.0];

/// A block of lines that stands somewhere.
#[derive(Clone)]
struct Block {
    lines: Vec<String>,
    anchor: Anchor,
    /// Baseline of the first line.
    at: Pixel,
    area: Rect,
}

impl Canvas<'_> {
    pub(super) fn draw_notes(&mut self) {
        self.draw_colour_bar();
        let area = self.layout.frame.area;
        for (index, series) in self.figure.series.iter().enumerate() {
            let candidates = candidates(series, &self.layout.frame);
            if candidates.is_empty() {
                continue;
            }
            let boxes: Vec<Rect> = candidates.iter().map(|block| block.area.grown(3.0)).collect();
            let block = &candidates[self.clutter.best(&boxes, &area)];
            self.clutter.add_box(block.area);
            let hue = name(self.looks[index].hue);
            let heat = self.has_heat();
            if let Mark::Pin(point) = &series.mark {
                let colour = if heat { "leader-on-heat".into() } else { format!("stroke-{hue}") };
                self.draw_leader(point, &block.area, &format!("leader {colour}"));
            }
            let class = if heat {
                self.draw_plate(&block.area.grown(2.5));
                "on-light".to_string()
            } else {
                format!("halo text-{hue}")
            };
            for (row, line) in block.lines.iter().enumerate() {
                let at = (block.at.0, block.at.1 + row as f64 * LINE);
                self.svg.text(&class, at, block.anchor, line);
            }
        }
    }

    /// A hairline from a pin to words that stand apart from it.
    fn draw_leader(&mut self, point: &Point, area: &Rect, class: &str) {
        let Some((x, y)) = self.layout.frame.place(point) else { return };
        let near = (x.clamp(area.left, area.right), y.clamp(area.top, area.bottom));
        let (dx, dy) = (near.0 - x, near.1 - y);
        let distance = dx.hypot(dy);
        if distance > 14.0 {
            let start = (x + 5.5 * dx / distance, y + 5.5 * dy / distance);
            self.svg.path(class, &path(&[start, near]));
        }
    }
}

/// Where the name of a series may stand inside the plot; nowhere for most.
fn candidates(series: &Series, frame: &Frame) -> Vec<Block> {
    let area = &frame.area;
    let breakings = LONGEST
        .map(|longest| text::wrap_evenly(&series.label, BODY.0, longest.min(area.width() - 16.0)));
    let lines = &breakings[0];
    if lines.is_empty() {
        return Vec::new();
    }
    let inside =
        |from: f64, to: f64, place: &dyn Fn(f64) -> Option<f64>| Some(place(from)?.min(place(to)?));
    match &series.mark {
        Mark::Rule { orientation, at } => {
            let place = match orientation {
                Orientation::Horizontal => frame.y(*at),
                Orientation::Vertical => frame.x(*at),
            };
            rule_places(lines, *orientation, place, area)
        }
        Mark::Span { orientation, from, to } => {
            let place = match orientation {
                Orientation::Horizontal => inside(*from, *to, &|value| frame.y_far(value))
                    .map(|top| top.max(area.top) + 18.0),
                Orientation::Vertical => {
                    inside(*from, *to, &|value| frame.x_far(value)).map(|left| left.max(area.left))
                }
            };
            // After the edge, that is: inside of the span.
            rule_places(lines, *orientation, place, area)
                .into_iter()
                .filter(|block| match orientation {
                    Orientation::Horizontal => true,
                    Orientation::Vertical => block.anchor == Anchor::Start,
                })
                .collect()
        }
        Mark::Pin(point) => {
            let place = frame.place(point);
            let broken = (breakings[1] != breakings[0]).then(|| &breakings[1]);
            let ways = std::iter::once(lines).chain(broken);
            ways.flat_map(|lines| pin_places(lines, place, area)).collect()
        }
        _ => Vec::new(),
    }
}

fn block(lines: &[String], anchor: Anchor, at: Pixel) -> Block {
    let widths = lines.iter().map(|line| text::width(line, BODY.0));
    let width = widths.fold(0.0, f64::max);
    let left = match anchor {
        Anchor::Start => at.0,
        Anchor::Middle => at.0 - 0.5 * width,
        Anchor::End => at.0 - width,
    };
    let area = Rect {
        left,
        right: left + width,
        top: at.1 - 10.0,
        bottom: at.1 + 3.0 + (lines.len() - 1) as f64 * LINE,
    };
    Block { lines: lines.to_vec(), anchor, at, area }
}

/// Beside a rule, at both ends and in between.
fn rule_places(
    lines: &[String],
    orientation: Orientation,
    place: Option<f64>,
    area: &Rect,
) -> Vec<Block> {
    let Some(place) = place else { return Vec::new() };
    let rows = (lines.len() - 1) as f64 * LINE;
    match orientation {
        Orientation::Horizontal => {
            if !(area.top..=area.bottom).contains(&place) {
                return Vec::new();
            }
            let middle = 0.5 * (area.left + area.right);
            let spots = [
                (area.right - 6.0, Anchor::End),
                (area.left + 8.0, Anchor::Start),
                (middle, Anchor::Middle),
            ];
            let above = spots.map(|(x, anchor)| block(lines, anchor, (x, place - 5.0 - rows)));
            let below = spots.map(|(x, anchor)| block(lines, anchor, (x, place + 14.0)));
            above.into_iter().chain(below).collect()
        }
        Orientation::Vertical => {
            if !(area.left..=area.right).contains(&place) {
                return Vec::new();
            }
            let heights = [0.0, 0.12, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0];
            let spots = heights.into_iter().flat_map(|part| {
                let room = area.height() - rows - 22.0;
                let y = area.top + 14.0 + part * room;
                [
                    block(lines, Anchor::Start, (place + 6.0, y)),
                    block(lines, Anchor::End, (place - 6.0, y)),
                ]
            });
            spots.collect()
        }
    }
}

/// Around a pin, near first.
fn pin_places(lines: &[String], place: Option<Pixel>, area: &Rect) -> Vec<Block> {
    let Some((x, y)) = place.filter(|place| area.contains(*place)) else { return Vec::new() };
    let rows = (lines.len() - 1) as f64 * LINE;
    let mut blocks = Vec::new();
    for distance in [9.0, 24.0, 44.0, 70.0] {
        let level = y + 4.0 - 0.5 * rows;
        let up = y - distance - rows;
        let down = y + distance + 8.0;
        blocks.extend([
            block(lines, Anchor::Start, (x + distance, level)),
            block(lines, Anchor::Start, (x + 0.7 * distance, up + 3.0)),
            block(lines, Anchor::Start, (x + 0.7 * distance, down)),
            block(lines, Anchor::End, (x - distance, level)),
            block(lines, Anchor::End, (x - 0.7 * distance, up + 3.0)),
            block(lines, Anchor::End, (x - 0.7 * distance, down)),
            block(lines, Anchor::Middle, (x, up)),
            block(lines, Anchor::Middle, (x, down)),
        ]);
    }
    blocks
}
