//! The style sheet inside the SVG. Colours are written out (no custom properties), because
//! several SVG converters know no others; every rule is scoped by the figure's id, because a
//! style sheet in an SVG that is part of a page rules the whole page.

use crate::options::Theme;
use crate::palette::{Look, colours, dash, name};
use std::fmt::Write;

pub(crate) struct Tones {
    pub(crate) background: &'static str,
    ink: &'static str,
    muted: &'static str,
    axis: &'static str,
    grid: &'static str,
}

pub(crate) const LIGHT: Tones = Tones {
    background: "#ffffff",
    ink: "#1b1f24",
    muted: "#59626d",
    axis: "#8b949e",
    grid: "#e4e7ea",
};

pub(crate) const DARK: Tones = Tones {
    background: "#14181d",
    ink: "#e8eaed",
    muted: "#a5aeb8",
    axis: "#6b747e",
    grid: "#2b3138",
};

/// Faces with the widths of Helvetica first, because the layout counts on them.
const FONTS: &str = "'Helvetica Neue',Helvetica,Arial,'Liberation Sans',Roboto,'Segoe UI',\
                     system-ui,sans-serif";

/// The rules for one figure.
pub(crate) fn style(id: &str, theme: Theme, looks: &[Look]) -> String {
    let mut rules = structure(id);
    match theme {
        Theme::Light => rules += &colouring(id, &LIGHT, looks, false),
        Theme::Dark => rules += &colouring(id, &DARK, looks, true),
        Theme::Auto => {
            rules += &colouring(id, &LIGHT, looks, false);
            rules += "@media screen and (prefers-color-scheme:dark){\n";
            rules += &colouring(id, &DARK, looks, true);
            rules += "}\n";
        }
    }
    rules
}

fn structure(id: &str) -> String {
    let mut rules = format!("#{id} text{{font-family:{FONTS};font-size:12px}}\n");
    for (selector, declarations) in [
        (".title", "font-size:15px;font-weight:600"),
        (".tick,.value", "font-size:11px;font-variant-numeric:tabular-nums"),
        (".caption", "font-size:11.5px"),
        (".foot", "font-size:10.5px;font-style:italic"),
        (".halo", "paint-order:stroke;stroke-width:3.5px;stroke-linejoin:round"),
        (".grid,.axis,.minor", "fill:none;stroke-width:1px"),
        (".minor", "stroke-width:.7px"),
        (".curve", "fill:none;stroke-width:1.9px;stroke-linejoin:round;stroke-linecap:round"),
        (".rule", "fill:none;stroke-width:1.3px"),
        (".outline", "fill:none;stroke-width:1.3px"),
        (".whisker", "fill:none;stroke-width:1.4px"),
        (".leader", "fill:none;stroke-width:.8px"),
        (".marker", "stroke-width:1.2px"),
        (".area", "fill-opacity:.18;stroke:none"),
        (".bar", "fill-opacity:.28;stroke:none"),
        (".span", "fill-opacity:.10;stroke:none"),
        (".contour", "fill:none;stroke:#14181d;stroke-width:1.3px"),
        (".contour-halo", "fill:none;stroke:#fff;stroke-opacity:.55;stroke-width:3.2px"),
        (".plate", "fill:#fff;fill-opacity:.85"),
        (".pin-on-heat", "fill:#14181d;stroke:#fff;stroke-width:1.5px"),
        (".leader-on-heat", "stroke:#14181d"),
        (".long-dash", "stroke-dasharray:10 4;stroke-linecap:butt"),
        (".dashed", "stroke-dasharray:5 3.5;stroke-linecap:butt"),
        (".dash-dot", "stroke-dasharray:8 3 1.5 3;stroke-linecap:butt"),
        (".dotted", "stroke-dasharray:.1 3.6;stroke-linecap:round"),
    ] {
        let scoped: Vec<String> = selector.split(',').map(|one| format!("#{id} {one}")).collect();
        let _ = writeln!(rules, "{}{{{declarations}}}", scoped.join(","));
    }
    rules
}

fn colouring(id: &str, tones: &Tones, looks: &[Look], dark: bool) -> String {
    let Tones { background, ink, muted, axis, grid } = tones;
    let mut rules = format!(
        "#{id} .background{{fill:{background}}}\n\
         #{id} text{{fill:{ink}}}\n\
         #{id} .quiet{{fill:{muted}}}\n\
         #{id} .halo{{stroke:{background}}}\n\
         #{id} .grid{{stroke:{grid}}}\n\
         #{id} .axis,#{id} .minor{{stroke:{axis}}}\n\
         #{id} .marker{{stroke:{background}}}\n\
         #{id} .on-light{{fill:#14181d}}#{id} .on-dark{{fill:#fff}}\n"
    );
    let mut hues: Vec<_> = looks.iter().map(|look| look.hue).collect();
    hues.sort_by_key(|hue| name(*hue));
    hues.dedup();
    for hue in hues {
        let shades = colours(hue);
        let (line, text) = if dark {
            (shades.line_on_dark, shades.text_on_dark)
        } else {
            (shades.line, shades.text)
        };
        let hue = name(hue);
        let _ = writeln!(
            rules,
            "#{id} .stroke-{hue}{{stroke:{line}}}#{id} .fill-{hue}{{fill:{line}}}\
             #{id} .text-{hue}{{fill:{text}}}"
        );
    }
    rules
}

/// The classes of a line in a look.
pub(crate) fn line_classes(kind: &str, look: &Look) -> String {
    let pattern = match dash(look.stroke) {
        "solid" => String::new(),
        pattern => format!(" {pattern}"),
    };
    format!("{kind} stroke-{}{pattern}", name(look.hue))
}
