//! The training under attack.

use super::conditions::{Others, StartFrom};
use crate::AttackError;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use training::data::{Dataset, Split};
use training::model::ModelDescription;
use training::{CpuReplicas, Fault, OptimizerDescription, Recipe, Replica, Replicas, Rest, Start};
use vocabulary::{Phase, Run, Sampling};

/// A training: its recipe, its records, and records that are not in it.
#[derive(Clone, Debug)]
pub struct Target {
    pub(crate) recipe: Recipe,
    pub(crate) run: Run,
    pub(crate) model: ModelDescription,
    pub(crate) data: Arc<Dataset>,
    pub(crate) held_out: Option<Arc<Dataset>>,
}

/// Steps of the training that makes a start, and the share of records in its batches.
const PRETRAINING: (u64, f64) = (500, 256.0);

impl Target {
    /// A training on a data set, or on `records` of its records. The seed is the root of all randomness
    /// of the game.
    ///
    /// # Errors
    /// When model, optimiser, run and data do not fit together.
    pub fn new(
        model: ModelDescription,
        optimizer: OptimizerDescription,
        run: Run,
        split: Split,
        records: Option<usize>,
        seed: u64,
    ) -> Result<Self, AttackError> {
        let Split { mut train, test } = split;
        if let Some(records) = records.filter(|records| *records < train.len()) {
            train = train.select(&spread(train.len(), records));
        }
        let network = model.network(train.shape, train.classes)?;
        let recipe = Recipe::new(Arc::new(network), optimizer, &run, &train, seed)?;
        Ok(Self { recipe, run, model, data: Arc::new(train), held_out: test.map(Arc::new) })
    }

    /// Records of the training.
    pub fn records(&self) -> usize {
        self.data.len()
    }

    /// The run that is attacked, and that a claim is about.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// What has to be the same for two games to have the same scores.
    pub(crate) fn parameters(&self) -> Value {
        json!({
            "run": self.run,
            "model": self.model,
            "optimizer": self.recipe.optimizer,
            "data": self.data.provenance,
            "records": self.data.len(),
            "records_sha256": digest(&self.data),
            "micro_batch": self.recipe.micro_batch,
        })
    }

    /// Recipe and data under these conditions.
    pub(crate) fn under(&self, others: Others, fault: Fault) -> (Arc<Recipe>, Arc<Dataset>) {
        let mut recipe = self.recipe.clone();
        recipe.fault = fault;
        recipe.rest = if others == Others::Zero { Rest::Zero } else { Rest::Natural };
        let data = if others == Others::Blank {
            let mut data = (*self.data).clone();
            data.features.fill(0.0);
            Arc::new(data)
        } else {
            Arc::clone(&self.data)
        };
        (Arc::new(recipe), data)
    }

    /// The parameters that replicas start from, where they share them.
    pub(crate) fn start(&self, from: StartFrom) -> Result<Start, AttackError> {
        match from {
            StartFrom::Own => Ok(Start::Own),
            StartFrom::Shared => Ok(Start::Drawn(0)),
            StartFrom::Pretrained => Ok(Start::Fixed(self.pretrained()?.into())),
        }
    }

    /// One start of that kind as numbers; for starts of their own, that of replica 0.
    pub(crate) fn start_parameters(&self, start: &Start) -> Vec<f32> {
        match start {
            Start::Fixed(parameters) => parameters.to_vec(),
            _ => self.recipe.network.initial_parameters(self.recipe.seed, 0),
        }
    }

    /// Trained without noise and without clipping on held-out records, always on the CPU, so that
    /// every device starts alike.
    fn pretrained(&self) -> Result<Vec<f32>, AttackError> {
        let data = self.held_out.clone().ok_or_else(|| {
            AttackError::NoHeldOut(
                "a pretrained start needs records outside of the training; give the data a test \
                 part"
                    .into(),
            )
        })?;
        let (steps, batch) = PRETRAINING;
        let sample_rate = (batch / data.len() as f64).min(1.0);
        let mut recipe = self.recipe.clone();
        recipe.phases = vec![Phase { noise_multiplier: 0.0, sample_rate, steps }];
        recipe.sampling = Sampling::Poisson;
        recipe.drawing = vocabulary::Drawing::default();
        recipe.public_size = data.len() as f64;
        recipe.clip_norm = f64::from(f32::MAX).sqrt();
        train_one(recipe, data)
    }
}

/// `count` of `records`, evenly spread: folders list a class after the other.
pub fn spread(records: usize, count: usize) -> Vec<usize> {
    let count = count.min(records);
    (0..count).map(|index| index * records / count).collect()
}

fn digest(data: &Dataset) -> String {
    let mut hash = Sha256::new();
    for number in &data.features {
        hash.update(number.to_le_bytes());
    }
    for label in &data.labels {
        hash.update(label.to_le_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One replica from start to end on the CPU.
fn train_one(recipe: Recipe, data: Arc<Dataset>) -> Result<Vec<f32>, AttackError> {
    let steps = recipe.steps();
    let replica = Replica { start: Start::Drawn(0), ..Replica::new(u64::MAX) };
    let mut replicas = CpuReplicas::new(Arc::new(recipe), data, vec![replica])?;
    replicas.advance(steps)?;
    Ok(replicas.parameters(0).to_vec())
}
