//! Heading above, caption and footnotes below.

use super::Canvas;
use crate::layout::{BODY, CAPTION, FOOT, MARGIN, TITLE};
use crate::svg::Anchor;

impl Canvas<'_> {
    pub(super) fn draw_words(&mut self) {
        let layout = &self.layout;
        let svg = &mut self.svg;
        let mut y = MARGIN - 4.0;
        for line in &layout.title {
            svg.text("title", (MARGIN, y + 15.0), Anchor::Start, line);
            y += TITLE.1;
        }
        for line in &layout.subtitle {
            svg.text("quiet", (MARGIN, y + 13.0), Anchor::Start, line);
            y += BODY.1;
        }
        let footnotes = layout.footnotes.len() as f64 * FOOT.1;
        let captions = layout.caption.len() as f64 * CAPTION.1;
        let mut y = layout.height - MARGIN + 6.0 - footnotes - captions;
        for line in &layout.caption {
            svg.text("caption quiet", (MARGIN, y + 9.0), Anchor::Start, line);
            y += CAPTION.1;
        }
        for line in &layout.footnotes {
            svg.text("foot quiet", (MARGIN, y + 9.0), Anchor::Start, line);
            y += FOOT.1;
        }
    }
}
