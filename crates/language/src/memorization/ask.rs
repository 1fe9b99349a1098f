//! Lets a decoder complete the prompts of secrets.

use super::{Completion, Completions};
use crate::finetune::Measurer;
use crate::model::{Decoder, Sampling, drawn, greedy, largest, sample};
use crate::{LanguageError, Tokenizer};
use serde_json::{Value, json};
use std::path::Path;

/// How secrets are asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asking {
    /// Sampled completions per secret; 0: one greedy completion.
    pub samples: u64,
    /// The most tokens in a completion.
    pub new_tokens: usize,
    pub sampling: Sampling,
    pub seed: u64,
}

/// Completions of every secret's prompt; `stop` are tokens that end a text.
///
/// # Errors
/// `InvalidInput` for an empty prompt or a sampling out of range; those of the decoder.
pub fn ask(
    decoder: &Decoder,
    tokenizer: &Tokenizer,
    stop: &[u32],
    secrets: &[Completion],
    asking: &Asking,
    done: &mut dyn FnMut(usize),
) -> Result<Completions, LanguageError> {
    asking.sampling.check()?;
    let mut all = Completions::default();
    for (index, secret) in secrets.iter().enumerate() {
        let prompt = tokenizer.encode(&secret.prompt, true)?;
        if prompt.is_empty() {
            return Err(LanguageError::InvalidInput(format!(
                "the prompt of secret {} is empty",
                index + 1
            )));
        }
        // What is new: the text of all tokens without the text of the prompt's.
        let before = tokenizer.decode(&prompt)?;
        for number in 0..asking.samples.max(1) {
            let tokens = if asking.samples == 0 {
                greedy(decoder, &prompt, asking.new_tokens, stop)?
            } else {
                let stream = (asking.seed, ((index as u64) << 32) | number);
                sample(decoder, &prompt, asking.new_tokens, stop, &asking.sampling, stream)?
            };
            let whole = tokenizer.decode(&[&prompt[..], &tokens[..]].concat())?;
            let completion = whole.strip_prefix(&before).unwrap_or(&whole).to_owned();
            all.rows.push(Completion { completion, ..secret.clone() });
        }
        done(index + 1);
    }
    Ok(all)
}

/// What is asked, and of whom.
pub struct Questions<'a> {
    pub tokenizer: &'a Tokenizer,
    /// Tokens that end a text.
    pub stop: &'a [u32],
    pub secrets: &'a [Completion],
    pub asking: &'a Asking,
}

/// As [`ask`], where the decoder was trained: on a device all texts grow together.
///
/// # Errors
/// As [`ask`], and those of the device.
pub(crate) fn ask_with(
    measurer: &mut Measurer,
    decoder: &Decoder,
    questions: &Questions<'_>,
    done: &mut dyn FnMut(usize),
) -> Result<Completions, LanguageError> {
    let Questions { tokenizer, stop, secrets, asking } = *questions;
    asking.sampling.check()?;
    let repeats = asking.samples.max(1) as usize;
    let mut prompts = Vec::with_capacity(secrets.len() * repeats);
    for secret in secrets {
        let prompt = tokenizer.encode(&secret.prompt, true)?;
        prompts.extend(std::iter::repeat_n(prompt, repeats));
    }
    // As `sample` and `greedy` choose on the CPU.
    let choose = |number: usize, place: usize, logits: &[f32]| {
        let (index, sample) = (number / repeats, number % repeats);
        let token = if asking.samples == 0 {
            largest(logits)
        } else {
            let stream = (asking.seed, ((index as u64) << 32) | sample as u64);
            drawn(logits, &asking.sampling, stream, place)
        };
        (!stop.contains(&token)).then_some(token)
    };
    let Some(found) = measurer.continue_prompts(&prompts, asking.new_tokens, &choose) else {
        return ask(decoder, tokenizer, stop, secrets, asking, done);
    };
    let mut all = Completions::default();
    for (number, (tokens, prompt)) in found?.iter().zip(&prompts).enumerate() {
        let before = tokenizer.decode(prompt)?;
        let whole = tokenizer.decode(&[&prompt[..], &tokens[..]].concat())?;
        let completion = whole.strip_prefix(&before).unwrap_or(&whole).to_owned();
        all.rows.push(Completion { completion, ..secrets[number / repeats].clone() });
        done(number / repeats + 1);
    }
    Ok(all)
}

/// Secrets from a JSONL file: completions that are still to be made.
///
/// # Errors
/// Names the file, the line and what is wrong with it.
pub fn read_secrets(path: &Path) -> Result<Vec<Completion>, LanguageError> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|source| LanguageError::Read { place: place.clone(), source })?;
    let mut lines = String::new();
    for line in text.lines() {
        // A broken line is left as it is: the reader below names it.
        let completed = match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(mut object)) => {
                object.entry("completion").or_insert_with(|| json!(""));
                object.entry("prompt").or_insert_with(|| json!(""));
                Value::Object(object).to_string()
            }
            _ => line.to_owned(),
        };
        lines.push_str(&completed);
        lines.push('\n');
    }
    Ok(Completions::from_jsonl(&lines, &place)?.rows)
}
