//! From the output back to the embedded input, through frozen weights.
//!
//! Cost: about one forward pass. Memory: what [`Record`] keeps, roughly (4 width + 3 hidden +
//! heads x length) numbers per token and layer.

use super::architecture::{Activation, Architecture};
use super::attention;
use super::decoder::{Cache, Decoder, activate};
use super::layers::{norm, norm_backward};
use super::packed::{BothWays, Packed};
use std::sync::Arc;
use training::cpu::transformer::{gelu_backward, silu_backward};

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
    /// What attention's output map reads.
    pub(super) mixed: Arc<Vec<f32>>,
    /// Between attention and the feed-forward part.
    pub(super) middle: Vec<f32>,
    pub(super) up: Vec<f32>,
    pub(super) gate: Option<Vec<f32>>,
}

/// A linear map of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    Query,
    Key,
    Value,
    Output,
    Gate,
    Up,
    Down,
}

impl Projection {
    pub const ALL: [Self; 7] =
        [Self::Query, Self::Key, Self::Value, Self::Output, Self::Gate, Self::Up, Self::Down];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Key => "key",
            Self::Value => "value",
            Self::Output => "output",
            Self::Gate => "gate",
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    /// The projection of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|projection| projection.name() == name)
    }
}

/// A norm of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormPlace {
    Attention(usize),
    Feed(usize),
    Final,
}

/// Sees what the gradients of weights are made of.
pub(crate) trait Observer {
    /// The layer below whose maps nothing has to be known; `None`: down to the embedded input.
    fn last_layer(&self) -> Option<usize>;
    fn wants(&self, layer: usize, projection: Projection) -> bool;
    fn wants_norms(&self) -> bool;
    /// The input of a map and the gradient of its output.
    fn linear(
        &mut self,
        layer: usize,
        projection: Projection,
        input: &Arc<Vec<f32>>,
        d_output: &[f32],
    );
    /// The input of a norm and the gradient of its output.
    fn norm(&mut self, place: NormPlace, x: &[f32], dy: &[f32]);
}

/// Looks away.
struct Nobody;

impl Observer for Nobody {
    fn last_layer(&self) -> Option<usize> {
        None
    }
    fn wants(&self, _: usize, _: Projection) -> bool {
        false
    }
    fn wants_norms(&self) -> bool {
        false
    }
    fn linear(&mut self, _: usize, _: Projection, _: &Arc<Vec<f32>>, _: &[f32]) {}
    fn norm(&mut self, _: NormPlace, _: &[f32], _: &[f32]) {}
}

/// Gradients between products, in memory that serves every layer.
struct Room {
    up: Vec<f32>,
    gate: Vec<f32>,
    normed: Vec<f32>,
    mixed: Vec<f32>,
    queries: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Room {
    fn new(a: &Architecture, rows: usize) -> Self {
        let zeros = |width: usize| vec![0.0; rows * width];
        Self {
            up: zeros(a.hidden),
            gate: zeros(if a.activation == Activation::SwiGlu { a.hidden } else { 0 }),
            normed: zeros(a.width),
            mixed: zeros(a.query_width()),
            queries: zeros(a.query_width()),
            keys: zeros(a.key_width()),
            values: zeros(a.key_width()),
        }
    }
}

impl Record {
    pub(super) fn new(length: usize, cache: Cache) -> Self {
        Self { length, cache, layers: Vec::new(), last: Vec::new() }
    }
}

impl Decoder {
    /// The gradient with respect to every embedded input, given that with respect to the
    /// normalised hidden states of [`Decoder::forward_recorded`].
    pub fn backward(&self, record: &Record, d_hidden: &[f32]) -> Vec<f32> {
        self.backward_observed(record, d_hidden, None, &mut Nobody)
    }

    /// As [`Decoder::backward`], showing what the gradients of weights are made of. Nothing of the
    /// embedded input's gradient is formed below the observer's last layer.
    pub(crate) fn backward_observed(
        &self,
        record: &Record,
        d_hidden: &[f32],
        packed: Option<&Packed>,
        observer: &mut impl Observer,
    ) -> Vec<f32> {
        let a = &self.architecture;
        let mut dx = vec![0.0; d_hidden.len()];
        norm_backward(a.norm, &self.final_norm, &record.last, d_hidden, &mut dx);
        if observer.wants_norms() {
            observer.norm(NormPlace::Final, &record.last, d_hidden);
        }
        let last = observer.last_layer();
        let mut room = Room::new(a, dx.len() / a.width);
        for (index, (layer, kept)) in self.layers.iter().zip(&record.layers).enumerate().rev() {
            if last.is_some_and(|last| index < last) {
                break;
            }
            let packed = |projection| packed.and_then(|packed| packed.weight(index, projection));
            self.feed_backward(index, kept, &dx, &packed, &mut room, observer);
            if observer.wants_norms() {
                observer.norm(NormPlace::Feed(index), &kept.middle, &room.normed);
            }
            norm_backward(a.norm, &layer.feed_norm, &kept.middle, &room.normed, &mut dx);
            self.attention_backward(index, record, &dx, &packed, &mut room, observer);
            if observer.wants_norms() {
                observer.norm(NormPlace::Attention(index), &kept.before, &room.normed);
            }
            if last != Some(index) {
                norm_backward(a.norm, &layer.attention_norm, &kept.before, &room.normed, &mut dx);
            }
        }
        dx
    }

    /// From the gradient of the feed-forward part's output to that of its normalised input.
    fn feed_backward<'w>(
        &self,
        index: usize,
        kept: &LayerRecord,
        dx: &[f32],
        packed: &dyn Fn(Projection) -> Option<&'w BothWays>,
        room: &mut Room,
        observer: &mut impl Observer,
    ) {
        let (a, layer) = (&self.architecture, &self.layers[index]);
        if observer.wants(index, Projection::Down) {
            let mut active = vec![0.0; kept.up.len()];
            activate(a.activation, &kept.up, kept.gate.as_deref(), &mut active);
            observer.linear(index, Projection::Down, &Arc::new(active), dx);
        }
        let Room { up: d_up, gate: d_gate, normed, .. } = room;
        layer.down.backward_into(dx, d_up, packed(Projection::Down), false);
        let seen =
            [Projection::Up, Projection::Gate].iter().any(|which| observer.wants(index, *which));
        let input = Arc::new(if seen {
            let mut input = vec![0.0; dx.len()];
            norm(a.norm, &layer.feed_norm, &kept.middle, &mut input);
            input
        } else {
            Vec::new()
        });
        let mut show = |projection: Projection, d_output: &[f32]| {
            if observer.wants(index, projection) {
                observer.linear(index, projection, &input, d_output);
            }
        };
        match (a.activation, &layer.gate, &kept.gate) {
            (Activation::SwiGlu, Some(weights), Some(gate)) => {
                silu_backward(gate, &kept.up, d_up, d_gate);
                show(Projection::Up, d_up);
                show(Projection::Gate, d_gate);
                layer.up.backward_into(d_up, normed, packed(Projection::Up), false);
                weights.backward_into(d_gate, normed, packed(Projection::Gate), true);
            }
            _ => {
                gelu_backward(&kept.up, d_up);
                show(Projection::Up, d_up);
                layer.up.backward_into(d_up, normed, packed(Projection::Up), false);
            }
        }
    }

    /// From the gradient of attention's output to that of its normalised input, which is not
    /// formed where nobody asks for it.
    fn attention_backward<'w>(
        &self,
        index: usize,
        record: &Record,
        dx: &[f32],
        packed: &dyn Fn(Projection) -> Option<&'w BothWays>,
        room: &mut Room,
        observer: &mut impl Observer,
    ) {
        let (a, layer) = (&self.architecture, &self.layers[index]);
        let kept = &record.layers[index];
        if observer.wants(index, Projection::Output) {
            observer.linear(index, Projection::Output, &kept.mixed, dx);
        }
        let rows = dx.len() / a.width;
        let Room { normed, mixed, queries: d_queries, keys: d_keys, values: d_values, .. } = room;
        layer.output.backward_into(dx, mixed, packed(Projection::Output), false);
        let (keys, values) = record.cache.layer(index);
        attention::backward(
            a,
            record.length,
            &kept.queries,
            keys,
            values,
            &kept.probabilities,
            mixed,
            d_queries,
            d_keys,
            d_values,
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
            (Projection::Query, &*d_queries),
            (Projection::Key, &*d_keys),
            (Projection::Value, &*d_values),
        ];
        if parts.iter().any(|(projection, _)| observer.wants(index, *projection)) {
            let mut input = vec![0.0; dx.len()];
            norm(a.norm, &layer.attention_norm, &kept.before, &mut input);
            let input = Arc::new(input);
            for (projection, d_output) in parts {
                if observer.wants(index, projection) {
                    observer.linear(index, projection, &input, d_output);
                }
            }
        }
        if observer.last_layer() == Some(index) && !observer.wants_norms() {
            return;
        }
        layer.query.backward_into(d_queries, normed, packed(Projection::Query), false);
        layer.key.backward_into(d_keys, normed, packed(Projection::Key), true);
        layer.value.backward_into(d_values, normed, packed(Projection::Value), true);
    }
}
