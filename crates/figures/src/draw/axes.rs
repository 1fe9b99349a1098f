//! Hairline grid, axis lines, ticks and their labels.

use super::Canvas;
use crate::layout::BODY;
use crate::svg::{Anchor, number};
use crate::text::escape;
use crate::ticks::Tick;
use vocabulary::figure::Scale;

impl Canvas<'_> {
    /// Lines at the labelled ticks; a heat map covers them, so it has none.
    pub(super) fn draw_grid(&mut self) {
        if self.has_heat() {
            return;
        }
        let frame = &self.layout.frame;
        let area = frame.area;
        let mut data = String::new();
        if !matches!(self.figure.x.scale, Scale::Category(_)) {
            for x in labelled(&self.layout.x_ticks).filter_map(|at| frame.x(at)) {
                data += &format!("M{} {}V{}", number(x), number(area.top), number(area.bottom));
            }
        }
        for y in labelled(&self.layout.y_ticks).filter_map(|at| frame.y(at)) {
            data += &format!("M{} {}H{}", number(area.left), number(y), number(area.right));
        }
        self.svg.path("grid", &data);
    }

    pub(super) fn draw_axes(&mut self) {
        let frame = &self.layout.frame;
        let area = frame.area;
        let svg = &mut self.svg;
        let (mut major, mut minor) = (String::new(), String::new());
        for tick in &self.layout.x_ticks {
            let Some(x) = frame.x(tick.at) else { continue };
            let data = if tick.label.is_some() { &mut major } else { &mut minor };
            let length = if tick.label.is_some() { 5.0 } else { 3.0 };
            *data += &format!("M{} {}v{length}", number(x), number(area.bottom));
        }
        let names = matches!(self.figure.y.scale, Scale::Category(_));
        for tick in self.layout.y_ticks.iter().filter(|_| !names) {
            let Some(y) = frame.y(tick.at) else { continue };
            let data = if tick.label.is_some() { &mut major } else { &mut minor };
            let length = if tick.label.is_some() { 5.0 } else { 3.0 };
            *data += &format!("M{} {}h-{length}", number(area.left), number(y));
        }
        major += &format!(
            "M{} {}V{}H{}",
            number(area.left),
            number(area.top),
            number(area.bottom),
            number(area.right)
        );
        svg.path("minor", &minor);
        svg.path("axis", &major);

        for tick in &self.layout.x_ticks {
            if let (Some(x), Some(label)) = (frame.x(tick.at), &tick.label) {
                let at = (x, area.bottom + 18.0);
                svg.text_markup("tick quiet", at, Anchor::Middle, &label.markup());
            }
        }
        for tick in &self.layout.y_ticks {
            if let (Some(y), Some(label)) = (frame.y(tick.at), &tick.label) {
                let at = (area.left - 8.0, y + 3.8);
                let class = if names { "tick" } else { "tick quiet" };
                svg.text_markup(class, at, Anchor::End, &label.markup());
            }
        }
        let middle = 0.5 * (area.left + area.right);
        for (row, line) in self.layout.x_label.iter().enumerate() {
            let y = area.bottom + 37.0 + row as f64 * BODY.1;
            svg.text("label", (middle, y), Anchor::Middle, line);
        }
        if !self.layout.y_label.is_empty() {
            let y = number(0.5 * (area.top + area.bottom));
            svg.raw(&format!(
                r#"<text class="label" transform="translate(24 {y}) rotate(-90)" text-anchor="middle">{}</text>"#,
                escape(&self.layout.y_label)
            ));
        }
    }
}

fn labelled(ticks: &[Tick]) -> impl Iterator<Item = f64> {
    let with_label = ticks.iter().filter(|tick| tick.label.is_some());
    with_label.map(|tick| tick.at)
}
