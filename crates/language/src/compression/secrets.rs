//! The ratios of all secrets, as a document.

use super::{Compression, Options, compress};
use crate::LanguageError;
use crate::load::Model;
use crate::memorization::{Completion, RateInterval, share};
use schemars::JsonSchema;
use serde::Serialize;

/// The confidence of the share's interval.
const CONFIDENCE: f64 = 0.95;

/// One secret.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CompressedSecret {
    pub secret: String,
    /// The shortest prompt found, as text.
    pub prompt_text: Option<String>,
    pub result: Compression,
}

/// The share of the secrets that are memorised, with its ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Share {
    #[serde(flatten)]
    pub interval: RateInterval,
    pub confidence: f64,
}

/// The `dosimeter.memorize-acr/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Compressions {
    pub schema: &'static str,
    pub secrets: usize,
    /// Secrets with a ratio above 1.
    pub memorized: usize,
    pub share: Share,
    /// Secrets for which no prompt was found.
    pub failed: usize,
    pub passes: u64,
    pub results: Vec<CompressedSecret>,
}

impl Compressions {
    pub const SCHEMA: &'static str = "dosimeter.memorize-acr/1";
}

/// Searches for the shortest prompt of every secret; `note` is called with a line for each.
///
/// # Errors
/// As [`compress`], and those of the tokenizer.
pub fn compress_secrets(
    model: &Model,
    secrets: &[Completion],
    options: &Options,
    note: &mut dyn FnMut(&str),
) -> Result<Compressions, LanguageError> {
    let begin = model.tokenizer.encode("", true)?;
    let mut allowed = vec![true; model.decoder.architecture.vocabulary];
    for token in begin.iter().chain(&model.stop) {
        if let Some(flag) = allowed.get_mut(*token as usize) {
            *flag = false;
        }
    }
    let mut results = Vec::with_capacity(secrets.len());
    for (index, secret) in secrets.iter().enumerate() {
        let text = format!("{}{}", secret.prompt, secret.target);
        let target = model.tokenizer.encode(&text, false)?;
        let result = compress(&model.decoder, &begin, &target, &allowed, options)?;
        let decode = |prompt: &Vec<u32>| model.tokenizer.decode(prompt);
        let prompt_text = result.prompt.as_ref().map(decode).transpose()?;
        let found =
            result.ratio.map_or_else(|| "no prompt found".into(), |r| format!("ratio {r:.2}"));
        let (number, of, passes) = (index + 1, secrets.len(), result.passes);
        note(&format!("{number} of {of}: {found} in {passes} passes"));
        results.push(CompressedSecret { secret: secret.secret.clone(), prompt_text, result });
    }
    let memorized = results.iter().filter(|one| one.result.memorized).count();
    Ok(Compressions {
        schema: Compressions::SCHEMA,
        secrets: results.len(),
        memorized,
        share: Share {
            interval: share(memorized, results.len(), CONFIDENCE),
            confidence: CONFIDENCE,
        },
        failed: results.iter().filter(|one| one.result.ratio.is_none()).count(),
        passes: results.iter().map(|one| one.result.passes).sum(),
        results,
    })
}
