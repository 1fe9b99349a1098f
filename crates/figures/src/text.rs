//! Words in an SVG: escaping, and widths without a font at hand.

/// Escapes text for element content and attribute values. Characters that XML 1.0 does not
/// allow become U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Widths of the printable ASCII characters in Helvetica, in thousandths of the font size.
#[rustfmt::skip]
const HELVETICA: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// Common faces are up to this much wider than Helvetica.
const ALLOWANCE: f64 = 1.07;

/// About how wide a text is; rather too wide than too narrow.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let thousandths: f64 = text.chars().map(|c| f64::from(character_width(c))).sum();
    ALLOWANCE * size * thousandths / 1000.0
}

fn character_width(character: char) -> u16 {
    match character {
        ' '..='~' => HELVETICA[character as usize - 32],
        '\u{300}'..='\u{36f}' => 0,
        '\u{2070}'..='\u{209f}' | '\u{b2}' | '\u{b3}' | '\u{b9}' => 380,
        '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{d7ff}' | '\u{f900}'.. => 1000,
        _ => 600,
    }
}

/// The parts between which a line may end: not at a no-break space, and not beside a sign
/// of relation, so that "ε = 8" stays together.
fn words(text: &str) -> Vec<String> {
    const SIGNS: [&str; 9] =
        ["=", "<", ">", "\u{2264}", "\u{2265}", "\u{2248}", "\u{d7}", "/", "\u{b1}"];
    let mut words: Vec<String> = Vec::new();
    let mut after_sign = false;
    for part in text.split(|c: char| c.is_whitespace() && c != '\u{a0}').filter(|p| !p.is_empty()) {
        let sign = SIGNS.contains(&part);
        match words.last_mut() {
            Some(word) if sign || after_sign => {
                word.push(' ');
                word.push_str(part);
            }
            _ => words.push(part.to_string()),
        }
        after_sign = sign;
    }
    words
}

/// Breaks a text into lines at spaces; a word wider than a line is broken anywhere.
pub(crate) fn wrap(text: &str, size: f64, limit: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in words(text) {
        let longer = if line.is_empty() { word.to_string() } else { format!("{line} {word}") };
        if width(&longer, size) <= limit {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for character in word.chars() {
            line.push(character);
            if width(&line, size) > limit && line.chars().count() > 1 {
                line.pop();
                lines.push(std::mem::take(&mut line));
                line.push(character);
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Like `wrap`, with lines of about the same length.
pub(crate) fn wrap_evenly(text: &str, size: f64, limit: f64) -> Vec<String> {
    let mut best = wrap(text, size, limit);
    // Few lines are worth it, and a long text need not be wrapped again and again.
    if (2..=6).contains(&best.len()) {
        for part in (55..100).step_by(3).rev() {
            let lines = wrap(text, size, limit * f64::from(part) / 100.0);
            if lines.len() > best.len() {
                break;
            }
            best = lines;
        }
    }
    best
}

/// The text, or as much of its beginning as fits before an ellipsis.
pub(crate) fn shorten(text: &str, size: f64, limit: f64) -> String {
    if width(text, size) <= limit {
        return text.to_string();
    }
    let mut short = String::new();
    for character in text.chars() {
        short.push(character);
        if width(&short, size) + size > limit {
            short.pop();
            break;
        }
    }
    short.trim_end().to_string() + "\u{2026}"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_forbidden_characters_are_escaped() {
        assert_eq!(escape("a<b & \"c\">\u{0}\n'd'"), "a&lt;b &amp; &quot;c&quot;&gt;\u{fffd} 'd'");
    }

    #[test]
    fn lines_fit_and_nothing_is_lost() {
        let text = "the quick brown fox jumps over the lazy dog";
        let lines = wrap(text, 12.0, 90.0);
        assert!(lines.len() > 2);
        assert!(lines.iter().all(|line| width(line, 12.0) <= 90.0));
        assert_eq!(lines.join(" "), text);
        let lines = wrap("the claim: \u{3b5} = 4", 12.0, 70.0);
        assert_eq!(lines, ["the claim:", "\u{3b5} = 4"]);
        let broken = wrap("incomprehensibilities", 12.0, 40.0);
        assert!(broken.len() > 2);
        assert_eq!(broken.concat(), "incomprehensibilities");
    }

    #[test]
    fn a_long_text_is_shortened_with_an_ellipsis() {
        let short = shorten("incomprehensibilities", 12.0, 60.0);
        assert!(short.ends_with('\u{2026}') && width(&short, 12.0) <= 62.0, "{short}");
        assert_eq!(shorten("short", 12.0, 60.0), "short");
    }
}
