//! Our own SVG drawings on a page, as vectors with live text. The reader knows exactly the
//! elements, path commands and styles that the crate `figures` writes; anything else is an
//! error, so that a drawing is never shown incomplete.

use super::PdfError;
use super::font::{Faces, clean};
use super::style::Sheet;
use krilla::color::rgb;
use krilla::geom::{Path, PathBuilder, Point, Rect, Transform};
use krilla::num::NormalizedF32;
use krilla::paint::{Fill, FillRule, LineCap, LineJoin, Stroke, StrokeDash};
use krilla::surface::Surface;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;

/// A drawing that was read.
pub(super) struct Drawing {
    svg: String,
    pub(super) width: f32,
    pub(super) height: f32,
    /// What the drawing shows, for a reader who cannot see it.
    pub(super) description: String,
}

impl Drawing {
    /// Reads the size and the description.
    ///
    /// # Errors
    /// Markup that is not SVG.
    pub(super) fn read(svg: String) -> Result<Self, PdfError> {
        let document = Document::parse(&svg).map_err(|error| unknown(error.to_string()))?;
        let root = document.root_element();
        let words = |name: &str| {
            let node = root.children().find(|node| node.has_tag_name(name));
            node.and_then(|node| node.text()).unwrap_or_default().trim().to_owned()
        };
        let description = [words("title"), words("desc")].join(". ");
        let (width, height) = (attribute(&root, "width")?, attribute(&root, "height")?);
        let known = Self { width, height, description, svg: String::new() };
        Ok(Self { svg, ..known })
    }

    /// Draws at the origin, in pixels of the drawing.
    ///
    /// # Errors
    /// Something that `figures` did not write when this was written.
    pub(super) fn draw(&self, surface: &mut Surface<'_>, faces: &Faces) -> Result<(), PdfError> {
        let document = Document::parse(&self.svg).map_err(|error| unknown(error.to_string()))?;
        let root = document.root_element();
        let style = root.children().find(|node| node.has_tag_name("style"));
        let sheet = Sheet::parse(style.and_then(|node| node.text()).unwrap_or_default())
            .map_err(|part| unknown(format!("style `{part}`")))?;
        let mut pen = Pen { sheet, clips: BTreeMap::new(), faces, surface };
        for node in root.children().filter(|node| node.has_tag_name("clipPath")) {
            let rectangle = node.first_element_child().ok_or_else(|| unknown("an empty clip"))?;
            let id = node.attribute("id").unwrap_or_default();
            pen.clips.insert(format!("url(#{id})"), rectangle_of(&rectangle)?);
        }
        pen.children(&root)
    }
}

fn unknown(what: impl Into<String>) -> PdfError {
    PdfError::Drawing(what.into())
}

fn number(text: &str) -> Result<f32, PdfError> {
    text.trim_end_matches("px").parse().map_err(|_| unknown(format!("number `{text}`")))
}

fn attribute(node: &Node<'_, '_>, name: &str) -> Result<f32, PdfError> {
    number(node.attribute(name).unwrap_or("0"))
}

fn colour(text: &str) -> Result<Option<rgb::Color>, PdfError> {
    if text == "none" {
        return Ok(None);
    }
    let digits = text.strip_prefix('#').unwrap_or_default();
    let full = match digits.len() {
        3 => digits.chars().flat_map(|digit| [digit, digit]).collect(),
        _ => digits.to_owned(),
    };
    let channel = |at: usize| full.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
    match (full.len(), channel(0), channel(2), channel(4)) {
        (6, Some(red), Some(green), Some(blue)) => Ok(Some(rgb::Color::new(red, green, blue))),
        _ => Err(unknown(format!("colour `{text}`"))),
    }
}

fn rectangle_of(node: &Node<'_, '_>) -> Result<Path, PdfError> {
    let (x, y) = (attribute(node, "x")?, attribute(node, "y")?);
    let (width, height) = (attribute(node, "width")?, attribute(node, "height")?);
    let mut builder = PathBuilder::new();
    if let Some(rectangle) = Rect::from_xywh(x, y, width, height) {
        builder.push_rect(rectangle);
    }
    builder.finish().ok_or_else(|| unknown("an empty rectangle"))
}

struct Pen<'a, 'b, 'c> {
    sheet: Sheet,
    clips: BTreeMap<String, Path>,
    faces: &'a Faces,
    surface: &'b mut Surface<'c>,
}

impl Pen<'_, '_, '_> {
    fn children(&mut self, parent: &Node<'_, '_>) -> Result<(), PdfError> {
        parent.children().filter(Node::is_element).try_for_each(|node| self.element(&node))
    }

    fn element(&mut self, node: &Node<'_, '_>) -> Result<(), PdfError> {
        match node.tag_name().name() {
            "title" | "desc" | "style" | "clipPath" => Ok(()),
            "g" => {
                let Some(name) = node.attribute("clip-path") else { return self.children(node) };
                let clip = self.clips.get(name);
                let clip = clip.ok_or_else(|| unknown(format!("clip `{name}`")))?;
                self.surface.push_clip_path(clip, &FillRule::NonZero);
                let drawn = self.children(node);
                self.surface.pop();
                drawn
            }
            "line" => {
                let mut builder = PathBuilder::new();
                builder.move_to(attribute(node, "x1")?, attribute(node, "y1")?);
                builder.line_to(attribute(node, "x2")?, attribute(node, "y2")?);
                self.path(node, builder.finish())
            }
            "rect" => {
                // A rectangle without width or height is not drawn.
                let empty = attribute(node, "width")? == 0.0 || attribute(node, "height")? == 0.0;
                self.path(node, if empty { None } else { Some(rectangle_of(node)?) })
            }
            "circle" => {
                let place = (attribute(node, "cx")?, attribute(node, "cy")?);
                self.path(node, circle(place, attribute(node, "r")?))
            }
            "path" => {
                let data = node.attribute("d").unwrap_or_default();
                self.path(node, path(data)?)
            }
            "text" => self.text(node),
            other => Err(unknown(format!("element `{other}`"))),
        }
    }

    fn path(&mut self, node: &Node<'_, '_>, path: Option<Path>) -> Result<(), PdfError> {
        let Some(path) = path else { return Ok(()) };
        let (fill, stroke) = self.paints(node)?;
        if fill.is_some() || stroke.is_some() {
            self.surface.set_fill(fill);
            self.surface.set_stroke(stroke);
            self.surface.draw_path(&path);
        }
        Ok(())
    }

    fn paints(&self, node: &Node<'_, '_>) -> Result<(Option<Fill>, Option<Stroke>), PdfError> {
        let classes = node.attribute("class").unwrap_or_default();
        let mut style = self.sheet.of(node.tag_name().name(), classes);
        if let Some(fill) = node.attribute("fill") {
            style.entry("fill").or_insert(fill);
        }
        let share = |name: &str| -> Result<NormalizedF32, PdfError> {
            let value = style.get(name).map_or(Ok(1.0), |text| number(text))?;
            NormalizedF32::new(value).ok_or_else(|| unknown(format!("opacity {value}")))
        };
        // As SVG has it: black where nothing is said, no stroke.
        let fill = colour(style.get("fill").copied().unwrap_or("#000"))?;
        let fill = match fill {
            Some(colour) => Some(Fill {
                paint: colour.into(),
                opacity: share("fill-opacity")?,
                rule: FillRule::NonZero,
            }),
            None => None,
        };
        let stroke = colour(style.get("stroke").copied().unwrap_or("none"))?;
        let stroke = match stroke {
            Some(colour) => Some(Stroke {
                paint: colour.into(),
                width: style.get("stroke-width").map_or(Ok(1.0), |text| number(text))?,
                opacity: share("stroke-opacity")?,
                line_cap: match style.get("stroke-linecap") {
                    Some(&"round") => LineCap::Round,
                    _ => LineCap::Butt,
                },
                line_join: match style.get("stroke-linejoin") {
                    Some(&"round") => LineJoin::Round,
                    _ => LineJoin::Miter,
                },
                dash: dash(style.get("stroke-dasharray").copied())?,
                ..Stroke::default()
            }),
            None => None,
        };
        Ok((fill, stroke))
    }

    fn text(&mut self, node: &Node<'_, '_>) -> Result<(), PdfError> {
        let classes = node.attribute("class").unwrap_or_default();
        let style = self.sheet.of("text", classes);
        let size = style.get("font-size").map_or(Ok(12.0), |text| number(text))?;
        let bold = style.get("font-weight") == Some(&"600");
        let face = self.faces.face(bold);
        // Pieces: words, their size, and how far they are raised.
        let mut pieces: Vec<(String, f32, f32)> = Vec::new();
        for child in node.children() {
            if let Some(words) = child.text().filter(|_| child.is_text()) {
                pieces.push((clean(words), size, 0.0));
            } else if child.has_tag_name("tspan") {
                let em = child.attribute("dy").and_then(|dy| dy.strip_suffix("em"));
                let share = child.attribute("font-size").and_then(|text| text.strip_suffix('%'));
                let small = size * number(share.unwrap_or("100"))? / 100.0;
                let raised = small * -number(em.unwrap_or("0"))?;
                pieces.push((clean(child.text().unwrap_or_default()), small, raised));
            } else {
                return Err(unknown(format!("element `{}` in text", child.tag_name().name())));
            }
        }
        let width: f32 = pieces.iter().map(|(words, size, _)| face.width(words, *size)).sum();
        let start = match node.attribute("text-anchor") {
            None | Some("start") => 0.0,
            Some("middle") => -0.5 * width,
            Some("end") => -width,
            Some(other) => return Err(unknown(format!("anchor `{other}`"))),
        };
        let place = match node.attribute("transform") {
            None => Transform::from_translate(attribute(node, "x")?, attribute(node, "y")?),
            Some(transform) => upright(transform)?,
        };
        let (fill, halo) = self.paints(node)?;
        self.surface.push_transform(&place);
        for (paints, outlined) in [((None, halo), true), ((fill, None), false)] {
            if paints.0.is_none() && paints.1.is_none() {
                continue;
            }
            self.surface.set_fill(paints.0);
            self.surface.set_stroke(paints.1);
            let mut x = start;
            for (words, size, raised) in &pieces {
                let glyphs = face.glyphs(words);
                let at = Point::from_xy(x, -raised);
                // The halo is a shape, not text: words are found once.
                self.surface.draw_glyphs(at, &glyphs, face.font.clone(), words, *size, outlined);
                x += face.width(words, *size);
            }
        }
        self.surface.pop();
        Ok(())
    }
}

fn dash(text: Option<&str>) -> Result<Option<StrokeDash>, PdfError> {
    let Some(text) = text else { return Ok(None) };
    let array = text.split([' ', ',']).map(number).collect::<Result<Vec<f32>, _>>()?;
    Ok(Some(StrokeDash { array, offset: 0.0 }))
}

/// `translate(x y) rotate(-90)`, the only transform of a drawing.
fn upright(text: &str) -> Result<Transform, PdfError> {
    let inside =
        text.strip_prefix("translate(").and_then(|rest| rest.strip_suffix(") rotate(-90)"));
    let (x, y) = inside
        .and_then(|pair| pair.split_once(' '))
        .ok_or_else(|| unknown(format!("transform `{text}`")))?;
    Ok(Transform::from_row(0.0, -1.0, 1.0, 0.0, number(x)?, number(y)?))
}

/// Four arcs; the constant is the usual one for a quarter of a circle.
fn circle((x, y): (f32, f32), radius: f32) -> Option<Path> {
    let (r, k) = (radius, 0.552_284_8 * radius);
    let mut builder = PathBuilder::new();
    builder.move_to(x + r, y);
    builder.cubic_to(x + r, y + k, x + k, y + r, x, y + r);
    builder.cubic_to(x - k, y + r, x - r, y + k, x - r, y);
    builder.cubic_to(x - r, y - k, x - k, y - r, x, y - r);
    builder.cubic_to(x + k, y - r, x + r, y - k, x + r, y);
    builder.close();
    builder.finish()
}

/// Path data with M, L, H, V, h, v and Z.
fn path(data: &str) -> Result<Option<Path>, PdfError> {
    let mut builder = PathBuilder::new();
    let (mut x, mut y) = (0.0, 0.0);
    let mut rest = data.trim();
    let mut drawn = false;
    while let Some(command) = rest.chars().next() {
        if !command.is_ascii_alphabetic() {
            return Err(unknown(format!("path `{rest}`")));
        }
        rest = &rest[1..];
        let end = rest.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        let numbers = rest[..end]
            .split([' ', ','])
            .filter(|part| !part.is_empty())
            .map(number)
            .collect::<Result<Vec<f32>, _>>()?;
        rest = &rest[end..];
        match command {
            'M' | 'L' => {
                for (place, pair) in numbers.chunks(2).enumerate() {
                    let &[to_x, to_y] = pair else { return Err(unknown(format!("path `{data}`"))) };
                    (x, y) = (to_x, to_y);
                    if command == 'M' && place == 0 {
                        builder.move_to(x, y);
                    } else {
                        builder.line_to(x, y);
                        drawn = true;
                    }
                }
            }
            'H' | 'V' | 'h' | 'v' => {
                for value in numbers {
                    match command {
                        'H' => x = value,
                        'V' => y = value,
                        'h' => x += value,
                        _ => y += value,
                    }
                    builder.line_to(x, y);
                    drawn = true;
                }
            }
            'Z' | 'z' => builder.close(),
            other => return Err(unknown(format!("path command `{other}`"))),
        }
    }
    Ok(if drawn { builder.finish() } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_markup_is_drawn() {
        assert!(path("M0 0L1 1 2 2H3V4h1v1Z").unwrap().is_some());
        assert!(path("").unwrap().is_none());
        assert!(path("M0 0C1 1 2 2 3 3").is_err());
        assert!(colour("#12f").is_ok() && colour("none").unwrap().is_none());
        assert!(colour("red").is_err());
        assert!(upright("translate(24 100.5) rotate(-90)").is_ok() && upright("scale(2)").is_err());
    }
}
