//! Gradients of one chunk: backward, norms, clipping, sums; and the short way for nets with one
//! hidden layer.

use super::arguments::Argument::{Address, Double, Int, Long, Notes as NotesArgument};
use super::chunks::Chunk;
use super::engine::Engine;
use super::layer::{Turn, Written};
use super::program::{Pass, THREADS, blocks, flag, shape_of};
use super::workspace::Head;
use crate::TrainingError;

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
        self.times_weight(chunk, (x, hidden), rows, shape, self.linear_weights(&head.hidden))?;
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
        let mut written = Written(vec![0; network.buffers.len()]);
        for (number, operation) in network.operations.iter().enumerate().rev() {
            let (layer, turn) = (&self.plan.layers[number], Turn { engine: self, chunk, number });
            if layer.settles() {
                self.settle(chunk, &mut written, operation.output)?;
            }
            let dy = match written.0[operation.output] {
                0 => self.workspace.gradient(operation.output),
                noted => noted,
            };
            layer.keep(&turn, dy)?;
            if layer.has_backward(self.plan.skipped[number], turn.source() == 0) {
                layer.backward(&turn, dy, &mut written)?;
            }
        }
        Ok(())
    }

    /// The gradient of a buffer (+)= dy: noted where it is the first, for whoever writes next.
    pub(super) fn add_gradient(
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
    pub(super) fn settle(
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

    fn norms(&self, chunk: &Chunk) -> Result<(), TrainingError> {
        let mut again = self.kept_norms(chunk)?;
        for (number, layer) in self.plan.layers.iter().enumerate() {
            again = layer.add_norms(&Turn { engine: self, chunk, number }, again)?;
        }
        Ok(())
    }

    fn sum(&self, chunk: &Chunk, again: bool) -> Result<(), TrainingError> {
        for (number, layer) in self.plan.layers.iter().enumerate() {
            layer.add_sum(&Turn { engine: self, chunk, number }, again)?;
        }
        self.kept_sums(chunk, again)
    }
}
