//! TOML and JSON documents as one small tree, so that both are read by the same code and
//! every complaint names the key, the value and the nearest known key.

use crate::RunError;
use crate::rounding::plain;

/// A parsed document without its syntax.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Text(String),
    Number(f64),
    Boolean(bool),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
    Nothing,
}

impl Node {
    pub(crate) fn from_toml(text: &str) -> Result<Self, RunError> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error
                .span()
                .map_or(1, |span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
            RunError::Syntax { format: "TOML", line, message: one_line(error.message()) }
        })?;
        Ok(Self::from_toml_value(toml::Value::Table(table)))
    }

    pub(crate) fn from_json(text: &str) -> Result<Self, RunError> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| RunError::Syntax {
                format: "JSON",
                line: error.line(),
                message: if error.is_eof() {
                    "it ends too early".into()
                } else {
                    let said = one_line(&error.to_string());
                    said.split(" at line ").next().unwrap_or_default().to_owned()
                },
            })?;
        Ok(Self::from_json_value(value))
    }

    fn from_toml_value(value: toml::Value) -> Self {
        match value {
            toml::Value::String(text) => Self::Text(text),
            // Integers beyond 2^53 are refused where an integer is asked for.
            toml::Value::Integer(integer) => Self::Number(integer as f64),
            toml::Value::Float(number) => Self::Number(number),
            toml::Value::Boolean(truth) => Self::Boolean(truth),
            toml::Value::Datetime(when) => Self::Text(when.to_string()),
            toml::Value::Array(list) => {
                Self::List(list.into_iter().map(Self::from_toml_value).collect())
            }
            toml::Value::Table(table) => Self::Table(
                table.into_iter().map(|(key, value)| (key, Self::from_toml_value(value))).collect(),
            ),
        }
    }

    pub(crate) fn from_json_value(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Nothing,
            serde_json::Value::Bool(truth) => Self::Boolean(truth),
            serde_json::Value::Number(number) => {
                Self::Number(number.as_f64().unwrap_or(f64::INFINITY))
            }
            serde_json::Value::String(text) => Self::Text(text),
            serde_json::Value::Array(list) => {
                Self::List(list.into_iter().map(Self::from_json_value).collect())
            }
            serde_json::Value::Object(map) => Self::Table(
                map.into_iter().map(|(key, value)| (key, Self::from_json_value(value))).collect(),
            ),
        }
    }

    /// What a person would call this kind of value.
    fn kind(&self) -> String {
        match self {
            Self::Text(text) => format!("the text `{}`", shortened(text)),
            Self::Number(number) => format!("the number {}", plain(*number)),
            Self::Boolean(truth) => format!("`{truth}`"),
            Self::List(_) => "a list".into(),
            Self::Table(_) => "a table".into(),
            Self::Nothing => "null".into(),
        }
    }

    pub(crate) fn table(self, key: &str) -> Result<Vec<(String, Node)>, RunError> {
        match self {
            Self::Table(entries) => Ok(entries),
            other => Err(mismatch(key, "a table", &other)),
        }
    }

    pub(crate) fn list(self, key: &str) -> Result<Vec<Node>, RunError> {
        match self {
            Self::List(items) => Ok(items),
            other => Err(mismatch(key, "a list of tables", &other)),
        }
    }

    pub(crate) fn number(&self, key: &str) -> Result<f64, RunError> {
        match self {
            Self::Number(number) => Ok(*number),
            other => Err(mismatch(key, "a number", other)),
        }
    }

    /// A whole number; `1e6` is one.
    pub(crate) fn integer(&self, key: &str) -> Result<u64, RunError> {
        match self {
            Self::Number(number)
                if (0.0..=9_007_199_254_740_992.0).contains(number) && number.fract() == 0.0 =>
            {
                Ok(*number as u64)
            }
            other => Err(mismatch(key, "a whole number from 0 to 2^53 (1e6 is allowed)", other)),
        }
    }

    pub(crate) fn truth(&self, key: &str) -> Result<bool, RunError> {
        match self {
            Self::Boolean(truth) => Ok(*truth),
            other => Err(mismatch(key, "true or false", other)),
        }
    }

    pub(crate) fn text(&self, key: &str) -> Result<&str, RunError> {
        match self {
            Self::Text(text) => Ok(text),
            other => Err(mismatch(key, "a text in quotes", other)),
        }
    }
}

fn mismatch(key: &str, expected: &'static str, found: &Node) -> RunError {
    RunError::WrongType { key: key.to_owned(), expected, found: found.kind() }
}

/// What other libraries and papers call our keys.
const ELSEWHERE: [(&str, &str); 8] = [
    ("sigma", "noise_multiplier"),
    ("q", "sample_rate"),
    ("T", "steps"),
    ("n", "dataset_size"),
    ("lr", "learning_rate"),
    ("max_grad_norm", "clip_norm"),
    ("l2_norm_clip", "clip_norm"),
    ("expected_batch_size", "batch_size"),
];

/// The complaint about a key nobody knows.
pub(crate) fn unknown_key(key: &str, place: &str, known: &[&str]) -> RunError {
    let ours = ELSEWHERE.iter().find(|(theirs, _)| *theirs == key).map(|(_, ours)| *ours);
    let ours = ours.filter(|ours| known.contains(ours));
    RunError::UnknownKey {
        key: shortened(key),
        place: place.to_owned(),
        hint: match ours.or_else(|| nearest(key, known)) {
            Some(candidate) => format!("did you mean `{candidate}`?"),
            None => format!("known keys: {}", known.join(", ")),
        },
    }
}

/// The known word closest to a misspelt one, if one is close.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word: String = word.chars().take(64).collect::<String>().to_lowercase().replace('-', "_");
    known
        .iter()
        .map(|candidate| (edit_distance(&word, &candidate.replace('-', "_")), *candidate))
        .min()
        .filter(|(distance, candidate)| {
            *distance <= candidate.len().max(word.len()) / 3
                || (word.len() >= 4 && candidate.contains(word.as_str()))
        })
        .map(|(_, candidate)| candidate)
}

fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

/// Foreign text as it may stand in a message: short, on one line, without control characters
/// (a file must not be able to move the reader's cursor).
pub(crate) fn shortened(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(60)
        .map(|letter| if letter.is_control() { '·' } else { letter })
        .collect();
    if text.chars().count() > 60 {
        shown.push('…');
    }
    shown
}

fn one_line(message: &str) -> String {
    message
        .split(char::is_control)
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_finds_its_neighbour() {
        let known = ["noise_multiplier", "sample_rate", "steps"];
        assert_eq!(nearest("noise_multipler", &known), Some("noise_multiplier"));
        assert_eq!(nearest("sample-rate", &known), Some("sample_rate"));
        assert_eq!(nearest("sigma", &known), None);
    }

    #[test]
    fn integers_may_be_floats_but_not_fractions() {
        assert_eq!(Node::Number(1e6).integer("steps"), Ok(1_000_000));
        for bad in [1.5, -1.0, f64::NAN, 1e300] {
            assert!(Node::Number(bad).integer("steps").is_err(), "{bad}");
        }
    }

    #[test]
    fn syntax_errors_name_the_line() {
        let error = Node::from_toml("[run]\nsteps = = 3\n").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        let error = Node::from_json("{\n\"run\": }").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
