//! From the states' gradient (`d_normed`) back to the first layer, leaving every example's gradients
//! of adapters, or of vectors, in `gradients`. The formulas are those of the CPU's `backward` and `attention`.

use super::evaluate::CudaModel;
use super::forward::{Heads, TILE, optional};
use super::weights::FrozenLinear;
use super::workspace::{Extent, Kept};
use crate::LanguageError;
use crate::model::{Activation, NormPlace, Projection};
use training::cuda::compute::Value::{Address, Float, Int, Long};
use training::cuda::compute::{Product, Store};

impl CudaModel {
    pub(super) fn backward(&self, extent: Extent) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let last = (w.last, w.last_moments);
        let top = w.slopes[decoder.layers.len() - 1].down;
        self.norm_backward(extent, last, NormPlace::Final, top)?;
        for index in (0..decoder.layers.len()).rev() {
            let kept = w.layers[index];
            self.feed_backward(index, extent, &kept)?;
            let middle = (kept.middle, kept.middle_moments);
            self.norm_backward(extent, middle, NormPlace::Feed(index), w.slopes[index].output)?;
            // Below the first layer only an embedding is trained.
            let further = index > 0 || self.embedding.is_some();
            self.attention_backward(index, extent, &kept, further)?;
            if further {
                let before = (kept.before, kept.before_moments);
                let copy = if index > 0 { w.slopes[index - 1].down } else { w.dx };
                self.norm_backward(extent, before, NormPlace::Attention(index), copy)?;
            }
            self.whole_layer(index, extent, &kept)?;
        }
        Ok(())
    }

    /// dx (+)= the gradient through a norm of `of` (x, moments), given `d_normed`; `copy` is where
    /// it is stored like activations.
    fn norm_backward(
        &self,
        extent: Extent,
        of: (u64, u64),
        place: NormPlace,
        copy: u64,
    ) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        self.whole_norm(extent, of, place)?;
        let copy = if copy == w.dx { 0 } else { copy };
        let (norm, again) = match place {
            NormPlace::Final => (&decoder.final_norm, false),
            NormPlace::Feed(index) => (&decoder.layers[index].feed_norm, true),
            NormPlace::Attention(index) => (&decoder.layers[index].attention_norm, true),
        };
        decoder.context.by_rows(
            "norm_backward",
            extent.rows(),
            &[
                Address(w.dx),
                Address(copy),
                Address(of.0),
                Address(of.1),
                Address(w.d_normed),
                Address(norm.weight.address()),
                Int(extent.rows() as i32),
                Int(decoder.norm().1),
                Int(i32::from(again)),
            ],
        )
    }

    /// dx = dy weight, all rows.
    fn linear_backward(
        &self,
        rows: usize,
        (inputs, outputs): (usize, usize),
        dy: u64,
        linear: &FrozenLinear,
        dx: u64,
    ) -> Result<(), LanguageError> {
        let context = &self.decoder.context;
        let weight = context.matrix(linear.weight.address(), inputs);
        let dx = context.matrix(dx, inputs);
        context.product(dx, context.matrix(dy, outputs), weight, (rows, inputs, outputs))
    }

    fn feed_backward(
        &self,
        index: usize,
        extent: Extent,
        kept: &Kept,
    ) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (a, context) = (&decoder.architecture, &decoder.context);
        let (layer, rows) = (&decoder.layers[index], extent.rows());
        let pass = self.pass(extent);
        let slopes = w.slopes[index];
        // GELU's derivative works in place.
        let d_active = match a.activation {
            Activation::GeluTanh => slopes.feed,
            Activation::SwiGlu => w.d_active,
        };
        self.linear_backward(rows, (a.hidden, a.width), slopes.down, &layer.down, d_active)?;
        let dx = context.matrix(slopes.down, a.width);
        pass.backward(index, kept.active, &[(Projection::Down, dx)], Some(d_active))?;
        let bias = Address(optional(layer.feed.bias.as_ref()));
        let (feed, rows_of) = (Address(kept.feed), Long(rows as u64));
        let (name, values) = match a.activation {
            Activation::GeluTanh => ("gelu_backward", vec![Address(d_active), feed, bias, rows_of]),
            Activation::SwiGlu => {
                let values = vec![Address(slopes.feed), Address(d_active), feed, bias, rows_of];
                ("swiglu_backward", values)
            }
        };
        context.striding(name, rows * a.hidden / 4, &values)?;
        let shape = (a.width, decoder.feed_width());
        self.linear_backward(rows, shape, slopes.feed, &layer.feed, w.d_normed)?;
        let d_feed = context.matrix(slopes.feed, decoder.feed_width());
        pass.backward(index, kept.feed_input, &self.feed_parts(d_feed), Some(w.d_normed))
    }

    fn attention_backward(
        &self,
        index: usize,
        extent: Extent,
        kept: &Kept,
        further: bool,
    ) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (a, context) = (&decoder.architecture, &decoder.context);
        let (layer, rows) = (&decoder.layers[index], extent.rows());
        let wide = a.query_width();
        let pass = self.pass(extent);
        let slopes = w.slopes[index];
        self.linear_backward(rows, (wide, a.width), slopes.output, &layer.output, w.d_mixed)?;
        let dx = context.matrix(slopes.output, a.width);
        pass.backward(index, kept.mixed, &[(Projection::Output, dx)], Some(w.d_mixed))?;
        if context.tiled {
            self.attend_back_tiled(index, extent, kept)?;
        } else {
            self.attend_back(extent, kept)?;
        }
        if !context.tiled || decoder.pairs() != 0 {
            let mut values = vec![Address(slopes.joint), Address(w.d_queries), Address(w.d_keys)];
            values.push(Address(w.d_values));
            values.push(Address(optional(w.angles.as_ref())));
            values.extend(self.head_values(extent));
            context.striding("join_heads", rows * decoder.joint_width() / 4, &values)?;
        }
        if further {
            let shape = (a.width, decoder.joint_width());
            self.linear_backward(rows, shape, slopes.joint, &layer.joint, w.d_normed)?;
        }
        let joint = context.matrix(slopes.joint, decoder.joint_width());
        let (input, d_input) = (kept.attention_input, further.then_some(w.d_normed));
        pass.backward(index, input, &self.joint_parts(joint), d_input)
    }

    /// Gradients of queries, keys and values from that of `mixed`, tile by tile: heads first, or,
    /// where nothing is rotated, where the joint matrix has them.
    fn attend_back_tiled(
        &self,
        index: usize,
        extent: Extent,
        kept: &Kept,
    ) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (a, context) = (&decoder.architecture, &decoder.context);
        let joint = context.matrix(w.slopes[index].joint, 0);
        let (wide, narrow) = (a.query_width(), a.key_width());
        let (to, columns) = if decoder.pairs() == 0 {
            let addresses = [0, wide, wide + narrow].map(|at| joint.from(at).address);
            (addresses, decoder.joint_width())
        } else {
            ([w.d_queries, w.d_keys, w.d_values], 0)
        };
        let read = [kept.queries, kept.keys, kept.values].map(Address);
        let sizes = [extent.length, a.heads, a.key_heads, columns].map(|size| Int(size as i32));
        let scale = [Float(1.0 / (a.head_width as f32).sqrt())];
        let tiles = extent.length.div_ceil(TILE);
        let own = [to[0], w.deltas, w.d_mixed, kept.mixed, kept.logs].map(Address);
        let values = [&own[..], &read, &sizes, &scale].concat();
        context.bounded("attention_queries", (extent.sequences * a.heads, tiles), 0, &values)?;
        let own = [to[1], to[2], w.d_mixed, kept.logs, w.deltas].map(Address);
        let values = [&own[..], &read, &sizes, &scale].concat();
        context.bounded("attention_keys", (extent.sequences * a.key_heads, tiles), 0, &values)
    }

    /// The same by products of whole matrices, heads first.
    fn attend_back(&self, extent: Extent, kept: &Kept) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (a, context) = (&decoder.architecture, &decoder.context);
        let rows = extent.rows();
        self.merge(w.headed, w.d_mixed, extent, true)?;
        let heads = Heads::new(self, extent);
        let (length, width) = (extent.length, a.head_width);
        let d_out = heads.queries(w.headed);
        context.multiply(&Product {
            out: heads.scores(w.scores, Store::Float32),
            left: d_out,
            right: heads.keys(kept.values).transposed(),
            extents: (heads.rows, length, width),
            ..heads.product()
        })?;
        context.multiply(&Product {
            out: heads.keys(w.d_values),
            left: heads.scores(kept.probabilities, context.store).transposed(),
            right: d_out,
            extents: (length, width, heads.rows),
            ..heads.product()
        })?;
        let all = rows * a.heads;
        context.by_rows(
            "softmax_backward",
            all,
            &[
                Address(w.d_scores),
                Address(w.scores),
                Address(kept.probabilities),
                Long(all as u64),
                Int(length as i32),
                Float(1.0 / (width as f32).sqrt()),
            ],
        )?;
        let d_scores = heads.scores(w.d_scores, context.store);
        context.multiply(&Product {
            out: heads.queries(w.d_queries),
            left: d_scores,
            right: heads.keys(kept.keys),
            extents: (heads.rows, width, length),
            ..heads.product()
        })?;
        context.multiply(&Product {
            out: heads.keys(w.d_keys),
            left: d_scores.transposed(),
            right: heads.queries(kept.queries),
            extents: (length, width, heads.rows),
            ..heads.product()
        })
    }
}
