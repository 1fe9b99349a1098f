//! Training a whole model: every matrix, bias, norm, the positions, and the embedding that is the
//! head too.
//!
//! Gradients of matrices are never formed for one example. Their norms are ghosts (Li et al. 2022,
//! section 4): for a map with inputs x_s and slopes d_s at an example's places, the sum over s, t of
//! (x_s.x_t)(d_s.d_t), two products of places x places. Inputs and slopes of all layers wait until
//! the factors are known; the clipped sum is then one product for each matrix, with every example's
//! slopes multiplied by its factor. What rounding these products may add is added to the norm, as
//! for an embedding. Gradients of vectors are formed and kept in f32.
//!
//! Cost beside training without clipping: places (inputs + outputs) / (inputs outputs) of the
//! products of a matrix's gradient; memory: the slopes of every layer.

use super::adapters::Map;
use super::context::failed;
use super::embedding::GHOST_PARTS;
use super::evaluate::CudaModel;
use super::weights::{Bias, CudaDecoder};
use super::workspace::{Extent, Kept};
use crate::LanguageError;
use crate::finetune::{Layout, Piece};
use crate::model::{Activation, Decoder, NormPlace, Projection};
use training::cuda::Buffer;
use training::cuda::compute::Value::{Address, Int, Long};
use training::cuda::compute::{Matrix, Product, Store};

/// Blocks that copy one part.
pub(super) const BLOCKS: usize = 64;

/// What a whole model's training needs beside the workspace.
pub(super) struct Whole {
    layout: Layout,
    /// Vectors with their places in an example's gradient.
    vectors: Vec<(Piece, usize)>,
    size: usize,
    /// Where trained numbers go, and where the vectors' sums do: four numbers each.
    put: Buffer<u64>,
    put_count: usize,
    take: Buffer<u64>,
}

/// One product of a layer: inputs, their width, slopes, theirs, and the matrices stacked in it.
struct Operands {
    inputs: u64,
    width: usize,
    slopes: u64,
    outputs: usize,
    parts: Vec<(Projection, usize)>,
}

/// Vectors of a layout with their places, and the numbers of all.
fn vectors(decoder: &Decoder, layout: &Layout) -> (Vec<(Piece, usize)>, usize) {
    let (mut found, mut size) = (Vec::new(), 0);
    for (piece, _) in &layout.pieces {
        if matches!(piece, Piece::Bias(..) | Piece::NormWeight(_) | Piece::NormBias(_)) {
            found.push((*piece, size));
            size += piece.of(decoder).map_or(0, Vec::len);
        }
    }
    (found, size)
}

impl Whole {
    /// Numbers of all vectors.
    pub(super) fn vector_size(decoder: &Decoder, layout: &Layout) -> usize {
        vectors(decoder, layout).1
    }

    /// Pieces whose norms are ghosts: the embedding, the positions, four maps of each layer.
    pub(super) fn pieces(decoder: &Decoder) -> usize {
        2 + 4 * decoder.layers.len()
    }

    pub(super) fn new(
        device: &CudaDecoder,
        decoder: &Decoder,
        layout: &Layout,
    ) -> Result<Self, LanguageError> {
        let (vectors, size) = vectors(decoder, layout);
        let (mut put, mut take) = (Vec::new(), Vec::new());
        for (piece, place) in &layout.pieces {
            let count = piece.of(decoder).map_or(0, Vec::len) as u64;
            if let Some((to, stored)) = device.where_read(*piece) {
                put.extend([to, *place as u64, count, u64::from(stored)]);
            }
            if let Some((_, from)) = vectors.iter().find(|(own, _)| own == piece) {
                take.extend([*place as u64, *from as u64, count, 0]);
            }
        }
        let upload = |table: &[u64]| device.context.device.upload(table).map_err(failed);
        let put_count = put.len() / 4;
        let (put, take) = (upload(&put)?, upload(&take)?);
        Ok(Self { layout: layout.clone(), vectors, size, put, put_count, take })
    }

    fn vector(&self, piece: Piece) -> Option<usize> {
        self.vectors.iter().find(|(own, _)| *own == piece).map(|(_, place)| *place)
    }
}

impl CudaDecoder {
    /// Where products and kernels read a piece, and whether it is stored like activations; nothing
    /// for the embedding, which is read where it is trained.
    fn where_read(&self, piece: Piece) -> Option<(u64, bool)> {
        let linear = |index, projection| self.frozen(index, Map::of(projection));
        let norm = |place: NormPlace| match place {
            NormPlace::Attention(index) => &self.layers[index].attention_norm,
            NormPlace::Feed(index) => &self.layers[index].feed_norm,
            NormPlace::Final => &self.final_norm,
        };
        match piece {
            Piece::Weight(index, projection) => {
                let inputs = self.shape(Map::of(projection)).0;
                let before = self.row(projection) * inputs * self.context.bytes();
                Some((linear(index, projection).weight.address() + before as u64, true))
            }
            Piece::Bias(index, projection) => {
                let (bias, row) = (linear(index, projection).bias.as_ref()?, self.row(projection));
                let stored = matches!(bias, Bias::Stored(_));
                let bytes = if stored { self.context.bytes() } else { size_of::<f32>() };
                Some((bias.address() + (row * bytes) as u64, stored))
            }
            Piece::NormWeight(place) => Some((norm(place).weight.address(), false)),
            Piece::NormBias(place) => norm(place).bias.as_ref().map(|bias| (bias.address(), false)),
            Piece::Positions => self.positions.as_ref().map(|own| (own.address(), false)),
            _ => None,
        }
    }
}

impl CudaModel {
    /// Numbers of every example's formed gradients: vectors, or adapters.
    pub(super) fn vector_size(&self) -> usize {
        self.whole.as_ref().map_or(self.places.size, |whole| whole.size)
    }

    /// Puts trained numbers where they are read; `numbers` are in the layout's order.
    pub(super) fn put_whole(&self, numbers: u64) -> Result<(), LanguageError> {
        let Some(whole) = &self.whole else { return Ok(()) };
        let values = [Address(whole.put.address()), Address(numbers)];
        self.decoder.context.start("put_parts", (BLOCKS, whole.put_count), &values)
    }

    fn maps(&self, index: usize, kept: &Kept) -> [Operands; 4] {
        use Projection::{Down, Gate, Key, Output, Query, Up, Value};
        let a = &self.decoder.architecture;
        let (wide, narrow) = (a.query_width(), a.key_width());
        let slopes = self.workspace.slopes[index];
        let feed = match a.activation {
            Activation::GeluTanh => vec![(Up, a.hidden)],
            Activation::SwiGlu => vec![(Gate, a.hidden), (Up, a.hidden)],
        };
        let map =
            |inputs: u64, width: usize, slopes: u64, parts: Vec<(Projection, usize)>| Operands {
                inputs,
                width,
                slopes,
                outputs: parts.iter().map(|(_, outputs)| outputs).sum(),
                parts,
            };
        let joint = vec![(Query, wide), (Key, narrow), (Value, narrow)];
        [
            map(kept.attention_input, a.width, slopes.joint, joint),
            map(kept.mixed, wide, slopes.output, vec![(Output, a.width)]),
            map(kept.feed_input, a.width, slopes.feed, feed),
            map(kept.active, a.hidden, slopes.down, vec![(Down, a.width)]),
        ]
    }

    /// Ghosts of a layer's matrices and gradients of its biases, after its backward pass.
    pub(super) fn whole_layer(
        &self,
        index: usize,
        extent: Extent,
        kept: &Kept,
    ) -> Result<(), LanguageError> {
        let (Some(whole), Some(own)) = (&self.whole, &self.embedding) else { return Ok(()) };
        let (context, w) = (&self.decoder.context, &self.workspace);
        let Extent { sequences, length } = extent;
        for (number, map) in self.maps(index, kept).iter().enumerate() {
            for (out, rows, numbers) in [
                (w.state_products, map.inputs, map.width),
                (w.residual_products, map.slopes, map.outputs),
            ] {
                let rows = context.matrix(rows, numbers).every(length * numbers);
                context.multiply(&Product {
                    out: Matrix::new(out, length, Store::Float32).every(length * length),
                    left: rows,
                    right: rows.transposed(),
                    extents: (length, length, numbers),
                    count: sequences,
                    scale: 1.0,
                    accumulate: false,
                })?;
            }
            context.start(
                "ghost",
                (GHOST_PARTS, sequences),
                &[
                    Address(own.partials.address()),
                    Address(w.state_products),
                    Address(w.residual_products),
                    Int((2 + 4 * index + number) as i32),
                    Int(own.pieces as i32),
                    Int(length as i32),
                ],
            )?;
            let mut before = 0;
            for (projection, outputs) in &map.parts {
                if let Some(at) = whole.vector(Piece::Bias(index, *projection)) {
                    let slopes = context.matrix(map.slopes, map.outputs).from(before);
                    context.start(
                        "bias_gradients",
                        (outputs.div_ceil(64), sequences),
                        &[
                            Address(w.gradients),
                            Long(whole.size as u64),
                            Int(at as i32),
                            Address(slopes.address),
                            Int(map.outputs as i32),
                            Int(length as i32),
                            Int(*outputs as i32),
                        ],
                    )?;
                }
                before += outputs;
            }
        }
        Ok(())
    }

    /// Gradients of a norm's vectors: `of` is (x, moments), its slopes are in `d_normed`.
    pub(super) fn whole_norm(
        &self,
        extent: Extent,
        of: (u64, u64),
        place: NormPlace,
    ) -> Result<(), LanguageError> {
        let Some(whole) = &self.whole else { return Ok(()) };
        let Some(weight) = whole.vector(Piece::NormWeight(place)) else { return Ok(()) };
        let shift = whole.vector(Piece::NormBias(place)).map_or(-1, |at| at as i32);
        let (context, w) = (&self.decoder.context, &self.workspace);
        let width = self.decoder.architecture.width;
        context.start(
            "norm_gradients",
            (width.div_ceil(64), extent.sequences),
            &[
                Address(w.gradients),
                Long(whole.size as u64),
                Int(weight as i32),
                Int(shift),
                Address(of.0),
                Address(of.1),
                Address(w.d_normed),
                Int(extent.length as i32),
                Int(width as i32),
            ],
        )
    }

    /// Squares of the positions' gradients, after a backward pass.
    pub(super) fn whole_positions(&self, extent: Extent) -> Result<(), LanguageError> {
        let (Some(_), Some(own)) = (&self.whole, &self.embedding) else { return Ok(()) };
        let a = &self.decoder.architecture;
        let there = if self.decoder.positions.is_some() { extent.length.min(a.context) } else { 0 };
        self.decoder.context.start(
            "whole_ghost",
            (GHOST_PARTS, extent.sequences),
            &[
                Address(own.partials.address()),
                Address(self.workspace.dx),
                Long((there * a.width) as u64),
                Long((extent.length * a.width) as u64),
                Int(1),
                Int(own.pieces as i32),
            ],
        )
    }

    /// Adds the micro-batch's clipped gradients of matrices and positions to `out` (`again`), or puts
    /// them there.
    pub(super) fn add_whole(
        &self,
        extent: Extent,
        factors: u64,
        out: u64,
        again: bool,
    ) -> Result<(), LanguageError> {
        let Some(whole) = &self.whole else { return Ok(()) };
        let (context, a) = (&self.decoder.context, &self.decoder.architecture);
        let rows = extent.rows();
        let place = |piece: Piece| whole.layout.place(piece).map(|at| out + 4 * at as u64);
        for index in 0..a.layers {
            for map in &self.maps(index, &self.workspace.layers[index]) {
                let sizes = [extent.length, map.outputs, map.width].map(|size| Int(size as i32));
                let values = [Address(map.slopes), Address(map.inputs), Address(factors)];
                context.start("scale_rows", (rows, 1), &[&values[..], &sizes].concat())?;
                let mut before = 0;
                for (projection, outputs) in &map.parts {
                    if let Some(to) = place(Piece::Weight(index, *projection)) {
                        let slopes = context.matrix(map.slopes, map.outputs).from(before);
                        context.multiply(&Product {
                            out: Matrix::new(to, map.width, Store::Float32),
                            left: slopes.transposed(),
                            right: context.matrix(map.inputs, map.width),
                            extents: (*outputs, map.width, rows),
                            count: 1,
                            scale: 1.0,
                            accumulate: again,
                        })?;
                    }
                    before += outputs;
                }
            }
        }
        let Some(to) = place(Piece::Positions) else { return Ok(()) };
        let all = a.context * a.width;
        if !again {
            context.striding("clear", all, &[Address(to), Long(all as u64)])?;
        }
        let sizes = [extent.sequences, extent.length, a.width, a.context];
        let values = [Address(to), Address(self.workspace.dx), Address(factors)];
        let sizes = sizes.map(|size| Int(size as i32));
        context.striding("position_rows", extent.length * a.width, &[&values[..], &sizes].concat())
    }

    /// The sum of no examples.
    pub(super) fn clear_whole(&self, out: u64) -> Result<(), LanguageError> {
        let Some(whole) = &self.whole else { return Ok(()) };
        let size = whole.layout.size;
        self.decoder.context.striding("clear", size, &[Address(out), Long(size as u64)])
    }

    /// The vectors' sums to their places.
    pub(super) fn take_vectors(&self, out: u64) -> Result<(), LanguageError> {
        let Some(whole) = &self.whole else { return Ok(()) };
        let values = [Address(out), Address(whole.take.address()), Address(self.workspace.sum)];
        self.decoder.context.start("take_parts", (BLOCKS, whole.vectors.len()), &values)
    }
}
