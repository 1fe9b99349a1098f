//! What an operation does on the CPU. A layer is one file that implements [`Layer`], and one line
//! in the table of [`super::layer`]; the executor knows no layer by name.

use super::active::Active;
use super::linear::Inputs;

/// What the backward pass of a layer reads.
pub(super) struct Backward<'a> {
    pub(super) parameters: &'a [f32],
    /// What the forward pass wrote.
    pub(super) y: &'a [f32],
    pub(super) dy: &'a [f32],
    pub(super) examples: usize,
    /// As many numbers per example as [`Layer::scratch`] asks for.
    pub(super) scratch: &'a mut [f32],
}

/// The inputs of a layer, for the norms of its gradients.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) inputs: &'a [f32],
    /// Of the examples, where the layer reads them and [`Layer::reads_squares`]: they are known
    /// beforehand, and the examples need not be in `inputs`.
    pub(super) squares: Option<&'a [f64]>,
}

/// Where clipped gradients go.
pub(super) struct Sum<'a> {
    pub(super) factors: &'a [f32],
    pub(super) gradient: &'a mut [f32],
    /// What is in `gradient` is not read.
    pub(super) overwrite: bool,
    pub(super) active: &'a mut Active,
}

/// One operation, with what it remembers between its passes. What has no parameters has no norms
/// and no sum.
pub(super) trait Layer: Send + Sync {
    /// The parameters have changed.
    fn prepare(&mut self, _parameters: &[f32]) {}

    fn forward(&mut self, parameters: &[f32], x: &[f32], y: &mut [f32], examples: usize);

    /// The gradient of the input, where it is wanted.
    fn backward(&mut self, given: Backward<'_>, dx: Option<&mut [f32]>);

    /// Adds each example's squared gradient norm, or an upper end of it.
    fn add_squared_norms(&mut self, _x: Known<'_>, _dy: &[f32], _squares: &mut [f64]) {}

    /// Adds the clipped gradients; `dy` may be scaled in place.
    fn add_clipped(&mut self, _x: Inputs<'_>, _dy: &mut [f32], _sum: Sum<'_>) {}

    /// From the gradient of what was used to that of the parameters, once per step.
    fn finish(&self, _sum: &mut [f32]) {}

    /// Whether the squared norms of its inputs are all that its norms need.
    fn reads_squares(&self) -> bool {
        false
    }

    /// Numbers of scratch per example that the backward pass needs.
    fn scratch(&self) -> usize {
        0
    }
}
