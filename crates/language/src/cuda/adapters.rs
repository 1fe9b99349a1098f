//! Adapters (LoRA) on the device: y += scale (x down') up', and every example's own gradients:
//! of `down` (scale dy up)' x, of `up` dy' (scale x down').

use super::context::Context;
use super::workspace::{Extent, Workspace};
use crate::LanguageError;
use crate::finetune::{Layout, Piece};
use crate::model::{Decoder, Projection};
use training::cuda::compute::{Matrix, Product, Store};

/// One adapter: its shape, and where its two matrices begin among all trained numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) projection: Projection,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) rank: usize,
    pub(super) scale: f32,
    pub(super) down: usize,
    pub(super) up: usize,
    /// Numbers of all low-rank states of a place before this adapter's.
    pub(super) before: usize,
}

/// All adapters of a decoder, layer by layer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Places {
    pub(super) layers: Vec<Vec<Place>>,
    /// Trained numbers.
    pub(super) size: usize,
    /// Low-rank numbers of one place in all adapters, and the most of one.
    pub(super) ranks: usize,
    pub(super) highest: usize,
}

impl Places {
    pub(super) fn new(decoder: &Decoder, layout: &Layout) -> Self {
        let mut found = Self { layers: Vec::new(), size: layout.size, ranks: 0, highest: 0 };
        for (index, layer) in decoder.layers.iter().enumerate() {
            let mut own = Vec::new();
            for projection in Projection::ALL {
                let Some(linear) = layer.linear(projection) else { continue };
                let Some(adapter) = &linear.adapter else { continue };
                let places = (
                    layout.place(Piece::Down(index, projection)),
                    layout.place(Piece::Up(index, projection)),
                );
                let (Some(down), Some(up)) = places else { continue };
                own.push(Place {
                    projection,
                    inputs: linear.inputs,
                    outputs: linear.outputs,
                    rank: adapter.rank,
                    scale: adapter.scale,
                    down,
                    up,
                    before: found.ranks,
                });
                found.ranks += adapter.rank;
                found.highest = found.highest.max(adapter.rank);
            }
            found.layers.push(own);
        }
        found
    }

    pub(super) fn at(&self, layer: usize, projection: Projection) -> Option<&Place> {
        self.layers[layer].iter().find(|place| place.projection == projection)
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

    /// Where the low-rank states of an adapter are kept: place by place.
    fn low(&self, place: &Place) -> Matrix {
        let before = if self.workspace.kept { place.before * self.workspace.rows } else { 0 };
        self.context.matrix(self.workspace.low, place.rank).from(before)
    }

    /// Adds the adapter's part to `out`, whose rows begin at its first output.
    pub(super) fn forward(
        &self,
        layer: usize,
        projection: Projection,
        input: u64,
        out: Matrix,
    ) -> Result<(), LanguageError> {
        let Some(place) = self.places.at(layer, projection) else { return Ok(()) };
        let rows = self.extent.rows();
        let Place { inputs, outputs, rank, scale, .. } = *place;
        let low = self.low(place);
        self.context.multiply(&Product {
            out: low,
            left: self.context.matrix(input, inputs),
            right: self.value(place.down, inputs).transposed(),
            extents: (rows, rank, inputs),
            count: 1,
            scale,
            accumulate: false,
        })?;
        self.context.multiply(&Product {
            out,
            left: low,
            right: self.value(place.up, rank).transposed(),
            extents: (rows, outputs, rank),
            count: 1,
            scale: 1.0,
            accumulate: true,
        })
    }

    /// Every example's gradients, and the adapter's part of the input's, added to `d_input` where
    /// that is wanted.
    pub(super) fn backward(
        &self,
        layer: usize,
        projection: Projection,
        input: u64,
        d_out: Matrix,
        d_input: Option<u64>,
    ) -> Result<(), LanguageError> {
        let Some(place) = self.places.at(layer, projection) else { return Ok(()) };
        let Extent { sequences, length } = self.extent;
        let rows = self.extent.rows();
        let Place { inputs, outputs, rank, scale, .. } = *place;
        let back = self.context.matrix(self.workspace.back, rank);
        self.context.multiply(&Product {
            out: back,
            left: d_out,
            right: self.value(place.up, rank),
            extents: (rows, rank, outputs),
            count: 1,
            scale,
            accumulate: false,
        })?;
        if let Some(d_input) = d_input {
            self.context.multiply(&Product {
                out: self.context.matrix(d_input, inputs),
                left: back,
                right: self.value(place.down, inputs),
                extents: (rows, inputs, rank),
                count: 1,
                scale: 1.0,
                accumulate: true,
            })?;
        }
        let gradient = |at: usize, leading: usize| {
            Matrix::new(self.workspace.gradients, leading, Store::Float32)
                .from(at)
                .every(self.places.size)
        };
        self.context.multiply(&Product {
            out: gradient(place.down, inputs),
            left: back.every(length * rank).transposed(),
            right: self.context.matrix(input, inputs).every(length * inputs),
            extents: (rank, inputs, length),
            count: sequences,
            scale: 1.0,
            accumulate: false,
        })?;
        self.context.multiply(&Product {
            out: gradient(place.up, rank),
            left: d_out.every(length * d_out.leading).transposed(),
            right: self.low(place).every(length * rank),
            extents: (outputs, rank, length),
            count: sequences,
            scale: 1.0,
            accumulate: false,
        })
    }
}
