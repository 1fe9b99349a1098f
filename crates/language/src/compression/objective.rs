//! The loss of a text after a prompt, whether greedy decoding gives the text, and the gradient.

use crate::LanguageError;
use crate::model::generate::largest;
use crate::model::{Cache, Decoder};
use crate::product::{View, product};

/// A loss and its gradient with respect to every embedded input (one row per token).
pub struct InputGradient {
    pub loss: f64,
    pub gradient: Vec<f32>,
    /// Whether every target token is the most likely one.
    pub exact: bool,
}

/// The cross-entropy of tokens `first..` given those before them, summed, and its gradient with
/// respect to the embedded inputs. Cost: a forward and a backward pass.
///
/// # Errors
/// `InvalidInput` unless 1 <= first < number of tokens; those of the decoder.
pub fn input_gradient(
    decoder: &Decoder,
    tokens: &[u32],
    first: usize,
) -> Result<InputGradient, LanguageError> {
    if first == 0 || first >= tokens.len() {
        return Err(LanguageError::InvalidInput(format!(
            "a text that begins at token {first} of {} has no loss",
            tokens.len()
        )));
    }
    let (width, vocabulary) = (decoder.architecture.width, decoder.architecture.vocabulary);
    let (hidden, record) = decoder.forward_recorded(tokens, 1)?;
    // The state before a token predicts it.
    let states = &hidden[(first - 1) * width..(tokens.len() - 1) * width];
    let mut logits = decoder.logits(states);
    let (mut loss, mut exact) = (0.0, true);
    for (row, token) in logits.chunks_exact_mut(vocabulary).zip(&tokens[first..]) {
        exact &= largest(row) == *token;
        let total = crate::model::log_sum_exp(row);
        loss += total - f64::from(row[*token as usize]);
        for x in row.iter_mut() {
            *x = (f64::from(*x) - total).exp() as f32;
        }
        row[*token as usize] -= 1.0;
    }
    let mut d_hidden = vec![0.0; hidden.len()];
    let rows = tokens.len() - first;
    let head = View::new(decoder.head(), vocabulary, width);
    product(
        &mut d_hidden[(first - 1) * width..(tokens.len() - 1) * width],
        View::new(&logits, rows, vocabulary),
        head,
    );
    Ok(InputGradient { loss, gradient: decoder.backward(&record, &d_hidden), exact })
}

/// For every candidate prompt of one length: the summed loss of the target after it, and whether
/// greedy decoding gives the target. `before` begins every text. Cost: a forward pass a candidate.
///
/// # Errors
/// Those of the decoder.
pub fn losses(
    decoder: &Decoder,
    before: &[u32],
    candidates: &[Vec<u32>],
    target: &[u32],
) -> Result<Vec<(f64, bool)>, LanguageError> {
    let (width, vocabulary) = (decoder.architecture.width, decoder.architecture.vocabulary);
    let mut found = Vec::with_capacity(candidates.len());
    let prefix = shared_prefix(decoder, before)?;
    // As many at a time as keep the logits within about 64 MB.
    let share = ((1 << 24) / (target.len() * vocabulary)).clamp(1, 64);
    for part in candidates.chunks(share) {
        let length = part[0].len() + target.len() - 1;
        let mut tokens = Vec::with_capacity(part.len() * length);
        for candidate in part {
            tokens.extend_from_slice(candidate);
            tokens.extend_from_slice(&target[..target.len() - 1]);
        }
        let room = before.len() + length;
        let mut cache = prefix.repeated(&decoder.architecture, part.len(), room);
        let hidden = decoder.forward(&tokens, &mut cache)?;
        let mut states = Vec::with_capacity(part.len() * target.len() * width);
        for sequence in hidden.chunks_exact(length * width) {
            states.extend_from_slice(&sequence[(length - target.len()) * width..]);
        }
        let logits = decoder.logits(&states);
        for sequence in logits.chunks_exact(target.len() * vocabulary) {
            let (mut loss, mut exact) = (0.0, true);
            for (row, token) in sequence.chunks_exact(vocabulary).zip(target) {
                loss += crate::model::log_sum_exp(row) - f64::from(row[*token as usize]);
                exact &= largest(row) == *token;
            }
            found.push((loss, exact));
        }
    }
    Ok(found)
}

fn shared_prefix(decoder: &Decoder, before: &[u32]) -> Result<Cache, LanguageError> {
    let mut cache = Cache::new(&decoder.architecture, 1, before.len().max(1));
    if !before.is_empty() {
        decoder.forward(before, &mut cache)?;
    }
    Ok(cache)
}

/// Whether the greedy continuation of `before` and `prompt` starts with `target`.
///
/// # Errors
/// Those of the decoder.
pub fn elicits(
    decoder: &Decoder,
    before: &[u32],
    prompt: &[u32],
    target: &[u32],
) -> Result<bool, LanguageError> {
    Ok(losses(decoder, before, &[prompt.to_vec()], target)?[0].1)
}
