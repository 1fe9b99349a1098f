//! Follows one training step by step.

use super::AttributeError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use training::data::Dataset;
use training::sampler::{Batch, Sampler};
use training::{CpuReplicas, Recipe, Replica, Replicas};

/// A training just before a step, or after the last one.
pub struct Moment<'a> {
    /// Steps that were taken.
    pub step: u64,
    /// The records that the step will sample (canaries have the numbers after the last record);
    /// empty after the last step.
    pub batch: &'a [u32],
    pub parameters: &'a [f32],
}

/// Trains one replica on the CPU and shows every moment, the last one included.
///
/// # Errors
/// Those of the training and of `each`; `Interrupted` when `stop` is set.
pub fn follow(
    recipe: &Arc<Recipe>,
    data: &Arc<Dataset>,
    replica: Replica,
    stop: &AtomicBool,
    mut each: impl FnMut(&Moment<'_>) -> Result<(), AttributeError>,
) -> Result<Vec<f32>, AttributeError> {
    let records = data.len() + replica.canaries.len();
    let mut sampler = Sampler::new(recipe.seed, replica.data_order, records);
    let mut batch = Batch::default();
    let mut training = CpuReplicas::new(Arc::clone(recipe), Arc::clone(data), vec![replica])?;
    for step in 0..recipe.steps() {
        if stop.load(Ordering::Relaxed) {
            return Err(AttributeError::Interrupted);
        }
        sampler.draw(recipe, step, &mut batch);
        let parameters = training.parameters(0);
        each(&Moment { step, batch: &batch.records, parameters })?;
        training.advance(1)?;
    }
    let parameters = training.parameters(0);
    each(&Moment { step: recipe.steps(), batch: &[], parameters })?;
    Ok(parameters.to_vec())
}
