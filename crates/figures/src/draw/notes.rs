//! Words inside the plot: names of rules and spans, notes at pins, in the least crowded of
//! a few places.

use super::Canvas;
use crate::frame::{Place, Rect};
use crate::geometry::path;
use crate::layout::BODY;
use crate::palette::name;
use crate::svg::Anchor;
use crate::text;
use vocabulary::figure::{Mark, Orientation, Point};

const LINE: f64 = 15.0;
/// Longer notes at pins are broken.
const LONGEST: f64 = 190.0;

/// A block of lines that stands somewhere.
struct Block {
    anchor: Anchor,
    /// Baseline of the first line.
    at: Place,
    area: Rect,
}

impl Canvas<'_> {
    pub(super) fn draw_notes(&mut self) {
        self.draw_colour_bar();
        let area = self.layout.frame.area;
        for (index, series) in self.figure.series.iter().enumerate() {
            if series.label.trim().is_empty() {
                continue;
            }
            let frame = &self.layout.frame;
            let lines = text::wrap(&series.label, BODY.0, LONGEST.min(area.width() - 16.0));
            let candidates = match &series.mark {
                Mark::Rule { orientation, at } => rule_places(
                    &lines,
                    *orientation,
                    match orientation {
                        Orientation::Horizontal => frame.y(*at),
                        Orientation::Vertical => frame.x(*at),
                    },
                    &area,
                ),
                Mark::Span { orientation, from, to } => match orientation {
                    Orientation::Horizontal => {
                        let top = frame.y_far(*from).zip(frame.y_far(*to)).map(|(a, b)| a.min(b));
                        rule_places(
                            &lines,
                            *orientation,
                            top.map(|y| y.max(area.top) + 18.0),
                            &area,
                        )
                    }
                    Orientation::Vertical => {
                        let left = frame.x_far(*from).zip(frame.x_far(*to)).map(|(a, b)| a.min(b));
                        rule_places(&lines, *orientation, left.map(|x| x.max(area.left)), &area)
                    }
                },
                Mark::Pin(point) => pin_places(&lines, frame.place(point), &area),
                _ => continue,
            };
            if candidates.is_empty() {
                continue;
            }
            let boxes: Vec<Rect> = candidates.iter().map(|block| block.area).collect();
            let block = &candidates[self.clutter.best(&boxes, &area)];
            self.clutter.add_box(block.area);
            let hue = name(self.looks[index].hue);
            if let Mark::Pin(point) = &series.mark {
                self.draw_leader(point, &block.area, hue);
            }
            let class = format!("halo text-{hue}");
            for (row, line) in lines.iter().enumerate() {
                let at = (block.at.0, block.at.1 + row as f64 * LINE);
                self.svg.text(&class, at, block.anchor, line);
            }
        }
    }

    /// A hairline from a pin to words that stand apart from it.
    fn draw_leader(&mut self, point: &Point, area: &Rect, hue: &str) {
        let Some((x, y)) = self.layout.frame.place(point) else { return };
        let near = (x.clamp(area.left, area.right), y.clamp(area.top, area.bottom));
        let (dx, dy) = (near.0 - x, near.1 - y);
        let distance = dx.hypot(dy);
        if distance > 14.0 {
            let start = (x + 5.5 * dx / distance, y + 5.5 * dy / distance);
            self.svg.path(&format!("leader stroke-{hue}"), &path(&[start, near]));
        }
    }
}

fn block(lines: &[String], anchor: Anchor, at: Place) -> Block {
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
    Block { anchor, at, area }
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
fn pin_places(lines: &[String], place: Option<Place>, area: &Rect) -> Vec<Block> {
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
