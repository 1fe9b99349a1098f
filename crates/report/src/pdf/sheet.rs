//! Pages that are laid out and not yet drawn: marks at places, and the tree of tags that says
//! what they are to a reader who cannot see them.

use super::PdfError;
use super::drawing::Drawing;
use super::font::Faces;
use krilla::color::rgb;
use krilla::geom::{PathBuilder, Point, Rect, Transform};
use krilla::num::NormalizedF32;
use krilla::paint::{Fill, FillRule};
use krilla::surface::Surface;
use krilla::tagging::{
    ArtifactType, ContentTag, Identifier, Node, SpanTag, TagGroup, TagKind, TagTree,
};

/// A4, in points.
pub(super) const PAGE: (f32, f32) = (595.28, 841.89);
/// Left and right, top, bottom.
pub(super) const MARGIN: (f32, f32, f32) = (56.0, 56.0, 64.0);
/// How wide text may be.
pub(super) const WIDTH: f32 = PAGE.0 - 2.0 * MARGIN.0;

pub(super) type Colour = (u8, u8, u8);
pub(super) const INK: Colour = (0x1b, 0x1f, 0x24);
pub(super) const MUTED: Colour = (0x59, 0x62, 0x6d);
pub(super) const RULE: Colour = (0xd0, 0xd7, 0xde);
pub(super) const GROUND: Colour = (0xf4, 0xf6, 0xf8);

/// How a line of text looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Type {
    pub(super) size: f32,
    pub(super) bold: bool,
    pub(super) colour: Colour,
}

/// Something on a page.
pub(super) enum AssumptionMark {
    /// A line of text, by the left end of its baseline.
    Text { at: (f32, f32), text: String, look: Type },
    /// Left, top, width, height.
    Rectangle { place: (f32, f32, f32, f32), colour: Colour },
    /// A drawing by its index, its left top corner and its scale.
    Drawing { drawing: usize, at: (f32, f32), scale: f32 },
}

/// A mark, and the leaf of the tree that it is; decoration is none.
pub(super) struct Placed {
    pub(super) mark: AssumptionMark,
    pub(super) leaf: Option<usize>,
}

enum Child {
    Element(usize),
    Leaf(usize),
}

/// Everything that will be drawn.
#[derive(Default)]
pub(super) struct Sheets {
    pub(super) pages: Vec<Vec<Placed>>,
    pub(super) drawings: Vec<Drawing>,
    elements: Vec<(TagKind, Vec<Child>)>,
    roots: Vec<usize>,
    leaves: usize,
}

impl Sheets {
    /// A new element of the tree, in another one or at the top.
    pub(super) fn element(&mut self, parent: Option<usize>, tag: impl Into<TagKind>) -> usize {
        let element = self.elements.len();
        self.elements.push((tag.into(), Vec::new()));
        match parent {
            Some(parent) => self.elements[parent].1.push(Child::Element(element)),
            None => self.roots.push(element),
        }
        element
    }

    /// Puts a mark on the last page, as content of an element or as decoration.
    pub(super) fn place(&mut self, element: Option<usize>, mark: AssumptionMark) {
        let leaf = element.map(|element| {
            let leaf = self.leaves;
            self.leaves += 1;
            self.elements[element].1.push(Child::Leaf(leaf));
            leaf
        });
        if let Some(page) = self.pages.last_mut() {
            page.push(Placed { mark, leaf });
        }
    }

    /// Draws one page and remembers what its leaves are called in the document.
    ///
    /// # Errors
    /// A drawing that cannot be read.
    pub(super) fn draw(
        &self,
        page: usize,
        surface: &mut Surface<'_>,
        faces: &Faces,
        names: &mut [Option<Identifier>],
    ) -> Result<(), PdfError> {
        for Placed { mark, leaf } in &self.pages[page] {
            let tag = match (leaf, mark) {
                (None, _) => ContentTag::Artifact(ArtifactType::Other),
                (Some(_), AssumptionMark::Text { .. }) => ContentTag::Span(SpanTag::empty()),
                (Some(_), _) => ContentTag::Other,
            };
            let name = surface.start_tagged(tag);
            if let Some(leaf) = leaf {
                names[*leaf] = Some(name);
            }
            let drawn = self.mark(mark, surface, faces);
            surface.end_tagged();
            drawn?;
        }
        Ok(())
    }

    fn mark(
        &self,
        mark: &AssumptionMark,
        surface: &mut Surface<'_>,
        faces: &Faces,
    ) -> Result<(), PdfError> {
        match mark {
            AssumptionMark::Text { at, text, look } => {
                write(surface, faces, *at, text, *look);
                Ok(())
            }
            AssumptionMark::Rectangle { place: (x, y, width, height), colour } => {
                surface.set_fill(Some(paint(*colour)));
                surface.set_stroke(None);
                let mut builder = PathBuilder::new();
                if let Some(rectangle) = Rect::from_xywh(*x, *y, *width, *height) {
                    builder.push_rect(rectangle);
                }
                if let Some(path) = builder.finish() {
                    surface.draw_path(&path);
                }
                Ok(())
            }
            AssumptionMark::Drawing { drawing, at, scale } => {
                surface.push_transform(&Transform::from_row(*scale, 0.0, 0.0, *scale, at.0, at.1));
                let drawn = self.drawings[*drawing].draw(surface, faces);
                surface.pop();
                drawn
            }
        }
    }

    /// Room for the names of all leaves.
    pub(super) fn names(&self) -> Vec<Option<Identifier>> {
        vec![None; self.leaves]
    }

    /// The tree, once every leaf has its name.
    pub(super) fn tree(&self, names: &[Option<Identifier>]) -> TagTree {
        let mut tree = TagTree::new().with_lang(Some("en".into()));
        for root in &self.roots {
            tree.push(self.group(*root, names));
        }
        tree
    }

    fn group(&self, element: usize, names: &[Option<Identifier>]) -> TagGroup {
        let (tag, children) = &self.elements[element];
        let children: Vec<Node> = children
            .iter()
            .filter_map(|child| match child {
                Child::Element(child) => Some(self.group(*child, names).into()),
                Child::Leaf(leaf) => names[*leaf].map(Into::into),
            })
            .collect();
        TagGroup::with_children(tag.clone(), children)
    }
}

/// A line of clean text on a surface.
pub(super) fn write(
    surface: &mut Surface<'_>,
    faces: &Faces,
    at: (f32, f32),
    text: &str,
    look: Type,
) {
    let face = faces.face(look.bold);
    surface.set_fill(Some(paint(look.colour)));
    surface.set_stroke(None);
    let glyphs = face.glyphs(text);
    let start = Point::from_xy(at.0, at.1);
    surface.draw_glyphs(start, &glyphs, face.font.clone(), text, look.size, false);
}

fn paint((red, green, blue): Colour) -> Fill {
    Fill {
        paint: rgb::Color::new(red, green, blue).into(),
        opacity: NormalizedF32::ONE,
        rule: FillRule::NonZero,
    }
}
