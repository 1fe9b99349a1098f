//! The two faces: widths, lines, glyphs. Arimo has the widths of Helvetica, which the figures
//! count on; a subset of it is part of the program (`fonts/OFL.txt` is its licence).

use krilla::text::{Font, GlyphId, KrillaGlyph};
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};
use std::collections::BTreeMap;

const REGULAR: &[u8] = include_bytes!("../../fonts/Arimo-Regular.ttf");
const BOLD: &[u8] = include_bytes!("../../fonts/Arimo-Bold.ttf");

/// What stands for a character that the face does not have. Copied text keeps the character.
const MISSING: char = '\u{25a1}';

/// Signs that stay with the word after them.
const SIGNS: [&str; 8] =
    ["\u{2264}", "\u{2265}", "\u{2248}", "=", "\u{d7}", "\u{3b5}", "\u{3b4}", "\u{3bc}"];

/// One face.
pub(super) struct Face {
    pub(super) font: Font,
    /// The glyph of a character, and its width in units of the size.
    glyphs: BTreeMap<char, (u32, f32)>,
}

/// Both faces.
pub(super) struct Faces {
    pub(super) regular: Face,
    pub(super) bold: Face,
}

impl Faces {
    /// Reads the built-in faces; nothing if they were damaged.
    pub(super) fn load() -> Option<Self> {
        Some(Self { regular: Face::load(REGULAR)?, bold: Face::load(BOLD)? })
    }

    pub(super) fn face(&self, bold: bool) -> &Face {
        if bold { &self.bold } else { &self.regular }
    }
}

impl Face {
    fn load(data: &'static [u8]) -> Option<Self> {
        let read = FontRef::new(data).ok()?;
        let metrics = read.glyph_metrics(Size::unscaled(), LocationRef::default());
        let em = f32::from(read.metrics(Size::unscaled(), LocationRef::default()).units_per_em);
        let mut glyphs = BTreeMap::new();
        for (code, glyph) in read.charmap().mappings() {
            if let Some(letter) = char::from_u32(code) {
                let width = metrics.advance_width(glyph).unwrap_or(0.0) / em;
                glyphs.insert(letter, (glyph.to_u32(), width));
            }
        }
        glyphs.get(&MISSING)?;
        Some(Self { font: Font::new(data.into(), 0)?, glyphs })
    }

    fn glyph(&self, letter: char) -> (u32, f32) {
        self.glyphs.get(&letter).or_else(|| self.glyphs.get(&MISSING)).copied().unwrap_or((0, 0.0))
    }

    pub(super) fn width(&self, text: &str, size: f32) -> f32 {
        size * text.chars().map(|letter| self.glyph(letter).1).sum::<f32>()
    }

    /// The glyphs of a line; the text must be [`clean`].
    pub(super) fn glyphs(&self, text: &str) -> Vec<KrillaGlyph> {
        text.char_indices()
            .map(|(at, letter)| {
                let (id, width) = self.glyph(letter);
                let range = at..at + letter.len_utf8();
                KrillaGlyph::new(GlyphId::new(id), width, 0.0, 0.0, 0.0, range, None)
            })
            .collect()
    }

    /// Lines that fit into a width. A word that is wider than a line is cut where it must be.
    pub(super) fn lines(&self, text: &str, size: f32, limit: f32) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = String::new();
        for word in words(text) {
            let longer = if line.is_empty() { word.clone() } else { format!("{line} {word}") };
            if self.width(&longer, size) <= limit {
                line = longer;
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            for letter in word.chars() {
                line.push(letter);
                if self.width(&line, size) > limit && line.chars().count() > 1 {
                    line.pop();
                    lines.push(std::mem::take(&mut line));
                    line.push(letter);
                }
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
        lines
    }

    /// The widest word: a column narrower than this cuts it.
    pub(super) fn widest_word(&self, text: &str, size: f32) -> f32 {
        words(text).iter().map(|word| self.width(word, size)).fold(0.0, f32::max)
    }
}

/// The parts between which a line may end. A sign stays with what follows it.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut after_sign = false;
    for part in text.split(' ').filter(|part| !part.is_empty()) {
        match words.last_mut() {
            Some(word) if after_sign => {
                word.push(' ');
                word.push_str(part);
            }
            _ => words.push(part.to_owned()),
        }
        after_sign = SIGNS.contains(&part);
    }
    words
}

/// Text without characters that have no shape and no meaning on paper.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            _ if letter.is_control() => ' ',
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => ' ',
            '\u{feff}' | '\u{fffe}' | '\u{ffff}' => ' ',
            '\u{fffd}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'.. => MISSING,
            _ => letter,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_lose_nothing() {
        let faces = Faces::load().unwrap();
        let text = "epsilon \u{2264} 3.95 at delta 1e-5, whatever iterates are released";
        let lines = faces.regular.lines(text, 10.0, 90.0);
        assert!(lines.len() > 2 && lines.join(" ") == text, "{lines:?}");
        assert!(lines.iter().all(|line| faces.regular.width(line, 10.0) <= 90.0));
        assert!(lines.iter().any(|line| line.contains("\u{2264} 3.95")), "{lines:?}");
        let hash = "0123456789abcdef".repeat(4);
        assert_eq!(faces.regular.lines(&hash, 10.0, 90.0).concat(), hash);
    }

    #[test]
    fn every_character_that_a_report_uses_has_a_glyph() {
        let faces = Faces::load().unwrap();
        let used = "abcXYZ019 \u{3b5}\u{3b4}\u{3bc}\u{2264}\u{2265}\u{2248}\u{2212}\u{d7}\u{b7}\
                    \u{2013}\u{2019}\u{201c}\u{201d}\u{2026}\u{a0}\u{e9}\u{2192}\u{221e}\u{b1}";
        for letter in used.chars() {
            for face in [&faces.regular, &faces.bold] {
                assert!(face.glyphs.contains_key(&letter), "{letter}");
            }
        }
    }

    #[test]
    fn unprintable_characters_are_replaced() {
        assert_eq!(clean("a\u{0}b\u{200b}c\u{e000}d\te"), "a b c\u{25a1}d e");
    }
}
