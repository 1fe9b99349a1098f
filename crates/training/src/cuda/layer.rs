//! What an operation does on a device. A layer is one file that implements [`Layer`], and one line in the table of
//! [`super::layer`]; the passes know no layer by name.

use super::chunks::Chunk;
use super::engine::Engine;
use super::workspace::Memory;
use crate::TrainingError;
use crate::model::Operation;

/// An operation whose turn it is, on one chunk.
pub(super) struct Turn<'a> {
    pub(super) engine: &'a Engine,
    pub(super) chunk: &'a Chunk,
    /// Which operation of the program.
    pub(super) number: usize,
}

impl Turn<'_> {
    pub(super) fn operation(&self) -> &Operation {
        &self.engine.recipe.network.operations[self.number]
    }

    /// The buffer that it reads.
    pub(super) fn source(&self) -> usize {
        self.engine.plan.sources[self.number]
    }

    /// Where its input is.
    pub(super) fn x(&self) -> u64 {
        self.engine.workspace.activation(self.source())
    }

    /// Where its output is.
    pub(super) fn y(&self) -> u64 {
        self.engine.workspace.activation(self.operation().output)
    }

    /// Where the gradient of its input is; nowhere for the examples themselves.
    pub(super) fn dx(&self) -> u64 {
        match self.source() {
            0 => 0,
            source => self.engine.workspace.gradient(source),
        }
    }

    pub(super) fn examples(&self) -> usize {
        self.chunk.slots * self.chunk.rows
    }

    /// Numbers of its input, and of its output.
    pub(super) fn lengths(&self) -> (usize, usize) {
        let buffers = &self.engine.recipe.network.buffers;
        let of = |buffer: usize| self.examples() * buffers[buffer];
        (of(self.source()), of(self.operation().output))
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.engine.workspace.memories[self.number]
    }

    /// Whether `first.cu` computes it.
    pub(super) fn is_direct(&self) -> bool {
        self.engine.plan.direct[self.number]
    }

    /// Whether `convolution.cu` computes it.
    pub(super) fn is_implicit(&self) -> bool {
        self.engine.plan.implicit[self.number]
    }
}

/// A tensor that is kept of each example's gradient; one lies behind the other.
#[derive(Clone, Copy)]
pub(super) struct KeptTensor {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) standardised: bool,
}

/// One operation. What has no parameters keeps nothing, and has no norms and no sum.
pub(super) trait Layer: Send + Sync {
    /// What it remembers of each example between its passes: numbers, and bytes.
    fn remembers(&self, _without_patches: bool) -> (usize, usize) {
        (0, 0)
    }

    /// Numbers of scratch per example that the gradient of its input needs.
    fn scratch(&self, _without_patches: bool) -> usize {
        0
    }

    /// (first parameter, count) of the gradients that are kept of each example.
    fn kept(&self) -> Option<(usize, usize)> {
        None
    }

    /// The tensors that they are.
    fn kept_tensors(&self) -> Vec<KeptTensor> {
        Vec::new()
    }

    fn forward(&self, turn: &Turn<'_>) -> Result<(), TrainingError>;

    /// Whether the gradient of its output has to be in its own place.
    fn settles(&self) -> bool {
        false
    }

    /// Puts every example's gradient into what is kept of it, where that comes before the backward pass.
    fn keep(&self, _turn: &Turn<'_>, _dy: u64) -> Result<(), TrainingError> {
        Ok(())
    }

    /// Whether there is a backward pass: not where another operation does it (`skipped`), nor where only the examples
    /// lie before (`first`).
    fn has_backward(&self, skipped: bool, first: bool) -> bool {
        !skipped && !first
    }

    /// The gradient of the input.
    fn backward(
        &self,
        turn: &Turn<'_>,
        dy: u64,
        written: &mut Written,
    ) -> Result<(), TrainingError>;

    /// Adds the squared norms of what is not kept; `again` where the squares hold something. Whether they now do.
    fn add_norms(&self, _turn: &Turn<'_>, again: bool) -> Result<bool, TrainingError> {
        Ok(again)
    }

    /// Adds the clipped sum of what is not kept; `again` where the sums hold something.
    fn add_sum(&self, _turn: &Turn<'_>, _again: bool) -> Result<(), TrainingError> {
        Ok(())
    }
}

/// Where the gradient of each buffer is so far; 0: nowhere.
pub(super) struct Written(pub(super) Vec<u64>);

impl Written {
    /// Where it was; from now on it is in its own place.
    pub(super) fn take(&mut self, buffer: usize, own: u64) -> u64 {
        std::mem::replace(&mut self.0[buffer], own)
    }
}
