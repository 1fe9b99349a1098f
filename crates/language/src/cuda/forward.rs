//! The forward pass of a micro-batch whose tokens are on the device.

use super::adapters::Pass;
use super::evaluate::CudaModel;
use super::weights::{FrozenLinear, FrozenNorm};
use super::workspace::{Extent, Kept};
use crate::LanguageError;
use crate::model::{Activation, Projection};
use training::cuda::Buffer;
use training::cuda::compute::Value::{Address, Float, Int, Long};
use training::cuda::compute::{Matrix, Product, Store};

/// Places of a block of `attention.cu`.
pub(super) const TILE: usize = 64;

/// Where an optional vector is; 0 where there is none.
pub(super) fn optional(buffer: Option<&Buffer<f32>>) -> u64 {
    buffer.map_or(0, Buffer::address)
}

impl CudaModel {
    pub(super) fn pass(&self, extent: Extent) -> Pass<'_> {
        Pass {
            context: &self.decoder.context,
            places: &self.places,
            workspace: &self.workspace,
            values: self.values.address(),
            extent,
        }
    }

    /// Normalised states of every place, into `states`.
    pub(super) fn forward(&mut self, extent: Extent) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let a = &decoder.architecture;
        let rows = extent.rows();
        let first = w.layers[0].before;
        decoder.context.by_rows(
            "embed",
            rows,
            &[
                Address(first),
                Address(self.tokens.address()),
                Address(self.embedding_address()),
                Address(optional(decoder.positions.as_ref())),
                Address(self.growing.as_ref().map_or(0, |growing| growing.new_places())),
                Int(rows as i32),
                Int(extent.length as i32),
                Int(a.width as i32),
                Int(a.context as i32),
            ],
        )?;
        // What the block before added, with its bias: (stream, delta, bias).
        let mut added = (first, 0, 0);
        for (index, layer) in decoder.layers.iter().enumerate() {
            let kept = w.layers[index];
            let to = (kept.before, kept.attention_input, kept.before_moments);
            self.add_norm(rows, to, added, &layer.attention_norm)?;
            self.attention(index, extent, &kept)?;
            let to = (kept.middle, kept.feed_input, kept.middle_moments);
            let bias = optional(layer.output.bias.as_ref());
            self.add_norm(rows, to, (kept.before, w.delta, bias), &layer.feed_norm)?;
            self.feed(index, extent, &kept)?;
            added = (kept.middle, w.delta, optional(layer.down.bias.as_ref()));
        }
        self.add_norm(rows, (w.last, w.states, w.last_moments), added, &decoder.final_norm)
    }

    /// x = stream + delta + bias and its norm: `to` is (x, normalised, moments).
    fn add_norm(
        &self,
        rows: usize,
        to: (u64, u64, u64),
        (stream, delta, bias): (u64, u64, u64),
        norm: &FrozenNorm,
    ) -> Result<(), LanguageError> {
        let (epsilon, centred) = self.decoder.norm();
        self.decoder.context.by_rows(
            "add_norm",
            rows,
            &[
                Address(to.0),
                Address(to.1),
                Address(to.2),
                Address(stream),
                Address(delta),
                Address(bias),
                Address(norm.weight.address()),
                Address(optional(norm.bias.as_ref())),
                Int(rows as i32),
                Float(epsilon),
                Int(centred),
            ],
        )
    }

    /// out = x weight', all rows.
    fn linear(
        &self,
        rows: usize,
        (inputs, outputs): (usize, usize),
        x: u64,
        linear: &FrozenLinear,
        out: u64,
    ) -> Result<Matrix, LanguageError> {
        let context = &self.decoder.context;
        let out = context.matrix(out, outputs);
        let weight = context.matrix(linear.weight.address(), inputs).transposed();
        context.product(out, context.matrix(x, inputs), weight, (rows, outputs, inputs))?;
        Ok(out)
    }

    fn attention(&self, index: usize, extent: Extent, kept: &Kept) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let a = &decoder.architecture;
        let (layer, rows) = (&decoder.layers[index], extent.rows());
        let input = kept.attention_input;
        let shape = (a.width, decoder.joint_width());
        let joint = self.linear(rows, shape, input, &layer.joint, w.joint)?;
        let pass = self.pass(extent);
        let wide = a.query_width();
        pass.forward(index, input, &self.joint_parts(joint))?;
        if let Some(growing) = self.growing.as_ref().filter(|growing| growing.new_places() > 0) {
            self.attend(growing, index, extent, kept)?;
            self.merge(kept.mixed, w.headed, extent, false)?;
        } else {
            self.attend_all(index, extent, kept)?;
            if let Some(growing) = &self.growing {
                self.keep_places(growing, index, extent, kept)?;
            }
        }
        let delta = self.linear(rows, (wide, a.width), kept.mixed, &layer.output, w.delta)?;
        pass.forward(index, kept.mixed, &[(Projection::Output, delta)])
    }

    /// Queries, keys and values of a joint matrix.
    pub(super) fn joint_parts(&self, joint: Matrix) -> [(Projection, Matrix); 3] {
        let a = &self.decoder.architecture;
        let (wide, narrow) = (a.query_width(), a.key_width());
        [
            (Projection::Query, joint),
            (Projection::Key, joint.from(wide)),
            (Projection::Value, joint.from(wide + narrow)),
        ]
    }

    /// From queries, keys and values side by side to what every head sees in its own sequence, into
    /// `mixed`.
    fn attend_all(&self, index: usize, extent: Extent, kept: &Kept) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (a, context) = (&decoder.architecture, &decoder.context);
        let (layer, rows) = (&decoder.layers[index], extent.rows());
        let angles = optional(w.angles.as_ref());
        let mut values = vec![Address(kept.queries), Address(kept.keys), Address(kept.values)];
        values.push(Address(w.joint));
        values.push(Address(optional(layer.joint.bias.as_ref())));
        values.push(Address(angles));
        values.extend(self.head_values(extent));
        context.striding("split_heads", rows * decoder.joint_width() / 4, &values)?;
        let scale = Float(1.0 / (a.head_width as f32).sqrt());
        if context.tiled {
            let mut values = vec![Address(kept.mixed), Address(kept.logs)];
            values.extend([kept.queries, kept.keys, kept.values].map(Address));
            values.extend([extent.length, a.heads, a.key_heads].map(|size| Int(size as i32)));
            values.push(scale);
            let grid = (extent.sequences * a.heads, extent.length.div_ceil(TILE));
            return context.bounded("attention", grid, 0, &values);
        }
        let heads = Heads::new(self, extent);
        context.multiply(&Product {
            out: heads.scores(w.scores, Store::Float32),
            left: heads.queries(kept.queries),
            right: heads.keys(kept.keys).transposed(),
            extents: (heads.rows, extent.length, a.head_width),
            ..heads.product()
        })?;
        let all = rows * a.heads;
        context.by_rows(
            "softmax",
            all,
            &[
                Address(kept.probabilities),
                Address(w.scores),
                Long(all as u64),
                Int(extent.length as i32),
                scale,
            ],
        )?;
        context.multiply(&Product {
            out: heads.queries(w.headed),
            left: heads.scores(kept.probabilities, context.store),
            right: heads.keys(kept.values),
            extents: (heads.rows, a.head_width, extent.length),
            ..heads.product()
        })?;
        self.merge(kept.mixed, w.headed, extent, false)
    }

    /// The last arguments of the kernels that move heads.
    pub(super) fn head_values(&self, extent: Extent) -> [training::cuda::compute::Value; 6] {
        let a = &self.decoder.architecture;
        [
            Int(extent.rows() as i32),
            Int(extent.length as i32),
            Int(a.heads as i32),
            Int(a.key_heads as i32),
            Int(a.head_width as i32),
            Int(self.decoder.pairs()),
        ]
    }

    /// Heads first to rows, or back.
    pub(super) fn merge(
        &self,
        out: u64,
        from: u64,
        extent: Extent,
        back: bool,
    ) -> Result<(), LanguageError> {
        let a = &self.decoder.architecture;
        self.decoder.context.striding(
            "merge_heads",
            extent.rows() * a.query_width() / 4,
            &[
                Address(out),
                Address(from),
                Int(extent.rows() as i32),
                Int(extent.length as i32),
                Int(a.heads as i32),
                Int(a.head_width as i32),
                Int(i32::from(back)),
            ],
        )
    }

    fn feed(&self, index: usize, extent: Extent, kept: &Kept) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let a = &decoder.architecture;
        let (layer, rows) = (&decoder.layers[index], extent.rows());
        let shape = (a.width, decoder.feed_width());
        let feed = self.linear(rows, shape, kept.feed_input, &layer.feed, kept.feed)?;
        let pass = self.pass(extent);
        let name = match a.activation {
            Activation::GeluTanh => "gelu",
            Activation::SwiGlu => "swiglu",
        };
        pass.forward(index, kept.feed_input, &self.feed_parts(feed))?;
        decoder.context.striding(
            name,
            rows * a.hidden / 4,
            &[
                Address(kept.active),
                Address(kept.feed),
                Address(optional(layer.feed.bias.as_ref())),
                Long(rows as u64),
            ],
        )?;
        let delta = self.linear(rows, (a.hidden, a.width), kept.active, &layer.down, w.delta)?;
        pass.forward(index, kept.active, &[(Projection::Down, delta)])
    }

    /// What the activation's inputs are made of.
    pub(super) fn feed_parts(&self, feed: Matrix) -> Vec<(Projection, Matrix)> {
        let a = &self.decoder.architecture;
        match a.activation {
            Activation::GeluTanh => vec![(Projection::Up, feed)],
            Activation::SwiGlu => {
                vec![(Projection::Gate, feed), (Projection::Up, feed.from(a.hidden))]
            }
        }
    }
}

/// Attention's matrices: one product for each sequence and head of keys, whose queries are the rows
/// of all heads that share it.
pub(super) struct Heads<'a> {
    model: &'a CudaModel,
    count: usize,
    pub(super) rows: usize,
    length: usize,
}

impl<'a> Heads<'a> {
    pub(super) fn new(model: &'a CudaModel, extent: Extent) -> Self {
        let a = &model.decoder.architecture;
        let rows = a.heads / a.key_heads * extent.length;
        Self { model, count: extent.sequences * a.key_heads, rows, length: extent.length }
    }

    /// Queries, or what is shaped like them.
    pub(super) fn queries(&self, address: u64) -> Matrix {
        let width = self.model.decoder.architecture.head_width;
        self.model.decoder.context.matrix(address, width).every(self.rows * width)
    }

    /// Keys, or values.
    pub(super) fn keys(&self, address: u64) -> Matrix {
        let width = self.model.decoder.architecture.head_width;
        self.model.decoder.context.matrix(address, width).every(self.length * width)
    }

    pub(super) fn scores(&self, address: u64, store: Store) -> Matrix {
        Matrix::new(address, self.length, store).every(self.rows * self.length)
    }

    /// A product of this many matrices, to be filled in.
    pub(super) fn product(&self) -> Product {
        let none = Matrix::new(0, 0, Store::Float32);
        Product {
            out: none,
            left: none,
            right: none,
            extents: (0, 0, 0),
            count: self.count,
            scale: 1.0,
            accumulate: false,
        }
    }
}
