//! Adapters (LoRA) on the device: y += scale (x down') up', and every example's own gradients:
//! of `down` (scale dy up)' x, of `up` dy' (scale x down').
//!
//! A linear map and its adapters are one matrix, [weights | ups; downs], whose rows are `leading`
//! numbers apart, and a row of the map's input has its low-rank numbers, scale x down', after it: one
//! product, as long as inputs and ranks together, makes the outputs of both. Going back, a row of the
//! outputs' gradient has scale dy up after it, and one product makes the inputs' gradient. Where a map
//! has several adapters, `ups` has a block for each.

use super::context::{Context, failed};
use super::evaluate::CudaModel;
use super::whole::BLOCKS;
use super::workspace::{Extent, Workspace};
use crate::LanguageError;
use crate::finetune::{Layout, Piece};
use crate::model::{Decoder, Layer, Projection};
use training::cuda::compute::Value::{Address, Int, Long};
use training::cuda::compute::{Matrix, Product, Store};
use training::cuda::{Buffer, CudaDevice};

/// A linear map of a layer: projections that read the same input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Map {
    Joint,
    Output,
    Feed,
    Down,
}

impl Map {
    pub(super) const ALL: [Self; 4] = [Self::Joint, Self::Output, Self::Feed, Self::Down];

    fn projections(self) -> &'static [Projection] {
        match self {
            Self::Joint => &[Projection::Query, Projection::Key, Projection::Value],
            Self::Output => &[Projection::Output],
            Self::Feed => &[Projection::Gate, Projection::Up],
            Self::Down => &[Projection::Down],
        }
    }

    pub(super) fn of(projection: Projection) -> Self {
        match projection {
            Projection::Query | Projection::Key | Projection::Value => Self::Joint,
            Projection::Output => Self::Output,
            Projection::Gate | Projection::Up => Self::Feed,
            Projection::Down => Self::Down,
        }
    }
}

/// One adapter: its shape, and where its gradients begin among an example's.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Adapter {
    outputs: usize,
    rank: usize,
    up: usize,
    /// The first of its outputs, and of its low-rank numbers, among those of the map.
    row: usize,
    column: usize,
}

/// Adapters of a map that have one scale, because one product has.
#[derive(Clone, Debug, PartialEq)]
struct Chunk {
    scale: f32,
    ranks: usize,
    /// The first of its low-rank numbers among those of the map.
    column: usize,
    /// Where the gradients of its `down`s begin, one after the other.
    down: usize,
    adapters: Vec<Adapter>,
}

/// What a map's adapters are.
#[derive(Clone, Debug, Default, PartialEq)]
struct Adapters {
    chunks: Vec<Chunk>,
    ranks: usize,
    /// Where the matrix of both begins, in numbers.
    matrix: usize,
}

/// A matrix of an adapter: where it is in the layout, among an example's gradients, and in the matrix
/// of both, and its shape.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Move {
    layout: usize,
    gradient: usize,
    matrix: usize,
    rows: usize,
    columns: usize,
    leading: usize,
}

/// All adapters of a decoder, layer by layer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Places {
    layers: Vec<[Adapters; 4]>,
    /// Trained numbers.
    pub(super) size: usize,
    /// Numbers after a row of an input, or of a gradient, of each map, in every layer.
    tails: [usize; 4],
    /// Numbers of all matrices of both.
    matrices: usize,
    moves: Vec<Move>,
}

/// Rows begin at multiples of this many numbers, which products want.
const ALIGNED: usize = 64;
/// Outputs of a block of `adapters.cu`, and the most ranks that it takes.
const SPAN: usize = 128;
const MOST: usize = 64;

impl Places {
    pub(super) fn new(decoder: &Decoder, layout: &Layout) -> Self {
        let ranks = |layer: &Layer, map: Map| -> usize {
            let own = map.projections().iter().filter_map(|own| layer.linear(*own));
            own.filter_map(|linear| linear.adapter.as_ref()).map(|adapter| adapter.rank).sum()
        };
        let tails = Map::ALL.map(|map| {
            let most = decoder.layers.iter().map(|layer| ranks(layer, map)).max().unwrap_or(0);
            most.next_multiple_of(ALIGNED)
        });
        let (layers, moves) = (Vec::new(), Vec::new());
        let mut found = Self { layers, size: layout.size, tails, matrices: 0, moves };
        let mut end = 0;
        for (index, layer) in decoder.layers.iter().enumerate() {
            let own = Map::ALL.map(|map| found.of_map(layer, (index, map), layout, &mut end));
            found.layers.push(own);
        }
        found
    }

    /// The adapters of one map; their gradients begin at `end`, which is moved behind them.
    fn of_map(
        &mut self,
        layer: &Layer,
        (index, map): (usize, Map),
        layout: &Layout,
        end: &mut usize,
    ) -> Adapters {
        let own = map.projections().iter().filter_map(|own| Some((*own, layer.linear(*own)?)));
        let linears: Vec<_> = own.collect();
        let outputs: usize = linears.iter().map(|(_, linear)| linear.outputs).sum();
        let (mut row, mut there) = (0, Vec::new());
        for (projection, linear) in linears {
            if let Some(adapter) = &linear.adapter {
                let down = layout.place(Piece::Down(index, projection));
                let up = layout.place(Piece::Up(index, projection));
                if let (Some(down), Some(up)) = (down, up) {
                    there.push((row, linear, adapter, down, up));
                }
            }
            row += linear.outputs;
        }
        let Some((_, first, ..)) = there.first() else { return Adapters::default() };
        let inputs = first.inputs;
        let leading = inputs + self.tails[map as usize];
        let matrix = self.matrices;
        let mut made = Adapters { chunks: Vec::new(), ranks: 0, matrix };
        for same in there.chunk_by(|a, b| a.2.scale == b.2.scale) {
            let (column, down) = (made.ranks, *end);
            for (_, _, adapter, layout, _) in same {
                self.moves.push(Move {
                    layout: *layout,
                    gradient: *end,
                    matrix: matrix + (outputs + made.ranks) * leading,
                    rows: adapter.rank,
                    columns: inputs,
                    leading,
                });
                *end += adapter.rank * inputs;
                made.ranks += adapter.rank;
            }
            let (mut adapters, mut at) = (Vec::new(), column);
            for (row, linear, adapter, _, layout) in same {
                let (row, outputs, rank) = (*row, linear.outputs, adapter.rank);
                adapters.push(Adapter { outputs, rank, up: *end, row, column: at });
                self.moves.push(Move {
                    layout: *layout,
                    gradient: *end,
                    matrix: matrix + row * leading + inputs + at,
                    rows: outputs,
                    columns: rank,
                    leading,
                });
                *end += rank * outputs;
                at += rank;
            }
            let (scale, ranks) = (same[0].2.scale, made.ranks - column);
            made.chunks.push(Chunk { scale, ranks, column, down, adapters });
        }
        let numbers = (outputs + made.ranks) * leading;
        self.matrices += numbers.next_multiple_of(2 * ALIGNED);
        made
    }

    /// Numbers after each row of an input, or of a gradient, of a map.
    pub(super) fn tail(&self, map: Map) -> usize {
        self.tails[map as usize]
    }
}

/// Matrices of maps and their adapters, and tables for the kernels that move trained numbers between
/// the layout's order and the device's.
pub(super) struct Matrices {
    pub(super) values: Buffer<u8>,
    /// To where products read them: five numbers for each matrix.
    put: Buffer<u64>,
    /// From sums to the layout: four.
    pub(super) take: Buffer<u64>,
    pub(super) count: usize,
}

impl Matrices {
    /// Zeros, where the weights and then the adapters go.
    pub(super) fn new(
        device: &CudaDevice,
        places: &Places,
        bytes: usize,
    ) -> Result<Self, LanguageError> {
        let values = device.zeros((places.matrices * bytes).max(1)).map_err(failed)?;
        let (mut put, mut take) = (Vec::new(), Vec::new());
        for own in &places.moves {
            let to = values.address() + (own.matrix * bytes) as u64;
            let [layout, gradient, rows, columns, leading] =
                [own.layout, own.gradient, own.rows, own.columns, own.leading].map(|x| x as u64);
            put.extend([to, layout, rows * columns, columns, leading]);
            take.extend([layout, gradient, rows * columns, 0]);
        }
        let (put, take) =
            (device.upload(&put).map_err(failed)?, device.upload(&take).map_err(failed)?);
        Ok(Self { values, put, take, count: places.moves.len() })
    }
}

/// A linear map as products read it: the matrix of both where it has adapters, else its weights.
#[derive(Clone, Copy)]
pub(super) struct Linear {
    pub(super) weight: Matrix,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) ranks: usize,
    /// Numbers from a row of the input, and of the outputs' gradient, to the next.
    pub(super) input_leading: usize,
    pub(super) output_leading: usize,
}

impl CudaModel {
    pub(super) fn map(&self, index: usize, map: Map) -> Linear {
        let (inputs, outputs) = self.decoder.shape(map);
        let context = &self.decoder.context;
        let (own, tail) = (&self.places.layers[index][map as usize], self.places.tail(map));
        let weight = match own.ranks {
            0 => context.matrix(self.decoder.frozen(index, map).weight.address(), inputs),
            _ => context.matrix(self.matrices.values.address(), inputs + tail).from(own.matrix),
        };
        let (input_leading, output_leading) = (inputs + tail, outputs + tail);
        Linear { weight, inputs, outputs, ranks: own.ranks, input_leading, output_leading }
    }

    /// Puts the weights of maps with adapters beside them.
    pub(super) fn put_weights(&self) -> Result<(), LanguageError> {
        for index in 0..self.places.layers.len() {
            for map in Map::ALL {
                let own = self.map(index, map);
                if own.ranks == 0 {
                    continue;
                }
                let count = own.inputs * own.outputs;
                let from = self.decoder.frozen(index, map).weight.address();
                self.decoder.context.striding(
                    "lay_rows",
                    count,
                    &[
                        Address(own.weight.address),
                        Address(from),
                        Long(count as u64),
                        Int(own.inputs as i32),
                        Int(own.weight.leading as i32),
                    ],
                )?;
            }
        }
        Ok(())
    }

    /// Puts trained adapters where products read them; `numbers` are in the layout's order.
    pub(super) fn put_adapters(&self, numbers: u64) -> Result<(), LanguageError> {
        let values = [self.matrices.put.address(), numbers].map(Address);
        self.decoder.context.start("put_rows", (BLOCKS, self.matrices.count), &values)
    }

    pub(super) fn pass(&self, extent: Extent) -> Pass<'_> {
        Pass {
            context: &self.decoder.context,
            places: &self.places,
            workspace: &self.workspace,
            extent,
        }
    }
}

/// The operands of adapters in one pass.
pub(super) struct Pass<'a> {
    context: &'a Context,
    places: &'a Places,
    workspace: &'a Workspace,
    extent: Extent,
}

impl Pass<'_> {
    fn once(out: Matrix, left: Matrix, right: Matrix, extents: [usize; 3]) -> Product {
        let [m, n, k] = extents;
        Product { out, left, right, extents: (m, n, k), count: 1, scale: 1.0, accumulate: false }
    }

    /// The low-rank numbers of a map's input, after each of its rows.
    pub(super) fn forward(
        &self,
        (index, map): (usize, Map),
        own: &Linear,
        input: u64,
    ) -> Result<(), LanguageError> {
        let x = self.context.matrix(input, own.input_leading);
        for chunk in &self.places.layers[index][map as usize].chunks {
            let low = x.from(own.inputs + chunk.column);
            let down = own.weight.from((own.outputs + chunk.column) * own.weight.leading);
            let extents = [self.extent.rows(), chunk.ranks, own.inputs];
            let product = Self::once(low, x, down.transposed(), extents);
            self.context.multiply(&Product { scale: chunk.scale, ..product })?;
        }
        Ok(())
    }

    /// Every example's gradients, and what goes back to a map's input, after each row of the gradient
    /// `d_out`.
    pub(super) fn backward(
        &self,
        (index, map): (usize, Map),
        own: &Linear,
        input: u64,
        d_out: u64,
    ) -> Result<(), LanguageError> {
        let Extent { sequences, length } = self.extent;
        let x = self.context.matrix(input, own.input_leading).every(length * own.input_leading);
        let d_out = self.context.matrix(d_out, own.output_leading);
        let d_out = d_out.every(length * own.output_leading);
        for chunk in &self.places.layers[index][map as usize].chunks {
            let back = d_out.from(own.outputs + chunk.column);
            // Outputs without an adapter here meet zeros.
            let up = own.weight.from(own.inputs + chunk.column);
            let extents = [self.extent.rows(), chunk.ranks, own.outputs];
            let product = Self::once(back, d_out, up, extents);
            self.context.multiply(&Product { scale: chunk.scale, ..product })?;
            let alike = |a: &Adapter, b: &Adapter| {
                (a.outputs, a.rank, a.row + a.outputs) == (b.outputs, b.rank, b.row)
            };
            for same in chunk.adapters.chunk_by(alike) {
                let first = same[0];
                let (left, right) = (d_out.from(first.row), x.from(own.inputs + first.column));
                let apart = (first.rank, 1);
                let shape = (first.outputs, first.rank);
                if self.place_products(first.up, (left, right), apart, shape, same.len())? {
                    continue;
                }
                for adapter in same {
                    let low = x.from(own.inputs + adapter.column);
                    self.context.multiply(&Product {
                        count: sequences,
                        ..Self::once(
                            self.gradient(adapter.up, adapter.rank),
                            d_out.from(adapter.row).transposed(),
                            low,
                            [adapter.outputs, adapter.rank, length],
                        )
                    })?;
                }
            }
            let shape = (own.inputs, chunk.ranks);
            if self.place_products(chunk.down, (x, back), (1, own.inputs), shape, 1)? {
                continue;
            }
            self.context.multiply(&Product {
                count: sequences,
                ..Self::once(
                    self.gradient(chunk.down, own.inputs),
                    back.transposed(),
                    x,
                    [chunk.ranks, own.inputs, length],
                )
            })?;
        }
        Ok(())
    }

    /// Every example's gradients from a place on.
    fn gradient(&self, at: usize, leading: usize) -> Matrix {
        let all = Matrix::new(self.workspace.gradients, leading, Store::Float32);
        all.from(at).every(self.places.size)
    }

    /// left' right of every example into its gradients from `at` on, by the kernel for it: `apart` are
    /// the numbers of left and of right there, `shape` how many they are, and there are so many such
    /// pairs side by side. False, and nothing computed, where the kernel does not take them.
    fn place_products(
        &self,
        at: usize,
        (left, right): (Matrix, Matrix),
        apart: (usize, usize),
        (width, ranks): (usize, usize),
        pairs: usize,
    ) -> Result<bool, LanguageError> {
        let eights = [width, ranks, left.leading, right.leading];
        let aligned = eights.iter().all(|size| size.is_multiple_of(8))
            && [left.address, right.address].iter().all(|address| address.is_multiple_of(16));
        if !self.context.tensor_cores || !aligned || ranks > MOST {
            return Ok(false);
        }
        let Extent { sequences, length } = self.extent;
        let sizes = [left.leading, right.leading, apart.0, apart.1, width, ranks, length];
        let addresses = [left.address, right.address].map(Address);
        let out = [Address(self.gradient(at, 0).address), Long(self.places.size as u64)];
        let values = [&out[..], &addresses, &sizes.map(|size| Int(size as i32))].concat();
        let grid = (pairs * width.div_ceil(SPAN), sequences);
        self.context.start("place_products", grid, &values)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::{Map, Places};
    use crate::finetune::{Layout, Lora, Scope, attach};
    use crate::load::decoder_from_safetensors;
    use crate::model::{Decoder, Projection};
    use std::collections::HashSet;

    fn decoder(config: &str, bytes: &[u8]) -> Decoder {
        let mut decoder =
            decoder_from_safetensors(config, "config", &[(bytes, "model".into())]).unwrap();
        let gate = decoder.layers[0].gate.is_some();
        let all = Projection::ALL.into_iter();
        let projections = all.filter(|own| gate || *own != Projection::Gate).collect();
        attach(&mut decoder, &Lora { rank: 3, alpha: 6.0, projections }, 1).unwrap();
        // Two scales in one map, and a layer without adapters.
        decoder.layers[0].key.adapter.as_mut().unwrap().scale = 0.5;
        for projection in Projection::ALL {
            if let Some(linear) = decoder.layers[1].linear_mut(projection) {
                linear.adapter = None;
            }
        }
        decoder
    }

    #[test]
    fn every_trained_number_has_one_place_beside_the_weights() {
        for decoder in [
            decoder(
                include_str!("../../tests/reference/gpt2/config.json"),
                include_bytes!("../../tests/reference/gpt2/model.safetensors"),
            ),
            decoder(
                include_str!("../../tests/reference/llama/config.json"),
                include_bytes!("../../tests/reference/llama/model.safetensors"),
            ),
        ] {
            let layout = Layout::new(&decoder, Scope::Adapters { embedding: false });
            let places = Places::new(&decoder, &layout);
            let (mut layouts, mut gradients) = (HashSet::new(), HashSet::new());
            let mut matrices = HashSet::new();
            for own in &places.moves {
                for (row, column) in
                    (0..own.rows).flat_map(|row| (0..own.columns).map(move |column| (row, column)))
                {
                    assert!(layouts.insert(own.layout + row * own.columns + column));
                    assert!(gradients.insert(own.gradient + row * own.columns + column));
                    assert!(matrices.insert(own.matrix + row * own.leading + column));
                }
            }
            assert_eq!(layouts.len(), layout.size);
            assert!(layouts.iter().chain(&gradients).all(|place| *place < layout.size));
            assert!(matrices.iter().all(|place| *place < places.matrices));
            // The scale that differs has products of its own, and its numbers are in the same rows.
            let joint = &places.layers[0][Map::Joint as usize];
            let ranks: Vec<usize> = joint.chunks.iter().map(|chunk| chunk.ranks).collect();
            assert_eq!((ranks, joint.ranks), (vec![3, 3, 3], 9));
            assert_eq!(places.layers[1][Map::Joint as usize].ranks, 0);
            // Weights are where no adapter is.
            let a = &decoder.architecture;
            let outputs = a.query_width() + 2 * a.key_width();
            let leading = a.width + places.tail(Map::Joint);
            for output in 0..outputs {
                for input in 0..a.width {
                    assert!(!matrices.contains(&(joint.matrix + output * leading + input)));
                }
            }
        }
    }
}
