//! The look of each series: colour, line pattern and marker shape.
//!
//! The colours follow Okabe and Ito (2008), which readers with any common colour blindness
//! can tell apart; text in a colour is darkened (lightened on dark) to a contrast of at
//! least 4.5 to 1.

use vocabulary::Figure;
use vocabulary::figure::{Hue, Mark, Series, Stroke};

/// The four renderings of a colour.
pub(crate) struct Colours {
    pub(crate) line: &'static str,
    pub(crate) text: &'static str,
    pub(crate) line_on_dark: &'static str,
    pub(crate) text_on_dark: &'static str,
}

pub(crate) fn colours(hue: Hue) -> Colours {
    let [line, text, line_on_dark, text_on_dark] = match hue {
        Hue::Blue => ["#0072b2", "#00629a", "#56a9e0", "#7cc0ee"],
        Hue::Vermilion => ["#d55e00", "#b04a00", "#f08a4b", "#f5a673"],
        Hue::Green => ["#009e73", "#00704f", "#2fc79b", "#5ad8b3"],
        Hue::Purple => ["#b8579a", "#983f7c", "#e08fc6", "#eab0d8"],
        Hue::Orange => ["#e69f00", "#855b00", "#f0b429", "#f5c75c"],
        Hue::Sky => ["#3fa4dc", "#1c6c9c", "#8fd0f5", "#a9dbf7"],
        Hue::Ink => ["#1b1f24", "#1b1f24", "#e8eaed", "#e8eaed"],
        Hue::Muted => ["#7d8590", "#59626d", "#8b949e", "#a5aeb8"],
    };
    Colours { line, text, line_on_dark, text_on_dark }
}

pub(crate) fn name(hue: Hue) -> &'static str {
    match hue {
        Hue::Blue => "blue",
        Hue::Vermilion => "vermilion",
        Hue::Green => "green",
        Hue::Purple => "purple",
        Hue::Orange => "orange",
        Hue::Sky => "sky",
        Hue::Ink => "ink",
        Hue::Muted => "muted",
    }
}

pub(crate) fn dash(stroke: Stroke) -> &'static str {
    match stroke {
        Stroke::Solid => "solid",
        Stroke::LongDash => "long-dash",
        Stroke::Dashed => "dashed",
        Stroke::DashDot => "dash-dot",
        Stroke::Dotted => "dotted",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Circle,
    Square,
    Diamond,
    Triangle,
}

/// How one series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) hue: Hue,
    pub(crate) stroke: Stroke,
    pub(crate) shape: Shape,
}

const HUES: [Hue; 6] = [Hue::Blue, Hue::Vermilion, Hue::Green, Hue::Purple, Hue::Orange, Hue::Sky];
const STROKES: [Stroke; 5] =
    [Stroke::Solid, Stroke::LongDash, Stroke::Dashed, Stroke::DashDot, Stroke::Dotted];
const SHAPES: [Shape; 4] = [Shape::Circle, Shape::Square, Shape::Diamond, Shape::Triangle];

/// The look of every series. What a series asks for it gets; the others take turns through
/// the colours nobody asked for, and through the patterns.
pub(crate) fn looks(figure: &Figure) -> Vec<Look> {
    let asked: Vec<Hue> = figure.series.iter().filter_map(|series| series.hue).collect();
    let mut free: Vec<Hue> = HUES.into_iter().filter(|hue| !asked.contains(hue)).collect();
    if free.is_empty() {
        free = HUES.to_vec();
    }
    let (mut hues, mut strokes, mut shapes) = (0, 0, 0);
    let take = |index: &mut usize| {
        *index += 1;
        *index - 1
    };
    figure
        .series
        .iter()
        .map(|series| {
            let hue = series.hue.unwrap_or_else(|| match &series.mark {
                Mark::Rule { .. } | Mark::Span { .. } => Hue::Muted,
                Mark::Pin(_) => Hue::Ink,
                Mark::Heat(_) => Hue::Ink,
                _ => free[take(&mut hues) % free.len()],
            });
            let stroke = default_stroke(series)
                .unwrap_or_else(|| STROKES[take(&mut strokes) % STROKES.len()]);
            let shape = match &series.mark {
                Mark::Scatter(_) | Mark::Ladder(_) => SHAPES[take(&mut shapes) % SHAPES.len()],
                _ => Shape::Circle,
            };
            Look { hue, stroke, shape }
        })
        .collect()
}

/// The stroke a series asks for or always has; `None` for those that take turns.
fn default_stroke(series: &Series) -> Option<Stroke> {
    series.stroke.or(match &series.mark {
        Mark::Line(_) | Mark::Step(_) | Mark::Bars { .. } => None,
        Mark::Rule { .. } => Some(Stroke::Dashed),
        _ => Some(Stroke::Solid),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(hex: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn coloured_text_can_be_read() {
        for hue in HUES.into_iter().chain([Hue::Ink, Hue::Muted]) {
            let colours = colours(hue);
            let light = contrast(colours.text, crate::css::LIGHT.background);
            let dark = contrast(colours.text_on_dark, crate::css::DARK.background);
            assert!(light >= 4.5 && dark >= 4.5, "{hue:?}: {light} {dark}");
        }
    }

    #[test]
    fn a_colour_asked_for_is_not_given_to_another() {
        let line = || Series::line("", [(0.0, 0.0)]);
        let figure = Figure::new("", "").with(line()).with(line().hue(Hue::Blue)).with(line());
        let looks = looks(&figure);
        assert_eq!(looks[1].hue, Hue::Blue);
        assert!(looks[0].hue != Hue::Blue && looks[2].hue != looks[0].hue);
        assert_ne!(looks[0].stroke, looks[2].stroke);
    }
}
