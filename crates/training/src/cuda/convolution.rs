//! Convolutions by `convolution.cu`: which tiles a layer is cut into, and the launches.

use super::arguments::Argument::{Address, Int, Layer, Long};
use super::chunks::Chunk;
use super::device::Precision;
use super::engine::Engine;
use crate::TrainingError;
use crate::model::Convolution;

/// One of the kernels: its names, rows and columns of its tile.
#[derive(Clone, Copy)]
struct Tile {
    names: [&'static str; 2],
    rows: usize,
    columns: usize,
}

const TILES: [Tile; 4] = [
    Tile { names: ["forward_128", "backward_128"], rows: 128, columns: 128 },
    Tile { names: ["forward_64", "backward_64"], rows: 256, columns: 64 },
    Tile { names: ["forward_32", "backward_32"], rows: 256, columns: 32 },
    Tile { names: ["forward_16", "backward_16"], rows: 256, columns: 16 },
];
const EACH: [(&str, usize, usize); 4] =
    [("each_128", 128, 128), ("each_64", 192, 64), ("each_32", 192, 32), ("each_16", 192, 16)];

/// As in `convolution.cu`.
const DEPTH: usize = 16;
const AHEAD: usize = 4;
const AHEAD_EACH: usize = 3;

/// The number that `convolution.cu` was compiled with.
pub(super) fn mode(precision: Precision) -> String {
    let mode = match precision {
        Precision::Float32 => 0,
        Precision::TensorFloat32 => 1,
        Precision::BFloat16 => 2,
    };
    format!("-DMODE={mode}")
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

impl Engine {
    /// Threads of a block: in f32 a warp takes half of the columns.
    fn threads(&self, rows: usize, columns: usize, each: bool) -> u32 {
        let warps = match (self.precision, columns, each) {
            (Precision::Float32, 128, _) => rows / 64 * 4,
            (Precision::Float32, 64, _) => rows / 64 * 2,
            (Precision::Float32, 32, true) => rows / 64 * 2,
            (Precision::Float32, _, true) => rows / 64,
            (Precision::Float32, _, false) => rows / 32,
            (_, 128, _) => rows / 64 * 2,
            (_, 64, true) => rows / 64 * 2,
            _ => rows / 64,
        };
        32 * warps as u32
    }

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
        self.start_tile(chunk, (positions, layer.output.channels, 1), false, arguments(weights))
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
        self.start_tile(chunk, (most, layer.input.channels, s * s), true, arguments)
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
        let fits = |(_, rows, columns): &&(&str, usize, usize)| {
            outputs.is_multiple_of(*columns) && (*columns < 128 || inputs.is_multiple_of(*rows))
        };
        let &(name, rows, columns) = EACH.iter().find(fits).unwrap_or(&EACH[3]);
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
        let threads = self.threads(rows, columns, true);
        self.device.launch_with(kernels, name, grid, threads, shared, &mut arguments)
    }

    fn packed(&self, number: usize) -> (u64, u64) {
        let images = self.images.as_ref();
        let layer = images.and_then(|images| images.weights.layers[number].as_ref());
        layer.map_or((0, 0), |layer| (layer.forward.address(), layer.backward.address()))
    }

    fn start_tile(
        &self,
        chunk: &Chunk,
        (positions, columns, classes): (usize, usize, usize),
        back: bool,
        mut arguments: Vec<super::arguments::Argument>,
    ) -> Result<(), TrainingError> {
        let Some(kernels) = &self.convolutions else { return Ok(()) };
        let fits = |tile: &&Tile| columns.is_multiple_of(tile.columns);
        let tile = TILES.iter().find(fits).unwrap_or(&TILES[3]);
        let tiles = (chunk.rows * positions).div_ceil(tile.rows) * (columns / tile.columns);
        let shared = 4 * AHEAD * DEPTH * (tile.rows + tile.columns);
        let (name, grid) = (tile.names[usize::from(back)], (tiles * classes, chunk.slots));
        let threads = self.threads(tile.rows, tile.columns, false);
        self.device.launch_with(kernels, name, grid, threads, shared, &mut arguments)
    }
}
