//! Runs a network's program on a micro-batch: forward, backward, norms, clipped sum. Memory is
//! that of one micro-batch's buffers; nothing grows with the batch.
//!
//! The clipping factor of an example with gradient norm at most r is min(1, C/r), rounded down;
//! scaling in f32 adds at most 2^-23 relative, so that a clipped row never exceeds C (1 + 2^-20).

mod gram;
mod load;

use super::active::Active;
use super::layer;
use super::layer::{Backward, Known, Layer, Sum};
use super::linear::Inputs;
use super::{elementwise, loss};
use crate::model::{Kind, Network};
use std::sync::Arc;

/// Statistics of the examples of one micro-batch, in the order they were given.
#[derive(Clone, Copy, Debug)]
pub struct MicroBatch<'a> {
    pub losses: &'a [f32],
    pub correct: &'a [bool],
    /// Gradient norms before clipping (upper ends).
    pub norms: &'a [f64],
}

/// A network with the buffers of one micro-batch.
pub struct Executor {
    network: Arc<Network>,
    capacity: usize,
    activations: Vec<Vec<f32>>,
    gradients: Vec<Vec<f32>>,
    /// One for each operation; none for an addition of two buffers.
    layers: Vec<Option<Box<dyn Layer>>>,
    scratch: Vec<f32>,
    second: Vec<f32>,
    labels: Vec<u32>,
    losses: Vec<f32>,
    correct: Vec<bool>,
    squares: Vec<f64>,
    factors: Vec<f32>,
    /// Squared norms of the examples, where the first operation needs them.
    example_squares: Vec<f64>,
    needs_squares: bool,
    active: Active,
    /// The next sum is written instead of added to.
    overwrite: bool,
}

/// Features, label and, where known, the squared norm of the features.
pub(crate) type Example<'a> = (&'a [f32], u32, Option<f64>);

impl Executor {
    /// Buffers for up to `capacity` examples at a time.
    pub fn new(network: Arc<Network>, capacity: usize) -> Self {
        let capacity = capacity.max(1);
        let buffers = |from: usize| -> Vec<Vec<f32>> {
            network
                .buffers
                .iter()
                .enumerate()
                .map(|(index, length)| vec![0.0; if index < from { 0 } else { capacity * length }])
                .collect()
        };
        let layers: Vec<Option<Box<dyn Layer>>> =
            network.operations.iter().map(|operation| layer(&operation.kind, capacity)).collect();
        let scratch = network.operations.iter().zip(&layers);
        let scratch = scratch.filter(|(operation, _)| operation.input != 0);
        let scratch = scratch.filter_map(|(_, layer)| Some(layer.as_ref()?.scratch())).max();
        let mut readers = network.operations.iter().zip(&layers);
        let needs_squares = readers.any(|(operation, layer)| {
            operation.input == 0 && layer.as_ref().is_some_and(|layer| layer.reads_squares())
        });
        let shared = shared_inputs(&network);
        Self {
            capacity,
            activations: buffers(0),
            gradients: buffers(1),
            layers,
            scratch: vec![0.0; capacity * scratch.unwrap_or(0)],
            second: vec![0.0; capacity * shared],
            labels: vec![0; capacity],
            losses: vec![0.0; capacity],
            correct: vec![false; capacity],
            squares: vec![0.0; capacity],
            factors: vec![0.0; capacity],
            example_squares: vec![0.0; capacity],
            needs_squares,
            active: Active::default(),
            overwrite: false,
            network,
        }
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// To be called whenever the parameters have changed.
    pub fn prepare(&mut self, parameters: &[f32]) {
        self.layers.iter_mut().flatten().for_each(|layer| layer.prepare(parameters));
    }

    /// The next micro-batch begins a new sum: what is in it is not read.
    pub(crate) fn begin_sum(&mut self) {
        self.overwrite = true;
    }

    /// Losses and whether the class with the largest logit is right, for the loaded examples.
    pub fn evaluate(&mut self, parameters: &[f32], examples: usize) -> MicroBatch<'_> {
        self.forward(parameters, examples);
        self.loss(examples);
        MicroBatch {
            losses: &self.losses[..examples],
            correct: &self.correct[..examples],
            norms: &[],
        }
    }

    /// The logits of the loaded examples.
    pub fn logits(&mut self, parameters: &[f32], examples: usize) -> &[f32] {
        self.forward(parameters, examples);
        &self.activations[self.network.logits()][..examples * self.network.classes]
    }

    /// Adds the clipped gradients of the loaded examples to `sum`; without a clip norm, the
    /// gradients as they are. [`Executor::finish`] belongs after the last micro-batch of a step.
    pub fn add_clipped_gradients(
        &mut self,
        parameters: &[f32],
        examples: usize,
        clip_norm: Option<f64>,
        sum: &mut [f32],
    ) -> MicroBatch<'_> {
        self.forward(parameters, examples);
        self.clip_and_sum(parameters, examples, clip_norm, None, sum)
    }

    /// Everything after the forward pass. `rows` are the examples where they were not loaded.
    fn clip_and_sum(
        &mut self,
        parameters: &[f32],
        examples: usize,
        clip_norm: Option<f64>,
        rows: Option<&[&[f32]]>,
        sum: &mut [f32],
    ) -> MicroBatch<'_> {
        self.loss(examples);
        self.backward(parameters, examples);
        self.norms(examples);
        for (factor, square) in self.factors.iter_mut().zip(&mut self.squares[..examples]) {
            let norm = square.sqrt();
            *square = norm;
            *factor = clip_norm.map_or(1.0, |clip_norm| clipping_factor(norm, clip_norm));
        }
        self.clipped_sum(examples, rows, sum);
        MicroBatch {
            losses: &self.losses[..examples],
            correct: &self.correct[..examples],
            norms: &self.squares[..examples],
        }
    }

    /// Turns the sum into the gradient of the parameters (weight standardisation), once per step.
    pub fn finish(&self, sum: &mut [f32]) {
        self.layers.iter().flatten().for_each(|layer| layer.finish(sum));
    }

    fn forward(&mut self, parameters: &[f32], examples: usize) {
        self.forward_from(0, parameters, examples);
    }

    /// The operations from `first` on.
    fn forward_from(&mut self, first: usize, parameters: &[f32], examples: usize) {
        let network = Arc::clone(&self.network);
        let operations = network.operations.iter().zip(&mut self.layers);
        for (operation, layer) in operations.skip(first) {
            let (before, after) = self.activations.split_at_mut(operation.output);
            let x = &before[operation.input][..examples * network.buffers[operation.input]];
            let y = &mut after[0][..examples * network.buffers[operation.output]];
            match (layer, &operation.kind) {
                (Some(layer), _) => layer.forward(parameters, x, y, examples),
                (None, Kind::Add { other }) => {
                    let other = &before[*other][..examples * network.buffers[*other]];
                    elementwise::sum(x, other, y);
                }
                (None, _) => unreachable!("everything but an addition is a layer"),
            }
        }
    }

    fn loss(&mut self, examples: usize) {
        let (logits, classes) = (self.network.logits(), self.network.classes);
        loss::cross_entropy(
            &self.activations[logits][..examples * classes],
            &self.labels[..examples],
            classes,
            &mut self.gradients[logits][..examples * classes],
            &mut self.losses[..examples],
            &mut self.correct[..examples],
        );
    }

    /// Gradients of all buffers but the first. A buffer that several operations read gets the
    /// sum: the last reader (first in this order) writes, the others add.
    fn backward(&mut self, parameters: &[f32], examples: usize) {
        let network = Arc::clone(&self.network);
        let mut written = vec![false; network.buffers.len()];
        let operations = network.operations.iter().zip(&mut self.layers).rev();
        for (operation, layer) in operations {
            let (before, after) = self.gradients.split_at_mut(operation.output);
            let dy = &after[0][..examples * network.buffers[operation.output]];
            if let Kind::Add { other } = operation.kind {
                for input in [operation.input, other] {
                    if input != 0 {
                        let dx = &mut before[input][..dy.len()];
                        if written[input] {
                            elementwise::add(dy, dx);
                        } else {
                            dx.copy_from_slice(dy);
                        }
                        written[input] = true;
                    }
                }
                continue;
            }
            let Some(layer) = layer else { continue };
            let input = operation.input;
            let length = examples * network.buffers[input];
            let y = &self.activations[operation.output][..dy.len()];
            let given = Backward { parameters, y, dy, examples, scratch: &mut self.scratch };
            if input == 0 {
                // Nobody needs the gradient of the example itself.
                layer.backward(given, None);
                continue;
            }
            let again = std::mem::replace(&mut written[input], true);
            let dx = if again { &mut self.second[..length] } else { &mut before[input][..length] };
            layer.backward(given, Some(dx));
            if again {
                elementwise::add(&self.second[..length], &mut before[input][..length]);
            }
        }
    }

    fn norms(&mut self, examples: usize) {
        let squares = &mut self.squares[..examples];
        squares.fill(0.0);
        for (operation, layer) in self.network.operations.iter().zip(&mut self.layers) {
            let Some(layer) = layer else { continue };
            let known = operation.input == 0 && layer.reads_squares();
            let x = Known {
                inputs: &self.activations[operation.input],
                squares: known.then_some(&self.example_squares),
            };
            layer.add_squared_norms(x, &self.gradients[operation.output], squares);
        }
    }

    fn clipped_sum(&mut self, examples: usize, rows: Option<&[&[f32]]>, sum: &mut [f32]) {
        let network = &self.network;
        let factors = &self.factors[..examples];
        let overwrite = std::mem::take(&mut self.overwrite);
        for (operation, layer) in network.operations.iter().zip(&mut self.layers) {
            let Some(layer) = layer else { continue };
            let dy = &mut self.gradients[operation.output];
            let dy = &mut dy[..examples * network.buffers[operation.output]];
            let x = match rows {
                Some(rows) if operation.input == 0 => Inputs::Anywhere(rows),
                _ => {
                    let x = &self.activations[operation.input];
                    Inputs::Together(&x[..examples * network.buffers[operation.input]])
                }
            };
            let active = &mut self.active;
            layer.add_clipped(x, dy, Sum { factors, gradient: sum, overwrite, active });
        }
    }
}

/// min(1, C/r), never above in f32.
fn clipping_factor(norm: f64, clip_norm: f64) -> f32 {
    if norm <= clip_norm {
        return 1.0;
    }
    let exact = clip_norm / norm;
    let rounded = exact as f32;
    if f64::from(rounded) > exact { rounded.next_down() } else { rounded }
}

/// The largest buffer (numbers for one example) whose gradient is a sum over several readers.
fn shared_inputs(network: &Network) -> usize {
    let mut readers = vec![0; network.buffers.len()];
    for operation in &network.operations {
        readers[operation.input] += 1;
        if let Kind::Add { other } = operation.kind {
            readers[other] += 1;
        }
    }
    let shared = readers.iter().zip(&network.buffers).filter(|(readers, _)| **readers > 1);
    shared.map(|(_, length)| *length).max().unwrap_or(0)
}
