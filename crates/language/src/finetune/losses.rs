//! From the last hidden states to losses, and back: the head is the largest product of a small
//! model, and its logits are by far the largest matrix, so that a part of the rows goes all the way
//! there and back before the next begins.

use super::gradients::Example;
use super::terms::through_head;
use crate::model::{Decoder, Packed};
use crate::product::even_parts;
use rayon::prelude::*;
use training::cpu::transformer::{exponentials, maximum, scale_by};

/// Logits of the rows that go there and back together, at most: they stay in a cache, and their
/// memory is small enough for allocators to keep it for the next ones.
const LOGITS: usize = 7 << 20;
/// Rows where the head has to be rearranged for each part.
const UNPACKED_ROWS: usize = 512;

/// What the learnt places of a micro-batch say.
pub(super) struct Learnt {
    /// The mean over each example's places.
    pub(super) losses: Vec<f64>,
    /// Examples all of whose learnt tokens are the most likely ones.
    pub(super) correct: usize,
    /// The gradient of the states.
    pub(super) d_states: Vec<f32>,
    /// The gradient of the logits, where it was asked for.
    pub(super) residuals: Vec<f32>,
}

/// What a part of the rows says.
struct Part {
    /// Of each row: its loss, and whether its token is the most likely one.
    rows: Vec<(f64, bool)>,
    d_states: Vec<f32>,
    residuals: Vec<f32>,
}

/// `states` are the normalised hidden states of every example's learnt places, one after another.
pub(super) fn learn(
    decoder: &Decoder,
    packed: Option<&Packed>,
    states: &[f32],
    examples: &[&Example],
    keep_residuals: bool,
) -> Learnt {
    let width = decoder.architecture.width;
    // The token of each row, and the places that its example has.
    let targets: Vec<(u32, usize)> = examples
        .iter()
        .flat_map(|example| {
            let learnt = &example.tokens[example.first..];
            learnt.iter().map(|token| (*token, learnt.len()))
        })
        .collect();
    let rows = match packed.and_then(Packed::head) {
        Some(_) => {
            let most = (LOGITS / decoder.architecture.vocabulary).max(6);
            even_parts(targets.len(), targets.len().div_ceil(most))
        }
        None => UNPACKED_ROWS,
    };
    let parts: Vec<Part> = states
        .par_chunks(rows * width)
        .zip(targets.par_chunks(rows))
        .map(|(states, targets)| part(decoder, packed, states, targets, keep_residuals))
        .collect();
    let (mut d_states, mut residuals) = (Vec::with_capacity(states.len()), Vec::new());
    let mut rows = Vec::with_capacity(targets.len());
    for part in parts {
        d_states.extend(part.d_states);
        residuals.extend(part.residuals);
        rows.extend(part.rows);
    }
    let (mut losses, mut correct) = (Vec::with_capacity(examples.len()), 0);
    let mut rest = &rows[..];
    for example in examples {
        let (own, others) = rest.split_at(example.tokens.len() - example.first);
        losses.push(own.iter().map(|(loss, _)| loss).sum::<f64>() / own.len() as f64);
        correct += usize::from(own.iter().all(|(_, right)| *right));
        rest = others;
    }
    Learnt { losses, correct, d_states, residuals }
}

fn part(
    decoder: &Decoder,
    packed: Option<&Packed>,
    states: &[f32],
    targets: &[(u32, usize)],
    keep_residuals: bool,
) -> Part {
    let vocabulary = decoder.architecture.vocabulary;
    let mut logits = decoder.logits_packed(states, packed);
    let mut rows = Vec::with_capacity(targets.len());
    for (row, (token, count)) in logits.chunks_exact_mut(vocabulary).zip(targets) {
        let largest = maximum(row);
        let own = row[*token as usize];
        let sum = exponentials(row, largest, 1.0);
        rows.push((f64::from(largest) + f64::from(sum).ln() - f64::from(own), own == largest));
        scale_by(row, 1.0 / (sum * *count as f32));
        row[*token as usize] -= 1.0 / *count as f32;
    }
    let mut d_states = vec![0.0; states.len()];
    through_head(&mut d_states, &logits, decoder, packed);
    let residuals = if keep_residuals { logits } else { Vec::new() };
    Part { rows, d_states, residuals }
}
