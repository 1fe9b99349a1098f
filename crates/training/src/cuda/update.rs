//! The numbers that the update kernel takes.

use super::arguments::Update;
use crate::optimizer::OptimizerDescription;
use crate::recipe::Recipe;

/// The numbers of one update, as the CPU's `Update` computes them.
pub(super) fn update_of(recipe: &Recipe, step: u64, stride: usize) -> Update {
    let noise = (recipe.noise_deviation(step), recipe.normaliser(step));
    numbers(&recipe.optimizer, step, noise, recipe.network.parameters, stride)
}

/// The same for (deviation, normaliser) of the noisy sum.
pub(super) fn numbers(
    optimizer: &OptimizerDescription,
    step: u64,
    (deviation, normaliser): (f64, f64),
    parameters: usize,
    stride: usize,
) -> Update {
    let mut update = Update {
        deviation: deviation as f32,
        share: (1.0 / normaliser) as f32,
        decay: 0.0,
        rate: 0.0,
        momentum: 0.0,
        beta1: 0.0,
        beta2: 0.0,
        correction: 1.0,
        epsilon: 0.0,
        shrink: 1.0,
        kind: 0,
        parameters: parameters as i32,
        row: step,
        stride: stride as u64,
    };
    let count = (step + 1) as f64;
    match *optimizer {
        OptimizerDescription::Sgd { learning_rate, momentum, weight_decay, regulariser } => {
            update.decay = (weight_decay + regulariser) as f32;
            update.rate = learning_rate as f32;
            update.momentum = momentum as f32;
            update.kind = i32::from(optimizer.moments() == 1);
        }
        OptimizerDescription::Adam {
            learning_rate,
            beta1,
            beta2,
            epsilon,
            weight_decay,
            regulariser,
        }
        | OptimizerDescription::AdamW {
            learning_rate,
            beta1,
            beta2,
            epsilon,
            weight_decay,
            regulariser,
        } => {
            let decoupled = matches!(optimizer, OptimizerDescription::AdamW { .. });
            let (decay, shrink) = if decoupled { (0.0, weight_decay) } else { (weight_decay, 0.0) };
            update.decay = (decay + regulariser) as f32;
            update.shrink = (1.0 - learning_rate * shrink) as f32;
            update.rate = (learning_rate / (1.0 - beta1.powf(count))) as f32;
            update.correction = (1.0 / (1.0 - beta2.powf(count))) as f32;
            update.beta1 = beta1 as f32;
            update.beta2 = beta2 as f32;
            update.epsilon = epsilon as f32;
            update.kind = 2;
        }
    }
    update
}
