//! Noise and optimiser in one pass over the parameters. g = (sum + deviation z) / normaliser.

use super::vectorise::vectorised;
use crate::optimizer::{OptimizerDescription, OptimizerState};
use random::Stream;

/// Coordinates whose noise is made at a time; a multiple of 4.
const CHUNK: usize = 4096;

vectorised! {
    fn noisy_gradient<'a>(
        sum: &'a [f32], noise: &'a mut [f32], theta: &'a [f32],
        deviation: f32, share: f32, decay: f32,
    ) {
        for ((sum, noise), theta) in sum.iter().zip(noise).zip(theta) {
            *noise = (sum + deviation * *noise) * share + decay * theta;
        }
    }

    fn descend<'a>(theta: &'a mut [f32], gradient: &'a [f32], rate: f32) {
        for (theta, gradient) in theta.iter_mut().zip(gradient) {
            *theta -= rate * gradient;
        }
    }

    fn descend_with_momentum<'a>(
        theta: &'a mut [f32], velocity: &'a mut [f32], gradient: &'a [f32],
        rate: f32, momentum: f32,
    ) {
        for ((theta, velocity), gradient) in theta.iter_mut().zip(velocity).zip(gradient) {
            *velocity = momentum * *velocity + gradient;
            *theta -= rate * *velocity;
        }
    }

    fn descend_adaptively<'a>(
        theta: &'a mut [f32], first: &'a mut [f32], second: &'a mut [f32], gradient: &'a [f32],
        numbers: Adaptive,
    ) {
        let Adaptive { beta1, beta2, rate, correction, epsilon, shrink } = numbers;
        let moments = first.iter_mut().zip(second);
        for ((theta, (first, second)), gradient) in theta.iter_mut().zip(moments).zip(gradient) {
            *first = beta1 * *first + (1.0 - beta1) * gradient;
            *second = beta2 * *second + (1.0 - beta2) * (gradient * gradient);
            let step = rate * *first / ((*second * correction).sqrt() + epsilon);
            *theta = *theta * shrink - step;
        }
    }
}

#[derive(Clone, Copy)]
struct Adaptive {
    beta1: f32,
    beta2: f32,
    /// Learning rate over 1 - beta1^t.
    rate: f32,
    /// 1 / (1 - beta2^t).
    correction: f32,
    epsilon: f32,
    /// 1 - learning rate x decoupled weight decay.
    shrink: f32,
}

/// Where the Gaussian numbers come from.
pub enum Noise<'a> {
    /// This stream; the row is the step.
    Stream(&'a Stream),
    /// The sum already has its noise.
    Added,
}

/// What one update needs besides the vectors.
pub struct Update<'a> {
    pub optimizer: &'a OptimizerDescription,
    /// Counted from 0.
    pub step: u64,
    /// Of the noise on the sum.
    pub deviation: f64,
    /// What the noisy sum is divided by.
    pub normaliser: f64,
    pub noise: Noise<'a>,
}

impl Update<'_> {
    /// Updates the parameters from the sum of clipped gradients. `buffer` is scratch.
    pub fn apply(
        &self,
        parameters: &mut [f32],
        state: &mut OptimizerState,
        sum: &[f32],
        buffer: &mut Vec<f32>,
    ) {
        buffer.resize(CHUNK, 0.0);
        let decay = match *self.optimizer {
            OptimizerDescription::Sgd { weight_decay, regulariser, .. }
            | OptimizerDescription::Adam { weight_decay, regulariser, .. } => {
                weight_decay + regulariser
            }
            OptimizerDescription::AdamW { regulariser, .. } => regulariser,
        };
        let deviation = match self.noise {
            Noise::Stream(_) => self.deviation as f32,
            Noise::Added => 0.0,
        };
        let share = (1.0 / self.normaliser) as f32;
        let mut first = 0;
        while first < parameters.len() {
            let range = first..(first + CHUNK).min(parameters.len());
            let gradient = &mut buffer[..range.len()];
            match self.noise {
                Noise::Stream(stream) => {
                    stream.fill_gaussians_f32(self.step, first as u64, gradient);
                }
                Noise::Added => gradient.fill(0.0),
            }
            let theta = &mut parameters[range.clone()];
            noisy_gradient(&sum[range.clone()], gradient, theta, deviation, share, decay as f32);
            self.descend(theta, state, range.clone(), gradient);
            first = range.end;
        }
    }

    fn descend(
        &self,
        theta: &mut [f32],
        state: &mut OptimizerState,
        range: std::ops::Range<usize>,
        gradient: &[f32],
    ) {
        match *self.optimizer {
            OptimizerDescription::Sgd { learning_rate, momentum, .. } => {
                let rate = learning_rate as f32;
                match state.moments.first_mut() {
                    None => descend(theta, gradient, rate),
                    Some(velocity) => descend_with_momentum(
                        theta,
                        &mut velocity[range],
                        gradient,
                        rate,
                        momentum as f32,
                    ),
                }
            }
            OptimizerDescription::Adam { learning_rate, beta1, beta2, epsilon, .. } => {
                let numbers = self.adaptive(learning_rate, beta1, beta2, epsilon, 0.0);
                self.adapt(theta, state, range, gradient, numbers);
            }
            OptimizerDescription::AdamW {
                learning_rate,
                beta1,
                beta2,
                epsilon,
                weight_decay,
                ..
            } => {
                let numbers = self.adaptive(learning_rate, beta1, beta2, epsilon, weight_decay);
                self.adapt(theta, state, range, gradient, numbers);
            }
        }
    }

    fn adaptive(&self, rate: f64, beta1: f64, beta2: f64, epsilon: f64, decay: f64) -> Adaptive {
        let count = (self.step + 1) as f64;
        Adaptive {
            beta1: beta1 as f32,
            beta2: beta2 as f32,
            rate: (rate / (1.0 - beta1.powf(count))) as f32,
            correction: (1.0 / (1.0 - beta2.powf(count))) as f32,
            epsilon: epsilon as f32,
            shrink: (1.0 - rate * decay) as f32,
        }
    }

    fn adapt(
        &self,
        theta: &mut [f32],
        state: &mut OptimizerState,
        range: std::ops::Range<usize>,
        gradient: &[f32],
        numbers: Adaptive,
    ) {
        let [first, second] = state.moments.as_mut_slice() else {
            unreachable!("adaptive optimisers have two moments")
        };
        descend_adaptively(theta, &mut first[range.clone()], &mut second[range], gradient, numbers);
    }
}
