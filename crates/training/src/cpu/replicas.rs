//! M models on the CPU. A replica takes all its steps on one thread, so that its parameters stay
//! in that core's cache; with several lanes a batch is cut into fixed parts that run side by side
//! and are added in order, so that the result does not depend on the number of threads.

use super::executor::{Example, Executor};
use super::secure;
use super::update::{Noise, Update};
use crate::backend::{ReplicaState, Replicas};
use crate::data::Dataset;
use crate::optimizer::OptimizerState;
use crate::recipe::{Fault, Recipe, Rest};
use crate::replica::{Injection, Replica, Schedule, Start};
use crate::sampler::{Batch, Sampler};
use crate::statistics::StepStatistics;
use crate::train::accuracy;
use crate::{TrainingError, cpu::elementwise};
use random::{Purpose, Stream};
use rayon::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// One model in training.
struct Model {
    replica: Replica,
    sampler: Sampler,
    noise: Stream,
    parameters: Vec<f32>,
    optimizer: OptimizerState,
}

/// What one thread works with.
struct Worker {
    lanes: Vec<Lane>,
    batch: Batch,
    noise: Vec<f32>,
}

struct Lane {
    executor: Executor,
    sum: Vec<f32>,
    /// Sum of clipped gradients in whole units of the grid, for noise that is secure.
    exact: Vec<f64>,
    statistics: StepStatistics,
}

/// M models in training on the CPU.
pub struct CpuReplicas {
    recipe: Arc<Recipe>,
    data: Arc<Dataset>,
    /// Squared norms of the records.
    squares: Vec<f64>,
    models: Vec<Model>,
    statistics: Vec<StepStatistics>,
    keep_statistics: bool,
    workers: Mutex<Vec<Worker>>,
    done: u64,
}

impl CpuReplicas {
    /// Replicas at their start.
    ///
    /// # Errors
    /// When a fixed start or a canary does not fit the network.
    pub fn new(
        recipe: Arc<Recipe>,
        data: Arc<Dataset>,
        replicas: Vec<Replica>,
    ) -> Result<Self, TrainingError> {
        let mut models = Vec::with_capacity(replicas.len());
        for replica in replicas {
            models.push(Model::new(&recipe, &data, replica)?);
        }
        let statistics = vec![StepStatistics::default(); models.len()];
        let rows = data.features.par_chunks(data.shape.len().max(1));
        let squares = rows.map(elementwise::squared_norm).collect();
        Ok(Self {
            squares,
            recipe,
            data,
            models,
            statistics,
            keep_statistics: false,
            workers: Mutex::new(Vec::new()),
            done: 0,
        })
    }

    /// The parameters of one replica.
    pub fn parameters(&self, replica: usize) -> &[f32] {
        &self.models[replica].parameters
    }

    /// The optimiser's memory of one replica.
    pub fn optimizer(&self, replica: usize) -> &OptimizerState {
        &self.models[replica].optimizer
    }

    fn worker(&self) -> Worker {
        let idle = self.workers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| Worker::new(&self.recipe))
    }

    fn release(&self, worker: Worker) {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
    }
}

impl Replicas for CpuReplicas {
    fn len(&self) -> usize {
        self.models.len()
    }

    fn steps_done(&self) -> u64 {
        self.done
    }

    fn advance(&mut self, steps: u64) -> Result<(), TrainingError> {
        let last = self.done.saturating_add(steps).min(self.recipe.steps());
        let mut models = std::mem::take(&mut self.models);
        let mut statistics = std::mem::take(&mut self.statistics);
        let this = &*self;
        let result = models.par_iter_mut().zip(&mut statistics).try_for_each(
            |(model, statistics)| -> Result<(), TrainingError> {
                let mut worker = this.worker();
                for step in this.done..last {
                    worker.step(&this.recipe, &this.data, &this.squares, model, step)?;
                }
                if this.keep_statistics {
                    worker.collect(statistics);
                }
                this.release(worker);
                Ok(())
            },
        );
        (self.models, self.statistics) = (models, statistics);
        result?;
        self.done = last;
        Ok(())
    }

    fn all_parameters(&mut self, out: &mut Vec<f32>) -> Result<(), TrainingError> {
        out.clear();
        for model in &self.models {
            out.extend_from_slice(&model.parameters);
        }
        Ok(())
    }

    fn losses(&mut self, data: &Dataset, out: &mut Vec<f32>) -> Result<(), TrainingError> {
        let this = &*self;
        out.clear();
        out.resize(self.models.len() * data.len(), 0.0);
        if data.is_empty() {
            return Ok(());
        }
        this.models.par_iter().zip(out.par_chunks_mut(data.len())).for_each(|(model, out)| {
            let mut worker = this.worker();
            let executor = &mut worker.lanes[0].executor;
            evaluate(executor, &model.parameters, data, |record, loss, _| out[record] = loss);
            this.release(worker);
        });
        Ok(())
    }

    fn accuracies(&mut self, data: &Dataset) -> Result<Vec<f64>, TrainingError> {
        let network = &self.recipe.network;
        Ok(self.models.iter().map(|model| accuracy(network, &model.parameters, data)).collect())
    }

    fn states(&mut self) -> Result<Vec<ReplicaState>, TrainingError> {
        let state = |model: &Model| ReplicaState {
            parameters: model.parameters.clone(),
            optimizer: model.optimizer.clone(),
        };
        Ok(self.models.iter().map(state).collect())
    }

    fn restore(&mut self, steps_done: u64, states: Vec<ReplicaState>) -> Result<(), TrainingError> {
        let fits = states.len() == self.models.len()
            && states.iter().zip(&self.models).all(|(state, model)| {
                let length = model.parameters.len();
                state.parameters.len() == length
                    && state.optimizer.moments.len() == model.optimizer.moments.len()
                    && state.optimizer.moments.iter().all(|moment| moment.len() == length)
            });
        if !fits {
            return Err(TrainingError::Recipe("the saved state belongs to another model".into()));
        }
        for (model, state) in self.models.iter_mut().zip(states) {
            model.parameters = state.parameters;
            model.optimizer = state.optimizer;
        }
        self.done = steps_done;
        Ok(())
    }

    fn keep_statistics(&mut self) {
        self.keep_statistics = true;
    }

    fn statistics(&self) -> Option<&[StepStatistics]> {
        self.keep_statistics.then_some(&self.statistics)
    }
}

/// Loss and correctness of every record.
pub(crate) fn evaluate(
    executor: &mut Executor,
    parameters: &[f32],
    data: &Dataset,
    mut each: impl FnMut(usize, f32, bool),
) {
    executor.prepare(parameters);
    let mut first = 0;
    while first < data.len() {
        let examples = executor.capacity().min(data.len() - first);
        for slot in 0..examples {
            executor.load(slot, data.row(first + slot), data.labels[first + slot]);
        }
        let found = executor.evaluate(parameters, examples);
        for slot in 0..examples {
            each(first + slot, found.losses[slot], found.correct[slot]);
        }
        first += examples;
    }
}

impl Model {
    fn new(recipe: &Recipe, data: &Dataset, replica: Replica) -> Result<Self, TrainingError> {
        let network = &recipe.network;
        let parameters = match &replica.start {
            Start::Own => network.initial_parameters(recipe.seed, replica.number),
            Start::Drawn(number) => network.initial_parameters(recipe.seed, *number),
            Start::Fixed(parameters) => parameters.to_vec(),
        };
        let fits = parameters.len() == network.parameters
            && replica.canaries.iter().all(|canary| match &canary.injection {
                Injection::Gradient { entries, .. } => {
                    entries.iter().all(|(place, _)| (*place as usize) < network.parameters)
                }
                Injection::Example { features, label } => {
                    features.len() == network.inputs() && (*label as usize) < network.classes
                }
            });
        if !fits {
            return Err(TrainingError::Recipe(format!(
                "start or canary of replica {} does not fit the model",
                replica.number
            )));
        }
        let records = data.len() + replica.canaries.len();
        Ok(Self {
            sampler: Sampler::new(recipe.seed, replica.data_order, records),
            noise: Stream::new(recipe.seed, Purpose::NOISE, replica.number),
            optimizer: OptimizerState::new(&recipe.optimizer, parameters.len()),
            parameters,
            replica,
        })
    }
}

impl Worker {
    fn new(recipe: &Recipe) -> Self {
        let lane = || Lane {
            executor: Executor::new(Arc::clone(&recipe.network), recipe.executor_capacity()),
            sum: vec![0.0; recipe.network.parameters],
            exact: vec![0.0; if recipe.secure.is_some() { recipe.network.parameters } else { 0 }],
            statistics: StepStatistics::default(),
        };
        let lanes = (0..recipe.lanes.max(1)).map(|_| lane()).collect();
        Self { lanes, batch: Batch::default(), noise: Vec::new() }
    }

    fn step(
        &mut self,
        recipe: &Recipe,
        data: &Dataset,
        squares: &[f64],
        model: &mut Model,
        step: u64,
    ) -> Result<(), TrainingError> {
        model.sampler.draw(recipe, step, &mut self.batch);
        let records = data.len() as u32;
        let canaries = self.batch.records.partition_point(|record| *record < records);
        let drawn: Vec<usize> = self.batch.records[canaries..]
            .iter()
            .map(|place| (*place - records) as usize)
            .collect();
        let mut batch: Vec<Example<'_>> = Vec::with_capacity(self.batch.records.len());
        if recipe.rest == Rest::Natural {
            let without = &model.replica.without;
            let present = self.batch.records[..canaries].iter();
            let present = present
                .filter(|record| without.is_empty() || without.binary_search(record).is_err());
            batch.extend(present.map(|record| {
                let record = *record as usize;
                (data.row(record), data.labels[record], Some(squares[record]))
            }));
        }
        let drawn = drawn.iter().map(|place| &model.replica.canaries[*place]);
        let drawn: Vec<_> = drawn.filter(|canary| canary.member).collect();
        for canary in &drawn {
            if let Injection::Example { features, label } = &canary.injection {
                batch.push((features, *label, None));
            }
        }
        let failed = self.sum_clipped(recipe, &model.parameters, &batch);
        if failed {
            return Err(TrainingError::NotFinite { step, replica: model.replica.number });
        }
        let noise = match &recipe.secure {
            None => Noise::Stream(&model.noise),
            Some(key) => {
                let Lane { sum, exact, .. } = &mut self.lanes[0];
                let deviation = recipe.noise_deviation(step);
                secure::add_noise(key, recipe.clip_norm, deviation, step, exact, sum);
                Noise::Added
            }
        };
        let sum = &mut self.lanes[0].sum;
        for canary in &drawn {
            if let Injection::Gradient { entries, schedule } = &canary.injection {
                inject(recipe, entries, schedule, step, sum);
            }
        }
        let update = Update {
            optimizer: &recipe.optimizer,
            step,
            deviation: recipe.noise_deviation(step),
            normaliser: recipe.normaliser(step),
            noise,
        };
        update.apply(&mut model.parameters, &mut model.optimizer, sum, &mut self.noise);
        Ok(())
    }

    /// The sum of clipped gradients into the first lane's; says whether something was not finite.
    fn sum_clipped(&mut self, recipe: &Recipe, parameters: &[f32], batch: &[Example<'_>]) -> bool {
        let clip_norm = (recipe.fault != Fault::NoClipping).then_some(recipe.clip_norm);
        let lanes = self.lanes.len();
        let part = |number: usize| {
            &batch[batch.len() * number / lanes..batch.len() * (number + 1) / lanes]
        };
        let work = |(number, lane): (usize, &mut Lane)| {
            lane.sum_clipped(recipe, parameters, part(number), clip_norm)
        };
        let failed = if lanes == 1 {
            work((0, &mut self.lanes[0]))
        } else {
            self.lanes.par_iter_mut().enumerate().map(work).reduce(|| false, |a, b| a | b)
        };
        let (first, others) = self.lanes.split_at_mut(1);
        if recipe.secure.is_some() {
            for other in others {
                secure::add_exact(&other.exact, &mut first[0].exact);
            }
            return failed;
        }
        for other in others {
            elementwise::add(&other.sum, &mut first[0].sum);
        }
        let Lane { executor, sum, .. } = &mut first[0];
        executor.finish(sum);
        failed
    }

    fn collect(&self, out: &mut StepStatistics) {
        *out = StepStatistics::default();
        for lane in &self.lanes {
            let own = &lane.statistics;
            out.batch_size += own.batch_size;
            out.clipped += own.clipped;
            out.loss_sum += own.loss_sum;
            out.correct += own.correct;
            out.norms.extend_from_slice(&own.norms);
        }
    }
}

impl Lane {
    fn sum_clipped(
        &mut self,
        recipe: &Recipe,
        parameters: &[f32],
        batch: &[Example<'_>],
        clip_norm: Option<f64>,
    ) -> bool {
        if batch.is_empty() || recipe.secure.is_some() {
            self.sum.fill(0.0);
        } else {
            self.executor.begin_sum();
        }
        self.exact.fill(0.0);
        let grid = secure::grid(recipe.clip_norm, self.sum.len());
        self.statistics = StepStatistics { batch_size: batch.len(), ..StepStatistics::default() };
        self.executor.prepare(parameters);
        // Equal parts, so that a batch of 257 is not one of 256 and one of 1.
        let capacity = if recipe.secure.is_some() { 1 } else { self.executor.capacity() };
        let parts = batch.len().div_ceil(capacity);
        let mut failed = false;
        for part in 0..parts {
            let own = &batch[batch.len() * part / parts..batch.len() * (part + 1) / parts];
            let found =
                self.executor.add_clipped_gradients_of(parameters, own, clip_norm, &mut self.sum);
            for slot in 0..own.len() {
                let (norm, loss) = (found.norms[slot], found.losses[slot]);
                failed |= !norm.is_finite() || !loss.is_finite();
                self.statistics.clipped += usize::from(norm > recipe.clip_norm);
                self.statistics.loss_sum += f64::from(loss);
                self.statistics.correct += usize::from(found.correct[slot]);
            }
            self.statistics.norms.extend_from_slice(found.norms);
            if recipe.secure.is_some() {
                self.executor.finish(&mut self.sum);
                secure::add_record(grid, &mut self.sum, &mut self.exact);
            }
        }
        failed
    }
}

/// Adds a canary's gradient, scaled down to the clip norm where it is longer.
fn inject(
    recipe: &Recipe,
    entries: &[(u32, f32)],
    schedule: &Schedule,
    step: u64,
    sum: &mut [f32],
) {
    let factor = match schedule {
        Schedule::Always => 1.0,
        Schedule::Factors(factors) => {
            let place = usize::try_from(step).unwrap_or(usize::MAX);
            factors.get(place).copied().unwrap_or(0.0).clamp(-1.0, 1.0)
        }
    };
    let square: f64 = entries.iter().map(|(_, value)| f64::from(*value) * f64::from(*value)).sum();
    let mut scale = (recipe.clip_norm / square.sqrt()).min(1.0) * f64::from(factor);
    if recipe.fault == Fault::NoClipping {
        scale *= 4.0;
    }
    for (place, value) in entries {
        sum[*place as usize] += (f64::from(*value) * scale) as f32;
    }
}
