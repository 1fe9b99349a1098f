//! One training of a classifier from description to files, resumable at any moment ([`Session`]).

use crate::TrainingError;
use crate::backend::{ReplicaState, Replicas};
use crate::cpu::{Executor, evaluate};
use crate::data::{Constants, Dataset, Split};
use crate::description::TrainingDescription;
use crate::files::{self, Progress};
use crate::ledger::{
    ClippingRecord, DataRecord, DeviceRecord, LEDGER_SCHEMA, Ledger, ModelRecord, NoiseRecord,
    NotPrivate, SamplingRecord,
};
use crate::model::Network;
use crate::recipe::Recipe;
use crate::replica::Replica;
use crate::session::{NoiseSource, Session, Steps, TrainingOptions, TrainingOutcome};
use crate::statistics::StepStatistics;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use vocabulary::{Phase, Run};

/// A checked training.
pub struct Training {
    description: TrainingDescription,
    run: Run,
    recipe: Recipe,
    split: Split,
}

impl Training {
    /// Checks a description against its data. `run` is the description's run after flags.
    ///
    /// # Errors
    /// Whatever does not fit together.
    pub fn new(
        description: TrainingDescription,
        run: Run,
        split: Split,
    ) -> Result<Self, TrainingError> {
        let records = split.train.len() as u64;
        if let Some(stated) = run.dataset_size().filter(|stated| *stated != records) {
            return Err(TrainingError::Recipe(format!(
                "the run says dataset_size {stated}, but the data set has {records} records; \
                 leave dataset_size out"
            )));
        }
        let network = description.model.network(split.train.shape, split.train.classes)?;
        let mut recipe = Recipe::new(
            Arc::new(network),
            description.optimizer,
            &run,
            &split.train,
            description.seed,
        )?;
        recipe.lanes = recipe.suggested_lanes();
        Ok(Self { description, run, recipe, split })
    }

    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Trains, or goes on with what a checkpoint holds.
    ///
    /// # Errors
    /// Files that cannot be read or written, another training's files, gradients that are not
    /// finite, trouble with the device.
    pub fn carry_out(
        &mut self,
        options: &TrainingOptions<'_>,
    ) -> Result<TrainingOutcome, TrainingError> {
        let device = DeviceRecord { lanes: self.recipe.lanes, ..options.device.record.clone() };
        if options.noise == NoiseSource::Secure && device.kind != "cpu" {
            return Err(TrainingError::Device(
                "secure noise is made on the CPU only; use --device cpu".into(),
            ));
        }
        let plan = self.plan(options.noise, &device);
        let mut session = match Session::open(options, plan, self.recipe.steps(), &[])? {
            ControlFlow::Break(found) => return Ok(found),
            ControlFlow::Continue(session) => session,
        };
        self.recipe.secure = session.progress().key();
        let train = Arc::new(self.split.train.clone());
        let mut replicas =
            (options.device.open)(Arc::new(self.recipe.clone()), train, vec![Replica::new(0)])?;
        replicas.keep_statistics();
        let mut one = One(replicas);
        if let ControlFlow::Break(stopped) = session.train(&mut one)? {
            return Ok(stopped);
        }
        let mut parameters = Vec::new();
        one.0.all_parameters(&mut parameters)?;
        let ledger = self.ledger(session.progress(), &device, &parameters)?;
        // One entry only: the order of several would differ from run to run.
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        session.finish(files::model_bytes(&self.recipe.network, &parameters, metadata), ledger)
    }

    /// Names what has to be the same for two trainings to give the same model.
    fn plan(&self, noise: NoiseSource, device: &DeviceRecord) -> String {
        let data = &self.split.train;
        let mut records = Sha256::new();
        for number in &data.features {
            records.update(number.to_le_bytes());
        }
        for label in &data.labels {
            records.update(label.to_le_bytes());
        }
        let document = serde_json::json!({
            "run": self.run,
            "seed": self.description.seed,
            "records": hexadecimal(&records.finalize()),
            "model": self.description.model,
            "optimizer": self.description.optimizer,
            "micro_batch": self.recipe.micro_batch,
            "secure": noise == NoiseSource::Secure,
            "device": device,
        });
        hexadecimal(&Sha256::digest(document.to_string().as_bytes()))
    }

    fn ledger(
        &self,
        progress: &Progress,
        device: &DeviceRecord,
        parameters: &[f32],
    ) -> Result<Ledger, TrainingError> {
        let recipe = &self.recipe;
        let run = done(&self.run, progress.steps_done)?;
        let secure = recipe.secure.is_some();
        let data = &self.split.train;
        let network = &recipe.network;
        let accuracy = |data: &Dataset| accuracy(network, parameters, data);
        // Beyond some minutes of work the training records are left out.
        let cheap = network.multiplications() as f64 * data.len() as f64 <= 2e11;
        let seed = (!secure).then_some(recipe.seed);
        let generator = if secure { "chacha20" } else { "philox4x32-10" };
        Ok(Ledger {
            schema: LEDGER_SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            planned_steps: recipe.steps(),
            complete: progress.steps_done == recipe.steps(),
            plan: progress.plan.clone(),
            sampling: SamplingRecord {
                scheme: recipe.sampling,
                generator: generator.into(),
                seed,
                micro_batch: recipe.executor_capacity(),
            },
            clipping: ClippingRecord {
                norm: recipe.clip_norm,
                unit: "record".into(),
                at_most: device.sensitivity,
                normalisers: recipe
                    .phases
                    .iter()
                    .map(|phase| recipe.drawing.share(phase.sample_rate) * recipe.public_size)
                    .collect(),
                normalised_by: "expected batch size, from the data set's size taken as public"
                    .into(),
            },
            noise: NoiseRecord {
                generator: generator.into(),
                secure,
                seed,
                precaution: if secure {
                    "records rounded to a grid and added exactly; noise raised by 2^-12 + 2^-20 \
                     and rounded to the same grid; key from the operating system, not kept"
                } else {
                    "none: whoever knows the seed knows the noise; for audits and experiments, \
                     not for a model that is released"
                }
                .into(),
            },
            data: DataRecord {
                records: data.len(),
                numbers_per_record: data.shape.len(),
                classes: data.classes,
                provenance: data.provenance.clone(),
            },
            model: ModelRecord {
                description: self.description.model.clone(),
                parameters: network.parameters,
            },
            optimizer: recipe.optimizer,
            device: device.clone(),
            sessions: progress.sessions.clone(),
            warnings: self.warnings(secure),
            not_private: NotPrivate {
                note: "computed from records and covered by no guarantee".into(),
                test_accuracy: self.split.test.as_ref().map(accuracy),
                train_accuracy: cheap.then(|| accuracy(data)),
                test_loss: None,
                statistics: progress.summary.record(),
            },
            run,
        })
    }

    /// What a reader of the ledger has to know.
    pub fn warnings(&self, secure: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.recipe.sampling.by_coins() {
            warnings.push(format!(
                "the run has {}: the numbers for Poisson sampling do not apply",
                self.recipe.sampling.words()
            ));
        }
        let preprocessing = &self.split.train.provenance.preprocessing;
        for step in preprocessing.iter().filter(|step| step.constants == Constants::FromRecords) {
            warnings.push(format!(
                "preprocessing used constants computed from the records, which no accounting \
                 covers: {}",
                step.step
            ));
        }
        if !secure {
            warnings.push(
                "fast noise: keep this model to yourself, or train it with --noise secure".into(),
            );
        }
        warnings
    }
}

/// A single replica, step by step.
struct One(Box<dyn Replicas>);

impl Steps for One {
    fn step(&mut self) -> Result<Option<StepStatistics>, TrainingError> {
        self.0.advance(1)?;
        Ok(self.0.statistics().and_then(|all| all.first()).cloned())
    }

    fn state(&mut self) -> Result<Cow<'_, ReplicaState>, TrainingError> {
        Ok(Cow::Owned(self.0.states()?.pop().expect("one replica is trained")))
    }

    fn restore(&mut self, steps_done: u64, state: ReplicaState) -> Result<(), TrainingError> {
        self.0.restore(steps_done, vec![state])
    }
}

/// The part of a run that the first `steps` steps are.
fn done(run: &Run, steps: u64) -> Result<Run, TrainingError> {
    let mut left = steps;
    let mut phases = Vec::new();
    for phase in run.phases() {
        let taken = phase.steps.min(left);
        if taken > 0 {
            phases.push(Phase { steps: taken, ..*phase });
        }
        left -= taken;
    }
    Ok(run.with_phases(phases)?)
}

/// Share of records whose class has the largest logit.
pub fn accuracy(network: &Arc<Network>, parameters: &[f32], data: &Dataset) -> f64 {
    const PART: usize = 256;
    let capacity = ((1 << 21) / network.footprint()).clamp(1, 256);
    let parts: Vec<usize> = (0..data.len()).step_by(PART).collect();
    let correct: usize = parts
        .into_par_iter()
        .map(|first| {
            let rows: Vec<usize> = (first..(first + PART).min(data.len())).collect();
            let mut executor = Executor::new(Arc::clone(network), capacity);
            let mut correct = 0;
            evaluate(&mut executor, parameters, &data.select(&rows), |_, _, hit| {
                correct += usize::from(hit);
            });
            correct
        })
        .sum();
    correct as f64 / data.len().max(1) as f64
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
