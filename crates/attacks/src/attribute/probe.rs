//! How far apart a record's clipped gradients are over the values its attribute could have.

use super::{Attribute, AttributeError};
use accounting::bayes_security::attribute::{Candidates, GradientPair, worst_kernel};
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
        let parts = self.parts(parameters, data, records, |executor, examples| {
            let group = self.attribute.values.len();
            let mut grams = Vec::new();
            if !executor.clipped_grams(parameters, examples, group, self.clip_norm, &mut grams) {
                return Err(not_finite());
            }
            Ok(grams.chunks_exact(group * group).map(|gram| spread(group, gram, scale)).collect())
        })?;
        Ok(parts.concat())
    }

    /// The worst of these records in each respect (zero for no records). Cheaper than looking at
    /// each: a record whose gradients lie within r of one of them, and within m on average, has no two
    /// farther apart than 2r and none farther from the centroid than r + m, so that most records need
    /// no comparison of all pairs.
    ///
    /// # Errors
    /// A gradient that is not finite.
    pub fn worst(
        &self,
        parameters: &[f32],
        data: &Dataset,
        records: &[u32],
        scale: f64,
    ) -> Result<Spread, AttributeError> {
        let group = self.attribute.values.len();
        let found = Mutex::new(Spread { farthest: NONE, most_telling: NONE, approximate: 0.0 });
        let best = || *found.lock().unwrap_or_else(PoisonError::into_inner);
        self.parts(parameters, data, records, |executor, examples| {
            if !executor.has_linear_layers_only() {
                let mut grams = Vec::new();
                if !executor.clipped_grams(parameters, examples, group, self.clip_norm, &mut grams)
                {
                    return Err(not_finite());
                }
                for gram in grams.chunks_exact(group * group) {
                    raise(&found, &spread(group, gram, scale), scale);
                }
                return Ok(Vec::new());
            }
            if !executor.run_variants(parameters, examples, group) {
                return Err(not_finite());
            }
            let reach = |number: usize| {
                let squares = executor.squared_distances(number, group, group / 2, self.clip_norm);
                let radius = squares.iter().copied().fold(0.0, f64::max).sqrt();
                let mean = squares.iter().map(|square| square.sqrt()).sum::<f64>() / group as f64;
                // Rounding of the squares, which are at most 4 C^2.
                let above = |x: f64| x * (1.0 + 1e-12) + 1e-6 * self.clip_norm;
                (number, above(2.0 * radius), above(2.0 * (radius + mean)))
            };
            let mut reaches: Vec<(usize, f64, f64)> = (0..examples / group).map(reach).collect();
            reaches.sort_by(|a, b| b.1.total_cmp(&a.1));
            for (number, diameter, approximate) in reaches {
                let best = best();
                let most = worst_kernel(diameter, scale / self.clip_norm, self.clip_norm);
                if diameter <= best.farthest.distance()
                    && most <= best.most_telling.kernel(scale)
                    && approximate <= best.approximate
                {
                    continue;
                }
                let gram = executor.clipped_gram(number, group, self.clip_norm);
                if gram.iter().any(|value| !value.is_finite()) {
                    return Err(not_finite());
                }
                raise(&found, &spread(group, &gram, scale), scale);
            }
            Ok(Vec::new())
        })?;
        Ok(best())
    }

    /// Loads some records at a time, with all values of the attribute, and does something with
    /// them, on several threads.
    fn parts(
        &self,
        parameters: &[f32],
        data: &Dataset,
        records: &[u32],
        work: impl Fn(&mut Executor, usize) -> Result<Vec<Spread>, AttributeError> + Sync,
    ) -> Result<Vec<Vec<Spread>>, AttributeError> {
        let group = self.attribute.values.len();
        // Enough that products are large, few enough that buffers stay near the processor.
        let together = (512 / group).clamp(1, 64);
        let part = |records: &[u32]| {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut executor =
                idle.unwrap_or_else(|| Executor::new(Arc::clone(&self.network), together * group));
            executor.prepare(parameters);
            let mut row = Vec::new();
            for (number, record) in records.iter().enumerate() {
                let record = *record as usize;
                for value in 0..group {
                    self.attribute.substitute(value, data.row(record), &mut row);
                    executor.load(number * group + value, &row, data.labels[record]);
                }
            }
            let found = work(&mut executor, records.len() * group);
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(executor);
            found
        };
        records.par_chunks(together).map(part).collect()
    }
}

const NONE: GradientPair = GradientPair { norm_a: 0.0, norm_b: 0.0, inner: 0.0 };

fn spread(group: usize, gram: &[f64], scale: f64) -> Spread {
    let candidates = Candidates::of_gram(group, gram.to_vec());
    Spread {
        // An attribute has at least two values.
        farthest: candidates.farthest().unwrap_or(NONE),
        most_telling: candidates.most_telling(scale).unwrap_or(NONE),
        approximate: candidates.approximate_diameter(),
    }
}

fn raise(best: &Mutex<Spread>, found: &Spread, scale: f64) {
    let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
    if found.farthest.distance() > best.farthest.distance() {
        best.farthest = found.farthest;
    }
    if found.most_telling.kernel(scale) > best.most_telling.kernel(scale) {
        best.most_telling = found.most_telling;
    }
    best.approximate = best.approximate.max(found.approximate);
}

fn not_finite() -> AttributeError {
    TrainingError::Recipe("a gradient is not finite; lower the learning rate".into()).into()
}
