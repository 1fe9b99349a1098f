//! Text into markup. The page is well-formed as XML, too, so that any parser can check it.

/// Text for an element or a double-quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // Not allowed in markup at all, not even as references.
            c if (c < ' ' && c != '\n' && c != '\t') || c == '\u{7f}' => safe.push('\u{fffd}'),
            // A number and its sign stay on one line.
            '%' if safe.ends_with(' ') => {
                safe.pop();
                safe.push_str("\u{a0}%");
            }
            c => safe.push(c),
        }
    }
    safe
}

/// A sentence for an element: what stands between backticks is code.
pub(super) fn prose(text: &str) -> String {
    let safe = escape(text);
    let parts: Vec<&str> = safe.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return safe;
    }
    let part = |(place, part): (usize, &&str)| match place % 2 {
        0 => (*part).to_owned(),
        _ => format!("<code>{part}</code>"),
    };
    parts.iter().enumerate().map(part).collect()
}

/// A JSON text for the inside of a `script` element: nothing in it can end the element or be
/// read as markup.
pub(super) fn json_in_script(json: &str) -> String {
    json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_become_code() {
        assert_eq!(prose("give `a < b`, or `c`"), "give <code>a &lt; b</code>, or <code>c</code>");
        assert_eq!(prose("one ` alone"), "one ` alone");
    }

    #[test]
    fn nothing_gets_out() {
        assert_eq!(escape("<a b=\"c\">&\u{1}"), "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd}");
        let hidden = json_in_script(r#"{"a":"</script><!--&"}"#);
        assert!(!hidden.contains(['<', '>', '&']));
        let back: serde_json::Value = serde_json::from_str(&hidden).unwrap();
        assert_eq!(back["a"], "</script><!--&");
    }
}
