//! The network's program on one chunk: the launches that passes are made of, and the forward pass.

use super::arguments::Argument::{Address, Int, Long};
use super::arguments::{Argument, Notes};
use super::chunks::Chunk;
use super::elementwise::activation_of;
use super::engine::Engine;
use super::layer::Turn;
use super::products::{Operand, Product};
use crate::TrainingError;
use crate::model::Linear;

/// Threads of a block, and most blocks of a grid-stride loop.
pub(super) const THREADS: u32 = 256;
const MOST_BLOCKS: usize = 1 << 16;
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

    /// The weights of a linear layer.
    pub(super) fn linear_weights(&self, layer: &Linear) -> Operand {
        self.matrix(self.parameters.address(), layer.weight, layer.outputs)
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

    pub(super) fn bias_and_activation(
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
    pub(super) fn fused_activation(&self, number: usize) -> i32 {
        let operations = &self.recipe.network.operations;
        let output = operations[number].output;
        let next = operations.iter().find(|next| {
            next.input == output
                && activation_of(&next.kind) != 0
                && self.plan.storage[next.output] == self.plan.storage[output]
        });
        next.map_or(0, |next| activation_of(&next.kind))
    }

    /// Runs the program up to the logits.
    pub(super) fn forward(&self, chunk: &Chunk) -> Result<(), TrainingError> {
        for (number, layer) in self.plan.layers.iter().enumerate() {
            if !self.plan.skipped[number] {
                layer.forward(&Turn { engine: self, chunk, number })?;
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
