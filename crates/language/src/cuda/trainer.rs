//! Steps of DP-SGD and DP-Adam on a device: those of [`crate::finetune::Trainer`], to rounding.

use super::context::failed;
use super::embedding::TrainedEmbedding;
use super::evaluate::CudaModel;
use super::gradients::Clipping;
use super::weights::CudaDecoder;
use super::whole::Whole;
use super::workspace::Use;
use crate::LanguageError;
use crate::finetune::{Example, Layout, Recipe, Scope, split};
use crate::model::Decoder;
use random::{Purpose, Stream};
use std::sync::Arc;
use training::cuda::compute::Trained;
use training::sampler::{Batch, Sampler, Way, drawn};
use training::{OptimizerState, ReplicaState, StepStatistics};

/// A training under way on a device: of adapters, perhaps of the embedding, or of everything.
pub struct CudaTrainer<'a> {
    pub model: CudaModel,
    decoder: &'a mut Decoder,
    examples: &'a [Example],
    recipe: Recipe,
    layout: Layout,
    trained: Trained,
    clipping: Clipping,
    state: ReplicaState,
    sampler: Sampler,
    step: u64,
    evidence: Vec<f64>,
}

impl<'a> CudaTrainer<'a> {
    /// `frozen` are the weights of `decoder`; a training of everything changes them, so that they
    /// have to be its own. `longest` is the most tokens that a text to be measured has besides the
    /// examples.
    ///
    /// # Errors
    /// An embedding to train that is not the head, adapters beside a whole model, no examples, an
    /// optimiser out of range, memory that ran out.
    pub fn new(
        frozen: &Arc<CudaDecoder>,
        decoder: &'a mut Decoder,
        examples: &'a [Example],
        recipe: Recipe,
        longest: usize,
    ) -> Result<Self, LanguageError> {
        let invalid = |message: &str| Err(LanguageError::InvalidInput(message.into()));
        let full = recipe.scope == Scope::Full;
        let embedding = full || recipe.scope == Scope::Adapters { embedding: true };
        if embedding && decoder.head.is_some() {
            return invalid(
                "this model has a head beside its embedding, which are not trained on an NVIDIA \
                 device: train adapters without `embedding`, or use --device cpu",
            );
        }
        let adapters = Layout::new(decoder, Scope::Adapters { embedding: false }).size;
        if full && adapters > 0 {
            return invalid("a whole model is trained without adapters");
        }
        let layout = Layout::new(decoder, recipe.scope);
        if layout.size == 0 {
            return invalid("nothing of the model is to be trained");
        }
        if examples.is_empty() {
            return invalid("there are no examples");
        }
        recipe.optimizer.check().map_err(LanguageError::InvalidInput)?;
        drawn(&recipe.run, examples.len()).map_err(LanguageError::InvalidInput)?;
        let state = ReplicaState {
            parameters: layout.parameters(decoder),
            optimizer: OptimizerState::new(&recipe.optimizer, layout.size),
        };
        let most = examples.iter().map(|example| example.tokens.len()).max().unwrap_or(1);
        let whole = full.then(|| Whole::vector_size(decoder, &layout));
        let purpose = Use::Training { embedding, whole };
        let mut model = CudaModel::with(frozen, decoder, most.max(longest), purpose)?;
        let stream = Stream::new(recipe.seed, Purpose::NOISE, 0);
        let trained = Trained::new(&frozen.context.device, &state, &stream).map_err(failed)?;
        if embedding {
            let pieces = if full { Whole::pieces(decoder) } else { 1 };
            model.embedding = Some(TrainedEmbedding::new(&model, trained.parameters(), pieces)?);
            model.put_head()?;
        }
        if full {
            model.whole = Some(Whole::new(frozen, decoder, &layout)?);
        }
        let clipping = Clipping::new(&model)?;
        let sampler = Sampler::new(recipe.seed, 0, recipe.records(examples.len()));
        Ok(Self {
            model,
            decoder,
            examples,
            recipe,
            layout,
            trained,
            clipping,
            state,
            sampler,
            step: 0,
            evidence: Vec::new(),
        })
    }

    /// Takes one step.
    ///
    /// # Errors
    /// Examples that make no sense, or what the driver says.
    pub fn step(&mut self) -> Result<StepStatistics, LanguageError> {
        let frozen = Arc::clone(&self.model.decoder);
        let device = &frozen.context.device;
        device.bind().map_err(failed)?;
        let phase = self.recipe.phase(self.step);
        let run = &self.recipe.run;
        let mut batch = Batch::default();
        self.sampler.draw_row(&Way::of(run, self.step), self.step, None, &mut batch);
        let (mut members, drawn) = split(&batch, self.examples);
        members.sort_by_key(|example| example.tokens.len());
        let clip = run.clip_norm();
        let sum = self.trained.sum.address();
        let mut found = self.model.clipped_sum(&self.clipping, &members, clip, sum)?;
        if let Some(canaries) = &self.recipe.canaries {
            let mut sum = device.read(&self.trained.sum, self.layout.size).map_err(failed)?;
            let stream = Stream::new(self.recipe.seed, Purpose::NOISE, 0);
            canaries.insert(drawn, clip, &mut sum);
            canaries.watch(&sum, (&stream, self.step), &phase, clip, &mut self.evidence);
            device.write(&mut self.trained.sum, &sum).map_err(failed)?;
        }
        let public = run.dataset_size().map_or(self.examples.len() as f64, |size| size as f64);
        let share = run.drawing().share(phase.sample_rate);
        let noise = (phase.noise_multiplier * clip, share * public);
        self.trained.update(device, &self.recipe.optimizer, self.step, noise).map_err(failed)?;
        self.put_trained()?;
        self.model.fetch(&self.clipping, &members, &mut found)?;
        let (answers, norms) = (found.answers, found.norms);
        self.step += 1;
        Ok(StepStatistics {
            batch_size: members.len(),
            loss_sum: answers.iter().map(|answer| answer.loss).sum(),
            correct: answers.iter().filter(|answer| answer.correct).count(),
            clipped: norms.iter().filter(|norm| !(**norm <= clip)).count(),
            norms,
        })
    }

    /// The trained numbers as products read them.
    fn put_trained(&self) -> Result<(), LanguageError> {
        self.model.put_head()?;
        if self.model.whole.is_some() {
            return self.model.put_whole(self.trained.parameters());
        }
        let from = self.trained.parameters() + 4 * self.model.embedding_size() as u64;
        self.model.put_adapters(from)
    }

    /// Steps taken.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// What gradient canaries gathered of all iterates.
    pub fn evidence(&self) -> &[f64] {
        &self.evidence
    }

    /// What has to be saved to go on as if nothing had happened.
    ///
    /// # Errors
    /// What the driver says.
    pub fn state(&mut self) -> Result<&ReplicaState, LanguageError> {
        let device = &self.model.decoder.context.device;
        self.trained.read(device, &mut self.state).map_err(failed)?;
        Ok(&self.state)
    }

    /// Goes back to a saved state after `steps` steps.
    ///
    /// # Errors
    /// `InvalidInput` for the state of another training.
    pub fn restore(&mut self, steps: u64, state: ReplicaState) -> Result<(), LanguageError> {
        crate::finetune::check_state(&state, self.layout.size, &self.recipe.optimizer)?;
        self.trained.write(&self.model.decoder.context.device, &state).map_err(failed)?;
        self.put_trained()?;
        (self.state, self.step) = (state, steps);
        Ok(())
    }

    /// Puts what was trained into the decoder that was given, and hands out the model on the
    /// device.
    ///
    /// # Errors
    /// What the driver says.
    pub fn finish(mut self) -> Result<CudaModel, LanguageError> {
        let parameters = self.state()?.parameters.clone();
        self.layout.set(self.decoder, &parameters);
        self.model.keep_embedding(self.decoder)?;
        Ok(self.model)
    }
}
