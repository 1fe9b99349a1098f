//! Examples from JSONL and text files. A record is a line of JSONL, or a line or a block of tokens of
//! a text; what is protected is a record.

use super::Example;
use crate::LanguageError;
use crate::load::Model;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The `[data]` table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextSource {
    /// JSONL, or text; relative to the file that describes the training.
    pub path: PathBuf,
    /// Held-out text of the same form, for the loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// By the file's ending where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<TextFormat>,
    /// The key of what is given; without it the whole of `completion` is learnt.
    #[serde(default = "prompt")]
    pub prompt: String,
    /// The key of what is learnt.
    #[serde(default = "completion")]
    pub completion: String,
    /// The key of a text of which everything is learnt, where a line has it.
    #[serde(default = "text")]
    pub text: String,
    /// Between prompt and completion.
    #[serde(default)]
    pub separator: String,
    /// Of text files: what is one record.
    #[serde(default)]
    pub records: TextRecords,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextFormat {
    Jsonl,
    Text,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextRecords {
    /// As many tokens as an example may have.
    #[default]
    Blocks,
    Lines,
}

fn prompt() -> String {
    "prompt".into()
}

fn completion() -> String {
    "completion".into()
}

fn text() -> String {
    "text".into()
}

/// Examples with where they come from.
pub struct Texts {
    pub examples: Vec<Example>,
    pub name: String,
    pub sha256: String,
    /// Examples whose end was cut off.
    pub cut: usize,
}

impl TextSource {
    /// Reads a file as this table says; at most `length` tokens per example.
    ///
    /// # Errors
    /// Names the file and the line that is no record.
    pub fn read(&self, path: &Path, model: &Model, length: usize) -> Result<Texts, LanguageError> {
        let place = path.display().to_string();
        let bytes = std::fs::read(path)
            .map_err(|source| LanguageError::Read { place: place.clone(), source })?;
        let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let text = String::from_utf8(bytes)
            .map_err(|_| LanguageError::file(&place, "is not UTF-8 text"))?;
        let length = length.min(model.decoder.architecture.context);
        if length < 2 {
            return Err(LanguageError::InvalidInput(format!(
                "examples of {length} tokens have nothing to learn; raise `length`"
            )));
        }
        let jsonl = self.format.map_or_else(
            || path.extension().is_some_and(|e| e == "jsonl" || e == "ndjson" || e == "json"),
            |format| format == TextFormat::Jsonl,
        );
        let found: Vec<(Example, bool)> = if jsonl {
            self.lines(&text, &place, model, length)?
        } else if self.records == TextRecords::Lines {
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            lines
                .par_iter()
                .map(|line| example(model, "", line, length))
                .collect::<Result<Vec<_>, _>>()?
        } else {
            blocks(&text, model, length)?
        };
        let cut = found.iter().filter(|(_, cut)| *cut).count();
        let examples: Vec<Example> = found.into_iter().map(|(example, _)| example).collect();
        if examples.is_empty() {
            return Err(LanguageError::file(&place, "holds no records"));
        }
        let name =
            path.file_name().map_or_else(|| place.clone(), |name| name.to_string_lossy().into());
        Ok(Texts { examples, name, sha256, cut })
    }

    fn lines(
        &self,
        text: &str,
        place: &str,
        model: &Model,
        length: usize,
    ) -> Result<Vec<(Example, bool)>, LanguageError> {
        let lines: Vec<(usize, &str)> =
            text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
        lines
            .par_iter()
            .map(|(number, line)| {
                let refuse = |problem: String| {
                    LanguageError::file(format!("{place}, row {}", number + 1), problem)
                };
                let value: Value = serde_json::from_str(line)
                    .map_err(|error| refuse(format!("is not JSON: {error}")))?;
                let string = |key: &str| value.get(key).and_then(Value::as_str);
                if let Some(text) = string(&self.text) {
                    return example(model, "", text, length);
                }
                let completion = string(&self.completion).ok_or_else(|| {
                    refuse(format!(
                        "has neither a text `{}` nor a text `{}`; name the keys in [data]",
                        self.text, self.completion
                    ))
                })?;
                let prompt = string(&self.prompt).unwrap_or("");
                example(model, &format!("{prompt}{}", self.separator), completion, length)
            })
            .collect()
    }
}

/// Prompt and completion are tokenised on their own, as they are when a model is asked.
fn example(
    model: &Model,
    prompt: &str,
    completion: &str,
    length: usize,
) -> Result<(Example, bool), LanguageError> {
    let tokenizer = &model.tokenizer;
    let (mut tokens, first) = if prompt.is_empty() {
        (tokenizer.encode(completion, true)?, 1)
    } else {
        let mut tokens = tokenizer.encode(prompt, true)?;
        let learnt = tokenizer.encode(completion, false)?;
        // A prompt has the room that the completion leaves, and half of it all at least; where that
        // is not enough it keeps its end, where the question is.
        let most = length.saturating_sub(learnt.len() + 1).max(length / 2).max(1);
        if tokens.len() > most {
            tokens.drain(..tokens.len() - most);
        }
        let first = tokens.len();
        tokens.extend(learnt);
        (tokens, first.max(1))
    };
    if let Some(end) = model.stop.last() {
        tokens.push(*end);
    }
    let cut = tokens.len() > length;
    tokens.truncate(length);
    while tokens.len() <= first {
        // An empty text: something has to be there for the record to count.
        tokens.push(model.stop.last().copied().unwrap_or(0));
    }
    Ok((Example { tokens, first }, cut))
}

fn blocks(text: &str, model: &Model, length: usize) -> Result<Vec<(Example, bool)>, LanguageError> {
    // Paragraph by paragraph: some tokenizers take quadratic time.
    let mut tokens = Vec::new();
    for line in text.split_inclusive('\n') {
        tokens.extend(model.tokenizer.encode(line, false)?);
    }
    let whole = tokens.chunks(length).filter(|block| block.len() > 1);
    Ok(whole.map(|block| (Example { tokens: block.to_vec(), first: 1 }, false)).collect())
}

/// Mean loss in nats of the learnt tokens, each token counting once.
///
/// # Errors
/// Those of the decoder.
pub fn loss(decoder: &crate::Decoder, examples: &[Example]) -> Result<f64, LanguageError> {
    let found: Vec<Result<(f64, usize), LanguageError>> = examples
        .par_iter()
        .map(|example| {
            let learnt = &decoder.log_probabilities(&example.tokens)?[example.first - 1..];
            Ok((-learnt.iter().sum::<f64>(), learnt.len()))
        })
        .collect();
    let (mut total, mut count) = (0.0, 0);
    for one in found {
        let (loss, tokens) = one?;
        total += loss;
        count += tokens;
    }
    Ok(total / count.max(1) as f64)
}
