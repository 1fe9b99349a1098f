//! The network's program on one chunk: the launches that passes are made of, and the forward pass.

use super::arguments::Argument::{Address, Groups, Int, Layer, Long, Pool};
use super::arguments::{Argument, Notes};
use super::chunks::Chunk;
use super::convolution::numbers_of;
use super::engine::Engine;
use super::products::{Operand, Product};
use super::workspace::Memory;
use crate::TrainingError;
use crate::model::{self, Convolution, GroupNorm, Kind, Linear};

/// Threads of a block, and most blocks of a grid-stride loop.
pub(super) const THREADS: u32 = 256;
const MOST_BLOCKS: usize = 1 << 16;
/// Positions that a thread of `images.cu` normalises in registers, most threads that do, and the
/// threads of a block whose positions do not fit.
const NORM_EACH: usize = 16;
const NORM_MOST: usize = 1024;
const NORM: u32 = 512;
/// Columns of a tile of cuBLAS' large products; columns that `thin_gradient` takes, and slots from
/// which on tiles, and not launches, are what a product costs.
const TILE: usize = 128;
const THIN: usize = 16;
const FEWEST_THIN: usize = 64;

/// What one micro-batch is part of.
#[derive(Clone, Copy)]
pub(super) struct Pass {
    pub(super) step: u64,
    /// Rows of the batches that came before.
    pub(super) first: usize,
    /// Whether the sums already hold something.
    pub(super) again: bool,
    /// Clip norm; 0 switches clipping off.
    pub(super) clip: f64,
    pub(super) notes: Notes,
    pub(super) capacity: usize,
}

/// Blocks for `length` numbers.
pub(super) fn blocks(length: usize) -> usize {
    length.div_ceil(THREADS as usize).min(MOST_BLOCKS)
}

pub(super) fn flag(value: bool) -> Argument {
    Int(i32::from(value))
}

pub(super) fn activation_of(kind: &Kind) -> i32 {
    match kind {
        Kind::Relu => 1,
        Kind::Tanh => 2,
        _ => 0,
    }
}

pub(super) fn layer_of(layer: &Convolution) -> Argument {
    Layer(numbers_of(layer))
}

pub(super) fn pool_of(pool: &model::Pool) -> Argument {
    Pool(
        [
            pool.input.height,
            pool.input.width,
            pool.input.channels,
            pool.output.height,
            pool.output.width,
            pool.kernel,
            pool.stride,
        ]
        .map(|number| number as i32),
    )
}

/// How `images.cu` normalises a layer: the channels that a block takes (whole groups of at most 32
/// channels, or one group), its threads, and whether they keep their positions in registers.
fn normalising(layer: &GroupNorm) -> (usize, u32, bool) {
    let (channels, width) = (layer.image.channels, layer.image.channels / layer.groups);
    let whole = |chunk: &usize| channels.is_multiple_of(*chunk);
    let choices: Vec<usize> =
        (1..=(32 / width)).rev().map(|count| count * width).filter(whole).collect();
    for &chunk in choices.iter().filter(|chunk| **chunk >= channels.min(16)) {
        let threads = (chunk * layer.image.positions().div_ceil(NORM_EACH)).next_multiple_of(32);
        if threads <= NORM_MOST {
            return (chunk, threads as u32, true);
        }
    }
    (choices.first().copied().unwrap_or(width), NORM, false)
}

pub(super) fn groups_of(layer: &GroupNorm, rows: usize, active: bool) -> Argument {
    Groups(
        [
            layer.image.positions(),
            layer.image.channels,
            layer.groups,
            layer.scale,
            layer.shift,
            rows,
            normalising(layer).0,
            usize::from(active),
        ]
        .map(|number| number as i32),
    )
}

impl Engine {
    pub(super) fn start(
        &self,
        name: &'static str,
        grid: (usize, usize),
        mut arguments: Vec<Argument>,
    ) -> Result<(), TrainingError> {
        self.device.launch(&self.kernels, name, grid, THREADS, &mut arguments)
    }

    pub(super) fn multiply(&self, chunk: &Chunk, product: &Product) -> Result<(), TrainingError> {
        let addresses = self.workspace.addresses.address();
        product.run(&self.device, &self.kernels, self.precision, chunk, addresses)
    }

    /// Rows of a buffer, `width` numbers each, `rows` of them for each slot.
    pub(super) fn rows_of(address: u64, rows: usize, width: usize) -> Operand {
        Operand {
            address,
            stride: rows * width,
            by_replica: false,
            leading: width,
            transposed: false,
        }
    }

    /// A matrix of the parameters (or of the sums) with `width` columns.
    pub(super) fn matrix(&self, base: u64, offset: usize, width: usize) -> Operand {
        Operand {
            address: base + 4 * offset as u64,
            stride: self.stride,
            by_replica: true,
            leading: width,
            transposed: false,
        }
    }

    /// A layer's weights, those in use where they are standardised.
    pub(super) fn weights_of(&self, number: usize) -> Operand {
        let images = self.images.as_ref();
        let in_use = images.and_then(|images| images.weights.layers[number].as_ref());
        match (&self.recipe.network.operations[number].kind, in_use) {
            (Kind::Convolution(layer), Some(in_use)) if layer.standardised => Operand {
                address: in_use.used.address(),
                stride: layer.weights(),
                by_replica: true,
                leading: layer.output.channels,
                transposed: false,
            },
            (Kind::Convolution(layer), _) => {
                self.matrix(self.parameters.address(), layer.weight, layer.output.channels)
            }
            (Kind::Linear(layer), _) => {
                self.matrix(self.parameters.address(), layer.weight, layer.outputs)
            }
            _ => self.matrix(self.parameters.address(), 0, 1),
        }
    }

    /// y = x W, without the bias; `rows` rows for each slot.
    pub(super) fn times_weight(
        &self,
        chunk: &Chunk,
        (x, y): (u64, u64),
        rows: usize,
        (inputs, outputs): (usize, usize),
        weights: Operand,
    ) -> Result<(), TrainingError> {
        let product = Product {
            m: outputs,
            n: rows,
            k: inputs,
            a: weights,
            b: Self::rows_of(x, rows, inputs),
            c: Self::rows_of(y, rows, outputs),
            accumulate: false,
        };
        self.multiply(chunk, &product)
    }

    /// dx (+)= dy W'.
    pub(super) fn times_weight_transposed(
        &self,
        chunk: &Chunk,
        (dy, dx): (u64, u64),
        rows: usize,
        (inputs, outputs): (usize, usize),
        weights: Operand,
        accumulate: bool,
    ) -> Result<(), TrainingError> {
        let product = Product {
            m: inputs,
            n: rows,
            k: outputs,
            a: Operand { transposed: true, ..weights },
            b: Self::rows_of(dy, rows, outputs),
            c: Self::rows_of(dx, rows, inputs),
            accumulate,
        };
        self.multiply(chunk, &product)
    }

    /// Gradient of the weight (+)= x' dy.
    pub(super) fn weight_gradient(
        &self,
        chunk: &Chunk,
        (x, dy): (u64, u64),
        rows: usize,
        (inputs, outputs, weight): (usize, usize, usize),
        accumulate: bool,
    ) -> Result<(), TrainingError> {
        // 784 columns are six tiles of the product and an eighth of a seventh.
        let rest = inputs % TILE;
        let thin = chunk.slots >= FEWEST_THIN && inputs > TILE && (1..=THIN).contains(&rest);
        let columns = if thin { inputs - rest } else { inputs };
        let product = Product {
            m: outputs,
            n: columns,
            k: rows,
            a: Self::rows_of(dy, rows, outputs),
            b: Operand { transposed: true, ..Self::rows_of(x, rows, inputs) },
            c: self.matrix(self.sums.address(), weight, outputs),
            accumulate,
        };
        self.multiply(chunk, &product)?;
        if !thin {
            return Ok(());
        }
        let mut arguments = [
            Address(self.sums.address()),
            Address(x),
            Address(dy),
            Address(chunk.order),
            Long(self.stride as u64),
            Int((weight + columns * outputs) as i32),
            Int(rows as i32),
            Int(inputs as i32),
            Int(outputs as i32),
            Int(columns as i32),
            flag(accumulate),
        ];
        let grid = (outputs.div_ceil(128), chunk.slots);
        self.device.launch(&self.kernels, "thin_gradient", grid, 128, &mut arguments)
    }

    pub(super) fn bias_gradient(
        &self,
        chunk: &Chunk,
        dy: u64,
        rows: usize,
        (outputs, bias): (usize, usize),
        again: bool,
    ) -> Result<(), TrainingError> {
        let arguments = vec![
            Address(self.sums.address()),
            Address(dy),
            Address(chunk.order),
            Long(self.stride as u64),
            Int(bias as i32),
            Int(rows as i32),
            Int(outputs as i32),
            flag(again),
        ];
        self.start("column_sums", (outputs.div_ceil(32), chunk.slots), arguments)
    }

    fn bias_and_activation(
        &self,
        chunk: &Chunk,
        (x, y): (u64, u64),
        rows: usize,
        (width, bias): (usize, Option<usize>),
        activation: i32,
    ) -> Result<(), TrainingError> {
        let arguments = vec![
            Address(y),
            Address(x),
            Address(self.parameters.address()),
            Address(chunk.order),
            Long(self.stride as u64),
            Int(bias.map_or(-1, |bias| bias as i32)),
            Int(rows as i32),
            Int(width as i32),
            Int(activation),
        ];
        self.start("bias_activate", (blocks(rows * width).min(4096), chunk.slots), arguments)
    }

    /// The activation that works in place on what an operation writes, or none.
    fn fused_activation(&self, number: usize) -> i32 {
        let operations = &self.recipe.network.operations;
        let output = operations[number].output;
        let next = operations.iter().find(|next| {
            next.input == output
                && activation_of(&next.kind) != 0
                && self.plan.storage[next.output] == self.plan.storage[output]
        });
        next.map_or(0, |next| activation_of(&next.kind))
    }

    /// Starts the kernel of `images.cu` that normalises a layer.
    pub(super) fn start_norm(
        &self,
        back: bool,
        layer: &GroupNorm,
        examples: usize,
        arguments: &mut [Argument],
    ) -> Result<(), TrainingError> {
        let Some(images) = &self.images else { return Ok(()) };
        let (chunk, threads, kept) = normalising(layer);
        let (name, threads) = match (back, kept) {
            (false, true) if threads > NORM => {
                let threads = chunk * layer.image.positions().div_ceil(2 * NORM_EACH);
                ("group_norm_32", threads.next_multiple_of(32) as u32)
            }
            (false, true) => ("group_norm_16", threads),
            (false, false) => ("group_norm_0", threads),
            (true, true) => ("group_norm_backward_16", threads),
            (true, false) => ("group_norm_backward_0", threads),
        };
        let grid = (examples, layer.image.channels / chunk);
        self.device.launch(&images.kernels, name, grid, threads, arguments)
    }

    /// Runs the program up to the logits.
    pub(super) fn forward(&self, chunk: &Chunk) -> Result<(), TrainingError> {
        let network = &self.recipe.network;
        let (rows, images) = (chunk.rows, (chunk.slots * chunk.rows) as u64);
        for (number, operation) in network.operations.iter().enumerate() {
            if self.plan.skipped[number] {
                continue;
            }
            let (x, y) = (
                self.workspace.activation(self.plan.sources[number]),
                self.workspace.activation(operation.output),
            );
            let length = chunk.slots * rows * network.buffers[operation.output];
            match (&operation.kind, &self.workspace.memories[number]) {
                (Kind::Linear(layer), _) => {
                    let weights = self.weights_of(number);
                    let shape = (layer.inputs, layer.outputs);
                    self.times_weight(chunk, (x, y), rows, shape, weights)?;
                    let bias = (layer.outputs, Some(layer.bias));
                    let activation = self.fused_activation(number);
                    self.bias_and_activation(chunk, (y, y), rows, bias, activation)?;
                }
                (Kind::Relu | Kind::Tanh, _) => {
                    if x != y {
                        let width = (network.buffers[operation.output], None);
                        let activation = activation_of(&operation.kind);
                        self.bias_and_activation(chunk, (x, y), rows, width, activation)?;
                    }
                }
                (Kind::Convolution(layer), Memory::Nothing) => {
                    let other = self.plan.other[number];
                    let other = other.map_or(0, |buffer| self.workspace.activation(buffer));
                    let activation = self.fused_activation(number);
                    self.convolve(chunk, number, layer, (x, y, other), activation)?;
                }
                (Kind::Convolution(layer), Memory::Patches(patches)) => {
                    let (all, patches) = (rows * layer.output.positions(), patches.address());
                    let count = chunk.slots * all * layer.patch();
                    let arguments =
                        vec![Address(patches), Address(x), layer_of(layer), Long(images)];
                    self.start("patches", (blocks(count), 1), arguments)?;
                    let shape = (layer.patch(), layer.output.channels);
                    let weights = self.weights_of(number);
                    self.times_weight(chunk, (patches, y), all, shape, weights)?;
                    let bias = (layer.output.channels, Some(layer.bias));
                    let activation = self.fused_activation(number);
                    self.bias_and_activation(chunk, (y, y), all, bias, activation)?;
                }
                (Kind::GroupNorm(layer), Memory::GroupNorm(statistics)) => {
                    let mut arguments = [
                        Address(y),
                        Address(statistics.address()),
                        Address(x),
                        Address(self.parameters.address()),
                        Address(chunk.order),
                        Long(self.stride as u64),
                        groups_of(layer, rows, self.plan.active[number]),
                    ];
                    self.start_norm(false, layer, images as usize, &mut arguments)?;
                }
                (Kind::MaxPool(pool), Memory::Winners(winners)) => {
                    let winners = Address(winners.address());
                    let arguments =
                        vec![Address(y), winners, Address(x), pool_of(pool), Long(images)];
                    self.start("max_pool", (blocks(length), 1), arguments)?;
                }
                (Kind::AveragePool(pool), _) => {
                    let arguments = vec![Address(y), Address(x), pool_of(pool), Long(images)];
                    self.start("average_pool", (blocks(length), 1), arguments)?;
                }
                (Kind::Add { other }, _) => {
                    let other = Address(self.workspace.activation(*other));
                    let arguments = vec![Address(y), Address(x), other, Long(length as u64)];
                    self.start("add", (blocks(length), 1), arguments)?;
                }
                _ => unreachable!("memories are made from the operations"),
            }
        }
        Ok(())
    }

    /// Losses and whether they are right; with the logits' gradient when training.
    pub(super) fn loss(&self, chunk: &Chunk, training: bool) -> Result<(), TrainingError> {
        let network = &self.recipe.network;
        let logits = network.logits();
        let gradient = if training { self.workspace.gradient(logits) } else { 0 };
        let arguments = vec![
            Address(gradient),
            Address(self.workspace.losses.address()),
            Address(self.workspace.correct.address()),
            Address(self.workspace.activation(logits)),
            Address(self.workspace.labels.address()),
            Int(chunk.rows as i32),
            Int(network.classes as i32),
        ];
        self.start("cross_entropy", (chunk.rows.div_ceil(8), chunk.slots), arguments)
    }
}

pub(super) fn shape_of(layer: &Linear) -> (usize, usize, usize) {
    (layer.inputs, layer.outputs, layer.weight)
}
