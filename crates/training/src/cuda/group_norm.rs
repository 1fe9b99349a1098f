//! Group normalisation by `images.cu`: how a layer is cut into blocks, and the launches.

use super::arguments::Argument::{self, Address, Groups, Long};
use super::engine::Engine;
use super::layer::{KeptTensor, Layer, Turn, Written};
use crate::TrainingError;
use crate::model::GroupNorm;

/// Positions that a thread of `images.cu` normalises in registers, most threads that do, and the
/// threads of a block whose positions do not fit.
const NORM_EACH: usize = 16;
const NORM_MOST: usize = 1024;
const NORM: u32 = 512;

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

fn groups_of(layer: &GroupNorm, turn: &Turn<'_>) -> Argument {
    Groups(
        [
            layer.image.positions(),
            layer.image.channels,
            layer.groups,
            layer.scale,
            layer.shift,
            turn.chunk.rows,
            normalising(layer).0,
            usize::from(turn.engine.plan.active[turn.number]),
        ]
        .map(|number| number as i32),
    )
}

impl Engine {
    /// Starts the kernel of `images.cu` that normalises a layer.
    fn start_norm(
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
}

impl Layer for GroupNorm {
    /// Mean and inverse deviation of each group.
    fn remembers(&self, _implicit: bool) -> (usize, usize) {
        (2 * self.groups, 0)
    }

    /// The shift lies behind the scale.
    fn kept(&self) -> Option<(usize, usize)> {
        Some((self.scale, 2 * self.image.channels))
    }

    fn kept_tensors(&self) -> Vec<KeptTensor> {
        vec![KeptTensor { rows: 2, columns: self.image.channels, standardised: false }]
    }

    fn forward(&self, turn: &Turn<'_>) -> Result<(), TrainingError> {
        let engine = turn.engine;
        let mut arguments = [
            Address(turn.y()),
            Address(turn.memory().numbers.address()),
            Address(turn.x()),
            Address(engine.parameters.address()),
            Address(turn.chunk.order),
            Long(engine.stride as u64),
            groups_of(self, turn),
        ];
        engine.start_norm(false, self, turn.examples(), &mut arguments)
    }

    /// Its own gradients come from its backward pass.
    fn has_backward(&self, skipped: bool, _first: bool) -> bool {
        !skipped
    }

    fn backward(
        &self,
        turn: &Turn<'_>,
        dy: u64,
        written: &mut Written,
    ) -> Result<(), TrainingError> {
        let (engine, source, dx) = (turn.engine, turn.source(), turn.dx());
        let base = if source == 0 { 0 } else { written.take(source, dx) };
        let mut arguments = [
            Address(dx),
            Address(base),
            Address(engine.workspace.kept.at(engine.plan.kept[turn.number])),
            Long(engine.plan.kept_stride as u64),
            Address(dy),
            Address(turn.x()),
            Address(turn.memory().numbers.address()),
            Address(engine.parameters.address()),
            Address(turn.chunk.order),
            Long(engine.stride as u64),
            groups_of(self, turn),
        ];
        engine.start_norm(true, self, turn.examples(), &mut arguments)
    }
}
