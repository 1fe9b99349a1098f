//! llama2.c: the legacy `.bin` checkpoint (seven integers, then f32 weights, all layers of a kind
//! together) and its tokenizer.

use super::bytes::Bytes;
use crate::LanguageError;
use crate::model::{
    Activation, Architecture, Decoder, Layer, Linear, Norm, NormWeights, Pairs, Position,
};
use crate::text::ScoredTokenizer;

/// Reads a checkpoint.
///
/// # Errors
/// Names what is wrong with the header or how many bytes are missing or left over.
pub fn decoder(bytes: &[u8], place: &str) -> Result<Decoder, LanguageError> {
    let mut cursor = Bytes::new(bytes, place);
    let mut number = |name: &str| -> Result<i64, LanguageError> {
        let value = i64::from(cursor.i32()?);
        if value <= 0 && name != "vocabulary size" {
            return Err(LanguageError::file(place, format!("{name} {value} is not above 0")));
        }
        Ok(value)
    };
    let (width, hidden, layers) = (number("width")?, number("hidden width")?, number("layers")?);
    let (heads, key_heads) = (number("heads")?, number("key heads")?);
    let (vocabulary, context) = (number("vocabulary size")?, number("context length")?);
    if width % heads != 0 {
        return Err(LanguageError::file(
            place,
            format!("width {width} is not a multiple of {heads} heads"),
        ));
    }
    let architecture = Architecture {
        // A negative size says that the head has weights of its own.
        vocabulary: vocabulary.unsigned_abs() as usize,
        width: width as usize,
        layers: layers as usize,
        heads: heads as usize,
        key_heads: key_heads as usize,
        head_width: (width / heads) as usize,
        hidden: hidden as usize,
        context: context as usize,
        norm: Norm::Rms { epsilon: 1e-5 },
        position: Position::Rotary { base: 10_000.0, pairs: Pairs::Neighbours },
        activation: Activation::SwiGlu,
    };
    architecture.check(place)?;
    let a = &architecture;
    let needed = numbers(a, vocabulary < 0).and_then(|n| n.checked_mul(4));
    if needed != Some(cursor.left()) {
        return Err(LanguageError::file(
            place,
            format!(
                "the header asks for {} bytes of weights, the file has {}",
                needed.map_or_else(|| "too many".into(), |n| n.to_string()),
                cursor.left()
            ),
        ));
    }
    let embedding = cursor.floats(a.vocabulary * a.width)?;
    let mut matrices = |outputs: usize, inputs: usize| -> Result<Vec<Linear>, LanguageError> {
        (0..a.layers)
            .map(|_| {
                let weight = cursor.floats(outputs * inputs)?;
                Ok(Linear { weight, bias: None, inputs, outputs, adapter: None })
            })
            .collect()
    };
    let norm = |weight: Vec<f32>| NormWeights { weight, bias: None };
    let attention_norms = matrices(1, a.width)?;
    let mut queries = matrices(a.query_width(), a.width)?.into_iter();
    let mut keys = matrices(a.key_width(), a.width)?.into_iter();
    let mut values = matrices(a.key_width(), a.width)?.into_iter();
    let mut outputs = matrices(a.width, a.query_width())?.into_iter();
    let mut feed_norms = matrices(1, a.width)?.into_iter();
    let mut gates = matrices(a.hidden, a.width)?.into_iter();
    let mut downs = matrices(a.width, a.hidden)?.into_iter();
    let mut ups = matrices(a.hidden, a.width)?.into_iter();
    let mut blocks = Vec::with_capacity(a.layers);
    for attention_norm in attention_norms {
        let next = (queries.next(), keys.next(), values.next(), outputs.next());
        let feed = (feed_norms.next(), gates.next(), downs.next(), ups.next());
        let (
            (Some(query), Some(key), Some(value), Some(output)),
            (Some(n), gate, Some(down), Some(up)),
        ) = (next, feed)
        else {
            return Err(LanguageError::file(place, "layers are missing"));
        };
        blocks.push(Layer {
            attention_norm: norm(attention_norm.weight),
            query,
            key,
            value,
            output,
            feed_norm: norm(n.weight),
            gate,
            up,
            down,
        });
    }
    let final_norm = norm(cursor.floats(a.width)?);
    cursor.take(a.context * a.head_width * 4)?; // old tables of cosines and sines
    let head = if vocabulary < 0 { Some(cursor.floats(a.vocabulary * a.width)?) } else { None };
    Ok(Decoder { architecture, embedding, positions: None, layers: blocks, final_norm, head })
}

/// How many numbers follow the header.
fn numbers(a: &Architecture, own_head: bool) -> Option<usize> {
    let table = a.vocabulary.checked_mul(a.width)?;
    let attention = 2 * a.width * (a.query_width() + a.key_width());
    let layer = attention + 3 * a.width * a.hidden + 2 * a.width;
    let tables = if own_head { table.checked_mul(2)? } else { table };
    layer
        .checked_mul(a.layers)?
        .checked_add(tables)?
        .checked_add(a.width)?
        .checked_add(a.context.checked_mul(a.head_width)?)
}

/// Reads a tokenizer of `vocabulary` tokens: the longest length, then score, length and bytes of
/// each.
///
/// # Errors
/// Names the token that is broken.
pub fn tokenizer(
    bytes: &[u8],
    vocabulary: usize,
    place: &str,
) -> Result<ScoredTokenizer, LanguageError> {
    let mut cursor = Bytes::new(bytes, place);
    cursor.i32()?;
    let mut tokens = Vec::new();
    for index in 0..vocabulary {
        let score = cursor.f32()?;
        let length = cursor.i32()?;
        let size = usize::try_from(length).map_err(|_| {
            LanguageError::file(place, format!("token {index} has length {length}"))
        })?;
        tokens.push((cursor.take(size)?.to_vec(), score));
    }
    ScoredTokenizer::new(tokens, place)
}
