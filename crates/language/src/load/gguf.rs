//! GGUF (versions 2 and 3): metadata, tensor directory, aligned data. Architecture `llama`.

use super::bytes::Bytes;
use super::dequantize::Stored;
use crate::LanguageError;
use crate::error::shown;
use crate::model::{
    Activation, Architecture, Decoder, Layer, Linear, Norm, NormWeights, Pairs, Position,
};
use crate::text::Tokenizer;
use std::collections::HashMap;

/// A value of the metadata.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Integer(i64),
    Real(f64),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    Numbers(Vec<i64>),
    /// Of no use here.
    Other,
}

struct Tensor {
    /// Fastest first, as stored.
    extents: Vec<usize>,
    kind: Stored,
    /// From the start of the file.
    start: usize,
    size: usize,
}

/// A parsed file; tensors are read when asked for.
pub struct Gguf<'a> {
    bytes: &'a [u8],
    metadata: HashMap<String, Value>,
    tensors: HashMap<String, Tensor>,
}

impl<'a> Gguf<'a> {
    /// Reads metadata and directory, and checks every tensor to lie inside the file.
    ///
    /// # Errors
    /// Names what is wrong.
    pub fn parse(bytes: &'a [u8], place: &str) -> Result<Self, LanguageError> {
        let refuse = |problem: String| LanguageError::file(place, problem);
        let mut cursor = Bytes::new(bytes, place);
        if cursor.take(4)? != b"GGUF" {
            return Err(refuse("is not a GGUF file".into()));
        }
        let version = cursor.u32()?;
        if !(2..=3).contains(&version) {
            return Err(refuse(format!("GGUF version {version} is not known; 2 and 3 are")));
        }
        let (tensors, pairs) = (cursor.u64()?, cursor.u64()?);
        let mut metadata = HashMap::new();
        for _ in 0..pairs {
            let key = text(&mut cursor, place)?;
            let kind = cursor.u32()?;
            let value = value(&mut cursor, kind, place, 0)?;
            metadata.insert(key, value);
        }
        let mut directory = Vec::new();
        for _ in 0..tensors {
            let name = text(&mut cursor, place)?;
            let dimensions = cursor.u32()?;
            if dimensions == 0 || dimensions > 4 {
                return Err(refuse(format!(
                    "tensor `{}` has {dimensions} dimensions",
                    shown(&name)
                )));
            }
            let mut extents = Vec::new();
            for _ in 0..dimensions {
                let extent = cursor.u64()?;
                extents.push(usize::try_from(extent).map_err(|_| {
                    refuse(format!("tensor `{}` has extent {extent}", shown(&name)))
                })?);
            }
            let kind = match cursor.u32()? {
                0 => Stored::F32,
                1 => Stored::F16,
                2 => Stored::Q4_0,
                3 => Stored::Q4_1,
                8 => Stored::Q8_0,
                30 => Stored::Bf16,
                other => {
                    return Err(refuse(format!(
                        "tensor `{}` is stored as type {other}; F32, F16, BF16, Q4_0, Q4_1 and Q8_0 are known",
                        shown(&name)
                    )));
                }
            };
            directory.push((name, extents, kind, cursor.u64()?));
        }
        let alignment = match metadata.get("general.alignment") {
            None => 32,
            Some(Value::Integer(n)) if *n > 0 && *n <= 1 << 20 => *n as usize,
            Some(other) => return Err(refuse(format!("alignment {other:?} is not a size"))),
        };
        let data = cursor.at().next_multiple_of(alignment);
        let mut found = HashMap::new();
        for (name, extents, kind, offset) in directory {
            let (per_block, bytes_per_block) = kind.block();
            let outside = || refuse(format!("tensor `{}` lies outside the file", shown(&name)));
            let numbers = extents
                .iter()
                .try_fold(1_usize, |n, extent| n.checked_mul(*extent))
                .ok_or_else(outside)?;
            if extents[0] % per_block != 0 || numbers == 0 {
                return Err(refuse(format!(
                    "tensor `{}` has rows of {} numbers, not whole blocks of {per_block}",
                    shown(&name),
                    extents[0]
                )));
            }
            let size = (numbers / per_block).checked_mul(bytes_per_block).ok_or_else(outside)?;
            let start = usize::try_from(offset).ok().and_then(|o| o.checked_add(data));
            let end = start.and_then(|start| start.checked_add(size));
            let (Some(start), Some(end)) = (start, end) else { return Err(outside()) };
            if end > bytes.len() {
                return Err(outside());
            }
            found.insert(name, Tensor { extents, kind, start, size });
        }
        Ok(Self { bytes, metadata, tensors: found })
    }

    /// The decoder.
    ///
    /// # Errors
    /// Names the key or the tensor that is missing or has another shape.
    pub fn decoder(&self, place: &str) -> Result<Decoder, LanguageError> {
        let refuse = |problem: String| LanguageError::file(place, problem);
        match self.metadata.get("general.architecture") {
            Some(Value::Text(name)) if name == "llama" => {}
            other => {
                return Err(refuse(format!(
                    "architecture {} is not known; `llama` is",
                    match other {
                        Some(Value::Text(name)) => format!("`{}`", shown(name)),
                        _ => "(not named)".into(),
                    }
                )));
            }
        }
        let integer = |key: &str| match self.metadata.get(&format!("llama.{key}")) {
            Some(Value::Integer(value)) if *value > 0 => Ok(*value as usize),
            _ => Err(refuse(format!("`llama.{key}` is missing or not a number above 0"))),
        };
        let width = integer("embedding_length")?;
        let heads = integer("attention.head_count")?;
        let head_width = match self.metadata.get("llama.attention.key_length") {
            Some(_) => integer("attention.key_length")?,
            None => width / heads.max(1),
        };
        if self.metadata.contains_key("llama.rope.dimension_count")
            && integer("rope.dimension_count")? != head_width
        {
            return Err(refuse("only part of a head is rotated, which is not known here".into()));
        }
        if self.metadata.keys().any(|key| key.starts_with("llama.rope.scaling."))
            || self.tensors.contains_key("rope_freqs.weight")
        {
            return Err(refuse("scaled rotary positions are not known here".into()));
        }
        let (_, vocabulary) = self.matrix_shape("token_embd.weight", place)?;
        let key_heads = match self.metadata.get("llama.attention.head_count_kv") {
            Some(_) => integer("attention.head_count_kv")?,
            None => heads,
        };
        let real = |key: &str| match self.metadata.get(&format!("llama.{key}")) {
            Some(Value::Real(value)) => Some(*value),
            _ => None,
        };
        let architecture = Architecture {
            vocabulary,
            width,
            layers: integer("block_count")?,
            heads,
            key_heads,
            head_width,
            hidden: integer("feed_forward_length")?,
            context: integer("context_length")?,
            norm: Norm::Rms {
                epsilon: real("attention.layer_norm_rms_epsilon").unwrap_or(1e-5) as f32,
            },
            position: Position::Rotary {
                base: real("rope.freq_base").unwrap_or(10_000.0),
                pairs: Pairs::Neighbours,
            },
            activation: Activation::SwiGlu,
        };
        architecture.check(place)?;
        let a = &architecture;
        let norm = |name: String| {
            Ok::<_, LanguageError>(NormWeights {
                weight: self.vector(&name, a.width, place)?,
                bias: None,
            })
        };
        let mut layers = Vec::new();
        for i in 0..a.layers {
            let linear = |name: &str, outputs: usize, inputs: usize| {
                self.linear(&format!("blk.{i}.{name}"), outputs, inputs, place)
            };
            layers.push(Layer {
                attention_norm: norm(format!("blk.{i}.attn_norm.weight"))?,
                query: linear("attn_q", a.query_width(), a.width)?,
                key: linear("attn_k", a.key_width(), a.width)?,
                value: linear("attn_v", a.key_width(), a.width)?,
                output: linear("attn_output", a.width, a.query_width())?,
                feed_norm: norm(format!("blk.{i}.ffn_norm.weight"))?,
                gate: Some(linear("ffn_gate", a.hidden, a.width)?),
                up: linear("ffn_up", a.hidden, a.width)?,
                down: linear("ffn_down", a.width, a.hidden)?,
            });
        }
        let head = match self.tensors.contains_key("output.weight") {
            true => Some(self.matrix("output.weight", a.vocabulary, a.width, place)?),
            false => None,
        };
        Ok(Decoder {
            embedding: self.matrix("token_embd.weight", a.vocabulary, a.width, place)?,
            positions: None,
            layers,
            final_norm: norm("output_norm.weight".into())?,
            head,
            architecture,
        })
    }

    /// The tokenizer: byte-level BPE, as GPT-2's and SmolLM2's.
    ///
    /// # Errors
    /// Names the kind of tokenizer that is not known.
    pub fn tokenizer(&self, place: &str) -> Result<Tokenizer, LanguageError> {
        let refuse = |problem: String| LanguageError::file(place, problem);
        let text = |key: &str| match self.metadata.get(&format!("tokenizer.ggml.{key}")) {
            Some(Value::Text(text)) => text.as_str(),
            _ => "",
        };
        let list = |key: &str| match self.metadata.get(&format!("tokenizer.ggml.{key}")) {
            Some(Value::Texts(list)) => Ok(list),
            _ => Err(refuse(format!("there is no list `tokenizer.ggml.{key}`"))),
        };
        let digits = match (text("model"), text("pre")) {
            ("gpt2", "smollm") => true,
            ("gpt2", "gpt-2" | "default" | "") => false,
            (model, pre) => {
                let problem = format!(
                    "tokenizer `{}` with `{}` is not known; a tokenizer.json is needed",
                    shown(model),
                    shown(pre)
                );
                return Err(LanguageError::NoTokenizer { place: place.to_owned(), problem });
            }
        };
        let kinds = match self.metadata.get("tokenizer.ggml.token_type") {
            Some(Value::Numbers(kinds)) => &kinds[..],
            _ => &[],
        };
        crate::text::byte_level(list("tokens")?, list("merges")?, kinds, digits)
            .map_err(|problem| refuse(format!("the tokenizer is broken: {problem}")))
    }

    /// Tokens that end a text.
    pub(crate) fn stop_tokens(&self) -> Vec<u32> {
        match self.metadata.get("tokenizer.ggml.eos_token_id") {
            Some(Value::Integer(token)) => u32::try_from(*token).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn tensor(&self, name: &str, place: &str) -> Result<&Tensor, LanguageError> {
        self.tensors
            .get(name)
            .ok_or_else(|| LanguageError::file(place, format!("there is no tensor `{name}`")))
    }

    /// (inputs, outputs).
    fn matrix_shape(&self, name: &str, place: &str) -> Result<(usize, usize), LanguageError> {
        match self.tensor(name, place)?.extents[..] {
            [inputs, outputs] => Ok((inputs, outputs)),
            ref other => Err(LanguageError::file(
                place,
                format!("tensor `{name}` has {} dimensions, not 2", other.len()),
            )),
        }
    }

    fn matrix(
        &self,
        name: &str,
        outputs: usize,
        inputs: usize,
        place: &str,
    ) -> Result<Vec<f32>, LanguageError> {
        self.shaped(name, &[inputs, outputs], place)
    }

    fn vector(&self, name: &str, length: usize, place: &str) -> Result<Vec<f32>, LanguageError> {
        self.shaped(name, &[length], place)
    }

    fn shaped(
        &self,
        name: &str,
        extents: &[usize],
        place: &str,
    ) -> Result<Vec<f32>, LanguageError> {
        let tensor = self.tensor(name, place)?;
        if tensor.extents != extents {
            return Err(LanguageError::file(
                place,
                format!("tensor `{name}` has shape {:?}, not {extents:?}", tensor.extents),
            ));
        }
        Ok(tensor.kind.read(&self.bytes[tensor.start..tensor.start + tensor.size]))
    }

    fn linear(
        &self,
        name: &str,
        outputs: usize,
        inputs: usize,
        place: &str,
    ) -> Result<Linear, LanguageError> {
        let bias = format!("{name}.bias");
        Ok(Linear {
            weight: self.matrix(&format!("{name}.weight"), outputs, inputs, place)?,
            bias: match self.tensors.contains_key(&bias) {
                true => Some(self.vector(&bias, outputs, place)?),
                false => None,
            },
            inputs,
            outputs,
            adapter: None,
        })
    }
}

fn text(cursor: &mut Bytes<'_>, place: &str) -> Result<String, LanguageError> {
    let length = cursor.u64()?;
    let length = usize::try_from(length)
        .map_err(|_| LanguageError::file(place, format!("a text is {length} bytes long")))?;
    Ok(String::from_utf8_lossy(cursor.take(length)?).into_owned())
}

fn value(
    cursor: &mut Bytes<'_>,
    kind: u32,
    place: &str,
    depth: u32,
) -> Result<Value, LanguageError> {
    Ok(match kind {
        0 => Value::Integer(i64::from(cursor.u8()?)),
        1 => Value::Integer(i64::from(cursor.u8()? as i8)),
        2 => Value::Integer(i64::from(cursor.u16()?)),
        3 => Value::Integer(i64::from(cursor.u16()? as i16)),
        4 => Value::Integer(i64::from(cursor.u32()?)),
        5 => Value::Integer(i64::from(cursor.i32()?)),
        6 => Value::Real(f64::from(cursor.f32()?)),
        7 => Value::Bool(cursor.u8()? != 0),
        8 => Value::Text(text(cursor, place)?),
        9 => {
            let (inner, count) = (cursor.u32()?, cursor.u64()?);
            if inner == 9 && depth > 2 {
                return Err(LanguageError::file(place, "lists are nested too deeply"));
            }
            let (mut texts, mut numbers, mut other) = (Vec::new(), Vec::new(), false);
            // Every element takes at least a byte, so that a hostile count ends with the file.
            for _ in 0..count {
                match value(cursor, inner, place, depth + 1)? {
                    Value::Text(text) => texts.push(text),
                    Value::Integer(number) => numbers.push(number),
                    _ => other = true,
                }
            }
            match (other, texts.is_empty(), numbers.is_empty()) {
                (false, false, true) => Value::Texts(texts),
                (false, true, false) => Value::Numbers(numbers),
                _ => Value::Other,
            }
        }
        10 => Value::Integer(i64::try_from(cursor.u64()?).unwrap_or(i64::MAX)),
        11 => Value::Integer(cursor.u64()? as i64),
        12 => Value::Real(cursor.f64()?),
        other => return Err(LanguageError::file(place, format!("metadata of type {other}"))),
    })
}
