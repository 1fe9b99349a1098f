//! The sum of clipped gradients on the device.

use super::context::failed;
use super::evaluate::{Answer, CudaModel};
use super::head::Learning;
use super::whole::BLOCKS;
use super::workspace::PARTS;
use crate::LanguageError;
use crate::finetune::Example;
use std::ops::Range;
use training::cuda::Buffer;
use training::cuda::compute::Value::{Address, Double, Int, Long};

/// Norms and factors of one micro-batch.
pub(super) struct Clipping {
    norms: Buffer<f64>,
    factors: Buffer<f32>,
}

impl Clipping {
    pub(super) fn new(model: &CudaModel) -> Result<Self, LanguageError> {
        let device = &model.decoder.context.device;
        let sequences = model.room().sequences;
        Ok(Self {
            norms: device.zeros(sequences).map_err(failed)?,
            factors: device.zeros(sequences).map_err(failed)?,
        })
    }
}

/// What examples gave: answers and norms in their order, and those of the last micro-batch while they
/// are on the device.
#[derive(Default)]
pub(super) struct Found {
    pub(super) answers: Vec<Answer>,
    pub(super) norms: Vec<f64>,
    there: Option<(Range<usize>, Learning)>,
}

impl CudaModel {
    /// Adds up the gradients of examples (sorted by length), each clipped to `clip`, into `out`, a
    /// trained embedding first. [`CudaModel::fetch`] completes what they gave: what follows on the
    /// device need not wait for it.
    pub(super) fn clipped_sum(
        &mut self,
        clipping: &Clipping,
        examples: &[&Example],
        clip: f64,
        out: u64,
    ) -> Result<Found, LanguageError> {
        let lengths: Vec<usize> = examples.iter().map(|example| example.tokens.len()).collect();
        let mut found = Found::default();
        let mut again = false;
        for (range, extent) in self.micro_batches(&lengths) {
            self.fetch(clipping, examples, &mut found)?;
            let part = &examples[range.clone()];
            self.put_tokens(part.iter().map(|example| &example.tokens[..]), extent)?;
            let learnt = self.put_learnt(part, extent, true)?;
            self.forward(extent)?;
            self.head(&learnt, extent, true)?;
            self.backward(extent)?;
            self.embedding_squares(extent)?;
            self.clip(clipping, part.len(), clip)?;
            self.add(clipping, part.len(), again)?;
            self.add_embedding(part, extent, clipping.factors.address(), out, again)?;
            self.add_whole(extent, clipping.factors.address(), out, again)?;
            again = true;
            found.there = Some((range, learnt));
        }
        if !again {
            self.add(clipping, 0, false)?;
            self.clear_embedding(out)?;
            self.clear_whole(out)?;
        }
        if self.whole.is_some() {
            self.take_vectors(out)?;
            return Ok(found);
        }
        let adapters = out + 4 * self.embedding_size() as u64;
        let values = [adapters, self.matrices.take.address(), self.workspace.sum].map(Address);
        self.decoder.context.start("take_parts", (BLOCKS, self.matrices.count), &values)?;
        Ok(found)
    }

    /// Reads what the last micro-batch of `examples` gave.
    pub(super) fn fetch(
        &self,
        clipping: &Clipping,
        examples: &[&Example],
        found: &mut Found,
    ) -> Result<(), LanguageError> {
        let Some((range, learnt)) = found.there.take() else { return Ok(()) };
        let part = &examples[range];
        found.answers.extend(self.answers(part, &learnt)?);
        let device = &self.decoder.context.device;
        found.norms.extend(device.read(&clipping.norms, part.len()).map_err(failed)?);
        Ok(())
    }

    fn clip(&self, clipping: &Clipping, examples: usize, clip: f64) -> Result<(), LanguageError> {
        let (context, w) = (&self.decoder.context, &self.workspace);
        let parts = [Address(w.parts), Address(w.gradients), Long(self.vector_size() as u64)];
        context.start("square_parts", (PARTS, examples), &parts)?;
        let (more, unit) = self.embedding.as_ref().map_or((0, 0.0), |own| own.found());
        context.striding(
            "clip_factors",
            examples,
            &[
                Address(clipping.factors.address()),
                Address(clipping.norms.address()),
                Address(w.parts),
                Address(more),
                Int(examples as i32),
                Int(PARTS as i32),
                Double(clip),
                Double(unit),
            ],
        )
    }

    fn add(&self, clipping: &Clipping, examples: usize, again: bool) -> Result<(), LanguageError> {
        let w = &self.workspace;
        self.decoder.context.striding(
            "clipped_sum",
            self.vector_size(),
            &[
                Address(w.sum),
                Address(w.gradients),
                Address(clipping.factors.address()),
                Int(examples as i32),
                Long(self.vector_size() as u64),
                Int(i32::from(again)),
            ],
        )
    }
}
