//! The drawing, from the bottom up: background, grid, series in their order, axes, words.

mod axes;
mod contour;
mod heat;
mod legend;
mod marks;
mod notes;
mod words;

use crate::css;
use crate::layout::{Layout, layout};
use crate::options::{Options, Theme};
use crate::palette::{Look, looks};
use crate::placement::Clutter;
use crate::summary::description;
use crate::svg::{Svg, number};
use crate::table::to_csv;
use crate::text::escape;
use vocabulary::Figure;

/// Everything a part of the drawing needs.
pub(crate) struct Canvas<'a> {
    figure: &'a Figure,
    layout: Layout,
    looks: Vec<Look>,
    clutter: Clutter,
    svg: Svg,
    /// The id of the clip path.
    clip: String,
}

impl Canvas<'_> {
    /// Cells have the same colours in light and dark, so that words on them do too.
    fn has_heat(&self) -> bool {
        crate::layout::first_heat(self.figure).is_some()
    }
}

/// Draws a figure as a self-contained SVG document. The same input gives the same bytes.
///
/// ```
/// use figures::{Options, Theme, to_svg};
/// let figure = vocabulary::Figure::new("Nothing <yet>", "");
/// let svg = to_svg(&figure, &Options::paper().theme(Theme::Dark));
/// assert!(svg.contains(r#"role="img""#) && svg.contains("Nothing &lt;yet&gt;</title>"));
/// ```
pub fn to_svg(figure: &Figure, options: &Options) -> String {
    let id = identity(figure, options);
    let looks = looks(figure);
    let layout = layout(figure, options);
    let (width, height) = (number(layout.width), number(layout.height));
    let title = escape(&figure.title);
    let description = escape(&description(figure));
    let style = css::style(&id, options.theme, &looks);
    let mut canvas = Canvas {
        figure,
        layout,
        looks,
        clutter: Clutter::default(),
        svg: Svg::default(),
        clip: format!("{id}-clip"),
    };
    if options.background {
        canvas.svg.raw(r#"<rect class="background" width="100%" height="100%"/>"#);
    }
    canvas.draw_grid();
    canvas.draw_series();
    canvas.draw_axes();
    canvas.draw_notes();
    canvas.draw_end_labels();
    canvas.draw_legend();
    canvas.draw_words();

    let area = canvas.layout.frame.area.grown(1.0);
    let scheme = match options.theme {
        Theme::Auto => "light dark",
        Theme::Light => "light",
        Theme::Dark => "dark",
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"{id}\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-description\" \
         style=\"color-scheme:{scheme};max-width:100%;height:auto\">\n\
         <title id=\"{id}-title\">{title}</title>\n\
         <desc id=\"{id}-description\">{description}</desc>\n\
         <style>\n{style}</style>\n\
         <clipPath id=\"{id}-clip\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\
         </clipPath>\n{}</svg>\n",
        number(area.left),
        number(area.top),
        number(area.width()),
        number(area.height()),
        canvas.svg.markup
    )
}

/// The asked-for id as far as it is a plain name, or one made from the content (FNV-1a).
fn identity(figure: &Figure, options: &Options) -> String {
    if let Some(asked) = &options.id {
        let plain: String =
            asked.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect();
        if plain.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return plain;
        }
    }
    let content = format!("{}\n{}\n{}", figure.title, figure.caption, to_csv(figure));
    let hash = content.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("figure-{:08x}", (hash ^ (hash >> 32)) as u32)
}
