//! Adapters (LoRA) on the device: y += scale (x down') up', and every example's own gradients:
//! of `down` (scale dy up)' x, of `up` dy' (scale x down').
//!
//! Adapters that read the same input are a group. On the device the `down`s of a group lie one after
//! the other, and after them its `up`s, so that one product multiplies an input by all of them, one
//! goes back, and one forms their gradients.

use super::context::{Context, failed};
use super::workspace::{Extent, Workspace};
use crate::LanguageError;
use crate::finetune::{Layout, Piece};
use crate::model::{Decoder, Projection};
use training::cuda::compute::{Matrix, Product, Store};
use training::cuda::{Buffer, CudaDevice};

/// Projections that read the same input.
const GROUPS: [&[Projection]; 4] = [
    &[Projection::Query, Projection::Key, Projection::Value],
    &[Projection::Output],
    &[Projection::Gate, Projection::Up],
    &[Projection::Down],
];

/// One adapter: its shape, and where its two matrices begin among the device's trained numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Adapter {
    pub(super) projection: Projection,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) rank: usize,
    pub(super) scale: f32,
    pub(super) down: usize,
    pub(super) up: usize,
    /// Of its group: where the first `down` begins, its low-rank numbers, and those of all groups
    /// before it.
    pub(super) first: usize,
    pub(super) ranks: usize,
    pub(super) before: usize,
}

impl Adapter {
    /// Low-rank numbers of its group before its own.
    fn offset(&self) -> usize {
        (self.down - self.first) / self.inputs
    }
}

/// All adapters of a decoder, layer by layer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Places {
    pub(super) layers: Vec<Vec<Adapter>>,
    /// Trained numbers.
    pub(super) size: usize,
    /// Low-rank numbers of one place in all adapters, and the most of one group.
    pub(super) ranks: usize,
    pub(super) highest: usize,
    /// For every matrix: its place in the layout, the one here, and its numbers.
    moves: Vec<[usize; 3]>,
}

impl Places {
    pub(super) fn new(decoder: &Decoder, layout: &Layout) -> Self {
        let (layers, moves) = (Vec::new(), Vec::new());
        let mut found = Self { layers, size: layout.size, ranks: 0, highest: 0, moves };
        let mut end = 0;
        for (index, layer) in decoder.layers.iter().enumerate() {
            let mut all = Vec::new();
            for group in GROUPS {
                let adapters: Vec<_> = group
                    .iter()
                    .filter_map(|projection| {
                        let linear = layer.linear(*projection)?;
                        let adapter = linear.adapter.as_ref()?;
                        let down = layout.place(Piece::Down(index, *projection))?;
                        let up = layout.place(Piece::Up(index, *projection))?;
                        Some((*projection, linear, adapter, (down, up)))
                    })
                    .collect();
                // One product has one scale.
                for same in adapters.chunk_by(|a, b| a.2.scale == b.2.scale) {
                    let first = end;
                    let ranks = same.iter().map(|(_, _, adapter, _)| adapter.rank).sum();
                    for (projection, linear, adapter, (down, _)) in same {
                        let count = adapter.rank * linear.inputs;
                        found.moves.push([*down, end, count]);
                        all.push(Adapter {
                            projection: *projection,
                            inputs: linear.inputs,
                            outputs: linear.outputs,
                            rank: adapter.rank,
                            scale: adapter.scale,
                            down: end,
                            up: 0,
                            first,
                            ranks,
                            before: found.ranks,
                        });
                        end += count;
                    }
                    let start = all.len() - same.len();
                    for (place, (_, _, _, (_, up))) in all[start..].iter_mut().zip(same) {
                        place.up = end;
                        let count = place.rank * place.outputs;
                        found.moves.push([*up, end, count]);
                        end += count;
                    }
                    found.ranks += ranks;
                    found.highest = found.highest.max(ranks);
                }
            }
            found.layers.push(all);
        }
        found
    }

    /// Numbers in the layout's order as they lie here.
    pub(super) fn ordered(&self, numbers: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; numbers.len()];
        for [from, to, count] in &self.moves {
            out[*to..to + count].copy_from_slice(&numbers[*from..from + count]);
        }
        out
    }

    /// The adapters of a group among parts of a product's output, with those parts.
    fn group(&self, layer: usize, parts: &[(Projection, Matrix)]) -> Vec<(Adapter, Matrix)> {
        let find = |projection: Projection| {
            self.layers[layer].iter().find(|place| place.projection == projection).copied()
        };
        parts.iter().filter_map(|(projection, part)| Some((find(*projection)?, *part))).collect()
    }
}

/// Tables for the kernels that move trained numbers between the layout's order and the device's:
/// four numbers for each matrix.
pub(super) struct Moves {
    /// To where products read them.
    pub(super) put: Buffer<u64>,
    /// From sums to the layout.
    pub(super) take: Buffer<u64>,
    pub(super) count: usize,
}

impl Moves {
    /// `values` is where products read all of them, in numbers of this many bytes.
    pub(super) fn new(
        device: &CudaDevice,
        places: &Places,
        (values, bytes): (u64, usize),
    ) -> Result<Self, LanguageError> {
        let numbers = |of: fn([u64; 3], u64, u64) -> [u64; 4]| -> Vec<u64> {
            let table = places.moves.iter().map(|own| own.map(|number| number as u64));
            table.flat_map(|own| of(own, values, bytes as u64)).collect()
        };
        let put = numbers(|[from, to, count], at, bytes| [at + to * bytes, from, count, 1]);
        let take = numbers(|[to, from, count], _, _| [to, from, count, 0]);
        Ok(Self {
            put: device.upload(&put).map_err(failed)?,
            take: device.upload(&take).map_err(failed)?,
            count: places.moves.len(),
        })
    }
}

/// The operands of an adapter in one pass.
pub(super) struct Pass<'a> {
    pub(super) context: &'a Context,
    pub(super) places: &'a Places,
    pub(super) workspace: &'a Workspace,
    /// Of all trained numbers, as activations are stored.
    pub(super) values: u64,
    pub(super) extent: Extent,
}

impl Pass<'_> {
    fn value(&self, at: usize, leading: usize) -> Matrix {
        self.context.matrix(self.values, leading).from(at)
    }

    /// Where the low-rank states of a group are kept: place by place.
    fn low(&self, place: &Adapter) -> Matrix {
        let before = if self.workspace.kept { place.before * self.workspace.rows } else { 0 };
        self.context.matrix(self.workspace.low, place.ranks).from(before)
    }

    fn once(&self, out: Matrix, left: Matrix, right: Matrix, extents: [usize; 3]) -> Product {
        let [m, n, k] = extents;
        Product { out, left, right, extents: (m, n, k), count: 1, scale: 1.0, accumulate: false }
    }

    /// Adds the adapters' parts to outputs of one input; a part's rows begin at its first output.
    pub(super) fn forward(
        &self,
        layer: usize,
        input: u64,
        parts: &[(Projection, Matrix)],
    ) -> Result<(), LanguageError> {
        let rows = self.extent.rows();
        let found = self.places.group(layer, parts);
        for same in found.chunk_by(|a, b| a.0.first == b.0.first) {
            let Adapter { inputs, ranks, scale, first, .. } = same[0].0;
            let low = self.low(&same[0].0);
            let (x, down) = (self.context.matrix(input, inputs), self.value(first, inputs));
            let product = self.once(low, x, down.transposed(), [rows, ranks, inputs]);
            self.context.multiply(&Product { scale, ..product })?;
            for (place, out) in same {
                let up = self.value(place.up, place.rank).transposed();
                let extents = [rows, place.outputs, place.rank];
                let product = self.once(*out, low.from(place.offset()), up, extents);
                self.context.multiply(&Product { accumulate: true, ..product })?;
            }
        }
        Ok(())
    }

    /// Every example's gradients, and the adapters' parts of the input's, added to `d_input` where
    /// that is wanted.
    pub(super) fn backward(
        &self,
        layer: usize,
        input: u64,
        parts: &[(Projection, Matrix)],
        d_input: Option<u64>,
    ) -> Result<(), LanguageError> {
        let Extent { sequences, length } = self.extent;
        let rows = self.extent.rows();
        let gradient = |at: usize, leading: usize| {
            let all = Matrix::new(self.workspace.gradients, leading, Store::Float32);
            all.from(at).every(self.places.size)
        };
        let found = self.places.group(layer, parts);
        for same in found.chunk_by(|a, b| a.0.first == b.0.first) {
            let Adapter { inputs, ranks, scale, first, .. } = same[0].0;
            let back = self.context.matrix(self.workspace.back, ranks);
            let x = self.context.matrix(input, inputs);
            for (place, d_out) in same {
                let up = self.value(place.up, place.rank);
                let extents = [rows, place.rank, place.outputs];
                let product = self.once(back.from(place.offset()), *d_out, up, extents);
                self.context.multiply(&Product { scale, ..product })?;
                let low = self.low(place).from(place.offset());
                self.context.multiply(&Product {
                    count: sequences,
                    ..self.once(
                        gradient(place.up, place.rank),
                        d_out.every(length * d_out.leading).transposed(),
                        low.every(length * ranks),
                        [place.outputs, place.rank, length],
                    )
                })?;
            }
            if let Some(d_input) = d_input {
                let d_input = self.context.matrix(d_input, inputs);
                let down = self.value(first, inputs);
                let product = self.once(d_input, back, down, [rows, inputs, ranks]);
                self.context.multiply(&Product { accumulate: true, ..product })?;
            }
            self.context.multiply(&Product {
                count: sequences,
                ..self.once(
                    gradient(first, inputs),
                    back.every(length * ranks).transposed(),
                    x.every(length * inputs),
                    [ranks, inputs, length],
                )
            })?;
        }
        Ok(())
    }
}
