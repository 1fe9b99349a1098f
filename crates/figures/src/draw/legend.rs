//! Names of series: swatches above the plot, or words at the ends of lines.

use super::Canvas;
use crate::css::line_classes;
use crate::geometry::path;
use crate::layout::{BODY, LEGEND_ROW, MARGIN, SWATCH};
use crate::palette::name;
use crate::svg::Anchor;
use crate::text;
use vocabulary::figure::Mark;

impl Canvas<'_> {
    pub(super) fn draw_legend(&mut self) {
        for item in self.layout.legend.clone() {
            let series = &self.figure.series[item.series];
            let look = self.looks[item.series];
            let y = self.layout.legend_top + item.row as f64 * LEGEND_ROW + 0.5 * LEGEND_ROW;
            let (left, right) = (item.left, item.left + SWATCH);
            let hue = name(look.hue);
            match &series.mark {
                Mark::Band { .. } => {
                    let class = format!(r#"class="area fill-{hue}""#);
                    self.svg.rectangle(&class, (left, y - 5.0), (right, y + 5.0));
                }
                Mark::Bars { .. } => {
                    let class = format!(r#"class="bar fill-{hue}""#);
                    self.svg.rectangle(&class, (left, y - 5.0), (right, y + 5.0));
                    self.svg.line(
                        &line_classes("outline", &look),
                        (left, y - 5.0),
                        (right, y - 5.0),
                    );
                }
                Mark::Scatter(_) => self.draw_marker((0.5 * (left + right), y), &look),
                Mark::Ladder(_) => {
                    let class = format!("whisker stroke-{hue}");
                    self.svg.line(&class, (left + 2.0, y), (right - 2.0, y));
                    self.draw_marker((0.5 * (left + right), y), &look);
                }
                _ => {
                    let class = line_classes("curve", &look);
                    self.svg.line(&class, (left + 1.0, y), (right - 1.0, y));
                }
            }
            let limit = self.layout.width - right - 7.0 - MARGIN;
            let words = text::shorten(&series.label, BODY.0, limit);
            self.svg.text("label", (right + 7.0, y + 4.2), Anchor::Start, &words);
        }
    }

    pub(super) fn draw_end_labels(&mut self) {
        let right = self.layout.frame.area.right;
        for label in &self.layout.end_labels {
            let look = self.looks[label.series];
            let moved = (label.y - label.end.1).abs() > 2.0;
            if moved || right - label.end.0 > 6.0 {
                let class = format!("leader stroke-{}", name(look.hue));
                let (x, y) = label.end;
                let joints = [(x + 2.0, y), (x.max(right) + 3.0, y), (right + 10.0, label.y)];
                self.svg.path(&class, &path(&joints));
            }
            let limit = self.layout.width - right - 12.0 - 4.0;
            let words = text::shorten(&self.figure.series[label.series].label, BODY.0, limit);
            let class = format!("text-{}", name(look.hue));
            self.svg.text(&class, (right + 12.0, label.y + 4.2), Anchor::Start, &words);
        }
    }
}
