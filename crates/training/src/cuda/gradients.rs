//! Gradients of one chunk: backward, norms, clipping, sums; and the short way for nets with one
//! hidden layer.

use super::arguments::Argument::{Address, Double, Int, Long, Notes as NotesArgument};
use super::chunks::Chunk;
use super::engine::Engine;
use super::products::{Operand, Product};
use super::program::{
    Pass, THREADS, activation_of, blocks, flag, groups_of, layer_of, pool_of, shape_of,
};
use super::workspace::{Head, Memory};
use crate::TrainingError;
use crate::model::Kind;

impl Engine {
    /// Adds the clipped gradients of a chunk's loaded rows to the sums.
    pub(super) fn add_clipped(&self, chunk: &Chunk, pass: Pass) -> Result<(), TrainingError> {
        if let Some(head) = self.head {
            return self.add_clipped_by_head(chunk, &head, pass);
        }
        self.forward(chunk)?;
        self.loss(chunk, true)?;
        self.backward(chunk)?;
        self.norms(chunk)?;
        let arguments = vec![
            Address(self.workspace.factors.address()),
            Address(self.workspace.squares.address()),
            Address(self.workspace.losses.address()),
            Address(self.workspace.correct.address()),
            Address(self.workspace.labels.address()),
            Address(chunk.order),
            Double(pass.clip),
            Int(chunk.rows as i32),
            Int(pass.first as i32),
            Int(pass.capacity as i32),
            Long(pass.step),
            NotesArgument(pass.notes),
        ];
        let grid = (chunk.rows.div_ceil(THREADS as usize), chunk.slots);
        self.start("clipping_factors", grid, arguments)?;
        self.sum(chunk, pass.again)
    }

    /// One hidden layer: a product forward, one kernel for everything up to the clipped gradients,
    /// a product for the sum.
    fn add_clipped_by_head(
        &self,
        chunk: &Chunk,
        head: &Head,
        pass: Pass,
    ) -> Result<(), TrainingError> {
        let rows = chunk.rows;
        let at = |buffer: usize| self.workspace.activation(buffer);
        let (x, hidden, active, output) = (at(0), at(1), at(2), at(3));
        let shape = (head.hidden.inputs, head.hidden.outputs);
        self.times_weight(chunk, (x, hidden), rows, shape, self.weights_of(0))?;
        let arguments = vec![
            Address(hidden),
            Address(active),
            Address(output),
            Address(self.workspace.losses.address()),
            Address(self.parameters.address()),
            Address(self.workspace.labels.address()),
            Address(self.workspace.input_squares.address()),
            Address(chunk.order),
            Long(self.stride as u64),
            Int(head.hidden.bias as i32),
            Int(head.output.weight as i32),
            Int(head.output.bias as i32),
            Double(pass.clip),
            Int(rows as i32),
            Int(pass.first as i32),
            Int(pass.capacity as i32),
            Long(pass.step),
            NotesArgument(pass.notes),
            Address(self.sums.address()),
            flag(pass.again),
        ];
        // Each warp takes several rows, so that the output's weights are loaded less often.
        let blocks = if head.sums_itself() { 1 } else { rows.div_ceil(64) };
        self.start("head", (blocks, chunk.slots), arguments)?;
        self.weight_gradient(chunk, (x, hidden), rows, shape_of(&head.hidden), pass.again)?;
        if head.sums_itself() {
            return Ok(());
        }
        self.weight_gradient(chunk, (active, output), rows, shape_of(&head.output), pass.again)?;
        let bias = (head.hidden.outputs, head.hidden.bias);
        self.bias_gradient(chunk, hidden, rows, bias, pass.again)?;
        let bias = (head.output.outputs, head.output.bias);
        self.bias_gradient(chunk, output, rows, bias, pass.again)
    }

    fn backward(&self, chunk: &Chunk) -> Result<(), TrainingError> {
        let network = &self.recipe.network;
        let (rows, images) = (chunk.rows, (chunk.slots * chunk.rows) as u64);
        let mut written = Written(vec![0; network.buffers.len()]);
        for (number, operation) in network.operations.iter().enumerate().rev() {
            let source = self.plan.sources[number];
            if let Kind::Linear(_) = operation.kind {
                // Its clipped sum is taken from where the gradient belongs.
                self.settle(chunk, &mut written, operation.output)?;
            }
            let dy = match written.0[operation.output] {
                0 => self.workspace.gradient(operation.output),
                noted => noted,
            };
            self.keep_gradient(chunk, number, dy)?;
            if let Kind::Add { other } = operation.kind {
                for buffer in [source, other].into_iter().filter(|buffer| *buffer != 0) {
                    self.add_gradient(chunk, &mut written, buffer, dy)?;
                }
                continue;
            }
            // Only a normalisation needs its backward pass for its own gradients.
            let reaches = matches!(operation.kind, Kind::GroupNorm(_));
            if self.plan.skipped[number] || (source == 0 && !reaches) {
                continue;
            }
            let dx = if source == 0 { 0 } else { self.workspace.gradient(source) };
            let length = chunk.slots * rows * network.buffers[source];
            match (&operation.kind, &self.workspace.memories[number]) {
                (Kind::Linear(layer), _) => {
                    let again = self.settle(chunk, &mut written, source)?;
                    let (shape, weights) = ((layer.inputs, layer.outputs), self.weights_of(number));
                    self.times_weight_transposed(chunk, (dy, dx), rows, shape, weights, again)?;
                }
                (Kind::Relu | Kind::Tanh, _) => {
                    let again = dx != dy && self.settle(chunk, &mut written, source)?;
                    written.0[source] = dx;
                    let y = self.workspace.activation(operation.output);
                    let arguments = vec![
                        Address(dx),
                        Address(dy),
                        Address(y),
                        Long(length as u64),
                        Int(activation_of(&operation.kind)),
                        flag(again),
                    ];
                    self.start("activate_backward", (blocks(length), 1), arguments)?;
                }
                (Kind::Convolution(layer), Memory::Nothing) => {
                    let base = written.take(source, dx);
                    self.convolve_backward(chunk, number, layer, (dy, dx, base))?;
                }
                (Kind::Convolution(layer), _) => {
                    let again = self.settle(chunk, &mut written, source)?;
                    let all = rows * layer.output.positions();
                    let scratch = self.workspace.scratch.address();
                    let shape = (layer.patch(), layer.output.channels);
                    let weights = self.weights_of(number);
                    let (from, to) = (dy, scratch);
                    self.times_weight_transposed(chunk, (from, to), all, shape, weights, false)?;
                    let arguments = vec![
                        Address(dx),
                        Address(scratch),
                        layer_of(layer),
                        Long(images),
                        flag(again),
                    ];
                    self.start("unpatch", (blocks(length), 1), arguments)?;
                }
                (Kind::GroupNorm(layer), Memory::GroupNorm(statistics)) => {
                    let base = if source == 0 { 0 } else { written.take(source, dx) };
                    let mut arguments = [
                        Address(dx),
                        Address(base),
                        Address(self.workspace.kept.at(self.plan.kept[number])),
                        Long(self.plan.kept_stride as u64),
                        Address(dy),
                        Address(self.workspace.activation(source)),
                        Address(statistics.address()),
                        Address(self.parameters.address()),
                        Address(chunk.order),
                        Long(self.stride as u64),
                        groups_of(layer, rows, self.plan.active[number]),
                    ];
                    let examples = images as usize;
                    self.start_norm(true, layer, examples, &mut arguments)?;
                }
                (Kind::MaxPool(pool) | Kind::AveragePool(pool), memory) => {
                    let again = self.settle(chunk, &mut written, source)?;
                    let winners = match memory {
                        Memory::Winners(winners) => winners.address(),
                        _ => 0,
                    };
                    let arguments = vec![
                        Address(dx),
                        Address(dy),
                        Address(winners),
                        pool_of(pool),
                        Long(images),
                        flag(again),
                    ];
                    self.start("pool_backward", (blocks(length), 1), arguments)?;
                }
                _ => unreachable!("memories are made from the operations"),
            }
        }
        Ok(())
    }

    /// The gradient of a buffer (+)= dy: noted where it is the first, for whoever writes next.
    fn add_gradient(
        &self,
        chunk: &Chunk,
        written: &mut Written,
        buffer: usize,
        dy: u64,
    ) -> Result<(), TrainingError> {
        if written.0[buffer] == 0 {
            written.0[buffer] = dy;
            return Ok(());
        }
        let dx = self.workspace.gradient(buffer);
        let base = written.take(buffer, dx);
        let length = chunk.slots * chunk.rows * self.recipe.network.buffers[buffer];
        let arguments = vec![Address(dx), Address(dy), Address(base), Long(length as u64)];
        self.start("add", (blocks(length), 1), arguments)
    }

    /// Puts a noted gradient where it belongs; whether there was one.
    fn settle(
        &self,
        chunk: &Chunk,
        written: &mut Written,
        buffer: usize,
    ) -> Result<bool, TrainingError> {
        let dx = self.workspace.gradient(buffer);
        let base = written.take(buffer, dx);
        if base != 0 && base != dx {
            let length = chunk.slots * chunk.rows * self.recipe.network.buffers[buffer];
            let arguments = vec![Address(dx), Address(base), Long(length as u64)];
            self.start("copy", (blocks(length), 1), arguments)?;
        }
        Ok(base != 0)
    }

    /// Every example's gradient of a convolution, into what is kept of it.
    fn keep_gradient(&self, chunk: &Chunk, number: usize, dy: u64) -> Result<(), TrainingError> {
        let operation = &self.recipe.network.operations[number];
        let (Kind::Convolution(layer), Some(images)) = (&operation.kind, &self.images) else {
            return Ok(());
        };
        let (positions, channels) = (layer.output.positions(), layer.output.channels);
        let (kept, kept_stride) = (self.plan.kept[number], self.plan.kept_stride);
        let to = self.workspace.kept.at(kept);
        let examples = chunk.slots * chunk.rows;
        if let Memory::Patches(patches) = &self.workspace.memories[number] {
            let each = Product {
                m: channels,
                n: layer.patch(),
                k: positions,
                a: Self::rows_of(dy, positions, channels),
                b: Operand {
                    transposed: true,
                    ..Self::rows_of(patches.address(), positions, layer.patch())
                },
                c: Operand { stride: kept_stride, ..Self::rows_of(to, 1, channels) },
                accumulate: false,
            };
            each.strided(&self.device, self.precision, [dy, patches.address(), to], examples)?;
        } else {
            let x = self.workspace.activation(operation.input);
            return self.each_gradient(chunk, number, layer, (x, dy));
        }
        let mut arguments = [
            Address(self.workspace.kept.at(kept + layer.weights())),
            Long(kept_stride as u64),
            Address(dy),
            Int(positions as i32),
            Int(channels as i32),
        ];
        let grid = (examples, channels.div_ceil(64));
        self.device.launch(&images.kernels, "each_bias", grid, THREADS, &mut arguments)
    }

    fn norms(&self, chunk: &Chunk) -> Result<(), TrainingError> {
        let network = &self.recipe.network;
        let examples = chunk.slots * chunk.rows;
        let mut again = self.kept_norms(chunk)?;
        for operation in &network.operations {
            let Kind::Linear(layer) = &operation.kind else { continue };
            let known = operation.input == 0;
            let input_squares = self.workspace.input_squares.address();
            let arguments = vec![
                Address(self.workspace.squares.address()),
                Address(self.workspace.activation(operation.input)),
                Address(if known { input_squares } else { 0 }),
                Address(self.workspace.gradient(operation.output)),
                Int(examples as i32),
                Int(layer.inputs as i32),
                Int(layer.outputs as i32),
                flag(again),
            ];
            self.start("linear_norms", (examples.div_ceil(8), 1), arguments)?;
            again = true;
        }
        Ok(())
    }

    fn sum(&self, chunk: &Chunk, again: bool) -> Result<(), TrainingError> {
        let rows = chunk.rows;
        let factors = Address(self.workspace.factors.address());
        for operation in &self.recipe.network.operations {
            let Kind::Linear(layer) = &operation.kind else { continue };
            let dy = self.workspace.gradient(operation.output);
            let examples = chunk.slots * rows;
            let arguments =
                vec![Address(dy), factors, Int(examples as i32), Long(layer.outputs as u64)];
            self.start("scale_rows", (blocks(examples * layer.outputs), 1), arguments)?;
            let x = self.workspace.activation(operation.input);
            self.weight_gradient(chunk, (x, dy), rows, shape_of(layer), again)?;
            let bias = (layer.outputs, layer.bias);
            self.bias_gradient(chunk, dy, rows, bias, again)?;
        }
        self.kept_sums(chunk, again)
    }
}

/// Where the gradient of each buffer is so far; 0: nowhere.
struct Written(Vec<u64>);

impl Written {
    /// Where it was; from now on it is in its own place.
    fn take(&mut self, buffer: usize, own: u64) -> u64 {
        std::mem::replace(&mut self.0[buffer], own)
    }
}
