//! The forward pass of a micro-batch whose tokens are on the device.

use super::adapters::Map;
use super::evaluate::CudaModel;
use super::weights::{Bias, FrozenNorm};
use super::workspace::{Extent, Kept};
use crate::LanguageError;
use crate::model::Activation;
use training::cuda::Buffer;
use training::cuda::compute::Value::{Address, Float, Int, Long};
use training::cuda::compute::{Matrix, Product, Store};
use training::cuda::fused::Finish;

/// Places of a block of `attention.cu`.
pub(super) const TILE: usize = 64;

/// Where an optional vector is; 0 where there is none.
pub(super) fn optional(buffer: Option<&Buffer<f32>>) -> u64 {
    buffer.map_or(0, Buffer::address)
}

impl CudaModel {
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
            let leading = self.map(index, Map::Joint).input_leading;
            let to = (kept.before, (kept.attention_input, leading), kept.before_moments);
            self.add_norm(rows, to, added, &layer.attention_norm)?;
            self.attention(index, extent, &kept)?;
            let leading = self.map(index, Map::Feed).input_leading;
            let to = (kept.middle, (kept.feed_input, leading), kept.middle_moments);
            let bias = self.bias(index, Map::Output);
            self.add_norm(rows, to, (kept.before, w.delta, bias), &layer.feed_norm)?;
            self.feed(index, extent, &kept)?;
            added = (kept.middle, w.delta, self.bias(index, Map::Down));
        }
        let to = (w.last, (w.states, a.width), w.last_moments);
        self.add_norm(rows, to, added, &decoder.final_norm)
    }

    /// Where a map's bias is; 0 where there is none.
    pub(super) fn bias(&self, index: usize, map: Map) -> u64 {
        self.decoder.frozen(index, map).bias.as_ref().map_or(0, Bias::address)
    }

    /// x = stream + delta + bias and its norm: `to` is (x, normalised with what its rows are apart,
    /// moments).
    fn add_norm(
        &self,
        rows: usize,
        to: (u64, (u64, usize), u64),
        (stream, delta, bias): (u64, u64, u64),
        norm: &FrozenNorm,
    ) -> Result<(), LanguageError> {
        let (epsilon, centred) = self.decoder.norm();
        self.decoder.context.by_rows(
            "add_norm",
            rows,
            &[
                Address(to.0),
                Address(to.1.0),
                Address(to.2),
                Address(stream),
                Address(delta),
                Address(bias),
                Address(norm.weight.address()),
                Address(optional(norm.bias.as_ref())),
                Int(rows as i32),
                Int(to.1.1 as i32),
                Float(epsilon),
                Int(centred),
            ],
        )
    }

    /// out = x weight' with adapters, all rows.
    pub(super) fn forward_product(
        &self,
        rows: usize,
        (index, map): (usize, Map),
        x: u64,
        out: Matrix,
    ) -> Product {
        let own = self.map(index, map);
        Product {
            out,
            left: self.decoder.context.matrix(x, own.input_leading),
            right: own.weight.transposed(),
            extents: (rows, own.outputs, own.inputs + own.ranks),
            count: 1,
            scale: 1.0,
            accumulate: false,
        }
    }

    /// The same, computed; whether it was finished as `finish` says.
    fn linear(
        &self,
        extent: Extent,
        at: (usize, Map),
        x: u64,
        out: Matrix,
        finish: Option<Finish>,
    ) -> Result<bool, LanguageError> {
        let context = &self.decoder.context;
        self.pass(extent).forward(at, &self.map(at.0, at.1), x)?;
        let product = self.forward_product(extent.rows(), at, x, out);
        context.finish(&product, finish)
    }

    /// Whether GELU and its derivative are computed by the products before them.
    pub(super) fn gelu_finishes(&self, index: usize, rows: usize) -> bool {
        let a = &self.decoder.architecture;
        if a.activation != Activation::GeluTanh || self.growing.is_some() {
            return false;
        }
        let context = &self.decoder.context;
        let kept = context.matrix(0, a.hidden);
        let forward = {
            let out = context.matrix(0, self.map(index, Map::Down).input_leading);
            self.forward_product(rows, (index, Map::Feed), 0, out)
        };
        let back = {
            let dx = context.matrix(0, self.map(index, Map::Feed).output_leading);
            self.backward_product(rows, (index, Map::Down), 0, dx)
        };
        let gelu = Finish::Gelu { bias: self.bias(index, Map::Feed), kept };
        context.device.multiplies_and(&forward, gelu)
            && context.device.multiplies_and(&back, Finish::GeluSlope { of: kept })
    }

    fn attention(&self, index: usize, extent: Extent, kept: &Kept) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (a, context) = (&decoder.architecture, &decoder.context);
        let growing = self.growing.as_ref().filter(|growing| growing.new_places() > 0);
        let columns = decoder.joint_width();
        // Attention may read what the product leaves.
        let direct = w.columns > 0 && growing.is_none();
        let joint = context.matrix(if direct { kept.queries } else { w.joint }, columns);
        let bias = if direct { self.bias(index, Map::Joint) } else { 0 };
        let finish = (bias != 0).then_some(Finish::Bias(bias));
        let at = (index, Map::Joint);
        let finished = self.linear(extent, at, kept.attention_input, joint, finish)?;
        if bias != 0 && !finished {
            let values = [Address(joint.address), Address(bias)];
            let sizes = [Long(extent.rows() as u64), Int(columns as i32)];
            let count = extent.rows() * columns / 4;
            context.striding("add_bias", count, &[values, sizes].concat())?;
        }
        if let Some(growing) = growing {
            self.attend(growing, index, extent, kept)?;
            self.merge(index, kept.mixed, w.headed, extent, false)?;
        } else {
            self.attend_all(index, extent, kept)?;
            if let Some(growing) = &self.growing {
                self.keep_places(growing, index, extent, kept)?;
            }
        }
        let delta = context.matrix(w.delta, a.width);
        self.linear(extent, (index, Map::Output), kept.mixed, delta, None).map(drop)
    }

    /// From queries, keys and values side by side to what every head sees in its own sequence, into
    /// `mixed`.
    fn attend_all(&self, index: usize, extent: Extent, kept: &Kept) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (a, context) = (&decoder.architecture, &decoder.context);
        let rows = extent.rows();
        if w.columns == 0 {
            let mut values = vec![Address(kept.queries), Address(kept.keys), Address(kept.values)];
            values.push(Address(w.joint));
            values.push(Address(self.bias(index, Map::Joint)));
            values.push(Address(optional(w.angles.as_ref())));
            values.extend(self.head_values(extent));
            context.striding("split_heads", rows * decoder.joint_width() / 4, &values)?;
        }
        let scale = Float(1.0 / (a.head_width as f32).sqrt());
        if context.tiled {
            let mut values = vec![Address(kept.mixed), Address(kept.logs)];
            values.extend([kept.queries, kept.keys, kept.values].map(Address));
            let leading = self.map(index, Map::Output).input_leading;
            let sizes = [w.columns, leading, extent.length, a.heads, a.key_heads];
            values.extend(sizes.map(|size| Int(size as i32)));
            values.push(scale);
            let grid = (extent.sequences * a.heads * extent.length.div_ceil(TILE), 1);
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
        self.merge(index, kept.mixed, w.headed, extent, false)
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

    /// Heads first to rows of a layer's `mixed`, or back from those of its gradient.
    pub(super) fn merge(
        &self,
        index: usize,
        out: u64,
        from: u64,
        extent: Extent,
        back: bool,
    ) -> Result<(), LanguageError> {
        let a = &self.decoder.architecture;
        let leading = self.map(index, Map::Output).input_leading;
        self.decoder.context.striding(
            "merge_heads",
            extent.rows() * a.query_width() / 4,
            &[
                Address(out),
                Address(from),
                Int(if back { a.query_width() } else { leading } as i32),
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
        let (a, context) = (&decoder.architecture, &decoder.context);
        let rows = extent.rows();
        let (at, bias) = ((index, Map::Feed), self.bias(index, Map::Feed));
        let leading = self.map(index, Map::Down).input_leading;
        let feed = context.matrix(kept.feed, decoder.feed_width());
        if self.gelu_finishes(index, rows) {
            let active = context.matrix(kept.active, leading);
            let finish = Some(Finish::Gelu { bias, kept: feed });
            self.linear(extent, at, kept.feed_input, active, finish)?;
        } else {
            self.linear(extent, at, kept.feed_input, feed, None)?;
            let name = match a.activation {
                Activation::GeluTanh => "gelu",
                Activation::SwiGlu => "swiglu",
            };
            let values = [Address(kept.active), Address(kept.feed), Address(bias)];
            let sizes = [Long(rows as u64), Int(leading as i32)];
            context.striding(name, rows * a.hidden / 4, &[&values[..], &sizes].concat())?;
        }
        let delta = context.matrix(w.delta, a.width);
        self.linear(extent, (index, Map::Down), kept.active, delta, None).map(drop)
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
