//! Convolutions by `convolution.cu`: which tiles a layer is cut into, and the launches.

use super::arguments::Argument::{self, Address, Int, Long};
use super::chunks::Chunk;
use super::device::{CudaDevice, Kernels, Precision};
use super::engine::Engine;
use super::first::First;
use super::layer::{KeptTensor, Layer, Turn, Written};
use super::plan::{Abilities, Plan};
use super::products::{Operand, Product};
use super::program::{THREADS, blocks, flag};
use crate::TrainingError;
use crate::model::{Convolution, Image, Kind, Network};
use std::collections::HashMap;

/// One of the kernels: its names, rows and columns of its tile.
#[derive(Clone, Copy)]
struct Tile {
    names: [&'static str; 2],
    /// Those of `halo.cu`.
    halo: [&'static str; 2],
    rows: usize,
    columns: usize,
    /// Pixels of a tile with its border that `halo.cu` has room for.
    places: usize,
}

static TILES: [Tile; 4] = [
    Tile {
        names: ["forward_128", "backward_128"],
        halo: ["halo_forward_128", "halo_backward_128"],
        rows: 128,
        columns: 128,
        places: 204,
    },
    Tile {
        names: ["forward_64", "backward_64"],
        halo: ["halo_forward_64", "halo_backward_64"],
        rows: 256,
        columns: 64,
        places: 400,
    },
    Tile {
        names: ["forward_32", "backward_32"],
        halo: ["halo_forward_32", "halo_backward_32"],
        rows: 256,
        columns: 32,
        places: 400,
    },
    Tile {
        names: ["forward_16", "backward_16"],
        halo: ["halo_forward_16", "halo_backward_16"],
        rows: 256,
        columns: 16,
        places: 400,
    },
];
const EACH: [(&str, usize, usize); 4] =
    [("each_128", 128, 128), ("each_64", 192, 64), ("each_32", 192, 32), ("each_16", 192, 16)];

/// As in `convolution.cu`.
const DEPTH: usize = 16;
const AHEAD: usize = 4;
const AHEAD_EACH: usize = 3;

/// What the kernels of this file are compiled from.
const SOURCE: &str = concat!(
    include_str!("convolution.cu"),
    include_str!("halo.cu"),
    include_str!("each.cu"),
    include_str!("band.cu"),
    include_str!("half.cu")
);

/// The kernels that a net needs, each compiled on its own: nets share most of them. `rows`: the
/// most examples of one replica that are worked on together.
pub(super) fn kernels_of(
    device: &CudaDevice,
    network: &Network,
    plan: &Plan,
    precision: Precision,
    rows: usize,
) -> Result<HashMap<&'static str, Kernels>, TrainingError> {
    let mode = match precision {
        Precision::Float32 => "-DMODE=0",
        Precision::TensorFloat32 => "-DMODE=1",
        Precision::BFloat16 => "-DMODE=2",
    };
    let (mut all, can) = (HashMap::new(), device.abilities);
    for (number, operation) in network.operations.iter().enumerate() {
        let (Kind::Convolution(layer), true) = (&operation.kind, plan.implicit[number]) else {
            continue;
        };
        let layer = plan.dense[number].as_ref().unwrap_or(layer);
        let [forward, backward] =
            [false, true].map(|back| Way::of(layer, back, rows, can).name(back));
        for name in [forward, backward, Each::of(layer, can).name] {
            if !all.contains_key(name) {
                let wanted = [mode.to_owned(), format!("-DWANTED_{name}")];
                all.insert(name, device.compile("convolution.cu", SOURCE, &wanted)?);
            }
        }
    }
    Ok(all)
}

impl Tile {
    /// Whether `halo.cu` computes a layer in this tile: 3 x 3 windows that leave the size as it is,
    /// whole rows of images in a tile, and offsets that fit 31 bits.
    fn has_halo(&self, layer: &Convolution, rows: usize) -> bool {
        let (image, positions) = (layer.input, layer.input.positions());
        let whole = self.rows.is_multiple_of(image.width)
            && (positions.is_multiple_of(self.rows) || self.rows.is_multiple_of(positions));
        let high = self.rows.min(positions) / image.width.max(1);
        let images = (self.rows / positions.max(1)).max(1);
        let channels = image.channels.max(layer.output.channels);
        (layer.kernel, layer.stride, layer.padding) == (3, 1, 1)
            && whole
            && images * (high + 2) * (image.width + 2) <= self.places
            && rows * positions * channels < 1 << 31
    }
}

/// The tiles of a product with this many columns.
fn tile(columns: usize) -> &'static Tile {
    let fits = |tile: &&Tile| columns.is_multiple_of(tile.columns);
    TILES.iter().find(fits).unwrap_or(&TILES[3])
}

pub(super) fn numbers_of(layer: &Convolution) -> Argument {
    Argument::Layer(
        [
            layer.input.height,
            layer.input.width,
            layer.input.channels,
            layer.output.height,
            layer.output.width,
            layer.output.channels,
            layer.kernel,
            layer.stride,
            layer.padding,
        ]
        .map(|number| number as i32),
    )
}

/// A kernel of `band.cu`.
struct Band {
    names: [&'static str; 2],
    channels: usize,
    /// The widest image.
    width: usize,
    /// Bytes of shared memory: the weights, and two stages of ten rows with their borders.
    shared: usize,
    /// Blocks that a processor works on together; three at most in f32.
    together: usize,
}

static BANDS: [Band; 3] = [
    Band {
        names: ["band_forward_16", "band_backward_16"],
        channels: 16,
        width: 32,
        shared: 4 * (9 * 16 * 16 + 2 * 10 * 34 * 16),
        together: 4,
    },
    Band {
        names: ["band_forward_32", "band_backward_32"],
        channels: 32,
        width: 16,
        shared: 4 * (9 * 32 * 32 + 2 * 10 * 18 * 32),
        together: 2,
    },
    Band {
        names: ["band_forward_64", "band_backward_64"],
        channels: 64,
        width: 8,
        shared: 4 * (9 * 64 * 64 + 2 * 10 * 10 * 64),
        together: 1,
    },
];

impl Band {
    /// Rows of positions that are worked on together.
    const ROWS: usize = 8;

    fn suits(&self, layer: &Convolution) -> bool {
        (layer.kernel, layer.stride, layer.padding) == (3, 1, 1)
            && (layer.input.channels, layer.output.channels) == (self.channels, self.channels)
            && layer.input.width.is_multiple_of(self.width.min(16))
            && layer.input.width <= self.width
    }
}

/// The kernel of `half.cu`; it has no forward pass.
static HALF: Band = Band {
    names: ["", "half_backward_16"],
    channels: 16,
    width: 16,
    shared: 4 * (9 * 16 * 32 + 2 * 9 * 17 * 32),
    together: 3,
};

/// Whether `half.cu` computes the gradient of a layer's input.
fn halves(layer: &Convolution) -> bool {
    let (input, output) = (layer.input, layer.output);
    (layer.kernel, layer.stride, layer.padding) == (3, 2, 1)
        && (input.channels, output.channels) == (HALF.channels, 2 * HALF.channels)
        && (input.height, input.width) == (2 * output.height, 2 * output.width)
        && output.width == HALF.width
}

/// How a layer is computed, or the gradient of its input.
#[derive(Clone, Copy)]
enum Way {
    /// By `band.cu` or `half.cu`.
    Band(&'static Band),
    /// By `halo.cu`.
    Halo(&'static Tile),
    /// By `convolution.cu`.
    Gather(&'static Tile),
}

impl Way {
    /// `rows`: the most examples of one replica that are worked on together.
    fn of(layer: &Convolution, back: bool, rows: usize, can: Abilities) -> Self {
        let band = BANDS.iter().find(|band| can.streams && band.suits(layer));
        if let Some(band) = band {
            return Self::Band(band);
        }
        if can.streams && back && halves(layer) {
            return Self::Band(&HALF);
        }
        let tile = tile(if back { layer.input.channels } else { layer.output.channels });
        if tile.has_halo(layer, rows) { Self::Halo(tile) } else { Self::Gather(tile) }
    }

    fn name(self, back: bool) -> &'static str {
        let names = match self {
            Self::Band(band) => &band.names,
            Self::Halo(tile) => &tile.halo,
            Self::Gather(tile) => &tile.names,
        };
        names[usize::from(back)]
    }
}

/// How every example's gradient of a layer is taken.
struct Each {
    name: &'static str,
    /// Blocks for one example.
    blocks: usize,
    shared: usize,
    /// Whether a block takes one example after another.
    streams: bool,
}

impl Each {
    /// Bytes of shared memory in `each.cu`: two stages of eight rows, or the shares of the sums.
    const BAND_SHARED: usize = 96 << 10;

    fn of(layer: &Convolution, can: Abilities) -> Self {
        if let Some(name) = Self::band(layer).filter(|_| can.streams) {
            let streams = name == "each_small";
            return Self { name, blocks: 1, shared: Self::BAND_SHARED, streams };
        }
        let fits = |(_, rows, columns): &&(&str, usize, usize)| {
            layer.output.channels.is_multiple_of(*columns)
                && (*columns < 128 || layer.patch().is_multiple_of(*rows))
        };
        let (name, rows, columns) = *EACH.iter().find(fits).unwrap_or(&EACH[3]);
        let blocks = layer.patch().div_ceil(rows) * (layer.output.channels / columns);
        Self {
            name,
            blocks,
            shared: 4 * AHEAD_EACH * DEPTH * (rows + columns + 16),
            streams: false,
        }
    }

    /// The kernel of `each.cu` for a layer of few channels.
    fn band(layer: &Convolution) -> Option<&'static str> {
        let width = layer.output.width;
        if *layer == (Convolution { kernel: 3, padding: 1, stride: 1, ..*layer })
            && [layer.input, layer.output] == [Image { height: 8, width: 8, channels: 64 }; 2]
        {
            return Some("each_small");
        }
        if !width.is_multiple_of(16) {
            return None;
        }
        let channels = (layer.input.channels, layer.output.channels);
        match (channels, (layer.kernel, layer.padding, layer.stride)) {
            ((16, 16), (3, 1, 1)) if width <= 32 => Some("each_band_16_9"),
            ((32, 32), (3, 1, 1)) if width <= 16 => Some("each_band_32_9"),
            ((16, 16), (1, 0, _)) if width <= 32 => Some("each_band_16_1"),
            ((16, 32), (1, 0, _)) if width <= 16 => Some("each_band_32_1"),
            _ => None,
        }
    }
}

impl Engine {
    /// y = convolution of x, with the layer's bias, another buffer and an activation.
    fn convolve(
        &self,
        chunk: &Chunk,
        number: usize,
        layer: &Convolution,
        (x, y, other): (u64, u64, u64),
        activation: i32,
    ) -> Result<(), TrainingError> {
        let arguments = |weights: u64| {
            vec![
                Address(y),
                Address(x),
                Address(weights),
                Long(layer.weights() as u64),
                Address(self.parameters.address()),
                Long(self.stride as u64),
                Int(layer.bias as i32),
                Address(other),
                Address(chunk.order),
                numbers_of(layer),
                Int(chunk.rows as i32),
                Int(activation),
            ]
        };
        let (weights, _) = self.packed(number);
        let positions = layer.output.positions();
        let extents = (positions, layer.output.channels, 1);
        self.start_tile(chunk, layer, extents, false, arguments(weights))
    }

    /// dx = gradient of the input, with another buffer added where `base` is not zero.
    fn convolve_backward(
        &self,
        chunk: &Chunk,
        number: usize,
        layer: &Convolution,
        (dy, dx, base): (u64, u64, u64),
    ) -> Result<(), TrainingError> {
        let (_, weights) = self.packed(number);
        let arguments = vec![
            Address(dx),
            Address(dy),
            Address(weights),
            Long(layer.weights() as u64),
            Address(base),
            Address(chunk.order),
            numbers_of(layer),
            Int(chunk.rows as i32),
        ];
        let s = layer.stride;
        let most = layer.input.height.div_ceil(s) * layer.input.width.div_ceil(s);
        self.start_tile(chunk, layer, (most, layer.input.channels, s * s), true, arguments)
    }

    /// Every example's gradient of the weights, into what is kept of it.
    fn each_gradient(
        &self,
        chunk: &Chunk,
        number: usize,
        layer: &Convolution,
        (x, dy): (u64, u64),
    ) -> Result<(), TrainingError> {
        let Each { name, blocks, shared, streams } = Each::of(layer, self.device.abilities);
        let examples = chunk.slots * chunk.rows;
        // Division by the width, for numbers below 2^16.
        let width = layer.output.width as u64;
        let magic = if width == 1 { 0 } else { (1u64 << 32).div_ceil(width) };
        let mut arguments = [
            Address(self.workspace.kept.at(self.plan.kept[number])),
            Long(self.plan.kept_stride as u64),
            Address(x),
            Address(dy),
            numbers_of(layer),
            Int(magic as u32 as i32),
            Int(examples as i32),
        ];
        let most = if streams { self.device.processors } else { usize::MAX };
        let grid = ((blocks * examples).min(most), 1);
        self.start_convolution(name, grid, shared, &mut arguments)
    }

    fn start_convolution(
        &self,
        name: &'static str,
        grid: (usize, usize),
        shared: usize,
        arguments: &mut [Argument],
    ) -> Result<(), TrainingError> {
        let kernels = self.convolutions.get(name).ok_or_else(|| {
            TrainingError::Device(format!("the kernel `{name}` was not compiled for this net"))
        })?;
        self.device.launch_bounded(kernels, name, grid, shared, arguments)
    }

    /// A layer's weights, those in use where they are standardised.
    pub(super) fn weights_of(&self, number: usize, layer: &Convolution) -> Operand {
        let images = self.images.as_ref();
        let in_use = images.and_then(|images| images.weights.layers[number].as_ref());
        match in_use {
            Some(in_use) if layer.standardised => Operand {
                address: in_use.used.address(),
                stride: layer.weights(),
                by_replica: true,
                leading: layer.output.channels,
                transposed: false,
            },
            _ => self.matrix(self.parameters.address(), layer.weight, layer.output.channels),
        }
    }

    fn packed(&self, number: usize) -> (u64, u64) {
        let images = self.images.as_ref();
        let layer = images.and_then(|images| images.weights.layers[number].as_ref());
        layer.map_or((0, 0), |layer| (layer.forward.address(), layer.backward.address()))
    }

    fn start_tile(
        &self,
        chunk: &Chunk,
        layer: &Convolution,
        (positions, columns, classes): (usize, usize, usize),
        back: bool,
        mut arguments: Vec<Argument>,
    ) -> Result<(), TrainingError> {
        // As it was compiled: for the most rows that there can be.
        let way = Way::of(layer, back, self.workspace.rows, self.device.abilities);
        let (grid, shared) = match way {
            Way::Band(band) => {
                let work = chunk.rows * layer.output.height.div_ceil(Band::ROWS);
                let most = if self.precision == Precision::Float32 { 3 } else { band.together };
                let together = band.together.min(most) * self.device.processors;
                let blocks = (together / chunk.slots).clamp(1, work.max(1));
                ((blocks, chunk.slots), band.shared)
            }
            Way::Halo(tile) | Way::Gather(tile) => {
                let tiles = (chunk.rows * positions).div_ceil(tile.rows) * (columns / tile.columns);
                let shared = match way {
                    Way::Halo(_) => 4 * DEPTH * (2 * tile.places + AHEAD * tile.columns),
                    _ => 4 * AHEAD * DEPTH * (tile.rows + tile.columns),
                };
                ((tiles * classes, chunk.slots), shared)
            }
        };
        self.start_convolution(way.name(back), grid, shared, &mut arguments)
    }
}

/// Layers that neither `first.cu` nor `convolution.cu` computes write their patches down, and are products of cuBLAS.
impl Layer for Convolution {
    /// The patches.
    fn remembers(&self, without: bool) -> (usize, usize) {
        (if without { 0 } else { self.output.positions() * self.patch() }, 0)
    }

    fn scratch(&self, without: bool) -> usize {
        if without { 0 } else { self.output.positions() * self.patch() }
    }

    /// The bias lies behind the weights.
    fn kept(&self) -> Option<(usize, usize)> {
        Some((self.weight, self.weights() + self.output.channels))
    }

    fn kept_tensors(&self) -> Vec<KeptTensor> {
        let columns = self.output.channels;
        vec![
            KeptTensor { rows: self.patch(), columns, standardised: self.standardised },
            KeptTensor { rows: 1, columns, standardised: false },
        ]
    }

    fn forward(&self, turn: &Turn<'_>) -> Result<(), TrainingError> {
        let (engine, chunk, number) = (turn.engine, turn.chunk, turn.number);
        if turn.is_direct() {
            return First::forward(turn, self);
        }
        let (x, y) = (turn.x(), turn.y());
        let activation = engine.fused_activation(number);
        if turn.is_implicit() {
            let other = engine.plan.other[number];
            let other = other.map_or(0, |buffer| engine.workspace.activation(buffer));
            return engine.convolve(chunk, number, self, (x, y, other), activation);
        }
        let patches = turn.memory().numbers.address();
        let all = chunk.rows * self.output.positions();
        let count = chunk.slots * all * self.patch();
        let images = turn.examples() as u64;
        let arguments = vec![Address(patches), Address(x), numbers_of(self), Long(images)];
        engine.start("patches", (blocks(count), 1), arguments)?;
        let shape = (self.patch(), self.output.channels);
        let weights = engine.weights_of(number, self);
        engine.times_weight(chunk, (patches, y), all, shape, weights)?;
        let bias = (self.output.channels, Some(self.bias));
        engine.bias_and_activation(chunk, (y, y), all, bias, activation)
    }

    fn keep(&self, turn: &Turn<'_>, dy: u64) -> Result<(), TrainingError> {
        let engine = turn.engine;
        if turn.is_direct() {
            return First::gradient(turn, self, dy);
        }
        let Some(images) = &engine.images else { return Ok(()) };
        let (positions, channels) = (self.output.positions(), self.output.channels);
        let (kept, kept_stride) = (engine.plan.kept[turn.number], engine.plan.kept_stride);
        let to = engine.workspace.kept.at(kept);
        if turn.is_implicit() {
            let x = engine.workspace.activation(turn.operation().input);
            return engine.each_gradient(turn.chunk, turn.number, self, (x, dy));
        }
        let patches = turn.memory().numbers.address();
        let rows = |address: u64, width: usize| Engine::rows_of(address, positions, width);
        let each = Product {
            m: channels,
            n: self.patch(),
            k: positions,
            a: rows(dy, channels),
            b: Operand { transposed: true, ..rows(patches, self.patch()) },
            c: Operand { stride: kept_stride, ..Engine::rows_of(to, 1, channels) },
            accumulate: false,
        };
        let examples = turn.examples();
        each.strided(&engine.device, engine.precision, [dy, patches, to], examples)?;
        let mut arguments = [
            Address(engine.workspace.kept.at(kept + self.weights())),
            Long(kept_stride as u64),
            Address(dy),
            Int(positions as i32),
            Int(channels as i32),
        ];
        let grid = (examples, channels.div_ceil(64));
        engine.device.launch(&images.kernels, "each_bias", grid, THREADS, &mut arguments)
    }

    fn backward(
        &self,
        turn: &Turn<'_>,
        dy: u64,
        written: &mut Written,
    ) -> Result<(), TrainingError> {
        let (engine, chunk, dx) = (turn.engine, turn.chunk, turn.dx());
        if turn.is_implicit() {
            let base = written.take(turn.source(), dx);
            return engine.convolve_backward(chunk, turn.number, self, (dy, dx, base));
        }
        let again = engine.settle(chunk, written, turn.source())?;
        let all = chunk.rows * self.output.positions();
        let scratch = engine.workspace.scratch.address();
        let shape = (self.patch(), self.output.channels);
        let weights = engine.weights_of(turn.number, self);
        engine.times_weight_transposed(chunk, (dy, scratch), all, shape, weights, false)?;
        let arguments = vec![
            Address(dx),
            Address(scratch),
            numbers_of(self),
            Long(turn.examples() as u64),
            flag(again),
        ];
        engine.start("unpatch", (blocks(turn.lengths().0), 1), arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::{BANDS, EACH, Each, HALF, SOURCE, TILES, Way};
    use crate::cuda::plan::Abilities;
    use crate::data::Shape;
    use crate::model::{Kind, ModelDescription};

    /// A kernel is compiled where its name is wanted: it has to be in the source by that name.
    #[test]
    fn every_kernel_has_a_source() {
        let mut names: Vec<&str> =
            TILES.iter().flat_map(|t| t.names.iter().chain(&t.halo)).copied().collect();
        names.extend(EACH.iter().map(|(name, ..)| *name));
        names.extend(BANDS.iter().flat_map(|band| band.names));
        names.push(HALF.names[1]);
        for (width, side) in (1..=4).flat_map(|width| [8, 12, 32].map(|side| (width, side))) {
            let model = ModelDescription::WideResnet { depth: 10, width, groups: 4 };
            let image = Shape::Image { height: side, width: side, channels: 16 };
            for operation in model.network(image, 5).unwrap().operations {
                let Kind::Convolution(layer) = operation.kind else { continue };
                names.push(Each::of(&layer, Abilities::ALL).name);
                names.extend(
                    [false, true].map(|back| Way::of(&layer, back, 256, Abilities::ALL).name(back)),
                );
            }
        }
        names.sort_unstable();
        names.dedup();
        assert!(names.len() > 25, "{names:?}");
        for name in names {
            let wanted = format!("#ifdef WANTED_{name}\n");
            assert!(SOURCE.contains(&wanted), "{name} is in no source");
        }
    }
}
