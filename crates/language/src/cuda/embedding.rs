//! A trained embedding that is the head too: its gradient's norm for every example, and the sum.
//!
//! Gradients of vocabulary x width numbers are never formed one by one. Norms are ghosts (Li et al.
//! 2022, section 4): inner products of residuals and of states, as on the CPU in
//! [`crate::finetune`]. The sum is one product over the micro-batch whose states are multiplied by
//! their example's factor, and the embedded tokens' rows added in a fixed order.
//!
//! Products round scaled states once more than the norm knows: by u |h_s| at most, which moves the
//! gradient by at most u sum_s |p_s||h_s| = u S. u S is added to the norm, so that no example counts
//! more than the clip norm, whatever the precision.
//!
//! Cost beside adapters alone: logits of all places, not only of learnt ones, their inner products
//! (places x length x vocabulary), and one more product of that size; 6 bytes a logit of memory.

use super::context::{Precision, failed};
use super::evaluate::CudaModel;
use super::workspace::Extent;
use crate::LanguageError;
use crate::finetune::Example;
use crate::model::Decoder;
use training::cuda::Buffer;
use training::cuda::compute::Value::{Address, Int, Long};
use training::cuda::compute::{Matrix, Product, Store};

/// Parts in which a ghost is summed.
pub(super) const GHOST_PARTS: usize = 8;

/// Numbers in place of the frozen embedding, and what their gradient needs.
pub(super) struct TrainedEmbedding {
    /// vocabulary x width in f32: the trained numbers while they are trained, then `kept`.
    address: u64,
    kept: Option<Buffer<f32>>,
    /// The same as products read it, padded.
    head: Buffer<u8>,
    /// For each example (square, S), and what they are made of: see `gradients.cu`.
    squares: Buffer<f64>,
    pub(super) partials: Buffer<f64>,
    /// The embedding is the first; a whole model has more.
    pub(super) pieces: usize,
    /// Share by which scaled states may be rounded.
    unit: f64,
    /// Tokens of a micro-batch, where their places begin, and the places.
    tokens: Buffer<i32>,
    starts: Buffer<i32>,
    places: Buffer<i32>,
}

impl TrainedEmbedding {
    /// The embedding whose numbers are at `address`.
    pub(super) fn new(
        model: &CudaModel,
        address: u64,
        pieces: usize,
    ) -> Result<Self, LanguageError> {
        let decoder = &model.decoder;
        let device = &decoder.context.device;
        let (rows, sequences) = (model.workspace.rows, model.room().sequences);
        let size = decoder.logits_width() * decoder.architecture.width * decoder.context.bytes();
        Ok(Self {
            address,
            kept: None,
            head: device.zeros(size).map_err(failed)?,
            squares: device.zeros(2 * sequences).map_err(failed)?,
            partials: device.zeros(3 * GHOST_PARTS * pieces * sequences).map_err(failed)?,
            pieces,
            unit: decoder.context.precision.rounding(),
            tokens: device.zeros(rows).map_err(failed)?,
            starts: device.zeros(rows + 1).map_err(failed)?,
            places: device.zeros(rows).map_err(failed)?,
        })
    }

    /// Where squares and sizes are, and the share of the sizes that counts.
    pub(super) fn found(&self) -> (u64, f64) {
        (self.squares.address(), self.unit)
    }
}

impl Precision {
    /// By what share a number may change when a product reads it: nearly nothing in f32, half of the
    /// last of 8 bits in bf16; TF32 cuts 13 of 24 bits, before scaling and after it.
    fn rounding(self) -> f64 {
        match self {
            Self::Float32 => 1.0 / f64::from(1 << 23),
            Self::TensorFloat32 | Self::BFloat16 => 1.01 / 512.0,
        }
    }
}

impl CudaModel {
    /// Where the embedding is.
    pub(super) fn embedding_address(&self) -> u64 {
        self.embedding.as_ref().map_or(self.decoder.embedding.address(), |own| own.address)
    }

    /// Where the head is, padded.
    pub(super) fn head_address(&self) -> u64 {
        self.embedding.as_ref().map_or(self.decoder.head.address(), |own| own.head.address())
    }

    /// Trained numbers before the adapters'.
    pub(super) fn embedding_size(&self) -> usize {
        let a = &self.decoder.architecture;
        if self.embedding.is_some() { a.vocabulary * a.width } else { 0 }
    }

    /// Makes the head what the embedding is.
    pub(super) fn put_head(&self) -> Result<(), LanguageError> {
        let Some(own) = &self.embedding else { return Ok(()) };
        self.decoder.context.convert(own.head.address(), own.address, self.embedding_size())
    }

    /// After a training: the embedding of `host`, in memory of its own.
    pub(super) fn keep_embedding(&mut self, host: &Decoder) -> Result<(), LanguageError> {
        if let Some(own) = &mut self.embedding {
            let device = &self.decoder.context.device;
            let kept = device.upload(&host.embedding).map_err(failed)?;
            own.address = kept.address();
            own.kept = Some(kept);
        }
        Ok(())
    }

    /// Squared norms of the embedding's gradient, after a pass forward and back.
    pub(super) fn embedding_squares(&self, extent: Extent) -> Result<(), LanguageError> {
        let Some(own) = &self.embedding else { return Ok(()) };
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (context, width) = (&decoder.context, decoder.architecture.width);
        let Extent { sequences, length } = extent;
        let padded = decoder.logits_width();
        let square = |out: u64, left: Matrix, right: Matrix, numbers: usize| Product {
            out: Matrix::new(out, length, Store::Float32).every(length * length),
            left: left.every(length * numbers),
            right: right.every(length * numbers).transposed(),
            extents: (length, length, numbers),
            count: sequences,
            scale: 1.0,
            accumulate: false,
        };
        let residuals = context.matrix(w.d_logits, padded);
        context.multiply(&square(w.residual_products, residuals, residuals, padded))?;
        let states = context.matrix(w.picked, width);
        context.multiply(&square(w.state_products, states, states, width))?;
        if w.wide_states != w.picked {
            let count = extent.rows() * width;
            let values = [Address(w.wide_states), Address(w.picked), Long(count as u64)];
            context.striding("widen", count, &values)?;
        }
        // What the embedded tokens add is summed as it is: in f32, whatever the precision.
        let wide = Matrix::new(w.wide_states, width, Store::Float32);
        let dx = Matrix::new(w.dx, width, Store::Float32);
        for (out, right) in [(w.row_products, dx), (w.cross_products, wide)] {
            context.device.multiply(&square(out, dx, right, width), false).map_err(failed)?;
        }
        context.start(
            "embedding_ghost",
            (GHOST_PARTS, sequences),
            &[
                Address(own.partials.address()),
                Address(w.residual_products),
                Address(w.state_products),
                Address(w.row_products),
                Address(w.cross_products),
                Address(w.d_logits),
                Address(self.tokens.address()),
                Int(0),
                Int(own.pieces as i32),
                Int(length as i32),
                Int(padded as i32),
            ],
        )?;
        self.whole_positions(extent)?;
        context.by_rows(
            "ghost_total",
            sequences,
            &[
                Address(own.squares.address()),
                Address(own.partials.address()),
                Int(sequences as i32),
                Int(own.pieces as i32),
                Int(GHOST_PARTS as i32),
            ],
        )
    }

    /// Adds the micro-batch's clipped gradients of the embedding to `out` (`again`), or puts them
    /// there.
    pub(super) fn add_embedding(
        &mut self,
        examples: &[&Example],
        extent: Extent,
        factors: u64,
        out: u64,
        again: bool,
    ) -> Result<(), LanguageError> {
        if self.embedding.is_none() {
            return Ok(());
        }
        let count = self.put_order(examples, extent)?;
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (context, a) = (&decoder.context, &decoder.architecture);
        let padded = decoder.logits_width();
        let sizes = [Int(extent.length as i32), Int(a.width as i32), Int(padded as i32)];
        let values = [Address(w.picked), Address(w.d_logits), Address(factors)];
        context.start("scale_rows", (extent.rows(), 1), &[&values[..], &sizes].concat())?;
        context.multiply(&Product {
            out: Matrix::new(out, a.width, Store::Float32),
            left: context.matrix(w.d_logits, padded).transposed(),
            right: context.matrix(w.picked, a.width),
            extents: (a.vocabulary, a.width, extent.rows()),
            count: 1,
            scale: 1.0,
            accumulate: again,
        })?;
        let Some(own) = &self.embedding else { return Ok(()) };
        context.by_rows(
            "embedding_rows",
            count,
            &[
                Address(out),
                Address(w.dx),
                Address(factors),
                Address(own.tokens.address()),
                Address(own.starts.address()),
                Address(own.places.address()),
                Int(count as i32),
                Int(extent.length as i32),
                Int(a.width as i32),
            ],
        )
    }

    /// The sum of no examples.
    pub(super) fn clear_embedding(&self, out: u64) -> Result<(), LanguageError> {
        let size = self.embedding_size();
        if size == 0 {
            return Ok(());
        }
        self.decoder.context.striding("clear", size, &[Address(out), Long(size as u64)])
    }

    /// The tokens of a micro-batch in order, each with its places in order; how many there are.
    fn put_order(&mut self, examples: &[&Example], extent: Extent) -> Result<usize, LanguageError> {
        let mut found: Vec<(i32, i32)> = Vec::with_capacity(extent.rows());
        for (number, example) in examples.iter().enumerate() {
            let first = number * extent.length;
            let places = example.tokens.iter().enumerate();
            found.extend(places.map(|(place, token)| (*token as i32, (first + place) as i32)));
        }
        found.sort_unstable();
        let places: Vec<i32> = found.iter().map(|(_, place)| *place).collect();
        let (mut tokens, mut starts) = (Vec::new(), Vec::new());
        for (at, (token, _)) in found.iter().enumerate() {
            if tokens.last() != Some(token) {
                tokens.push(*token);
                starts.push(at as i32);
            }
        }
        starts.push(found.len() as i32);
        let device = &self.decoder.context.device;
        let Some(own) = &mut self.embedding else { return Ok(0) };
        device.write(&mut own.tokens, &tokens).map_err(failed)?;
        device.write(&mut own.starts, &starts).map_err(failed)?;
        device.write(&mut own.places, &places).map_err(failed)?;
        Ok(tokens.len())
    }
}
