//! When a completion counts as a match. Nothing is implicit: rule and normalisation are named in
//! every answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The completion starts with the text.
    Prefix,
    /// The text occurs anywhere.
    Contains,
    /// The text occurs as whole words: no letter or digit right before or after it.
    Words,
    /// The completion is the text.
    Exact,
}

/// What is made equal before comparing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Normalization {
    /// Every character counts.
    None,
    /// Runs of white space are one space; none at the ends.
    Space,
    /// `space`, and upper and lower case are the same.
    Case,
    /// `case`, and characters other than letters and digits are spaces.
    Loose,
}

/// A rule with its normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Matching {
    pub rule: Rule,
    pub normalization: Normalization,
}

impl Matching {
    /// Of the paper's code: `completion.startswith(target)`.
    pub const VERBATIM: Self = Self { rule: Rule::Prefix, normalization: Normalization::None };
    /// The attribute as whole words, whatever its case.
    pub const ATTRIBUTE: Self = Self { rule: Rule::Words, normalization: Normalization::Case };

    /// Whether `completion` matches `text`.
    ///
    /// ```
    /// use language::memorization::Matching;
    /// assert!(Matching::VERBATIM.matches(" 42 Elm St.", " 42 Elm"));
    /// assert!(!Matching::VERBATIM.matches("42 Elm", " 42 Elm"));
    /// assert!(Matching::ATTRIBUTE.matches("She writes True\n Crime.", "true crime"));
    /// assert!(!Matching::ATTRIBUTE.matches("a smart woman", "art"));
    /// ```
    pub fn matches(&self, completion: &str, text: &str) -> bool {
        let (completion, text) =
            (self.normalization.apply(completion), self.normalization.apply(text));
        if text.is_empty() {
            return false; // nothing is left to look for
        }
        match self.rule {
            Rule::Prefix => completion.starts_with(&text),
            Rule::Contains => completion.contains(&text),
            Rule::Exact => completion == text,
            Rule::Words => completion.match_indices(&text).any(|(at, found)| {
                let before = completion[..at].chars().next_back();
                let after = completion[at + found.len()..].chars().next();
                !before.is_some_and(char::is_alphanumeric)
                    && !after.is_some_and(char::is_alphanumeric)
            }),
        }
    }
}

impl Normalization {
    fn apply(self, text: &str) -> String {
        let folded: String = match self {
            Self::None => return text.to_owned(),
            Self::Space => text.to_owned(),
            Self::Case => text.to_lowercase(),
            Self::Loose => text
                .to_lowercase()
                .chars()
                .map(|c| if c.is_alphanumeric() { c } else { ' ' })
                .collect(),
        };
        folded.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_normalisations() {
        let matching = |rule, normalization| Matching { rule, normalization };
        assert!(matching(Rule::Prefix, Normalization::Space).matches("42 Elm", " 42  Elm"));
        assert!(
            matching(Rule::Exact, Normalization::Loose).matches("Ada, Lovelace!", "ada lovelace")
        );
        assert!(
            !matching(Rule::Exact, Normalization::Case).matches("Ada, Lovelace", "ada lovelace")
        );
        assert!(matching(Rule::Contains, Normalization::None).matches("smart", "art"));
        // Two occurrences, only the second on its own.
        assert!(Matching::ATTRIBUTE.matches("smart art", "art"));
        // A target of punctuation alone matches nothing when punctuation is dropped.
        assert!(!matching(Rule::Prefix, Normalization::Loose).matches("anything", "--"));
    }
}
