//! From the states' gradient (`d_normed`) back to the first layer, leaving every example's gradients
//! of adapters, or of vectors, in `gradients`. The formulas are those of the CPU's `backward` and `attention`.

use super::adapters::Map;
use super::evaluate::CudaModel;
use super::forward::{Heads, TILE, optional};
use super::workspace::{Extent, Kept};
use crate::LanguageError;
use crate::model::{Activation, NormPlace};
use training::cuda::compute::Value::{Address, Float, Int, Long};
use training::cuda::compute::{Matrix, Product, Store};
use training::cuda::fused::Finish;

impl CudaModel {
    pub(super) fn backward(&self, extent: Extent) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        // The stream's gradient is where the maps that add to the stream find it, with what its rows
        // are apart.
        let of_output =
            |index: usize| (w.slopes[index].output, self.map(index, Map::Output).output_leading);
        let of_down =
            |index: usize| (w.slopes[index].down, self.map(index, Map::Down).output_leading);
        let last = (w.last, w.last_moments);
        let top = of_down(decoder.layers.len() - 1);
        self.norm_backward(extent, last, NormPlace::Final, (0, 0), top)?;
        for index in (0..decoder.layers.len()).rev() {
            let kept = w.layers[index];
            self.feed_backward(index, extent, &kept)?;
            let middle = (kept.middle, kept.middle_moments);
            let place = NormPlace::Feed(index);
            self.norm_backward(extent, middle, place, of_down(index), of_output(index))?;
            // Below the first layer only an embedding is trained.
            let further = index > 0 || self.embedding.is_some();
            self.attention_backward(index, extent, &kept, further)?;
            if further {
                let before = (kept.before, kept.before_moments);
                let to = if index > 0 { of_down(index - 1) } else { (w.dx, 0) };
                let place = NormPlace::Attention(index);
                self.norm_backward(extent, before, place, of_output(index), to)?;
            }
            self.whole_layer(index, extent, &kept)?;
        }
        Ok(())
    }

    /// The stream's gradient below a norm of `of` (x, moments), given `d_normed` and what the gradient
    /// was above, `from`; into `to`, which may be `dx`.
    fn norm_backward(
        &self,
        extent: Extent,
        of: (u64, u64),
        place: NormPlace,
        from: (u64, usize),
        to: (u64, usize),
    ) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        self.whole_norm(extent, of, place)?;
        let norm = match place {
            NormPlace::Final => &decoder.final_norm,
            NormPlace::Feed(index) => &decoder.layers[index].feed_norm,
            NormPlace::Attention(index) => &decoder.layers[index].attention_norm,
        };
        // What an embedding's rows are made of is f32.
        let (stored, whole) = if to.0 == w.dx { (0, w.dx) } else { (to.0, 0) };
        decoder.context.by_rows(
            "norm_backward",
            extent.rows(),
            &[
                Address(stored),
                Address(whole),
                Address(from.0),
                Address(of.0),
                Address(of.1),
                Address(w.d_normed),
                Address(norm.weight.address()),
                Int(extent.rows() as i32),
                Int(to.1 as i32),
                Int(from.1 as i32),
                Int(decoder.norm().1),
            ],
        )
    }

    /// dx = dy [weight; downs], all rows.
    pub(super) fn backward_product(
        &self,
        rows: usize,
        (index, map): (usize, Map),
        dy: u64,
        dx: Matrix,
    ) -> Product {
        let own = self.map(index, map);
        Product {
            out: dx,
            left: self.decoder.context.matrix(dy, own.output_leading),
            right: own.weight,
            extents: (rows, own.inputs, own.outputs + own.ranks),
            count: 1,
            scale: 1.0,
            accumulate: false,
        }
    }

    /// Every example's gradients of a map's adapters, and the gradient of its input, where that is
    /// wanted.
    fn linear_backward(
        &self,
        extent: Extent,
        at: (usize, Map),
        (x, dy): (u64, u64),
        dx: Option<Matrix>,
        finish: Option<Finish>,
    ) -> Result<(), LanguageError> {
        self.pass(extent).backward(at, &self.map(at.0, at.1), x, dy)?;
        let Some(dx) = dx else { return Ok(()) };
        let product = self.backward_product(extent.rows(), at, dy, dx);
        self.decoder.context.finish(&product, finish).map(drop)
    }

    fn feed_backward(
        &self,
        index: usize,
        extent: Extent,
        kept: &Kept,
    ) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (a, context) = (&decoder.architecture, &decoder.context);
        let (rows, slopes) = (extent.rows(), w.slopes[index]);
        let leading = self.map(index, Map::Feed).output_leading;
        let d_feed = context.matrix(slopes.feed, leading);
        let at = (index, Map::Down);
        let of = (kept.active, slopes.down);
        let values = [Address(kept.feed), Address(self.bias(index, Map::Feed))];
        let sizes = [Long(rows as u64), Int(leading as i32)];
        let count = rows * a.hidden / 4;
        match a.activation {
            Activation::GeluTanh if self.gelu_finishes(index, rows) => {
                let finish = Finish::GeluSlope { of: context.matrix(kept.feed, a.hidden) };
                self.linear_backward(extent, at, of, Some(d_feed), Some(finish))?;
            }
            Activation::GeluTanh => {
                self.linear_backward(extent, at, of, Some(d_feed), None)?;
                let values = [&[Address(slopes.feed)], &values[..], &sizes].concat();
                context.striding("gelu_backward", count, &values)?;
            }
            Activation::SwiGlu => {
                let d_active = context.matrix(w.d_active, a.hidden);
                self.linear_backward(extent, at, of, Some(d_active), None)?;
                let own = [Address(slopes.feed), Address(w.d_active)];
                context.striding(
                    "swiglu_backward",
                    count,
                    &[&own, &values[..], &sizes].concat(),
                )?;
            }
        }
        let d_normed = context.matrix(w.d_normed, a.width);
        let of = (kept.feed_input, slopes.feed);
        self.linear_backward(extent, (index, Map::Feed), of, Some(d_normed), None)
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
        let (rows, slopes) = (extent.rows(), w.slopes[index]);
        let d_mixed = context.matrix(w.d_mixed, a.query_width());
        let of = (kept.mixed, slopes.output);
        self.linear_backward(extent, (index, Map::Output), of, Some(d_mixed), None)?;
        if context.tiled {
            self.attend_back_tiled(index, extent, kept)?;
        } else {
            self.attend_back(index, extent, kept)?;
        }
        if !context.tiled || decoder.pairs() != 0 {
            let mut values = vec![Address(slopes.joint), Address(w.d_queries), Address(w.d_keys)];
            values.push(Address(w.d_values));
            values.push(Address(optional(w.angles.as_ref())));
            values.push(Int(self.map(index, Map::Joint).output_leading as i32));
            values.extend(self.head_values(extent));
            context.striding("join_heads", rows * decoder.joint_width() / 4, &values)?;
        }
        let of = (kept.attention_input, slopes.joint);
        let d_normed = further.then(|| context.matrix(w.d_normed, a.width));
        self.linear_backward(extent, (index, Map::Joint), of, d_normed, None)
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
            (addresses, self.map(index, Map::Joint).output_leading)
        } else {
            ([w.d_queries, w.d_keys, w.d_values], 0)
        };
        let read = [kept.queries, kept.keys, kept.values].map(Address);
        let leading = self.map(index, Map::Output).input_leading;
        let sizes = |all: &[usize]| all.iter().map(|size| Int(*size as i32)).collect::<Vec<_>>();
        let shape = sizes(&[columns, extent.length, a.heads, a.key_heads]);
        let scale = [Float(1.0 / (a.head_width as f32).sqrt())];
        let tiles = extent.length.div_ceil(TILE);
        let own = [to[0], w.deltas, w.d_mixed, kept.mixed, kept.logs].map(Address);
        let apart = sizes(&[w.columns, leading]);
        let values = [&own[..], &read, &apart, &shape, &scale].concat();
        context.bounded(
            "attention_queries",
            (extent.sequences * a.heads * tiles, 1),
            0,
            &values,
        )?;
        let own = [to[1], to[2], w.d_mixed, kept.logs, w.deltas].map(Address);
        let apart = sizes(&[w.columns]);
        let values = [&own[..], &read, &apart, &shape, &scale].concat();
        context.bounded("attention_keys", (extent.sequences * a.key_heads * tiles, 1), 0, &values)
    }

    /// The same by products of whole matrices, heads first.
    fn attend_back(&self, index: usize, extent: Extent, kept: &Kept) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (a, context) = (&decoder.architecture, &decoder.context);
        let rows = extent.rows();
        self.merge(index, w.headed, w.d_mixed, extent, true)?;
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
