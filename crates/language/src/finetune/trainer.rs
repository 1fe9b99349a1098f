//! Steps of DP-SGD and DP-Adam on adapters.

use super::adapters::{parameters, set_parameters};
use super::gradients::{Example, per_example};
use crate::LanguageError;
use crate::model::Decoder;
use random::{Bernoulli, Purpose, Stream};

/// What takes the noisy mean gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimizer {
    Sgd,
    /// Adam with bias correction.
    Adam {
        first: f64,
        second: f64,
        epsilon: f64,
    },
}

impl Optimizer {
    pub const ADAM: Self = Self::Adam { first: 0.9, second: 0.999, epsilon: 1e-8 };
}

/// How the adapters are trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// Standard deviation of the noise on the sum, in clip norms; 0: not private.
    pub noise_multiplier: f64,
    pub clip_norm: f64,
    /// Every example joins a step independently with this probability.
    pub sample_rate: f64,
    pub learning_rate: f64,
    pub optimizer: Optimizer,
    /// Examples whose gradients are in memory at a time.
    pub micro_batch: usize,
    pub seed: u64,
}

/// What a step did. Loss and norms are computed from records and are not private.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    pub step: u64,
    pub batch: usize,
    /// Mean over the batch; not a number for an empty one.
    pub loss: f64,
    /// Share of examples whose gradient was clipped.
    pub clipped: f64,
}

/// A training under way.
pub struct Trainer<'a> {
    decoder: &'a mut Decoder,
    examples: &'a [Example],
    recipe: Recipe,
    parameters: Vec<f32>,
    first: Vec<f64>,
    second: Vec<f64>,
    step: u64,
}

impl<'a> Trainer<'a> {
    /// # Errors
    /// `InvalidInput` for a recipe out of range, without examples, or without adapters.
    pub fn new(
        decoder: &'a mut Decoder,
        examples: &'a [Example],
        recipe: Recipe,
    ) -> Result<Self, LanguageError> {
        let invalid = |message: String| Err(LanguageError::InvalidInput(message));
        if !(recipe.sample_rate > 0.0 && recipe.sample_rate <= 1.0) {
            return invalid(format!("sample rate {} is outside (0, 1]", recipe.sample_rate));
        }
        for (name, value, least) in [
            ("clip norm", recipe.clip_norm, f64::MIN_POSITIVE),
            ("noise multiplier", recipe.noise_multiplier, 0.0),
            ("learning rate", recipe.learning_rate, f64::MIN_POSITIVE),
        ] {
            if !(value >= least && value.is_finite()) {
                return invalid(format!("{name} {value} is out of range"));
            }
        }
        let parameters = parameters(decoder);
        if parameters.is_empty() || examples.is_empty() || recipe.micro_batch == 0 {
            return invalid("there are no adapters, no examples, or no room for one".into());
        }
        let size = parameters.len();
        Ok(Self {
            decoder,
            examples,
            recipe,
            parameters,
            first: vec![0.0; size],
            second: vec![0.0; size],
            step: 0,
        })
    }

    /// Takes one step.
    ///
    /// # Errors
    /// Those of the decoder.
    pub fn step(&mut self) -> Result<StepReport, LanguageError> {
        let recipe = self.recipe;
        let mut joins = vec![false; self.examples.len()];
        let coins = Stream::new(recipe.seed, Purpose::SAMPLING, 0);
        Bernoulli::new(recipe.sample_rate).fill(&coins, self.step, 0, &mut joins);
        let batch: Vec<Example> = self
            .examples
            .iter()
            .zip(&joins)
            .filter(|(_, joins)| **joins)
            .map(|(example, _)| example.clone())
            .collect();
        let mut sum = vec![0.0_f64; self.parameters.len()];
        let (mut loss, mut clipped) = (0.0, 0_usize);
        for part in batch.chunks(recipe.micro_batch) {
            for example in per_example(self.decoder, part)? {
                let square: f64 =
                    example.gradient.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
                let norm = square.sqrt();
                // A gradient that is not finite would poison the sum: it counts as nothing.
                let factor = if !norm.is_finite() {
                    0.0
                } else if norm > recipe.clip_norm {
                    recipe.clip_norm / norm
                } else {
                    1.0
                };
                clipped += usize::from(factor < 1.0);
                loss += example.loss;
                if factor > 0.0 {
                    for (sum, x) in sum.iter_mut().zip(&example.gradient) {
                        *sum += factor * f64::from(*x);
                    }
                }
            }
        }
        self.update(sum);
        self.step += 1;
        let n = batch.len() as f64;
        Ok(StepReport {
            step: self.step,
            batch: batch.len(),
            loss: loss / n,
            clipped: clipped as f64 / n,
        })
    }

    /// Noise, mean, optimiser.
    fn update(&mut self, mut sum: Vec<f64>) {
        let recipe = self.recipe;
        if recipe.noise_multiplier > 0.0 {
            let stream = Stream::new(recipe.seed, Purpose::NOISE, 0);
            let mut noise = vec![0.0; sum.len()];
            stream.fill_gaussians(self.step, 0, &mut noise);
            let deviation = recipe.noise_multiplier * recipe.clip_norm;
            for (sum, noise) in sum.iter_mut().zip(&noise) {
                *sum += deviation * noise;
            }
        }
        let expected = recipe.sample_rate * self.examples.len() as f64;
        let t = (self.step + 1) as f64;
        for (i, sum) in sum.into_iter().enumerate() {
            let mean = sum / expected;
            let change = match recipe.optimizer {
                Optimizer::Sgd => mean,
                Optimizer::Adam { first, second, epsilon } => {
                    self.first[i] = first * self.first[i] + (1.0 - first) * mean;
                    self.second[i] = second * self.second[i] + (1.0 - second) * mean * mean;
                    let m = self.first[i] / (1.0 - first.powf(t));
                    let v = self.second[i] / (1.0 - second.powf(t));
                    m / (v.sqrt() + epsilon)
                }
            };
            self.parameters[i] -= (recipe.learning_rate * change) as f32;
        }
        set_parameters(self.decoder, &self.parameters);
    }

    /// Steps taken.
    pub fn steps(&self) -> u64 {
        self.step
    }
}
