//! YAML of the plainest kind: nested tables, lists of texts, texts in double quotes and numbers
//! that every reader takes for numbers.

/// A value.
pub(crate) enum Yaml {
    Text(String),
    Number(f64),
    Integer(u64),
    List(Vec<String>),
    Table(Vec<(&'static str, Yaml)>),
}

impl Yaml {
    pub(crate) fn text(words: impl Into<String>) -> Self {
        Self::Text(words.into())
    }

    /// The lines of a table at the margin.
    pub(crate) fn document(entries: &[(&'static str, Yaml)]) -> String {
        let mut text = String::new();
        table(entries, 0, &mut text);
        text
    }
}

fn table(entries: &[(&'static str, Yaml)], depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    for (key, value) in entries {
        text.push_str(&format!("{indent}{key}:"));
        match value {
            Yaml::Text(words) => text.push_str(&format!(" {}\n", quoted(words))),
            // Without an exponent: `1e-5` is a text for readers of YAML 1.1.
            Yaml::Number(number) => text.push_str(&format!(" {number}\n")),
            Yaml::Integer(number) => text.push_str(&format!(" {number}\n")),
            Yaml::List(items) => {
                text.push('\n');
                for item in items {
                    text.push_str(&format!("{indent}  - {}\n", quoted(item)));
                }
            }
            Yaml::Table(entries) => {
                text.push('\n');
                table(entries, depth + 1, text);
            }
        }
    }
}

/// JSON's way to quote a text is one of YAML's.
fn quoted(words: &str) -> String {
    serde_json::Value::from(words).to_string()
}
