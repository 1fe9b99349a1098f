//! The weights and the forward pass.

use super::architecture::{Activation, Architecture};
use super::attention::{self, Extent};
use super::backward::{LayerRecord, Projection, Record};
use super::layers::{Rotation, norm};
use super::packed::{BothWays, Packed};
use crate::LanguageError;
use crate::product::{View, add_product, packed_product, product, small_product, vector_product};
use std::sync::Arc;
use training::cpu::transformer::{gelu, scaled_sum, silu_times};

/// A linear map: `weight` has one row an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    pub weight: Vec<f32>,
    pub bias: Option<Vec<f32>>,
    pub inputs: usize,
    pub outputs: usize,
    /// A trainable difference of low rank.
    pub adapter: Option<Adapter>,
}

/// LoRA (Hu et al. 2021): the map is increased by scale x up x down.
#[derive(Clone, Debug, PartialEq)]
pub struct Adapter {
    /// rank x inputs
    pub down: Vec<f32>,
    /// outputs x rank
    pub up: Vec<f32>,
    pub rank: usize,
    pub scale: f32,
}

/// Weight and, for layer norm, bias.
#[derive(Clone, Debug, PartialEq)]
pub struct NormWeights {
    pub weight: Vec<f32>,
    pub bias: Option<Vec<f32>>,
}

/// One block.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub attention_norm: NormWeights,
    pub query: Linear,
    pub key: Linear,
    pub value: Linear,
    pub output: Linear,
    pub feed_norm: NormWeights,
    /// For SwiGLU.
    pub gate: Option<Linear>,
    pub up: Linear,
    pub down: Linear,
}

impl Layer {
    /// The map of a name; a gate only where there is one.
    pub fn linear(&self, projection: Projection) -> Option<&Linear> {
        match projection {
            Projection::Query => Some(&self.query),
            Projection::Key => Some(&self.key),
            Projection::Value => Some(&self.value),
            Projection::Output => Some(&self.output),
            Projection::Gate => self.gate.as_ref(),
            Projection::Up => Some(&self.up),
            Projection::Down => Some(&self.down),
        }
    }

    /// The same, to be changed.
    pub fn linear_mut(&mut self, projection: Projection) -> Option<&mut Linear> {
        match projection {
            Projection::Query => Some(&mut self.query),
            Projection::Key => Some(&mut self.key),
            Projection::Value => Some(&mut self.value),
            Projection::Output => Some(&mut self.output),
            Projection::Gate => self.gate.as_mut(),
            Projection::Up => Some(&mut self.up),
            Projection::Down => Some(&mut self.down),
        }
    }
}

/// A decoder with its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoder {
    pub architecture: Architecture,
    /// One row per token.
    pub embedding: Vec<f32>,
    /// One row per place, for learned positions.
    pub positions: Option<Vec<f32>>,
    pub layers: Vec<Layer>,
    pub final_norm: NormWeights,
    /// One row per token; absent: the embedding.
    pub head: Option<Vec<f32>>,
}

/// Keys and values of the places seen so far, for a number of sequences of equal length.
pub struct Cache {
    sequences: usize,
    capacity: usize,
    length: usize,
    /// For each layer, sequences x capacity x key width.
    layers: Vec<(Vec<f32>, Vec<f32>)>,
    rotation: Option<Rotation>,
}

impl Cache {
    /// An empty cache with room for `capacity` places in each of `sequences` sequences.
    pub fn new(architecture: &Architecture, sequences: usize, capacity: usize) -> Self {
        let size = sequences * capacity * architecture.key_width();
        Self {
            sequences,
            capacity,
            length: 0,
            layers: (0..architecture.layers).map(|_| (vec![0.0; size], vec![0.0; size])).collect(),
            rotation: Rotation::new(architecture, capacity),
        }
    }

    /// Places seen.
    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Forgets the places from `length` on.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// The first sequence, copied: what many continuations of one prefix start from.
    pub fn repeated(&self, architecture: &Architecture, sequences: usize, capacity: usize) -> Self {
        let width = architecture.key_width();
        let mut copy = Self::new(architecture, sequences, capacity);
        copy.length = self.length.min(capacity);
        let used = copy.length * width;
        for (to, from) in copy.layers.iter_mut().zip(&self.layers) {
            for sequence in 0..sequences {
                let at = sequence * capacity * width;
                to.0[at..at + used].copy_from_slice(&from.0[..used]);
                to.1[at..at + used].copy_from_slice(&from.1[..used]);
            }
        }
        copy
    }

    pub(super) fn rotation(&self) -> Option<&Rotation> {
        self.rotation.as_ref()
    }

    pub(super) fn layer(&self, index: usize) -> (&[f32], &[f32]) {
        (&self.layers[index].0, &self.layers[index].1)
    }
}

impl Linear {
    /// `packed` is the weight laid out for products, where that is at hand.
    pub(super) fn forward(&self, x: &[f32], packed: Option<&BothWays>) -> Vec<f32> {
        let mut out = vec![0.0; x.len() / self.inputs * self.outputs];
        self.forward_into(x, &mut out, packed, false);
        out
    }

    /// As [`Linear::forward`], added to what `out` holds where `add` says so.
    pub(super) fn forward_into(
        &self,
        x: &[f32],
        out: &mut [f32],
        packed: Option<&BothWays>,
        add: bool,
    ) {
        let weight = (&self.weight[..], self.outputs, self.inputs);
        transposed_product(out, x, weight, packed, add);
        if let Some(bias) = &self.bias {
            for row in out.chunks_exact_mut(self.outputs) {
                scaled_sum(row, bias, 1.0);
            }
        }
        if let Some(adapter) = &self.adapter {
            let low = adapter.low(x, self.inputs);
            let up = View::new(&adapter.up, self.outputs, adapter.rank).transposed();
            small_product(out, &low, up, true);
        }
    }

    /// The gradient of the input, given that of the output; added to what `dx` holds where `add`
    /// says so.
    pub(super) fn backward_into(
        &self,
        dy: &[f32],
        dx: &mut [f32],
        packed: Option<&BothWays>,
        add: bool,
    ) {
        let rows = dy.len() / self.outputs;
        match packed.and_then(|packed| packed.backward.as_ref()) {
            Some(weight) => packed_product(dx, dy, weight, add),
            None => {
                let dy = View::new(dy, rows, self.outputs);
                let weight = View::new(&self.weight, self.outputs, self.inputs);
                if add { add_product(dx, dy, weight) } else { product(dx, dy, weight) }
            }
        }
        if let Some(adapter) = &self.adapter {
            let low = adapter.low_backward(dy, self.outputs);
            let down = View::new(&adapter.down, adapter.rank, self.inputs);
            small_product(dx, &low, down, true);
        }
    }
}

impl Adapter {
    /// scale x down': one row of `rank` numbers per row of x.
    pub(crate) fn low(&self, x: &[f32], inputs: usize) -> Vec<f32> {
        let rows = x.len() / inputs;
        let mut low = vec![0.0; rows * self.rank];
        let down = View::new(&self.down, self.rank, inputs).transposed();
        small_product(&mut low, x, down, false);
        low.iter_mut().for_each(|x| *x *= self.scale);
        low
    }

    /// scale dy up.
    pub(crate) fn low_backward(&self, dy: &[f32], outputs: usize) -> Vec<f32> {
        let rows = dy.len() / outputs;
        let mut low = vec![0.0; rows * self.rank];
        small_product(&mut low, dy, View::new(&self.up, outputs, self.rank), false);
        low.iter_mut().for_each(|x| *x *= self.scale);
        low
    }
}

impl Decoder {
    /// Runs `tokens` (sequence after sequence, equally many of each) after what the cache holds,
    /// and gives the last hidden state of every place, normalised: what [`Decoder::logits`] reads.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown token or a sequence beyond the context or the cache.
    pub fn forward(&self, tokens: &[u32], cache: &mut Cache) -> Result<Vec<f32>, LanguageError> {
        self.run(tokens, cache, None, None)
    }

    /// As [`Decoder::forward`] from an empty cache, keeping what [`Decoder::backward`] needs.
    ///
    /// # Errors
    /// As [`Decoder::forward`].
    pub(crate) fn forward_recorded(
        &self,
        tokens: &[u32],
        sequences: usize,
    ) -> Result<(Vec<f32>, Record), LanguageError> {
        self.forward_packed(tokens, sequences, None)
    }

    /// As [`Decoder::forward_recorded`], with the frozen weights of this decoder laid out.
    pub(crate) fn forward_packed(
        &self,
        tokens: &[u32],
        sequences: usize,
        packed: Option<&Packed>,
    ) -> Result<(Vec<f32>, Record), LanguageError> {
        let length = tokens.len() / sequences.max(1);
        let mut record = Record::new(length, Cache::new(&self.architecture, 0, 0));
        let mut cache = Cache::new(&self.architecture, sequences, length);
        let hidden = self.run(tokens, &mut cache, Some(&mut record), packed)?;
        record.cache = cache;
        Ok((hidden, record))
    }

    fn run(
        &self,
        tokens: &[u32],
        cache: &mut Cache,
        mut record: Option<&mut Record>,
        packed: Option<&Packed>,
    ) -> Result<Vec<f32>, LanguageError> {
        let a = &self.architecture;
        let length = self.check(tokens, cache)?;
        let start = cache.length;
        let mut x = self.embed(tokens, start, length);
        let extent = Extent { length, start, capacity: cache.capacity };
        let rows = tokens.len();
        let (mut h, mut active) = (vec![0.0; rows * a.width], vec![0.0; rows * a.hidden]);
        for (index, layer) in self.layers.iter().enumerate() {
            norm(a.norm, &layer.attention_norm, &x, &mut h);
            let packed = |projection| packed.and_then(|packed| packed.weight(index, projection));
            let mut queries = layer.query.forward(&h, packed(Projection::Query));
            let mut keys = layer.key.forward(&h, packed(Projection::Key));
            let values = layer.value.forward(&h, packed(Projection::Value));
            if let Some(rotation) = &cache.rotation {
                for row in 0..rows {
                    let place = start + row % length;
                    rotation.rotate(
                        &mut queries[row * a.query_width()..][..a.query_width()],
                        place,
                        false,
                    );
                    rotation.rotate(
                        &mut keys[row * a.key_width()..][..a.key_width()],
                        place,
                        false,
                    );
                }
            }
            let store = &mut cache.layers[index];
            for sequence in 0..cache.sequences {
                let size = length * a.key_width();
                let to = (sequence * cache.capacity + start) * a.key_width();
                store.0[to..to + size].copy_from_slice(&keys[sequence * size..][..size]);
                store.1[to..to + size].copy_from_slice(&values[sequence * size..][..size]);
            }
            let mut mixed = vec![0.0; rows * a.query_width()];
            let mut kept = Vec::new();
            let keep = record.is_some().then_some(&mut kept);
            attention::forward(a, extent, &queries, &store.0, &store.1, &mut mixed, keep);
            let before = record.is_some().then(|| x.clone());
            layer.output.forward_into(&mixed, &mut x, packed(Projection::Output), true);
            norm(a.norm, &layer.feed_norm, &x, &mut h);
            let middle = record.is_some().then(|| x.clone());
            let up = layer.up.forward(&h, packed(Projection::Up));
            let gate = layer.gate.as_ref().map(|gate| gate.forward(&h, packed(Projection::Gate)));
            activate(a.activation, &up, gate.as_deref(), &mut active);
            layer.down.forward_into(&active, &mut x, packed(Projection::Down), true);
            if let (Some(record), Some(before), Some(middle)) = (&mut record, before, middle) {
                record.layers.push(LayerRecord {
                    before,
                    queries,
                    probabilities: kept,
                    mixed: Arc::new(mixed),
                    middle,
                    up,
                    gate,
                });
            }
        }
        cache.length += length;
        let mut out = vec![0.0; x.len()];
        norm(a.norm, &self.final_norm, &x, &mut out);
        if let Some(record) = record {
            record.last = x;
        }
        Ok(out)
    }

    fn check(&self, tokens: &[u32], cache: &Cache) -> Result<usize, LanguageError> {
        let invalid = |message: String| Err(LanguageError::InvalidInput(message));
        if tokens.is_empty()
            || cache.sequences == 0
            || !tokens.len().is_multiple_of(cache.sequences)
        {
            return invalid(format!(
                "{} tokens are not {} sequences of equal length",
                tokens.len(),
                cache.sequences
            ));
        }
        let vocabulary = self.architecture.vocabulary;
        if let Some(token) = tokens.iter().find(|token| **token as usize >= vocabulary) {
            return invalid(format!("token {token} is outside the vocabulary of {vocabulary}"));
        }
        let length = tokens.len() / cache.sequences;
        let most = self.architecture.context.min(cache.capacity);
        if cache.length + length > most {
            return invalid(format!(
                "{} tokens do not fit into a context of {most}",
                cache.length + length
            ));
        }
        Ok(length)
    }

    fn embed(&self, tokens: &[u32], start: usize, length: usize) -> Vec<f32> {
        let width = self.architecture.width;
        let mut x = Vec::with_capacity(tokens.len() * width);
        for (row, token) in tokens.iter().enumerate() {
            x.extend_from_slice(&self.embedding[*token as usize * width..][..width]);
            if let Some(positions) = &self.positions {
                let place = start + row % length;
                add(&mut x[row * width..], &positions[place * width..][..width]);
            }
        }
        x
    }

    /// The same decoder with the first `vocabulary` tokens only.
    #[must_use]
    pub fn with_vocabulary(&self, vocabulary: usize) -> Self {
        let mut cut = self.clone();
        let size = vocabulary.min(self.architecture.vocabulary) * self.architecture.width;
        cut.embedding.truncate(size);
        if let Some(head) = &mut cut.head {
            head.truncate(size);
        }
        cut.architecture.vocabulary = vocabulary.min(self.architecture.vocabulary);
        cut
    }

    /// The weights of the head: one row per token.
    pub fn head(&self) -> &[f32] {
        self.head.as_deref().unwrap_or(&self.embedding)
    }

    /// Logits of hidden states (one row of the vocabulary a state).
    pub fn logits(&self, hidden: &[f32]) -> Vec<f32> {
        self.logits_packed(hidden, None)
    }

    /// As [`Decoder::logits`], with the frozen weights of this decoder laid out.
    pub(crate) fn logits_packed(&self, hidden: &[f32], packed: Option<&Packed>) -> Vec<f32> {
        let (width, vocabulary) = (self.architecture.width, self.architecture.vocabulary);
        let mut out = vec![0.0; hidden.len() / width * vocabulary];
        let head = (self.head(), vocabulary, width);
        transposed_product(&mut out, hidden, head, packed.and_then(Packed::head), false);
        out
    }

    /// ln P(token | tokens before it) for every token but the first.
    ///
    /// # Errors
    /// As [`Decoder::forward`].
    pub fn log_probabilities(&self, tokens: &[u32]) -> Result<Vec<f64>, LanguageError> {
        if tokens.len() < 2 {
            return Ok(Vec::new());
        }
        let (width, vocabulary) = (self.architecture.width, self.architecture.vocabulary);
        let mut cache = Cache::new(&self.architecture, 1, tokens.len());
        let hidden = self.forward(tokens, &mut cache)?;
        let mut found = Vec::with_capacity(tokens.len() - 1);
        // A few rows of logits at a time: the vocabulary is large.
        for (part, next) in
            hidden[..(tokens.len() - 1) * width].chunks(32 * width).zip(tokens[1..].chunks(32))
        {
            let logits = self.logits(part);
            for (row, token) in logits.chunks_exact(vocabulary).zip(next) {
                found.push(f64::from(row[*token as usize]) - log_sum_exp(row));
            }
        }
        Ok(found)
    }
}

/// x times the transpose of a weight (outputs x inputs), or `out` increased by it.
fn transposed_product(
    out: &mut [f32],
    x: &[f32],
    (weight, outputs, inputs): (&[f32], usize, usize),
    packed: Option<&BothWays>,
    add: bool,
) {
    let rows = x.len() / inputs;
    let right = View::new(weight, outputs, inputs).transposed();
    match packed {
        _ if rows == 1 => vector_product(out, x, weight, add),
        Some(packed) => packed_product(out, x, &packed.forward, add),
        None if add => add_product(out, View::new(x, rows, inputs), right),
        None => product(out, View::new(x, rows, inputs), right),
    }
}

/// ln of the sum of exponentials.
pub(crate) fn log_sum_exp(row: &[f32]) -> f64 {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|x| f64::from((x - largest).exp())).sum();
    f64::from(largest) + sum.ln()
}

pub(super) fn add(to: &mut [f32], what: &[f32]) {
    scaled_sum(to, what, 1.0);
}

pub(super) fn activate(kind: Activation, up: &[f32], gate: Option<&[f32]>, out: &mut [f32]) {
    match (kind, gate) {
        (Activation::SwiGlu, Some(gate)) => silu_times(gate, up, out),
        _ => gelu(up, out),
    }
}
