//! The first convolution by `first.cu`.

use super::arguments::Argument::{Address, Int, Long};
use super::convolution::numbers_of;
use super::device::{CudaDevice, Kernels};
use super::layer::Turn;
use crate::TrainingError;
use crate::model::Convolution;

/// Which convolutions of the examples `first.cu` computes.
pub(super) struct First;

impl First {
    /// As in `first.cu`.
    const ALONG: usize = 8;
    const TAPS: usize = 9;
    const MOST_INPUTS: usize = 4;
    const OUTPUTS: usize = 16;
    /// Bytes that every device has for a block.
    const MOST_SHARED: usize = 46 << 10;

    /// 3 x 3 windows that leave the size as it is, over few channels.
    pub(super) fn suits(layer: &Convolution) -> bool {
        (layer.kernel, layer.stride, layer.padding) == (3, 1, 1)
            && layer.input.channels <= Self::MOST_INPUTS
            && layer.output.channels.is_multiple_of(Self::OUTPUTS)
            && Self::shared(layer) <= Self::MOST_SHARED
    }

    /// Bytes of the planes with their borders, and of weights before them or sums in their place.
    fn shared(layer: &Convolution) -> usize {
        let pitch = layer.input.width.next_multiple_of(Self::ALONG) + 4;
        let planes = layer.input.channels * (layer.input.height + 2) * pitch;
        let sums = 4 * (Self::TAPS * layer.input.channels + 1);
        let weights = Self::TAPS * layer.input.channels * Self::OUTPUTS;
        4 * (weights + planes).max(16 * sums.next_multiple_of(8))
    }

    /// The kernels for examples of this many channels; none where no convolution is direct.
    pub(super) fn kernels(
        device: &CudaDevice,
        inputs: Option<usize>,
    ) -> Result<Option<Kernels>, TrainingError> {
        let Some(inputs) = inputs else { return Ok(None) };
        let definitions = [format!("-DINPUTS={inputs}")];
        device.compile("first.cu", include_str!("first.cu"), &definitions).map(Some)
    }

    /// y = convolution of the examples, with its bias and an activation.
    pub(super) fn forward(turn: &Turn<'_>, layer: &Convolution) -> Result<(), TrainingError> {
        let engine = turn.engine;
        let Some(kernels) = &engine.first else { return Ok(()) };
        let weights = engine.weights_of(turn.number, layer);
        let mut arguments = [
            Address(turn.y()),
            Address(turn.x()),
            Address(weights.address),
            Long(weights.stride as u64),
            Address(engine.parameters.address()),
            Long(engine.stride as u64),
            Int(layer.bias as i32),
            Address(turn.chunk.order),
            numbers_of(layer),
            Int(turn.chunk.rows as i32),
            Int(engine.fused_activation(turn.number)),
        ];
        let grid = (turn.examples(), layer.output.channels / Self::OUTPUTS);
        let shared = Self::shared(layer);
        engine.device.launch_bounded(kernels, "first_forward", grid, shared, &mut arguments)
    }

    /// Every example's gradient of the weights and of the bias, into what is kept of it.
    pub(super) fn gradient(
        turn: &Turn<'_>,
        layer: &Convolution,
        dy: u64,
    ) -> Result<(), TrainingError> {
        let engine = turn.engine;
        let Some(kernels) = &engine.first else { return Ok(()) };
        let mut arguments = [
            Address(engine.workspace.kept.at(engine.plan.kept[turn.number])),
            Long(engine.plan.kept_stride as u64),
            Address(turn.x()),
            Address(dy),
            numbers_of(layer),
        ];
        let grid = (turn.examples(), layer.output.channels / Self::OUTPUTS);
        let shared = Self::shared(layer);
        engine.device.launch_bounded(kernels, "first_gradient", grid, shared, &mut arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::First;
    use crate::model::{Convolution, Image};

    #[test]
    fn images_that_fit_a_block_are_read_without_patches() {
        let layer = |side: usize, inputs: usize, kernel: usize| {
            let image = |channels| Image { height: side, width: side, channels };
            Convolution {
                input: image(inputs),
                output: image(16),
                kernel,
                stride: 1,
                padding: kernel / 2,
                weight: 0,
                bias: 0,
                standardised: true,
            }
        };
        assert!(First::suits(&layer(32, 3, 3)) && First::suits(&layer(28, 1, 3)));
        assert!(First::suits(&layer(11, 4, 3)));
        // Too many channels, another window, an image beyond a block's memory.
        assert!(!First::suits(&layer(32, 5, 3)));
        assert!(!First::suits(&layer(32, 3, 5)));
        assert!(!First::suits(&layer(96, 3, 3)));
        // Sums of four warps lie where the planes were: 112 of them for each four channels.
        assert_eq!(First::shared(&layer(4, 3, 3)), 4 * 16 * 112);
    }
}
