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
        let mut written = vec![false; network.buffers.len()];
        for (number, operation) in network.operations.iter().enumerate().rev() {
            // Only a normalisation needs its backward pass for its own gradients.
            let reaches = matches!(operation.kind, Kind::Add { .. } | Kind::GroupNorm(_));
            if operation.input == 0 && !reaches {
                continue;
            }
            let dy = self.workspace.gradient(operation.output);
            let dx = self.workspace.gradient(operation.input);
            let length = chunk.slots * rows * network.buffers[operation.input];
            let again = std::mem::replace(&mut written[operation.input], true);
            match (&operation.kind, &self.workspace.memories[number]) {
                (Kind::Linear(layer), _) => {
                    let (shape, weights) = ((layer.inputs, layer.outputs), self.weights_of(number));
                    self.times_weight_transposed(chunk, (dy, dx), rows, shape, weights, again)?;
                }
                (Kind::Relu | Kind::Tanh, _) => {
                    let y = self.workspace.activation(operation.output);
                    let kind = Int(activation_of(&operation.kind));
                    let length_argument = Long(length as u64);
                    let arguments = vec![
                        Address(dx),
                        Address(dy),
                        Address(y),
                        length_argument,
                        kind,
                        flag(again),
                    ];
                    self.start("activate_backward", (blocks(length), 1), arguments)?;
                }
                (Kind::Convolution(layer), _) => {
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
                (Kind::GroupNorm(layer), Memory::GroupNorm { normalised, inverses, gradients }) => {
                    let units = images as usize * layer.groups;
                    let arguments = vec![
                        Address(if operation.input == 0 { 0 } else { dx }),
                        Address(gradients.address()),
                        Address(dy),
                        Address(normalised.address()),
                        Address(inverses.address()),
                        Address(self.parameters.address()),
                        Address(chunk.order),
                        Long(self.stride as u64),
                        groups_of(layer, rows),
                        Int(images as i32),
                        flag(again),
                    ];
                    self.start("group_norm_backward", (units.div_ceil(8), 1), arguments)?;
                }
                (Kind::MaxPool(pool) | Kind::AveragePool(pool), memory) => {
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
                (Kind::Add { other }, _) => {
                    for (buffer, again) in [
                        (operation.input, again),
                        (*other, std::mem::replace(&mut written[*other], true)),
                    ] {
                        if buffer == 0 {
                            continue;
                        }
                        let dx = self.workspace.gradient(buffer);
                        let arguments = if again {
                            vec![Address(dx), Address(dy), Address(dx), Long(length as u64)]
                        } else {
                            vec![Address(dx), Address(dy), Long(length as u64)]
                        };
                        let name = if again { "add" } else { "copy" };
                        self.start(name, (blocks(length), 1), arguments)?;
                    }
                }
                _ => unreachable!("memories are made from the operations"),
            }
        }
        Ok(())
    }

    fn norms(&self, chunk: &Chunk) -> Result<(), TrainingError> {
        let network = &self.recipe.network;
        let examples = chunk.slots * chunk.rows;
        let squares = Address(self.workspace.squares.address());
        let mut again = false;
        for (number, operation) in network.operations.iter().enumerate() {
            match (&operation.kind, &self.workspace.memories[number]) {
                (Kind::Linear(layer), _) => {
                    let known = operation.input == 0;
                    let input_squares = self.workspace.input_squares.address();
                    let arguments = vec![
                        squares,
                        Address(self.workspace.activation(operation.input)),
                        Address(if known { input_squares } else { 0 }),
                        Address(self.workspace.gradient(operation.output)),
                        Int(examples as i32),
                        Int(layer.inputs as i32),
                        Int(layer.outputs as i32),
                        flag(again),
                    ];
                    self.start("linear_norms", (examples.div_ceil(8), 1), arguments)?;
                }
                (Kind::Convolution(layer), Memory::Convolution { patches, gradients, biases }) => {
                    let dy = self.workspace.gradient(operation.output);
                    let (positions, channels) = (layer.output.positions(), layer.output.channels);
                    let each = Product {
                        m: channels,
                        n: layer.patch(),
                        k: positions,
                        a: Self::rows_of(dy, positions, channels),
                        b: Operand {
                            transposed: true,
                            ..Self::rows_of(patches.address(), positions, layer.patch())
                        },
                        c: Self::rows_of(gradients.address(), layer.patch(), channels),
                        accumulate: false,
                    };
                    let starts = [dy, patches.address(), gradients.address()];
                    each.strided(&self.device, self.precision, starts, examples)?;
                    if let Some(standardised) = &self.standardised[number] {
                        let arguments = vec![
                            squares,
                            Address(biases.address()),
                            Address(gradients.address()),
                            Address(dy),
                            Address(standardised.used.address()),
                            Address(standardised.scales.address()),
                            Address(standardised.lengths.address()),
                            Address(chunk.order),
                            Int(chunk.rows as i32),
                            Int(layer.patch() as i32),
                            Int(channels as i32),
                            Int(positions as i32),
                            flag(again),
                        ];
                        self.start("standardised_norms", (examples, 1), arguments)?;
                        again = true;
                        continue;
                    }
                    let arguments = vec![
                        squares,
                        Address(biases.address()),
                        Address(gradients.address()),
                        Address(dy),
                        Int(examples as i32),
                        Int(layer.weights() as i32),
                        Int(positions as i32),
                        Int(channels as i32),
                        flag(again),
                    ];
                    self.start("convolution_norms", (examples.div_ceil(8), 1), arguments)?;
                }
                (Kind::GroupNorm(layer), Memory::GroupNorm { gradients, .. }) => {
                    let arguments = vec![
                        squares,
                        Address(gradients.address()),
                        Int(examples as i32),
                        Int(2 * layer.image.channels as i32),
                        flag(again),
                    ];
                    self.start("row_norms", (examples.div_ceil(8), 1), arguments)?;
                }
                _ => continue,
            }
            again = true;
        }
        Ok(())
    }

    fn sum(&self, chunk: &Chunk, again: bool) -> Result<(), TrainingError> {
        let network = &self.recipe.network;
        let rows = chunk.rows;
        let factors = Address(self.workspace.factors.address());
        for (number, operation) in network.operations.iter().enumerate() {
            match (&operation.kind, &self.workspace.memories[number]) {
                (Kind::Linear(layer), _) => {
                    let dy = self.workspace.gradient(operation.output);
                    let examples = chunk.slots * rows;
                    let arguments = vec![
                        Address(dy),
                        factors,
                        Int(examples as i32),
                        Long(layer.outputs as u64),
                    ];
                    self.start("scale_rows", (blocks(examples * layer.outputs), 1), arguments)?;
                    let x = self.workspace.activation(operation.input);
                    self.weight_gradient(chunk, (x, dy), rows, shape_of(layer), again)?;
                    let bias = (layer.outputs, layer.bias);
                    self.bias_gradient(chunk, dy, rows, bias, again)?;
                }
                (Kind::Convolution(layer), Memory::Convolution { gradients, biases, .. }) => {
                    let parts = [
                        (gradients.address(), layer.weight, layer.weights()),
                        (biases.address(), layer.bias, layer.output.channels),
                    ];
                    for (own, offset, width) in parts {
                        self.weighted_sum(chunk, own, (offset, width), again)?;
                    }
                }
                // Scale and shift lie one after the other.
                (Kind::GroupNorm(layer), Memory::GroupNorm { gradients, .. }) => {
                    let both = (layer.scale, 2 * layer.image.channels);
                    self.weighted_sum(chunk, gradients.address(), both, again)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// sums (+)= clipping factors times kept gradients of `width` numbers.
    fn weighted_sum(
        &self,
        chunk: &Chunk,
        own: u64,
        (offset, width): (usize, usize),
        again: bool,
    ) -> Result<(), TrainingError> {
        let arguments = vec![
            Address(self.sums.address()),
            Address(own),
            Address(self.workspace.factors.address()),
            Address(chunk.order),
            Long(self.stride as u64),
            Int(offset as i32),
            Int(chunk.rows as i32),
            Int(width as i32),
            flag(again),
        ];
        let grid = (width.div_ceil(THREADS as usize), chunk.slots);
        self.start("weighted_sum", grid, arguments)
    }
}
