//! Activations, and the sum of two buffers.

use super::arguments::Argument::{Address, Int, Long};
use super::layer::{Layer, Turn, Written};
use super::program::{blocks, flag};
use crate::TrainingError;
use crate::model::Kind;

/// An activation by its number in `kernels.cu`.
pub(super) struct Activation(i32);

impl Activation {
    pub(super) const RELU: Self = Self(1);
    pub(super) const TANH: Self = Self(2);
}

/// The number of an activation in `kernels.cu`; 0 for everything else.
pub(super) fn activation_of(kind: &Kind) -> i32 {
    match kind {
        Kind::Relu => Activation::RELU.0,
        Kind::Tanh => Activation::TANH.0,
        _ => 0,
    }
}

impl Layer for Activation {
    fn forward(&self, turn: &Turn<'_>) -> Result<(), TrainingError> {
        let (engine, x, y) = (turn.engine, turn.x(), turn.y());
        if x == y {
            return Ok(());
        }
        let width = (engine.recipe.network.buffers[turn.operation().output], None);
        engine.bias_and_activation(turn.chunk, (x, y), turn.chunk.rows, width, self.0)
    }

    fn backward(
        &self,
        turn: &Turn<'_>,
        dy: u64,
        written: &mut Written,
    ) -> Result<(), TrainingError> {
        let (engine, source, dx) = (turn.engine, turn.source(), turn.dx());
        let again = dx != dy && engine.settle(turn.chunk, written, source)?;
        written.0[source] = dx;
        let (length, _) = turn.lengths();
        let arguments = vec![
            Address(dx),
            Address(dy),
            Address(turn.y()),
            Long(length as u64),
            Int(self.0),
            flag(again),
        ];
        engine.start("activate_backward", (blocks(length), 1), arguments)
    }
}

/// The sum of the input and another buffer.
pub(super) struct Add {
    pub(super) other: usize,
}

impl Layer for Add {
    fn forward(&self, turn: &Turn<'_>) -> Result<(), TrainingError> {
        let other = Address(turn.engine.workspace.activation(self.other));
        let (_, length) = turn.lengths();
        let arguments = vec![Address(turn.y()), Address(turn.x()), other, Long(length as u64)];
        turn.engine.start("add", (blocks(length), 1), arguments)
    }

    /// Both branches get the gradient, whoever made the sum.
    fn has_backward(&self, _skipped: bool, _first: bool) -> bool {
        true
    }

    fn backward(
        &self,
        turn: &Turn<'_>,
        dy: u64,
        written: &mut Written,
    ) -> Result<(), TrainingError> {
        for buffer in [turn.source(), self.other].into_iter().filter(|buffer| *buffer != 0) {
            turn.engine.add_gradient(turn.chunk, written, buffer, dy)?;
        }
        Ok(())
    }
}
