//! Causal attention with grouped keys and values, and its derivative.
//!
//! For one head: P = softmax(Q K' / sqrt(width) + mask), out = P V. Back: dV = P' dO, dP = dO V',
//! dS = P (dP - rowsum(dP P)), dQ = dS K / sqrt(width), dK = dS' Q / sqrt(width).
//!
//! Places are taken in blocks, and a block's products go as far as its last place sees: half of the
//! square that lies in the future is never formed.

use super::architecture::Architecture;
use crate::product::{View, single};
use rayon::prelude::*;
use training::cpu::transformer::{exponentials, scale_by, softmax_backward};

/// Places of a block.
const BLOCK: usize = 32;

/// First and one past the last of every block of `length` places.
fn blocks(length: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..length).step_by(BLOCK).map(move |from| (from, (from + BLOCK).min(length)))
}

/// Sizes of one call: `length` new places after `start` old ones, in every sequence.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) length: usize,
    pub(super) start: usize,
    /// Places that the cache has room for, per sequence.
    pub(super) capacity: usize,
}

impl Extent {
    fn seen(self) -> usize {
        self.start + self.length
    }
}

/// Writes the mixed values; keeps the probabilities where `kept` is given (sequences x heads x
/// length x seen).
pub(super) fn forward(
    architecture: &Architecture,
    extent: Extent,
    queries: &[f32],
    keys: &[f32],
    values: &[f32],
    mixed: &mut [f32],
    kept: Option<&mut Vec<f32>>,
) {
    let (wide, narrow, width) =
        (architecture.query_width(), architecture.key_width(), architecture.head_width);
    let (length, seen) = (extent.length, extent.seen());
    let group = architecture.heads / architecture.key_heads;
    let scale = 1.0 / (width as f32).sqrt();
    let one = |sequence: usize, mixed: &mut [f32], kept: Option<&mut [f32]>| {
        let queries = &queries[sequence * length * wide..(sequence + 1) * length * wide];
        let from = sequence * extent.capacity * narrow;
        let (keys, values) =
            (&keys[from..from + seen * narrow], &values[from..from + seen * narrow]);
        let mut scores = vec![0.0; length * seen];
        let mut kept = kept;
        for head in 0..architecture.heads {
            let (q, k) = (head * width, head / group * width);
            for (from, to) in blocks(length) {
                let (count, visible) = (to - from, extent.start + to);
                let left = View::strided(&queries[from * wide + q..], count, width, wide);
                let right = View::strided(&keys[k..], visible, width, narrow).transposed();
                let scores = &mut scores[from * seen..to * seen];
                single(scores, seen, left, right, false);
                for (t, row) in scores.chunks_exact_mut(seen).enumerate() {
                    softmax(row, extent.start + from + t + 1, scale);
                }
                let probabilities = View::strided(scores, count, visible, seen);
                let right = View::strided(&values[k..], visible, width, narrow);
                single(&mut mixed[from * wide + q..], wide, probabilities, right, false);
            }
            if let Some(kept) = &mut kept {
                kept[head * length * seen..(head + 1) * length * seen].copy_from_slice(&scores);
            }
        }
    };
    match kept {
        None => mixed
            .par_chunks_mut(length * wide)
            .enumerate()
            .for_each(|(sequence, mixed)| one(sequence, mixed, None)),
        Some(kept) => {
            let size = architecture.heads * length * seen;
            kept.resize(mixed.len() / (length * wide) * size, 0.0);
            mixed
                .par_chunks_mut(length * wide)
                .zip(kept.par_chunks_mut(size))
                .enumerate()
                .for_each(|(sequence, (mixed, kept))| one(sequence, mixed, Some(kept)));
        }
    }
}

/// Softmax of scale x row over its first `visible` numbers; the others become 0.
fn softmax(row: &mut [f32], visible: usize, scale: f32) {
    let (row, hidden) = row.split_at_mut(visible);
    hidden.fill(0.0);
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum = exponentials(row, largest, scale);
    scale_by(row, 1.0 / sum);
}

/// Gradients of queries, keys and values for sequences without old places; keys and values are
/// laid out without gaps (capacity = length).
#[allow(clippy::too_many_arguments)] // the operands of the formulas above
pub(super) fn backward(
    architecture: &Architecture,
    length: usize,
    queries: &[f32],
    keys: &[f32],
    values: &[f32],
    probabilities: &[f32],
    d_mixed: &[f32],
    d_queries: &mut [f32],
    d_keys: &mut [f32],
    d_values: &mut [f32],
) {
    let (wide, narrow, width) =
        (architecture.query_width(), architecture.key_width(), architecture.head_width);
    let group = architecture.heads / architecture.key_heads;
    let scale = 1.0 / (width as f32).sqrt();
    let size = length * length;
    d_queries
        .par_chunks_mut(length * wide)
        .zip(d_keys.par_chunks_mut(length * narrow))
        .zip(d_values.par_chunks_mut(length * narrow))
        .enumerate()
        .for_each(|(sequence, ((d_queries, d_keys), d_values))| {
            let queries = &queries[sequence * length * wide..][..length * wide];
            let d_mixed = &d_mixed[sequence * length * wide..][..length * wide];
            let keys = &keys[sequence * length * narrow..][..length * narrow];
            let values = &values[sequence * length * narrow..][..length * narrow];
            let mut d_scores = vec![0.0; BLOCK.min(length) * length];
            d_keys.fill(0.0);
            d_values.fill(0.0);
            for head in 0..architecture.heads {
                let (q, k) = (head * width, head / group * width);
                let p = &probabilities[(sequence * architecture.heads + head) * size..][..size];
                for (from, to) in blocks(length) {
                    let count = to - from;
                    let p = &p[from * length..to * length];
                    let d_out = View::strided(&d_mixed[from * wide + q..], count, width, wide);
                    let v = View::strided(&values[k..], to, width, narrow);
                    let d_scores = &mut d_scores[..count * to];
                    single(d_scores, to, d_out, v.transposed(), false);
                    let p_view = View::strided(p, count, to, length);
                    single(&mut d_values[k..], narrow, p_view.transposed(), d_out, true);
                    for (row, p) in d_scores.chunks_exact_mut(to).zip(p.chunks_exact(length)) {
                        softmax_backward(row, &p[..to], scale);
                    }
                    let d_view = View::new(d_scores, count, to);
                    let key = View::strided(&keys[k..], to, width, narrow);
                    single(&mut d_queries[from * wide + q..], wide, d_view, key, false);
                    let query = View::strided(&queries[from * wide + q..], count, width, wide);
                    single(&mut d_keys[k..], narrow, d_view.transposed(), query, true);
                }
            }
        });
}
