use vocabulary::Problem;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum LanguageError {
    #[error("cannot read {place}: {source}")]
    Read { place: String, source: std::io::Error },
    /// A model without a tokenizer that is known; a command says how to name one.
    #[error("{place}: {problem}")]
    NoTokenizer { place: String, problem: String },
    /// A file that is not what it should be; the place is `file` or `file, row N`.
    #[error("{place}: {problem}")]
    File { place: String, problem: String },
    #[error("{0}")]
    InvalidInput(String),
    /// One value is out of its range.
    #[error("{0}")]
    Value(Problem),
    /// A device that is not there or cannot.
    #[error("{0}")]
    Device(String),
}

impl LanguageError {
    pub(crate) fn file(place: impl ToString, problem: impl Into<String>) -> Self {
        Self::File { place: place.to_string(), problem: problem.into() }
    }
}

/// The start of foreign text for a message, on one line and without control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut short: String =
        text.chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().count() > 60 {
        short.push('…');
    }
    short
}
