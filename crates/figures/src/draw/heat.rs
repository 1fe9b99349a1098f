//! Heat maps: cells of equal colour are one path, and one rectangle in a row; contours and numbers on
//! top; a colour bar beside.

use super::Canvas;
use super::contour::contour;
use crate::frame::{Pixel, Rect};
use crate::geometry::{clipped, path};
use crate::label;
use crate::layout::{TICK, bar_ticks, first_heat};
use crate::ramp::{Colouring, hex, is_dark};
use crate::svg::{Anchor, number};
use crate::text::escape;
use std::collections::BTreeMap;
use vocabulary::figure::Heat;

impl Canvas<'_> {
    pub(super) fn draw_heat(&mut self, heat: &Heat) {
        let frame = &self.layout.frame;
        let colouring = Colouring::of(heat);
        let area = frame.area;
        let x: Vec<Option<f64>> = heat.x_edges.iter().map(|edge| frame.x_far(*edge)).collect();
        let y: Vec<Option<f64>> = heat.y_edges.iter().map(|edge| frame.y_far(*edge)).collect();
        // More cells than pixels cannot be seen.
        let sparse = |edges: usize, pixels: f64| (edges as f64 / pixels).ceil().max(1.0) as usize;
        let down = sparse(y.len(), area.height());
        let along = sparse(x.len(), area.width());

        let mut paths: BTreeMap<u32, String> = BTreeMap::new();
        for (row, values) in heat.values.iter().enumerate().step_by(down) {
            let (Some(top), Some(bottom)) = (edge(&y, row), edge(&y, row + down)) else { continue };
            let mut run: Option<(u32, f64, f64)> = None;
            let columns = values.iter().enumerate().step_by(along);
            let mut rectangles = Vec::new();
            for (column, value) in columns {
                let step = value.and_then(|value| colouring.step(value));
                let span = edge(&x, column).zip(edge(&x, column + along));
                let cell = step.zip(span).map(|(step, (from, to))| (step, from, to));
                run = match (run, cell) {
                    (Some((step, from, _)), Some((same, _, to))) if step == same => {
                        Some((step, from, to))
                    }
                    (before, cell) => {
                        rectangles.extend(before);
                        cell
                    }
                };
            }
            rectangles.extend(run);
            for (step, from, to) in rectangles {
                // Whole pixels, so that neighbours meet without a seam.
                let held = |x: f64| x.clamp(area.left - 2.0, area.right + 2.0).round();
                let level = |y: f64| y.clamp(area.top - 2.0, area.bottom + 2.0).round();
                let (from, to, top, bottom) = (held(from), held(to), level(top), level(bottom));
                let (wide, high) = (number(to - from), number(bottom - top));
                let data = paths.entry(step).or_default();
                *data += &format!("M{from} {top}h{wide}v{high}H{from}z");
            }
        }
        self.svg.raw(r#"<g shape-rendering="crispEdges">"#);
        for (step, data) in paths {
            let fill = hex(colouring.colour(step));
            self.svg.raw(&format!(r#"<path fill="{fill}" d="{data}"/>"#));
        }
        self.svg.raw("</g>");
        if heat.print_values {
            self.draw_values(heat, &colouring, &x, &y);
        }
        for &level in &heat.contours {
            self.draw_contour(heat, level, &x, &y);
        }
    }

    /// The numbers in the cells: all of them, or none where one would not fit.
    fn draw_values(
        &mut self,
        heat: &Heat,
        colouring: &Colouring,
        x: &[Option<f64>],
        y: &[Option<f64>],
    ) {
        let mut labels = Vec::new();
        for (row, values) in heat.values.iter().enumerate() {
            let Some((a, b)) = edge(y, row).zip(edge(y, row + 1)) else { continue };
            for (column, value) in values.iter().enumerate() {
                let span = edge(x, column).zip(edge(x, column + 1));
                let step = value.and_then(|value| colouring.step(value));
                let (Some(value), Some(step), Some((left, right))) = (value, step, span) else {
                    continue;
                };
                let at = (0.5 * (left + right), 0.5 * (a + b) + 3.9);
                if !self.layout.frame.area.contains(at) {
                    continue;
                }
                let label = label::three_digits(*value);
                if (right - left).abs() < label.width(TICK) + 4.0 || (b - a).abs() < 14.0 {
                    return;
                }
                let dark = is_dark(colouring.colour(step));
                labels.push((at, label, if dark { "value on-dark" } else { "value on-light" }));
            }
        }
        for (at, label, class) in labels {
            self.svg.text_markup(class, at, Anchor::Middle, &label.markup());
        }
    }

    fn draw_contour(&mut self, heat: &Heat, level: f64, x: &[Option<f64>], y: &[Option<f64>]) {
        let near = self.layout.frame.area.grown(2.0);
        let curves = contour(heat, level, x, y);
        let curves: Vec<_> = curves.iter().flat_map(|curve| clipped(curve, &near)).collect();
        let data: String = curves.iter().map(|curve| path(curve)).collect();
        self.svg.path("contour-halo", &data);
        self.svg.path("contour", &data);
        // The number stands on the longest curve, where it covers no other number.
        let Some(longest) = curves.iter().max_by_key(|curve| curve.len()) else { return };
        let label = label::short(level);
        let half = 0.5 * label.width(TICK) + 3.0;
        let box_at =
            |(x, y): Pixel| Rect { left: x - half, right: x + half, top: y - 7.0, bottom: y + 7.0 };
        let order = [5, 4, 6, 3, 7, 2, 8];
        let places: Vec<Pixel> =
            order.iter().map(|tenth| longest[(longest.len() - 1) * tenth / 10]).collect();
        let boxes: Vec<Rect> = places.iter().map(|place| box_at(*place)).collect();
        let best = self.clutter.best(&boxes, &self.layout.frame.area);
        self.clutter.add_box(boxes[best]);
        let area = boxes[best];
        self.draw_plate(&area);
        let at = (places[best].0, places[best].1 + 3.9);
        self.svg.text_markup("value on-light", at, Anchor::Middle, &label.markup());
    }

    /// A pale ground for words on coloured cells.
    pub(super) fn draw_plate(&mut self, area: &Rect) {
        let corners = ((area.left, area.top), (area.right, area.bottom));
        self.svg.rectangle(r#"class="plate" rx="3""#, corners.0, corners.1);
    }

    pub(super) fn draw_colour_bar(&mut self) {
        let (Some(left), Some(heat)) = (self.layout.colour_bar, first_heat(self.figure)) else {
            return;
        };
        let area = self.layout.frame.area;
        let colouring = Colouring::of(heat);
        let steps = colouring.bar(64);
        let cell = area.height() / steps.len().max(1) as f64;
        self.svg.raw(r#"<g shape-rendering="crispEdges">"#);
        for (index, step) in steps.iter().enumerate() {
            let bottom = area.bottom - index as f64 * cell;
            let fill = format!(r#"fill="{}""#, hex(colouring.colour(*step)));
            self.svg.rectangle(&fill, (left, bottom - cell), (left + 12.0, bottom));
        }
        self.svg.raw("</g>");
        let axis = colouring.axis();
        for tick in bar_ticks(heat) {
            if let (Some(unit), Some(label)) = (axis.unit(tick.at), &tick.label) {
                let y = area.bottom - unit * area.height();
                self.svg.line("axis", (left + 12.0, y), (left + 16.0, y));
                let at = (left + 19.0, y + 3.8);
                self.svg.text_markup("tick quiet", at, Anchor::Start, &label.markup());
            }
        }
        if !heat.colours.label.is_empty() {
            let x = number(self.layout.width - 8.0);
            let y = number(0.5 * (area.top + area.bottom));
            self.svg.raw(&format!(
                r#"<text class="label" transform="translate({x} {y}) rotate(-90)" text-anchor="middle">{}</text>"#,
                escape(&heat.colours.label)
            ));
        }
    }
}

/// The edge, or the last one where thinning steps past it.
fn edge(edges: &[Option<f64>], index: usize) -> Option<f64> {
    edges.get(index).or(edges.last()).copied().flatten()
}
