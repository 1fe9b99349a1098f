//! From the output back to the embedded input, through frozen weights.
//!
//! Cost: about one forward pass. Memory: what [`Record`] keeps, roughly (4 width + 3 hidden +
//! heads x length) numbers a token and layer.

use super::architecture::Activation;
use super::attention;
use super::decoder::{Cache, Decoder, add};
use super::layers::{gelu_derivative, norm, norm_backward, silu, silu_derivative};

/// What a recorded forward pass keeps.
pub struct Record {
    pub(super) length: usize,
    pub(super) cache: Cache,
    pub(super) layers: Vec<LayerRecord>,
    /// The state before the last norm.
    pub(super) last: Vec<f32>,
}

pub(super) struct LayerRecord {
    /// The block's input.
    pub(super) before: Vec<f32>,
    /// Rotated.
    pub(super) queries: Vec<f32>,
    pub(super) probabilities: Vec<f32>,
    /// Between attention and the feed-forward part.
    pub(super) middle: Vec<f32>,
    pub(super) up: Vec<f32>,
    pub(super) gate: Option<Vec<f32>>,
}

/// A projection that can be adapted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    Query,
    Key,
    Value,
}

impl Projection {
    pub const ALL: [Projection; 3] = [Projection::Query, Projection::Key, Projection::Value];
}

/// Called with layer, projection, its input and the gradient of its output.
type Observer<'a> = dyn FnMut(usize, Projection, &[f32], &[f32]) + 'a;

impl Record {
    pub(super) fn new(length: usize, cache: Cache) -> Self {
        Self { length, cache, layers: Vec::new(), last: Vec::new() }
    }
}

impl Decoder {
    /// The gradient with respect to every embedded input, given that with respect to the
    /// normalised hidden states of [`Decoder::forward_recorded`].
    pub fn backward(&self, record: &Record, d_hidden: &[f32]) -> Vec<f32> {
        self.backward_observed(record, d_hidden, &mut |_, _, _, _| {})
    }

    /// As [`Decoder::backward`], showing every projection that has an adapter its input and the
    /// gradient of its output: what the adapter's own gradient is made of.
    pub(crate) fn backward_observed(
        &self,
        record: &Record,
        d_hidden: &[f32],
        observe: &mut Observer<'_>,
    ) -> Vec<f32> {
        let a = &self.architecture;
        let mut dx = vec![0.0; d_hidden.len()];
        norm_backward(a.norm, &self.final_norm, &record.last, d_hidden, &mut dx);
        for (index, (layer, kept)) in self.layers.iter().zip(&record.layers).enumerate().rev() {
            let mut d_up = layer.down.backward(&dx);
            let d_normed = match (a.activation, &layer.gate, &kept.gate) {
                (Activation::SwiGlu, Some(weights), Some(gate)) => {
                    let mut d_gate = vec![0.0; gate.len()];
                    for (i, d) in d_up.iter_mut().enumerate() {
                        d_gate[i] = *d * kept.up[i] * silu_derivative(gate[i]);
                        *d *= silu(gate[i]);
                    }
                    let mut d = layer.up.backward(&d_up);
                    add(&mut d, &weights.backward(&d_gate));
                    d
                }
                _ => {
                    for (d, x) in d_up.iter_mut().zip(&kept.up) {
                        *d *= gelu_derivative(*x);
                    }
                    layer.up.backward(&d_up)
                }
            };
            norm_backward(a.norm, &layer.feed_norm, &kept.middle, &d_normed, &mut dx);
            let d_mixed = layer.output.backward(&dx);
            let rows = dx.len() / a.width;
            let mut d_queries = vec![0.0; rows * a.query_width()];
            let mut d_keys = vec![0.0; rows * a.key_width()];
            let mut d_values = vec![0.0; rows * a.key_width()];
            let (keys, values) = record.cache.layer(index);
            attention::backward(
                a,
                record.length,
                &kept.queries,
                keys,
                values,
                &kept.probabilities,
                &d_mixed,
                &mut d_queries,
                &mut d_keys,
                &mut d_values,
            );
            if let Some(rotation) = record.cache.rotation() {
                for row in 0..rows {
                    let place = row % record.length;
                    let (wide, narrow) = (a.query_width(), a.key_width());
                    rotation.rotate(&mut d_queries[row * wide..][..wide], place, true);
                    rotation.rotate(&mut d_keys[row * narrow..][..narrow], place, true);
                }
            }
            let parts = [
                (Projection::Query, &layer.query, &d_queries),
                (Projection::Key, &layer.key, &d_keys),
                (Projection::Value, &layer.value, &d_values),
            ];
            if parts.iter().any(|(_, linear, _)| linear.adapter.is_some()) {
                let mut input = vec![0.0; dx.len()];
                norm(a.norm, &layer.attention_norm, &kept.before, &mut input);
                for (projection, linear, d_output) in parts {
                    if linear.adapter.is_some() {
                        observe(index, projection, &input, d_output);
                    }
                }
            }
            let mut d_normed = layer.query.backward(&d_queries);
            add(&mut d_normed, &layer.key.backward(&d_keys));
            add(&mut d_normed, &layer.value.backward(&d_values));
            norm_backward(a.norm, &layer.attention_norm, &kept.before, &d_normed, &mut dx);
        }
        dx
    }
}
