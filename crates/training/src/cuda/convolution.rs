//! Convolutions by `convolution.cu`: which tiles a layer is cut into, and the launches.

use super::arguments::Argument::{Address, Int, Layer, Long};
use super::chunks::Chunk;
use super::device::Precision;
use super::engine::Engine;
use super::plan::Plan;
use crate::TrainingError;
use crate::model::{Convolution, Kind, Network};

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

/// What `convolution.cu` is compiled with: the precision, and the tiles that a net needs.
pub(super) fn definitions(network: &Network, plan: &Plan, precision: Precision) -> Vec<String> {
    let mode = match precision {
        Precision::Float32 => 0,
        Precision::TensorFloat32 => 1,
        Precision::BFloat16 => 2,
    };
    let mut all = vec![format!("-DMODE={mode}")];
    for (operation, implicit) in network.operations.iter().zip(&plan.implicit) {
        let (Kind::Convolution(layer), true) = (&operation.kind, implicit) else { continue };
        for channels in [layer.input.channels, layer.output.channels] {
            let tile = tile(channels);
            // Very many rows may need the other kernel, too.
            all.push(format!("-DCONVOLVE_{}", tile.columns));
            if tile.has_halo(layer, 1, precision) {
                all.push(format!("-DHALO_{}", tile.columns));
            }
        }
        all.push(format!("-DEACH_{}", each_tile(layer).2));
    }
    all.sort();
    all.dedup();
    all
}

impl Tile {
    /// Whether `halo.cu` computes a layer in this tile: 3 x 3 windows that leave the size as it is,
    /// whole rows of images in a tile, and offsets that fit 31 bits. In f32 alone, where it was
    /// compared with the CPU on a device.
    fn has_halo(&self, layer: &Convolution, rows: usize, precision: Precision) -> bool {
        let (image, positions) = (layer.input, layer.input.positions());
        let whole = self.rows.is_multiple_of(image.width)
            && (positions.is_multiple_of(self.rows) || self.rows.is_multiple_of(positions));
        let high = self.rows.min(positions) / image.width.max(1);
        let images = (self.rows / positions.max(1)).max(1);
        let channels = image.channels.max(layer.output.channels);
        precision == Precision::Float32
            && (layer.kernel, layer.stride, layer.padding) == (3, 1, 1)
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

pub(super) fn numbers_of(layer: &Convolution) -> [i32; 9] {
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
    .map(|number| number as i32)
}

/// The kernel that takes every example's gradient of a layer: name, rows and columns of its tile.
fn each_tile(layer: &Convolution) -> (&'static str, usize, usize) {
    let fits = |(_, rows, columns): &&(&str, usize, usize)| {
        layer.output.channels.is_multiple_of(*columns)
            && (*columns < 128 || layer.patch().is_multiple_of(*rows))
    };
    *EACH.iter().find(fits).unwrap_or(&EACH[3])
}

impl Engine {
    /// y = convolution of x, with the layer's bias, another buffer and an activation.
    pub(super) fn convolve(
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
                Layer(numbers_of(layer)),
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
    pub(super) fn convolve_backward(
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
            Layer(numbers_of(layer)),
            Int(chunk.rows as i32),
        ];
        let s = layer.stride;
        let most = layer.input.height.div_ceil(s) * layer.input.width.div_ceil(s);
        self.start_tile(chunk, layer, (most, layer.input.channels, s * s), true, arguments)
    }

    /// Every example's gradient of the weights, into what is kept of it.
    pub(super) fn each_gradient(
        &self,
        chunk: &Chunk,
        number: usize,
        layer: &Convolution,
        (x, dy): (u64, u64),
    ) -> Result<(), TrainingError> {
        let (inputs, outputs) = (layer.patch(), layer.output.channels);
        let (name, rows, columns) = each_tile(layer);
        // Division by the width, for numbers below 2^16.
        let width = layer.output.width as u64;
        let magic = if width == 1 { 0 } else { (1u64 << 32).div_ceil(width) };
        let mut arguments = [
            Address(self.workspace.kept.at(self.plan.kept[number])),
            Long(self.plan.kept_stride as u64),
            Address(x),
            Address(dy),
            Layer(numbers_of(layer)),
            Int(magic as u32 as i32),
        ];
        let tiles = inputs.div_ceil(rows) * (outputs / columns);
        let grid = (tiles * chunk.slots * chunk.rows, 1);
        let shared = 4 * AHEAD_EACH * DEPTH * (rows + columns + 16);
        let Some(kernels) = &self.convolutions else { return Ok(()) };
        self.device.launch_bounded(kernels, name, grid, shared, &mut arguments)
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
        mut arguments: Vec<super::arguments::Argument>,
    ) -> Result<(), TrainingError> {
        let Some(kernels) = &self.convolutions else { return Ok(()) };
        let tile = tile(columns);
        let tiles = (chunk.rows * positions).div_ceil(tile.rows) * (columns / tile.columns);
        let (names, shared) = if tile.has_halo(layer, chunk.rows, self.precision) {
            (&tile.halo, 4 * DEPTH * (2 * tile.places + AHEAD * tile.columns))
        } else {
            (&tile.names, 4 * AHEAD * DEPTH * (tile.rows + tile.columns))
        };
        let (name, grid) = (names[usize::from(back)], (tiles * classes, chunk.slots));
        self.device.launch_bounded(kernels, name, grid, shared, &mut arguments)
    }
}
