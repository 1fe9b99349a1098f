//! Elements as text. Every attribute value passes through here.

use crate::frame::Pixel;
use crate::text::escape;
use std::fmt::Write;

/// A pixel number with at most two decimals; the same digits on every machine.
pub(crate) fn number(value: f64) -> String {
    let hundredths = if value.is_finite() { (100.0 * value.clamp(-1e9, 1e9)).round() } else { 0.0 };
    // Adding 0 turns -0 into 0.
    let mut text = format!("{:.2}", hundredths / 100.0 + 0.0);
    let kept = text.trim_end_matches('0').trim_end_matches('.').len();
    text.truncate(kept);
    text
}

/// Where a text stands relative to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A growing document.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    pub(crate) markup: String,
}

impl Svg {
    pub(crate) fn line(&mut self, class: &str, from: Pixel, to: Pixel) {
        let _ = writeln!(
            self.markup,
            r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
            number(from.0),
            number(from.1),
            number(to.0),
            number(to.1)
        );
    }

    pub(crate) fn path(&mut self, class: &str, data: &str) {
        if !data.is_empty() {
            let _ = writeln!(self.markup, r#"<path class="{class}" d="{data}"/>"#);
        }
    }

    pub(crate) fn rectangle(&mut self, attributes: &str, from: Pixel, to: Pixel) {
        let _ = writeln!(
            self.markup,
            r#"<rect {attributes} x="{}" y="{}" width="{}" height="{}"/>"#,
            number(from.0.min(to.0)),
            number(from.1.min(to.1)),
            number((to.0 - from.0).abs()),
            number((to.1 - from.1).abs())
        );
    }

    /// Text that is escaped here.
    pub(crate) fn text(&mut self, class: &str, at: Pixel, anchor: Anchor, text: &str) {
        self.text_markup(class, at, anchor, &escape(text));
    }

    /// Text that is markup already.
    pub(crate) fn text_markup(&mut self, class: &str, at: Pixel, anchor: Anchor, markup: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let _ = writeln!(
            self.markup,
            r#"<text class="{class}" x="{}" y="{}"{anchor}>{markup}</text>"#,
            number(at.0),
            number(at.1)
        );
    }

    pub(crate) fn raw(&mut self, markup: &str) {
        self.markup.push_str(markup);
        self.markup.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_short_and_finite() {
        for (value, text) in [
            (1.0, "1"),
            (1.5, "1.5"),
            (0.126, "0.13"),
            (-0.001, "0"),
            (100.0, "100"),
            (f64::NAN, "0"),
            (1e300, "1000000000"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
