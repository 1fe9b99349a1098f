//! Blocks one below the other, over as many pages as they need.

use super::PdfError;
use super::drawing::Drawing;
use super::font::{Faces, clean};
use super::sheet::{AssumptionMark, GROUND, INK, MARGIN, MUTED, PAGE, RULE, Sheets, Type, WIDTH};
use crate::content::Block;
use crate::{Shown, html};
use figures::{Options, Theme};
use krilla::geom::Rect;
use krilla::tagging::{BBox, ListNumbering, Tag, TagKind};
use std::num::NonZeroU16;
use vocabulary::figure::{Figure, Scale};

pub(super) const BODY: Type = Type { size: 9.5, bold: false, colour: INK };
const SMALL: Type = Type { size: 8.0, bold: false, colour: MUTED };
const TITLE: Type = Type { size: 21.0, bold: true, colour: INK };
const HEADING: Type = Type { size: 13.0, bold: true, colour: INK };
/// Height of a line, in units of the size.
pub(super) const LEADING: f32 = 1.38;
/// A drawing has this many pixels in the width of the page.
const PIXELS: f64 = 660.0;

/// A place that the outline leads to.
pub(super) struct Goal {
    pub(super) title: String,
    pub(super) page: usize,
    pub(super) y: f32,
}

/// Pages that grow.
pub(super) struct Flow<'a> {
    pub(super) faces: &'a Faces,
    pub(super) sheets: Sheets,
    pub(super) goals: Vec<Goal>,
    /// Where the next block begins.
    pub(super) y: f32,
}

impl<'a> Flow<'a> {
    pub(super) fn new(faces: &'a Faces) -> Self {
        let mut flow = Self { faces, sheets: Sheets::default(), goals: Vec::new(), y: 0.0 };
        flow.turn();
        flow
    }

    /// The next page.
    pub(super) fn turn(&mut self) {
        self.sheets.pages.push(Vec::new());
        self.y = MARGIN.1;
    }

    /// What is left of the page.
    pub(super) fn room(&self) -> f32 {
        PAGE.1 - MARGIN.2 - self.y
    }

    /// Turns the page unless this much fits.
    pub(super) fn need(&mut self, height: f32) {
        if height > self.room() && self.y > MARGIN.1 {
            self.turn();
        }
    }

    fn gap(&mut self, height: f32) {
        if self.y > MARGIN.1 {
            self.y += height;
        }
    }

    /// The title and what stands below it.
    pub(super) fn cover(&mut self, title: &str, facts: &[(&str, String)]) {
        self.goals.push(Goal { title: title.into(), page: 0, y: self.y });
        let heading = self.sheets.element(None, heading_tag(1, title));
        self.lines(heading, title, TITLE, MARGIN.0, WIDTH);
        self.y += 6.0;
        for (name, value) in facts {
            let line = self.sheets.element(None, Tag::P);
            self.lines(line, &format!("{name}: {value}"), SMALL, MARGIN.0, WIDTH);
        }
        self.y += 6.0;
        self.rule();
    }

    fn rule(&mut self) {
        let place = (MARGIN.0, self.y, WIDTH, 0.8);
        self.sheets.place(None, AssumptionMark::Rectangle { place, colour: RULE });
        self.y += 8.0;
    }

    /// Adds a block.
    ///
    /// # Errors
    /// A figure that cannot be drawn.
    pub(super) fn block(&mut self, block: &Block<'_>) -> Result<(), PdfError> {
        match block {
            // The title stands in its place.
            Block::Heading(2, _) => {}
            Block::Heading(_, title) => self.heading(title),
            Block::Paragraph(strong, rest) => {
                let paragraph = self.sheets.element(None, Tag::P);
                let runs = [(true, strong.as_str()), (false, rest.as_str())];
                self.rich(paragraph, &runs, BODY, MARGIN.0, WIDTH);
                self.y += 5.0;
            }
            Block::Quote(paragraphs) => self.quote(paragraphs),
            Block::Table { columns, rows } => {
                super::table::table(self, columns, rows);
                self.y += 8.0;
            }
            Block::Code(lines) => {
                let code = self.sheets.element(None, Tag::Code);
                for line in lines {
                    self.lines(code, line, BODY, MARGIN.0 + 8.0, WIDTH - 8.0);
                }
                self.y += 5.0;
            }
            Block::List(items) => self.list(items),
            Block::Figure(shown) => self.figure(shown)?,
        }
        Ok(())
    }

    fn heading(&mut self, title: &str) {
        self.gap(9.0);
        // A heading is not left alone at the foot of a page.
        self.need(HEADING.size * LEADING + 60.0);
        let page = self.sheets.pages.len() - 1;
        self.goals.push(Goal { title: title.into(), page, y: self.y });
        let heading = self.sheets.element(None, heading_tag(2, title));
        self.lines(heading, title, HEADING, MARGIN.0, WIDTH);
        self.y += 3.0;
    }

    fn quote(&mut self, paragraphs: &[String]) {
        let quote = self.sheets.element(None, Tag::BlockQuote);
        for text in paragraphs {
            let paragraph = self.sheets.element(Some(quote), Tag::P);
            let before = (self.sheets.pages.len(), self.y);
            self.lines(paragraph, text, BODY, MARGIN.0 + 12.0, WIDTH - 12.0);
            if before.0 == self.sheets.pages.len() {
                let place = (MARGIN.0, before.1, 2.0, self.y - before.1);
                self.sheets.place(None, AssumptionMark::Rectangle { place, colour: RULE });
            }
            self.y += 5.0;
        }
    }

    fn list(&mut self, items: &[String]) {
        let list = self.sheets.element(None, Tag::L(ListNumbering::Circle));
        for item in items {
            let entry = self.sheets.element(Some(list), Tag::LI);
            let label = self.sheets.element(Some(entry), Tag::Lbl);
            let body = self.sheets.element(Some(entry), Tag::LBody);
            let height = BODY.size * LEADING;
            self.need(height);
            let at = (MARGIN.0 + 2.0, self.y + baseline(BODY));
            self.sheets.place(
                Some(label),
                AssumptionMark::Text { at, text: "\u{2022}".into(), look: BODY },
            );
            self.lines(body, &item.replace('`', ""), BODY, MARGIN.0 + 12.0, WIDTH - 12.0);
            self.y += 2.0;
        }
        self.y += 5.0;
    }

    /// Its finding, the drawing, how to read it.
    fn figure(&mut self, shown: &Shown) -> Result<(), PdfError> {
        let figure = &shown.figure;
        let options = Options {
            width: PIXELS,
            height: height(figure),
            theme: Theme::Light,
            heading: false,
            caption: false,
            background: false,
            id: Some("drawing".into()),
        };
        let drawing = Drawing::read(figures::to_svg(figure, &options))?;
        let scale = WIDTH / drawing.width;
        let height = drawing.height * scale;
        let title = if shown.not_private {
            format!("{} (not private)", figure.title)
        } else {
            figure.title.clone()
        };
        self.gap(8.0);
        self.need(height + 4.0 * BODY.size * LEADING);
        let words = self.sheets.element(None, Tag::P);
        self.lines(words, &title, Type { bold: true, ..BODY }, MARGIN.0, WIDTH);
        if let Some(subtitle) = &figure.subtitle {
            let words = self.sheets.element(None, Tag::P);
            self.lines(words, subtitle, SMALL, MARGIN.0, WIDTH);
        }
        let page = self.sheets.pages.len() - 1;
        let mut tag = Tag::Figure(Some(drawing.description.clone()));
        if let Some(area) = Rect::from_xywh(MARGIN.0, self.y, WIDTH, height) {
            tag = tag.with_bbox(Some(BBox::new(page, area)));
        }
        let element = self.sheets.element(None, tag);
        let at = (MARGIN.0, self.y);
        self.sheets.drawings.push(drawing);
        let drawing = self.sheets.drawings.len() - 1;
        self.sheets.place(Some(element), AssumptionMark::Drawing { drawing, at, scale });
        self.y += height + 2.0;
        let caption = self.sheets.element(None, Tag::Caption);
        let mut sentences = vec![figure.caption.clone()];
        sentences.extend(figures::omitted(figure));
        self.lines(caption, &sentences.join(" "), SMALL, MARGIN.0, WIDTH);
        self.y += 8.0;
        Ok(())
    }

    /// A text in lines, as content of an element.
    pub(super) fn lines(&mut self, element: usize, text: &str, look: Type, x: f32, width: f32) {
        self.rich(element, &[(look.bold, text)], look, x, width);
    }

    /// Text of which some is bold.
    fn rich(&mut self, element: usize, runs: &[(bool, &str)], look: Type, x: f32, width: f32) {
        let lines = self.broken(runs, look.size, width);
        let last = lines.len().saturating_sub(1);
        for (place, line) in lines.into_iter().enumerate() {
            let height = look.size * LEADING;
            self.need(height);
            let mut at = (x, self.y + baseline(look));
            let pieces = line.len();
            for (piece, (bold, mut text)) in line.into_iter().enumerate() {
                // A space where the line ends: a screen reader then reads two words.
                if piece + 1 < pieces || place < last {
                    text.push(' ');
                }
                let right = self.faces.face(bold).width(&text, look.size);
                let look = Type { bold, ..look };
                self.sheets.place(Some(element), AssumptionMark::Text { at, text, look });
                at.0 += right;
            }
            self.y += height;
        }
    }

    /// Lines of pieces that are bold or not.
    fn broken(&self, runs: &[(bool, &str)], size: f32, width: f32) -> Vec<Vec<(bool, String)>> {
        let mut lines: Vec<Vec<(bool, String)>> = vec![Vec::new()];
        let mut used = 0.0;
        for (bold, text) in runs {
            let face = self.faces.face(*bold);
            let space = face.width(" ", size);
            let text = clean(text);
            // The first line takes up where the last run ended.
            let mut rest = text.trim().to_owned();
            while !rest.is_empty() {
                let lead = if used > 0.0 { used + space } else { 0.0 };
                let fitting = face.lines(&rest, size, width - lead);
                let Some(first) = fitting.first() else { break };
                let cut = face.width(first, size) > width - lead
                    || (lead > 0.0
                        && face.widest_word(first, size) < face.widest_word(&rest, size)
                        && !rest.starts_with(&format!("{first} "))
                        && first.len() < rest.len());
                if cut && lead > 0.0 {
                    lines.push(Vec::new());
                    used = 0.0;
                    continue;
                }
                used = lead + face.width(first, size);
                let taken = first.len();
                if let Some(line) = lines.last_mut() {
                    line.push((*bold, first.clone()));
                }
                rest = rest.get(taken..).unwrap_or_default().trim_start().to_owned();
                if !rest.is_empty() {
                    lines.push(Vec::new());
                    used = 0.0;
                }
            }
        }
        lines.retain(|line| !line.is_empty());
        lines
    }

    /// A pale band, for the head of a table.
    pub(super) fn band(&mut self, height: f32) {
        let place = (MARGIN.0, self.y, WIDTH, height);
        self.sheets.place(None, AssumptionMark::Rectangle { place, colour: GROUND });
    }
}

/// As in the page; curves a little lower, so that a page of paper holds two.
fn height(figure: &Figure) -> f64 {
    let height = html::figure::height(figure, PIXELS);
    if matches!(figure.y.scale, Scale::Category(_)) { height } else { 0.84 * height }
}

/// From the top of a line to its baseline.
pub(super) fn baseline(look: Type) -> f32 {
    look.size * (0.5 * LEADING + 0.34)
}

fn heading_tag(level: u16, title: &str) -> TagKind {
    Tag::Hn(NonZeroU16::new(level).unwrap_or(NonZeroU16::MIN), Some(title.to_owned())).into()
}
