//! How far apart a record's clipped gradients are over the values its attribute could have.

use super::{Attribute, AttributeError};
use accounting::bayes_security::attribute::{Candidates, GradientPair};
use rayon::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use training::TrainingError;
use training::cpu::Executor;
use training::data::Dataset;
use training::model::Network;

/// One record at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The two candidate gradients farthest apart: R.
    pub farthest: GradientPair,
    /// The two that tell the most at the noise of the step.
    pub most_telling: GradientPair,
    /// Twice the largest distance from the centroid: an upper bound on R.
    pub approximate: f64,
}

/// Looks at records through all values of an attribute.
pub struct Probe {
    attribute: Attribute,
    network: Arc<Network>,
    clip_norm: f64,
    idle: Mutex<Vec<Executor>>,
}

impl Probe {
    pub fn new(attribute: Attribute, network: Arc<Network>, clip_norm: f64) -> Self {
        Self { attribute, network, clip_norm, idle: Mutex::new(Vec::new()) }
    }

    pub fn attribute(&self) -> &Attribute {
        &self.attribute
    }

    /// The records of `data` with these numbers, in their order. `scale` is the noise multiplier
    /// times the clip norm.
    ///
    /// # Errors
    /// A gradient that is not finite.
    pub fn look(
        &self,
        parameters: &[f32],
        data: &Dataset,
        records: &[u32],
        scale: f64,
    ) -> Result<Vec<Spread>, AttributeError> {
        let group = self.attribute.values.len();
        // A few records at a time, so that products are large and buffers small.
        let together = (512 / group).clamp(1, 64);
        let parts: Result<Vec<Vec<Spread>>, AttributeError> = records
            .par_chunks(together)
            .map(|records| {
                let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let mut executor = idle
                    .unwrap_or_else(|| Executor::new(Arc::clone(&self.network), together * group));
                let found = self.part(&mut executor, parameters, data, records, scale);
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(executor);
                found
            })
            .collect();
        Ok(parts?.concat())
    }

    fn part(
        &self,
        executor: &mut Executor,
        parameters: &[f32],
        data: &Dataset,
        records: &[u32],
        scale: f64,
    ) -> Result<Vec<Spread>, AttributeError> {
        let group = self.attribute.values.len();
        let mut row = Vec::new();
        executor.prepare(parameters);
        for (number, record) in records.iter().enumerate() {
            let record = *record as usize;
            for value in 0..group {
                self.attribute.substitute(value, data.row(record), &mut row);
                executor.load(number * group + value, &row, data.labels[record]);
            }
        }
        let mut grams = Vec::new();
        let examples = records.len() * group;
        if !executor.clipped_grams(parameters, examples, group, self.clip_norm, &mut grams) {
            return Err(TrainingError::Recipe(
                "a gradient is not finite; lower the learning rate".into(),
            )
            .into());
        }
        let spreads = grams.chunks_exact(group * group).map(|gram| {
            let candidates = Candidates::of_gram(group, gram.to_vec());
            // An attribute has at least two values.
            let none = GradientPair { norm_a: 0.0, norm_b: 0.0, inner: 0.0 };
            Spread {
                farthest: candidates.farthest().unwrap_or(none),
                most_telling: candidates.most_telling(scale).unwrap_or(none),
                approximate: candidates.approximate_diameter(),
            }
        });
        Ok(spreads.collect())
    }
}
