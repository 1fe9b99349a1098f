//! Linear layers: products by cuBLAS, norms from the inputs and the gradients of the outputs.

use super::arguments::Argument::{Address, Int, Long};
use super::layer::{Layer, Turn, Written};
use super::program::{blocks, flag};
use crate::TrainingError;
use crate::model::Linear;

impl Layer for Linear {
    fn forward(&self, turn: &Turn<'_>) -> Result<(), TrainingError> {
        let (engine, chunk, y) = (turn.engine, turn.chunk, turn.y());
        let (rows, shape) = (chunk.rows, (self.inputs, self.outputs));
        engine.times_weight(chunk, (turn.x(), y), rows, shape, engine.linear_weights(self))?;
        let bias = (self.outputs, Some(self.bias));
        let activation = engine.fused_activation(turn.number);
        engine.bias_and_activation(chunk, (y, y), rows, bias, activation)
    }

    /// Its clipped sum is taken from where the gradient belongs.
    fn settles(&self) -> bool {
        true
    }

    fn backward(
        &self,
        turn: &Turn<'_>,
        dy: u64,
        written: &mut Written,
    ) -> Result<(), TrainingError> {
        let (engine, chunk) = (turn.engine, turn.chunk);
        let again = engine.settle(chunk, written, turn.source())?;
        let (shape, weights) = ((self.inputs, self.outputs), engine.linear_weights(self));
        engine.times_weight_transposed(chunk, (dy, turn.dx()), chunk.rows, shape, weights, again)
    }

    fn add_norms(&self, turn: &Turn<'_>, again: bool) -> Result<bool, TrainingError> {
        let (operation, workspace) = (turn.operation(), &turn.engine.workspace);
        let known = operation.input == 0;
        let arguments = vec![
            Address(workspace.squares.address()),
            Address(workspace.activation(operation.input)),
            Address(if known { workspace.input_squares.address() } else { 0 }),
            Address(workspace.gradient(operation.output)),
            Int(turn.examples() as i32),
            Int(self.inputs as i32),
            Int(self.outputs as i32),
            flag(again),
        ];
        turn.engine.start("linear_norms", (turn.examples().div_ceil(8), 1), arguments)?;
        Ok(true)
    }

    fn add_sum(&self, turn: &Turn<'_>, again: bool) -> Result<(), TrainingError> {
        let (engine, chunk, operation) = (turn.engine, turn.chunk, turn.operation());
        let dy = engine.workspace.gradient(operation.output);
        let arguments = vec![
            Address(dy),
            Address(engine.workspace.factors.address()),
            Int(turn.examples() as i32),
            Long(self.outputs as u64),
        ];
        engine.start("scale_rows", (blocks(turn.examples() * self.outputs), 1), arguments)?;
        let x = engine.workspace.activation(operation.input);
        let shape = (self.inputs, self.outputs, self.weight);
        engine.weight_gradient(chunk, (x, dy), chunk.rows, shape, again)?;
        engine.bias_gradient(chunk, dy, chunk.rows, (self.outputs, self.bias), again)
    }
}
