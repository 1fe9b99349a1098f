//! Decoders from files. Nothing in a file is believed before it is checked: sizes against the
//! bytes that are there, shapes against the description, numbers against their ranges. A wrong
//! file is refused with a sentence that names it.
//!
//! - a folder with `config.json`, `*.safetensors` and `tokenizer.json`: Hugging Face, `gpt2` and
//!   `llama` (and families with the same blocks: SmolLM2, TinyLlama);
//! - a `.gguf` file: architecture `llama`, types F32, F16, BF16, Q4_0, Q4_1, Q8_0; the tokenizer is in it;
//! - a llama2.c `.bin` file, with its tokenizer beside it.

mod bytes;
mod dequantize;
pub mod gguf;
mod huggingface;
pub mod llama2c;

pub use huggingface::{decoder_from_safetensors, read_config};

use crate::text::Tokenizer;
use crate::{Decoder, LanguageError};
use dequantize::Stored;
use safetensors::{Dtype, SafeTensors};
use std::path::Path;

/// A decoder and how text becomes its tokens.
pub struct Model {
    pub decoder: Decoder,
    pub tokenizer: Tokenizer,
    /// Tokens that end a text.
    pub stop: Vec<u32>,
}

/// Loads a model from a folder or a file; `tokenizer` overrides where its tokenizer is.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn model(path: &Path, tokenizer: Option<&Path>) -> Result<Model, LanguageError> {
    if path.is_dir() {
        return huggingface::folder(path, tokenizer);
    }
    let bytes = read(path)?;
    let place = path.display().to_string();
    if bytes.starts_with(b"GGUF") {
        let file = gguf::Gguf::parse(&bytes, &place)?;
        let decoder = file.decoder(&place)?;
        let tokenizer = match tokenizer {
            Some(path) => Tokenizer::huggingface(path)?,
            None => file.tokenizer(&place)?,
        };
        return checked(Model { decoder, tokenizer, stop: file.stop_tokens() }, &place);
    }
    if path.extension().is_some_and(|extension| extension == "bin") {
        let decoder = llama2c::decoder(&bytes, &place)?;
        let tokenizer = tokenizer.ok_or_else(|| LanguageError::NoTokenizer {
            place: place.clone(),
            problem: "a llama2.c model needs the file of its tokenizer".to_owned(),
        })?;
        let vocabulary = decoder.architecture.vocabulary;
        let tokenizer =
            llama2c::tokenizer(&read(tokenizer)?, vocabulary, &tokenizer.display().to_string())?;
        // 1 begins a text and, when generated, ends it.
        return checked(
            Model { decoder, tokenizer: Tokenizer::Scored(tokenizer), stop: vec![1, 2] },
            &place,
        );
    }
    Err(LanguageError::file(
        place,
        "is not a model; give a folder with config.json and safetensors, a .gguf file, or a llama2.c .bin file",
    ))
}

/// A tokenizer must not make tokens that the model does not have.
fn checked(model: Model, place: &str) -> Result<Model, LanguageError> {
    let (tokens, vocabulary) = (model.tokenizer.size(), model.decoder.architecture.vocabulary);
    if tokens > vocabulary {
        return Err(LanguageError::file(
            place,
            format!("the tokenizer has {tokens} tokens, the model only {vocabulary}"),
        ));
    }
    Ok(model)
}

fn read(path: &Path) -> Result<Vec<u8>, LanguageError> {
    std::fs::read(path)
        .map_err(|source| LanguageError::Read { place: path.display().to_string(), source })
}

/// A tensor of this name and shape, as f32.
pub(crate) fn read_tensor(
    file: &SafeTensors<'_>,
    name: &str,
    shape: &[usize],
    place: &str,
) -> Result<Vec<f32>, LanguageError> {
    let refuse = |problem: String| LanguageError::file(place, problem);
    let tensor = file.tensor(name).map_err(|_| refuse(format!("there is no tensor `{name}`")))?;
    if tensor.shape() != shape {
        return Err(refuse(format!(
            "tensor `{name}` has shape {:?}, the configuration says {shape:?}",
            tensor.shape()
        )));
    }
    let stored = match tensor.dtype() {
        Dtype::F32 => Stored::F32,
        Dtype::F16 => Stored::F16,
        Dtype::BF16 => Stored::Bf16,
        other => {
            return Err(refuse(format!(
                "tensor `{name}` is stored as {other:?}; F32, F16 and BF16 are known"
            )));
        }
    };
    Ok(stored.read(tensor.data()))
}
