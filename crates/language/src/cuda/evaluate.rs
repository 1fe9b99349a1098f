//! A decoder with its adapters on a device: losses of texts, and continuations of prompts.

use super::adapters::{Matrices, Places};
use super::context::failed;
use super::embedding::TrainedEmbedding;
use super::growing::Growing;
use super::head::Learnt;
use super::weights::CudaDecoder;
use super::whole::Whole;
use super::workspace::{Extent, PLACES, Room, Use, Workspace};
use crate::LanguageError;
use crate::finetune::{Example, Layout, Scope};
use crate::model::Decoder;
use std::sync::Arc;
use training::cuda::Buffer;

/// Frozen weights, adapters, and room to run them.
pub struct CudaModel {
    pub(super) decoder: Arc<CudaDecoder>,
    pub(super) places: Places,
    /// Weights with adapters beside them, as activations are stored.
    pub(super) matrices: Matrices,
    /// In place of the frozen one.
    pub(super) embedding: Option<TrainedEmbedding>,
    /// Where everything is trained.
    pub(super) whole: Option<Whole>,
    /// Keys and values of texts that are being continued.
    pub(super) growing: Option<Growing>,
    pub(super) workspace: Workspace,
    pub(super) tokens: Buffer<u32>,
    pub(super) learnt: Learnt,
}

impl Drop for CudaModel {
    fn drop(&mut self) {
        self.workspace.give_back(&self.decoder);
    }
}

/// What a pass says about each example.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) loss: f64,
    /// Whether every learnt token is among the most likely ones.
    pub(super) correct: bool,
}

impl CudaModel {
    /// Makes room for sequences of at most `length` tokens; `host` has the adapters.
    ///
    /// # Errors
    /// A decoder of another shape, memory that ran out, or what the driver says.
    pub fn new(
        decoder: &Arc<CudaDecoder>,
        host: &Decoder,
        length: usize,
    ) -> Result<Self, LanguageError> {
        Self::with(decoder, host, length, Use::Measuring)
    }

    pub(super) fn with(
        decoder: &Arc<CudaDecoder>,
        host: &Decoder,
        length: usize,
        purpose: Use,
    ) -> Result<Self, LanguageError> {
        if host.architecture != decoder.architecture {
            return Err(LanguageError::InvalidInput(
                "the decoder on the device has another shape".into(),
            ));
        }
        let context = &decoder.context;
        context.device.bind().map_err(failed)?;
        let layout = Layout::new(host, Scope::Adapters { embedding: false });
        let places = Places::new(host, &layout);
        let matrices = Matrices::new(&context.device, &places, context.bytes())?;
        let workspace = Workspace::new(decoder, &places, length, purpose)?;
        let rows = workspace.rows;
        let model = Self {
            decoder: Arc::clone(decoder),
            places,
            matrices,
            embedding: None,
            whole: None,
            growing: None,
            workspace,
            tokens: context.device.zeros(rows).map_err(failed)?,
            learnt: Learnt::new(&context.device, rows)?,
        };
        model.put_weights()?;
        let numbers = context.device.upload(&layout.parameters(host)).map_err(failed)?;
        model.put_adapters(numbers.address())?;
        context.device.finish().map_err(failed)?;
        Ok(model)
    }

    pub(super) fn room(&self) -> Room {
        self.workspace.room.expect("a workspace has room")
    }

    /// Cuts sequences, sorted by length, into micro-batches that fit; the numbers of each.
    pub(super) fn micro_batches(&self, lengths: &[usize]) -> Vec<(std::ops::Range<usize>, Extent)> {
        let room = self.room();
        let mut found = Vec::new();
        let mut start = 0;
        while start < lengths.len() {
            let padded = |at: usize| lengths[at].next_multiple_of(PLACES);
            let mut end = start + 1;
            while end < lengths.len()
                && end - start < room.sequences
                && (end + 1 - start) * padded(end) <= room.rows
            {
                end += 1;
            }
            let extent = Extent { sequences: end - start, length: padded(end - 1) };
            found.push((start..end, extent));
            start = end;
        }
        found
    }

    /// Puts a micro-batch's tokens onto the device, padded with zeros.
    pub(super) fn put_tokens<'a>(
        &mut self,
        sequences: impl Iterator<Item = &'a [u32]>,
        extent: Extent,
    ) -> Result<(), LanguageError> {
        let vocabulary = self.decoder.architecture.vocabulary;
        let mut tokens = Vec::with_capacity(extent.rows());
        for (number, sequence) in sequences.enumerate() {
            if let Some(token) = sequence.iter().find(|token| **token as usize >= vocabulary) {
                return Err(LanguageError::InvalidInput(format!(
                    "token {token} is outside the vocabulary of {vocabulary}"
                )));
            }
            let most = self.decoder.architecture.context;
            if sequence.len() > most || sequence.len() > extent.length {
                return Err(LanguageError::InvalidInput(format!(
                    "{} tokens do not fit into a context of {most}",
                    sequence.len()
                )));
            }
            tokens.extend_from_slice(sequence);
            tokens.resize((number + 1) * extent.length, 0);
        }
        self.decoder.context.device.write(&mut self.tokens, &tokens).map_err(failed)
    }

    /// The mean loss of every example's learnt tokens.
    ///
    /// # Errors
    /// Examples without anything to learn or too long, or what the driver says.
    pub fn losses(&mut self, examples: &[&Example]) -> Result<Vec<f64>, LanguageError> {
        self.decoder.context.device.bind().map_err(failed)?;
        let mut order: Vec<usize> = (0..examples.len()).collect();
        order.sort_by_key(|i| examples[*i].tokens.len());
        let sorted: Vec<&Example> = order.iter().map(|i| examples[*i]).collect();
        let lengths: Vec<usize> = sorted.iter().map(|example| example.tokens.len()).collect();
        let mut found = vec![0.0; examples.len()];
        for (range, extent) in self.micro_batches(&lengths) {
            let part = &sorted[range.clone()];
            self.put_tokens(part.iter().map(|example| &example.tokens[..]), extent)?;
            let learnt = self.put_learnt(part, extent, false)?;
            self.forward(extent)?;
            self.head(&learnt, extent, false)?;
            let answers = self.answers(part, &learnt)?;
            for (at, answer) in order[range].iter().zip(answers) {
                found[*at] = answer.loss;
            }
        }
        Ok(found)
    }
}
