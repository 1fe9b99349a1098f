//! M models on a CUDA device, in as few groups as its memory allows.

use super::device::{CudaDevice, Precision, out_of_memory};
use super::engine::{Engine, State};
use super::plan::Plan;
use crate::TrainingError;
use crate::backend::{ReplicaState, Replicas};
use crate::data::Dataset;
use crate::optimizer::OptimizerState;
use crate::recipe::Recipe;
use crate::replica::{Injection, Replica, Start};
use crate::statistics::StepStatistics;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// A grid has at most 65,535 rows of blocks.
const MOST_TOGETHER: usize = 1 << 15;

/// M models in training on a CUDA device.
pub struct CudaReplicas {
    device: Arc<CudaDevice>,
    precision: Precision,
    recipe: Arc<Recipe>,
    data: Arc<Dataset>,
    replicas: Vec<Replica>,
    /// Replicas that are on the device together.
    group: usize,
    limit: usize,
    /// The group on the device, and which replicas it holds.
    engine: Option<(Range<usize>, Engine)>,
    /// Where the replicas stood when they were last on the host.
    state: State,
    keep_statistics: bool,
    statistics: Vec<StepStatistics>,
    done: u64,
}

impl CudaReplicas {
    /// Replicas at their start.
    ///
    /// # Errors
    /// When a start or a canary does not fit the network, or the device has no kernels for it.
    pub fn new(
        device: Arc<CudaDevice>,
        precision: Precision,
        recipe: Arc<Recipe>,
        data: Arc<Dataset>,
        replicas: Vec<Replica>,
    ) -> Result<Self, TrainingError> {
        for replica in &replicas {
            check(&recipe, replica)?;
        }
        let network = &recipe.network;
        if precision == Precision::BFloat16 {
            let plan = Plan::new(network, false, device.abilities);
            if !plan.implicit.contains(&true) {
                return Err(TrainingError::Device(
                    "bf16 is for language models and for convolutions whose channels are \
                     multiples of 16; choose f32 or tf32"
                        .into(),
                ));
            }
        }
        let starts: Vec<Vec<f32>> = replicas
            .par_iter()
            .map(|replica| match &replica.start {
                Start::Own => network.initial_parameters(recipe.seed, replica.number),
                Start::Drawn(number) => network.initial_parameters(recipe.seed, *number),
                Start::Fixed(parameters) => parameters.to_vec(),
            })
            .collect();
        let moments = Engine::moments_of(&recipe, replicas.len());
        Ok(Self {
            group: replicas.len().min(MOST_TOGETHER),
            limit: device.memory()?.1,
            state: State { parameters: starts.concat(), moments },
            engine: None,
            keep_statistics: false,
            statistics: Vec::new(),
            done: 0,
            device,
            precision,
            recipe,
            data,
            replicas,
        })
    }

    /// Uses no more than about this many bytes of the device's memory.
    pub fn limit_memory(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// How many replicas are on the device together; known once training has begun.
    pub fn replicas_at_a_time(&self) -> usize {
        self.group
    }

    /// Brings the group on the device back to the host.
    fn fetch(&mut self) -> Result<(), TrainingError> {
        if let Some((range, engine)) = &self.engine {
            let length = self.recipe.network.parameters;
            let own = range.start * length..range.end * length;
            let state = engine.state()?;
            self.state.parameters[own.clone()].copy_from_slice(&state.parameters);
            for (flat, moment) in self.state.moments.iter_mut().zip(&state.moments) {
                flat[own.clone()].copy_from_slice(moment);
            }
        }
        Ok(())
    }

    /// Puts the group that starts at a replica onto the device, in smaller groups from now on when
    /// the memory does not suffice.
    fn load(&mut self, start: usize) -> Result<&mut Engine, TrainingError> {
        let range = start..(start + self.group).min(self.replicas.len());
        if self.engine.as_ref().is_none_or(|(there, _)| *there != range) {
            self.fetch()?;
            self.engine = None;
            self.device.finish()?;
            loop {
                let range = start..(start + self.group).min(self.replicas.len());
                let length = self.recipe.network.parameters;
                let own = range.start * length..range.end * length;
                let state = State {
                    parameters: self.state.parameters[own.clone()].to_vec(),
                    moments: self.state.moments.iter().map(|m| m[own.clone()].to_vec()).collect(),
                };
                let engine = Engine::new(
                    &self.device,
                    self.precision,
                    &self.recipe,
                    &self.data,
                    &self.replicas[range.clone()],
                    &state,
                    self.limit,
                );
                match engine {
                    Err(error) if out_of_memory(&error) && self.group > 1 => {
                        self.device.finish()?;
                        self.group = self.group.div_ceil(2);
                    }
                    Err(error) => return Err(error),
                    Ok(engine) => {
                        self.engine = Some((range, engine));
                        break;
                    }
                }
            }
        }
        match &mut self.engine {
            Some((_, engine)) => Ok(engine),
            None => unreachable!("a group was put onto the device"),
        }
    }

    /// Does something with every group.
    fn each_group(
        &mut self,
        mut work: impl FnMut(Range<usize>, &mut Engine) -> Result<(), TrainingError>,
    ) -> Result<(), TrainingError> {
        let mut start = 0;
        while start < self.replicas.len() {
            self.load(start)?;
            let Some((range, engine)) = &mut self.engine else { break };
            work(range.clone(), engine)?;
            start = range.end;
        }
        Ok(())
    }

    /// Losses, replica by replica, and how many records each replica has right.
    fn measure(&mut self, data: &Dataset) -> Result<(Vec<f32>, Vec<usize>), TrainingError> {
        let count = self.replicas.len();
        let (mut losses, mut right) = (vec![0.0; count * data.len()], vec![0; count]);
        if data.is_empty() {
            return Ok((losses, right));
        }
        self.each_group(|range, engine| {
            let own = range.start * data.len()..range.end * data.len();
            engine.losses(data, &mut losses[own], &mut right[range])
        })?;
        Ok((losses, right))
    }
}

impl Replicas for CudaReplicas {
    fn len(&self) -> usize {
        self.replicas.len()
    }

    fn steps_done(&self) -> u64 {
        self.done
    }

    fn advance(&mut self, steps: u64) -> Result<(), TrainingError> {
        let (from, keep) = (self.done, self.keep_statistics);
        let to = from.saturating_add(steps).min(self.recipe.steps());
        let mut statistics = Vec::new();
        self.each_group(|_, engine| {
            engine.advance(from, to, keep)?;
            if keep {
                statistics.extend(engine.statistics()?);
            }
            Ok(())
        })?;
        self.statistics = statistics;
        self.done = to;
        Ok(())
    }

    fn all_parameters(&mut self, out: &mut Vec<f32>) -> Result<(), TrainingError> {
        self.fetch()?;
        out.clone_from(&self.state.parameters);
        Ok(())
    }

    fn losses(&mut self, data: &Dataset, out: &mut Vec<f32>) -> Result<(), TrainingError> {
        (*out, _) = self.measure(data)?;
        Ok(())
    }

    fn accuracies(&mut self, data: &Dataset) -> Result<Vec<f64>, TrainingError> {
        let (_, right) = self.measure(data)?;
        let records = data.len().max(1) as f64;
        Ok(right.into_iter().map(|right| right as f64 / records).collect())
    }

    fn states(&mut self) -> Result<Vec<ReplicaState>, TrainingError> {
        self.fetch()?;
        let length = self.recipe.network.parameters;
        let own = |flat: &[f32], index: usize| flat[index * length..(index + 1) * length].to_vec();
        let states = (0..self.replicas.len()).map(|index| {
            let moments = self.state.moments.iter().map(|flat| own(flat, index)).collect();
            let parameters = own(&self.state.parameters, index);
            ReplicaState { parameters, optimizer: OptimizerState { moments } }
        });
        Ok(states.collect())
    }

    fn restore(&mut self, steps_done: u64, states: Vec<ReplicaState>) -> Result<(), TrainingError> {
        let length = self.recipe.network.parameters;
        let fits = states.len() == self.replicas.len()
            && states.iter().all(|state| {
                let moments = &state.optimizer.moments;
                state.parameters.len() == length
                    && moments.len() == self.state.moments.len()
                    && moments.iter().all(|moment| moment.len() == length)
            });
        if !fits {
            return Err(TrainingError::Recipe("the saved state belongs to another model".into()));
        }
        self.engine = None;
        for (index, state) in states.into_iter().enumerate() {
            let own = index * length..(index + 1) * length;
            self.state.parameters[own.clone()].copy_from_slice(&state.parameters);
            for (flat, moment) in self.state.moments.iter_mut().zip(state.optimizer.moments) {
                flat[own.clone()].copy_from_slice(&moment);
            }
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

fn check(recipe: &Recipe, replica: &Replica) -> Result<(), TrainingError> {
    let network = &recipe.network;
    let start = match &replica.start {
        Start::Fixed(parameters) => parameters.len() == network.parameters,
        _ => true,
    };
    let fits = start
        && replica.canaries.iter().all(|canary| match &canary.injection {
            Injection::Gradient { entries, .. } => {
                entries.iter().all(|(place, _)| (*place as usize) < network.parameters)
            }
            Injection::Example { features, label } => {
                features.len() == network.inputs() && (*label as usize) < network.classes
            }
        });
    if fits {
        return Ok(());
    }
    Err(TrainingError::Recipe(format!(
        "start or canary of replica {} does not fit the model",
        replica.number
    )))
}
