//! Steps of DP-SGD and DP-Adam, with the sampler and the optimisers of the crate `training`.

use super::gradients::{Clipped, Example, clipped_sum_packed};
use super::layout::{Layout, Scope};
use crate::LanguageError;
use crate::model::{Decoder, Packed};
use random::{Purpose, Stream};
use rayon::prelude::*;
use training::cpu::update::{Noise, Update};
use training::sampler::{Batch, Sampler};
use training::{OptimizerDescription, OptimizerState, ReplicaState, StepStatistics};
use vocabulary::{Phase, Run};

/// Numbers of gradients that may be held at a time beside the sum.
const WAVE: usize = 1 << 22;

/// How a decoder is trained.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub run: Run,
    pub optimizer: OptimizerDescription,
    pub scope: Scope,
    /// Examples whose gradients are formed together; changes memory and rounding only.
    pub micro_batch: usize,
    pub seed: u64,
}

impl Recipe {
    pub(crate) fn phase(&self, step: u64) -> Phase {
        let mut first = 0;
        for phase in self.run.phases() {
            first += phase.steps;
            if step < first {
                return *phase;
            }
        }
        *self.run.phases().last().expect("a run has phases")
    }
}

/// A training under way.
pub struct Trainer<'a> {
    pub decoder: &'a mut Decoder,
    examples: &'a [Example],
    recipe: Recipe,
    pub layout: Layout,
    /// Of the weights that stay as they are.
    packed: Option<Packed>,
    state: ReplicaState,
    sampler: Sampler,
    step: u64,
}

impl<'a> Trainer<'a> {
    /// # Errors
    /// `InvalidInput` without examples, without anything to train, or for an optimiser out of range.
    pub fn new(
        decoder: &'a mut Decoder,
        examples: &'a [Example],
        recipe: Recipe,
    ) -> Result<Self, LanguageError> {
        let invalid = |message: &str| Err(LanguageError::InvalidInput(message.into()));
        let layout = Layout::new(decoder, recipe.scope);
        if layout.size == 0 {
            return invalid("nothing of the model is to be trained");
        }
        if examples.is_empty() || recipe.micro_batch == 0 {
            return invalid("there are no examples, or no room for one");
        }
        recipe.optimizer.check().map_err(LanguageError::InvalidInput)?;
        let state = ReplicaState {
            parameters: layout.parameters(decoder),
            optimizer: OptimizerState::new(&recipe.optimizer, layout.size),
        };
        let packed = match recipe.scope {
            Scope::Adapters { embedding } => Some(Packed::new(decoder, !embedding)),
            Scope::Full => None,
        };
        keep_memory();
        let sampler = Sampler::new(recipe.seed, 0, examples.len());
        Ok(Self { decoder, examples, recipe, layout, packed, state, sampler, step: 0 })
    }

    /// Takes one step.
    ///
    /// # Errors
    /// Those of the decoder.
    pub fn step(&mut self) -> Result<StepStatistics, LanguageError> {
        let phase = self.recipe.phase(self.step);
        let run = &self.recipe.run;
        let mut batch = Batch::default();
        self.sampler.draw_row(run.sampling(), phase.sample_rate, self.step, None, &mut batch);
        let mut members: Vec<&Example> =
            batch.records.iter().map(|record| &self.examples[*record as usize]).collect();
        // Examples of like length together: less padding.
        members.sort_by_key(|example| example.tokens.len());
        let parts: Vec<&[&Example]> = members.chunks(self.recipe.micro_batch).collect();
        let wave = (WAVE / self.layout.size).clamp(1, 64);
        let mut sum = vec![0.0_f64; self.layout.size];
        let mut statistics = StepStatistics { batch_size: members.len(), ..Default::default() };
        let clip = run.clip_norm();
        for parts in parts.chunks(wave) {
            let found: Vec<Result<Clipped, LanguageError>> = parts
                .par_iter()
                .map(|part| {
                    let packed = self.packed.as_ref();
                    clipped_sum_packed(self.decoder, packed, &self.layout, part, clip)
                })
                .collect();
            for part in found {
                let part = part?;
                for (sum, x) in sum.iter_mut().zip(&part.sum) {
                    *sum += f64::from(*x);
                }
                statistics.loss_sum += part.losses.iter().sum::<f64>();
                statistics.correct += part.correct;
                statistics.clipped += part.norms.iter().filter(|norm| !(**norm <= clip)).count();
                statistics.norms.extend(part.norms);
            }
        }
        let sum: Vec<f32> = sum.into_iter().map(|x| x as f32).collect();
        let stream = Stream::new(self.recipe.seed, Purpose::NOISE, 0);
        let update = Update {
            optimizer: &self.recipe.optimizer,
            step: self.step,
            deviation: phase.noise_multiplier * clip,
            normaliser: phase.sample_rate * self.public_size(),
            noise: Noise::Stream(&stream),
        };
        let ReplicaState { parameters, optimizer } = &mut self.state;
        update.apply(parameters, optimizer, &sum, &mut Vec::new());
        self.layout.set(self.decoder, parameters);
        self.step += 1;
        Ok(statistics)
    }

    /// The number of examples taken as public.
    fn public_size(&self) -> f64 {
        self.recipe.run.dataset_size().map_or(self.examples.len() as f64, |size| size as f64)
    }

    /// Steps taken.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// What has to be saved to go on as if nothing had happened.
    pub fn state(&self) -> &ReplicaState {
        &self.state
    }

    /// Goes back to a saved state after `steps` steps.
    ///
    /// # Errors
    /// `InvalidInput` for the state of another training.
    pub fn restore(&mut self, steps: u64, state: ReplicaState) -> Result<(), LanguageError> {
        check_state(&state, self.layout.size, &self.recipe.optimizer)?;
        self.layout.set(self.decoder, &state.parameters);
        (self.state, self.step) = (state, steps);
        Ok(())
    }
}

/// Refuses the state of another training.
pub(crate) fn check_state(
    state: &ReplicaState,
    size: usize,
    optimizer: &OptimizerDescription,
) -> Result<(), LanguageError> {
    let fits = state.parameters.len() == size
        && state.optimizer.moments.len() == optimizer.moments()
        && state.optimizer.moments.iter().all(|moment| moment.len() == size);
    if fits {
        return Ok(());
    }
    Err(LanguageError::InvalidInput("the saved state is that of another model".into()))
}

/// Lets the system's allocator keep what is freed: some of them raise the size from which they hand
/// memory back, at every micro-batch here, by what was last freed. Changes speed only.
fn keep_memory() {
    drop(std::hint::black_box(vec![0_u8; (32 << 20) - (1 << 16)]));
}
