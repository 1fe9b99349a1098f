//! Steps of DP-SGD and DP-Adam, with the sampler and the optimisers of the crate `training`.

use super::gradient_canaries::GradientCanaries;
use super::gradients::{Clipped, Example, clipped_sum_packed};
use super::layout::{Layout, Scope};
use crate::LanguageError;
use crate::model::{Decoder, Packed};
use random::{Purpose, Stream};
use rayon::prelude::*;
use std::sync::Arc;
use training::cpu::update::{Noise, Update};
use training::sampler::{Batch, Sampler, Way, drawn};
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
    /// Gradient canaries: those that are in follow the examples as records.
    pub canaries: Option<Arc<GradientCanaries>>,
}

impl Recipe {
    /// Records that the sampler draws from.
    pub(crate) fn records(&self, examples: usize) -> usize {
        examples + self.canaries.as_ref().map_or(0, |canaries| canaries.planted())
    }

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
    evidence: Vec<f64>,
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
        drawn(&recipe.run, examples.len()).map_err(LanguageError::InvalidInput)?;
        let state = ReplicaState {
            parameters: layout.parameters(decoder),
            optimizer: OptimizerState::new(&recipe.optimizer, layout.size),
        };
        let packed = match recipe.scope {
            Scope::Adapters { embedding } => Some(Packed::new(decoder, !embedding)),
            Scope::Full => None,
        };
        keep_memory();
        let sampler = Sampler::new(recipe.seed, 0, recipe.records(examples.len()));
        let evidence = Vec::new();
        Ok(Self { decoder, examples, recipe, layout, packed, state, sampler, step: 0, evidence })
    }

    /// Takes one step.
    ///
    /// # Errors
    /// Those of the decoder.
    pub fn step(&mut self) -> Result<StepStatistics, LanguageError> {
        let phase = self.recipe.phase(self.step);
        let run = &self.recipe.run;
        let mut batch = Batch::default();
        self.sampler.draw_row(&Way::of(run, self.step), self.step, None, &mut batch);
        let (mut members, drawn) = split(&batch, self.examples);
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
        let mut sum: Vec<f32> = sum.into_iter().map(|x| x as f32).collect();
        let stream = Stream::new(self.recipe.seed, Purpose::NOISE, 0);
        if let Some(canaries) = &self.recipe.canaries {
            canaries.insert(drawn, clip, &mut sum);
            canaries.watch(&sum, (&stream, self.step), &phase, clip, &mut self.evidence);
        }
        let update = Update {
            optimizer: &self.recipe.optimizer,
            step: self.step,
            deviation: phase.noise_multiplier * clip,
            normaliser: run.drawing().share(phase.sample_rate) * self.public_size(),
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

    /// What gradient canaries gathered of all iterates.
    pub fn evidence(&self) -> &[f64] {
        &self.evidence
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

/// The examples of a batch, and the numbers of the gradient canaries in it.
pub(crate) fn split<'a>(
    batch: &'a Batch,
    examples: &'a [Example],
) -> (Vec<&'a Example>, impl Iterator<Item = usize> + 'a) {
    let numbers = || batch.records.iter().map(|record| *record as usize);
    let found = numbers().filter_map(|number| examples.get(number)).collect();
    (found, numbers().filter_map(|number| number.checked_sub(examples.len())))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finetune::{Lora, attach, clipped_sum};
    use crate::model::{
        Activation, Architecture, Layer, Linear, Norm, NormWeights, Pairs, Position,
    };

    /// Two blocks with a hidden width that fills no vector.
    fn decoder() -> Decoder {
        let stream = Stream::new(3, Purpose::INITIALISATION, 0);
        let mut row = 0;
        let mut linear = |outputs: usize, inputs: usize| {
            let mut weight = vec![0.0; outputs * inputs];
            stream.fill_gaussians_f32(row, 0, &mut weight);
            row += 1;
            weight.iter_mut().for_each(|x| *x *= 0.2);
            Linear { weight, bias: None, inputs, outputs, adapter: None }
        };
        let norm = || NormWeights { weight: vec![1.0; 24], bias: None };
        let layers = (0..2)
            .map(|_| Layer {
                attention_norm: norm(),
                query: linear(24, 24),
                key: linear(12, 24),
                value: linear(12, 24),
                output: linear(24, 24),
                feed_norm: norm(),
                gate: Some(linear(70, 24)),
                up: linear(70, 24),
                down: linear(24, 70),
            })
            .collect();
        Decoder {
            architecture: Architecture {
                vocabulary: 90,
                width: 24,
                layers: 2,
                heads: 4,
                key_heads: 2,
                head_width: 6,
                hidden: 70,
                context: 128,
                norm: Norm::Rms { epsilon: 1e-5 },
                position: Position::Rotary { base: 10_000.0, pairs: Pairs::Halves },
                activation: Activation::SwiGlu,
            },
            embedding: linear(90, 24).weight,
            positions: None,
            layers,
            final_norm: norm(),
            head: None,
        }
    }

    fn examples() -> Vec<Example> {
        let tokens = |i: usize| (0..40 + 9 * i).map(|j| ((i * 31 + j * 7) % 90) as u32).collect();
        (0..7).map(|i| Example { tokens: tokens(i), first: 1 + i }).collect()
    }

    /// With fresh adapters half of the gradient is zero, so that the others are set.
    fn with_adapters() -> Decoder {
        let mut decoder = decoder();
        let projections = crate::model::Projection::ALL.to_vec();
        attach(&mut decoder, &Lora { projections, ..Lora::default() }, 1).expect("adapters");
        for layer in &mut decoder.layers {
            for projection in crate::model::Projection::ALL {
                let adapter = layer.linear_mut(projection).and_then(|map| map.adapter.as_mut());
                let up = &mut adapter.expect("it was attached").up;
                up.iter_mut().enumerate().for_each(|(i, x)| *x = (i as f32 * 0.9).sin() * 0.02);
            }
        }
        decoder
    }

    #[test]
    fn weights_laid_out_give_the_same_gradients() {
        let decoder = with_adapters();
        let layout = Layout::new(&decoder, Scope::Adapters { embedding: false });
        let packed = Packed::new(&decoder, true);
        let examples = examples();
        let examples: Vec<&Example> = examples.iter().collect();
        let plain = clipped_sum(&decoder, &layout, &examples, 0.5).expect("gradients");
        let found = clipped_sum_packed(&decoder, Some(&packed), &layout, &examples, 0.5)
            .expect("gradients");
        assert_eq!(plain.correct, found.correct);
        // Rounding of f32 through two blocks: some hundred times 6e-8.
        let close = |a: f64, b: f64, scale: f64| (a - b).abs() <= 2e-5 * scale;
        for (a, b) in plain.losses.iter().zip(&found.losses) {
            assert!(close(*a, *b, a.abs()), "{a} {b}");
        }
        for (a, b) in plain.norms.iter().zip(&found.norms) {
            assert!(close(*a, *b, *a), "{a} {b}");
        }
        let size = plain.sum.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        for (a, b) in plain.sum.iter().zip(&found.sum) {
            assert!(close(f64::from(*a), f64::from(*b), size), "{a} {b}");
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let examples = examples();
        let trained = |threads: usize| {
            let mut decoder = with_adapters();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("pool");
            pool.install(|| {
                let recipe = Recipe {
                    run: Run::builder().phase(1.0, 1.0, 2).build().expect("a run"),
                    optimizer: OptimizerDescription::adam(1e-2),
                    scope: Scope::Adapters { embedding: false },
                    micro_batch: 3,
                    seed: 1,
                    canaries: None,
                };
                let mut trainer = Trainer::new(&mut decoder, &examples, recipe).expect("trainer");
                (0..2).for_each(|_| drop(trainer.step().expect("a step")));
                trainer.state().parameters.clone()
            })
        };
        assert_eq!(trained(1), trained(3));
    }
}
