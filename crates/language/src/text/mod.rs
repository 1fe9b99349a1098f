//! Text to tokens and back.

mod scored;

pub use scored::ScoredTokenizer;

use crate::LanguageError;
use std::path::Path;

/// A tokenizer of one of the known kinds.
pub enum Tokenizer {
    HuggingFace(Box<tokenizers::Tokenizer>),
    /// Of llama2.c: sentencepiece's merges by score.
    Scored(ScoredTokenizer),
}

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub(crate) fn huggingface(path: &Path) -> Result<Self, LanguageError> {
        let place = path.display().to_string();
        let bytes = std::fs::read(path)
            .map_err(|source| LanguageError::Read { place: place.clone(), source })?;
        let tokenizer = tokenizers::Tokenizer::from_bytes(bytes)
            .map_err(|error| LanguageError::file(&place, format!("is not a tokenizer: {error}")))?;
        Ok(Self::HuggingFace(Box::new(tokenizer)))
    }

    /// The tokens of a text; with `begin`, after those that begin a text.
    ///
    /// # Errors
    /// `InvalidInput` where the tokenizer has no tokens for it.
    pub fn encode(&self, text: &str, begin: bool) -> Result<Vec<u32>, LanguageError> {
        match self {
            Self::HuggingFace(tokenizer) => {
                let found = tokenizer.encode(text, begin).map_err(|error| {
                    LanguageError::InvalidInput(format!("the text cannot be tokenised: {error}"))
                })?;
                Ok(found.get_ids().to_vec())
            }
            Self::Scored(tokenizer) => Ok(tokenizer.encode(text, begin)),
        }
    }

    /// The text of tokens, those that only begin or end a text left out.
    ///
    /// # Errors
    /// `InvalidInput` for tokens that are none.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, LanguageError> {
        match self {
            Self::HuggingFace(tokenizer) => tokenizer.decode(tokens, true).map_err(|error| {
                LanguageError::InvalidInput(format!("the tokens cannot be read: {error}"))
            }),
            Self::Scored(tokenizer) => Ok(tokenizer.decode(tokens)),
        }
    }

    /// One more than the largest token.
    pub fn size(&self) -> usize {
        match self {
            Self::HuggingFace(tokenizer) => {
                let largest = tokenizer.get_vocab(true).into_values().max();
                largest.map_or(0, |token| token as usize + 1)
            }
            Self::Scored(tokenizer) => tokenizer.size(),
        }
    }
}

/// A byte-level BPE from its lists; `digits`: every digit is on its own. Tokens of kind 3 (control)
/// and 4 (user defined) are matched before anything is split.
pub(crate) fn byte_level(
    tokens: &[String],
    merges: &[String],
    kinds: &[i64],
    digits: bool,
) -> Result<Tokenizer, String> {
    use tokenizers::models::bpe::BPE;
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;
    use tokenizers::pre_tokenizers::digits::Digits;
    use tokenizers::pre_tokenizers::sequence::Sequence;
    let vocabulary: Vec<(String, u32)> =
        tokens.iter().enumerate().map(|(i, token)| (token.clone(), i as u32)).collect();
    let pairs = merges
        .iter()
        .map(|merge| {
            let (a, b) = merge.split_once(' ').ok_or_else(|| {
                format!("the merge `{}` is not two tokens", crate::error::shown(merge))
            })?;
            Ok((a.to_owned(), b.to_owned()))
        })
        .collect::<Result<Vec<_>, String>>()?;
    let bpe = BPE::builder()
        .vocab_and_merges(vocabulary.into_iter().collect::<tokenizers::models::bpe::Vocab>(), pairs)
        .build()
        .map_err(|error| error.to_string())?;
    let mut tokenizer = tokenizers::Tokenizer::new(bpe);
    let bytes = ByteLevel::new(false, false, true);
    if digits {
        let parts = vec![Digits::new(true).into(), bytes.into()];
        tokenizer.with_pre_tokenizer(Some(Sequence::new(parts)));
    } else {
        tokenizer.with_pre_tokenizer(Some(bytes));
    }
    tokenizer.with_decoder(Some(bytes));
    let special: Vec<tokenizers::AddedToken> = tokens
        .iter()
        .zip(kinds)
        .filter(|(_, kind)| **kind == 3 || **kind == 4)
        .map(|(token, kind)| tokenizers::AddedToken::from(token.clone(), *kind == 3))
        .collect();
    let _ = tokenizer.add_special_tokens(special);
    Ok(Tokenizer::HuggingFace(Box::new(tokenizer)))
}
