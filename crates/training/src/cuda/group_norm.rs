//! Group normalisation by `norm.cu`, or by `images.cu` where that does not suit: how a layer is cut into blocks, and the launches.

use super::arguments::Argument::{self, Address, Groups, Long, Norms};
use super::engine::Engine;
use super::layer::{KeptTensor, Layer, Turn, Written};
use crate::TrainingError;
use crate::model::{GroupNorm, Kind};

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

/// Most bytes of shared memory that a block of `norm.cu` takes.
pub(super) const STREAM_SHARED: usize = 224 << 10;

/// How `norm.cu` normalises a layer: the channels of a part, the threads of a block, and the groups
/// that four channels lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Streamed {
    chunk: usize,
    threads: usize,
    sets: usize,
}

impl Streamed {
    /// Times four channels that a thread holds, most threads of a block, and most fours of a part.
    const HELD: usize = 8;
    const MOST_THREADS: usize = 512;
    const MOST_QUADS: usize = 16;

    /// Nothing where groups are not made of fours, or fours of groups; or where an image is too
    /// large to be held.
    pub(super) fn of(layer: &GroupNorm) -> Option<Self> {
        let (channels, positions) = (layer.image.channels, layer.image.positions());
        let width = channels / layer.groups;
        let fours =
            width == 1 || width == 2 || (width.is_multiple_of(4) && (width / 4).is_power_of_two());
        if !channels.is_multiple_of(4) || !fours {
            return None;
        }
        let quads =
            (0..=Self::MOST_QUADS.ilog2()).rev().map(|power| 1usize << power).find(|quads| {
                channels.is_multiple_of(4 * quads)
                    && (4 * quads).is_multiple_of(width)
                    && quads * positions <= Self::HELD * Self::MOST_THREADS
            })?;
        let threads = (quads * positions).div_ceil(Self::HELD).next_multiple_of(32);
        Some(Self { chunk: 4 * quads, threads, sets: (4 / width).max(1) })
    }

    /// Bytes of shared memory of a block that reads this many images, and takes this many sums of
    /// four numbers of four bytes for every four channels.
    fn shared(&self, images: usize, sums: usize) -> usize {
        let held = images * Self::HELD * self.threads;
        16 * (held + 2 * (self.threads / 32) * (self.chunk / 4) * sums)
    }

    fn start(
        &self,
        turn: &Turn<'_>,
        layer: &GroupNorm,
        (name, shared): (&'static str, usize),
        arguments: &mut [Argument],
    ) -> Result<(), TrainingError> {
        let engine = turn.engine;
        let Some(images) = &engine.images else { return Ok(()) };
        let parts = turn.examples() * (layer.image.channels / self.chunk);
        let together = Self::MOST_THREADS / self.threads * engine.device.processors;
        let grid = (parts.min(together), 1);
        let threads = self.threads as u32;
        engine.device.launch_with(&images.kernels, name, grid, threads, shared, arguments)
    }

    fn forward(&self, turn: &Turn<'_>, layer: &GroupNorm) -> Result<(), TrainingError> {
        let (engine, twin) = (turn.engine, Twin::of(turn));
        let other = twin.as_ref().map_or(0, |twin| engine.workspace.activation(twin.output));
        let mut arguments = [
            Address(turn.y()),
            Address(other),
            Address(turn.memory().numbers.address()),
            Address(turn.x()),
            Address(engine.parameters.address()),
            Address(turn.chunk.order),
            Long(engine.stride as u64),
            self.numbers(turn, layer, twin.as_ref()),
        ];
        let name = match self.sets {
            1 => "norm_1",
            2 => "norm_2",
            _ => "norm_4",
        };
        self.start(turn, layer, (name, self.shared(1, self.sets)), &mut arguments)
    }

    fn backward(
        &self,
        turn: &Turn<'_>,
        layer: &GroupNorm,
        dy: u64,
        written: &mut Written,
    ) -> Result<(), TrainingError> {
        let (engine, source, dx) = (turn.engine, turn.source(), turn.dx());
        let twin = Twin::of(turn);
        let slope = |twin: &Twin| match written.0[twin.output] {
            0 => engine.workspace.gradient(twin.output),
            noted => noted,
        };
        let other = twin.as_ref().map_or(0, slope);
        let kept = |number: usize| engine.workspace.kept.at(engine.plan.kept[number]);
        let base = if source == 0 { 0 } else { written.take(source, dx) };
        let mut arguments = [
            Address(dx),
            Address(base),
            Address(kept(turn.number)),
            Address(twin.as_ref().map_or(0, |twin| kept(twin.number))),
            Long(engine.plan.kept_stride as u64),
            Address(dy),
            Address(other),
            Address(turn.x()),
            Address(turn.memory().numbers.address()),
            Address(engine.parameters.address()),
            Address(turn.chunk.order),
            Long(engine.stride as u64),
            self.numbers(turn, layer, twin.as_ref()),
        ];
        let name = match (self.sets, twin.is_some()) {
            (1, false) => "norm_backward_1",
            (2, false) => "norm_backward_2",
            (_, false) => "norm_backward_4",
            (1, true) => "norm_backward_pair_1",
            (2, true) => "norm_backward_pair_2",
            (_, true) => "norm_backward_pair_4",
        };
        let shared = if twin.is_some() { self.shared(3, 4) } else { self.shared(2, 2) };
        self.start(turn, layer, (name, shared), &mut arguments)
    }

    fn numbers(&self, turn: &Turn<'_>, layer: &GroupNorm, twin: Option<&Twin>) -> Argument {
        let (other_scale, other_shift) = twin.map_or((0, 0), |twin| (twin.scale, twin.shift));
        let plan = &turn.engine.plan;
        let (every, other_every) =
            (plan.every[turn.number], twin.map_or(1, |twin| plan.every[twin.number]));
        Norms(
            [
                layer.image.positions(),
                layer.image.channels,
                layer.groups,
                self.chunk,
                usize::from(turn.engine.plan.active[turn.number]),
                turn.chunk.rows,
                turn.examples(),
                layer.scale,
                layer.shift,
                other_scale,
                other_shift,
                layer.image.width,
                every,
                other_every,
            ]
            .map(|number| number as i32),
        )
    }
}

/// The other normalisation that a pass does.
struct Twin {
    number: usize,
    output: usize,
    scale: usize,
    shift: usize,
}

impl Twin {
    fn of(turn: &Turn<'_>) -> Option<Self> {
        let number = turn.engine.plan.twins[turn.number]?;
        let operation = &turn.engine.recipe.network.operations[number];
        let Kind::GroupNorm(layer) = operation.kind else { return None };
        Some(Self { number, output: operation.output, scale: layer.scale, shift: layer.shift })
    }
}

/// How this device streams a layer, if it does.
fn streamed(turn: &Turn<'_>, layer: &GroupNorm) -> Option<Streamed> {
    let can = turn.engine.device.abilities;
    Streamed::of(layer).filter(|_| can.streams)
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
    fn remembers(&self, _without_patches: bool) -> (usize, usize) {
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
        if let Some(stream) = streamed(turn, self) {
            return stream.forward(turn, self);
        }
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
        if let Some(stream) = streamed(turn, self) {
            return stream.backward(turn, self, dy, written);
        }
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

#[cfg(test)]
mod tests {
    use super::{STREAM_SHARED, Streamed};
    use crate::model::{GroupNorm, Image};

    fn norm(side: usize, channels: usize, groups: usize) -> GroupNorm {
        let image = Image { height: side, width: side, channels };
        GroupNorm { image, groups, scale: 0, shift: channels }
    }

    /// A block's threads hold a whole part, and its memory fits, whatever the layer.
    #[test]
    fn a_part_is_held_whole() {
        let mut streamed = 0;
        for side in 1..=40 {
            for channels in (4..=256).step_by(4) {
                for groups in (1..=32).filter(|groups| channels % groups == 0) {
                    let layer = norm(side, channels, groups);
                    let Some(stream) = Streamed::of(&layer) else { continue };
                    streamed += 1;
                    let (quads, width) = (stream.chunk / 4, channels / groups);
                    assert!(32 % quads == 0 && channels % stream.chunk == 0, "{layer:?}");
                    assert!(stream.chunk % width == 0, "{layer:?}: groups are cut");
                    assert!(stream.threads <= Streamed::MOST_THREADS && stream.threads % 32 == 0);
                    let held = stream.threads / quads * Streamed::HELD;
                    assert!(held >= side * side, "{layer:?}: {held} positions");
                    assert!(stream.shared(3, 4) <= STREAM_SHARED, "{layer:?}");
                    assert!(stream.shared(1, stream.sets) <= STREAM_SHARED, "{layer:?}");
                }
            }
        }
        assert!(streamed > 1_000);
    }

    #[test]
    fn groups_beside_fours_are_left_to_the_other_kernels() {
        assert!(Streamed::of(&norm(8, 48, 16)).is_none());
        assert!(Streamed::of(&norm(8, 24, 2)).is_none());
        assert!(Streamed::of(&norm(128, 16, 4)).is_none());
        let wide = Streamed::of(&norm(32, 16, 4)).unwrap();
        assert_eq!((wide.chunk, wide.threads, wide.sets), (16, 512, 1));
    }
}
