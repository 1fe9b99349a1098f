//! One training from description to files, resumable at any moment.
//!
//! A checkpoint is written every few seconds and when the program is asked to stop. It holds the
//! parameters, the optimiser's memory and the statistics; all randomness is a function of (seed or
//! key, step), so a resumed training ends in the same bytes as one that was never interrupted, and
//! its ledger covers all of it.

use crate::TrainingError;
use crate::backend::Replicas;
use crate::cpu::{Executor, evaluate};
use crate::data::{Constants, Dataset, Split};
use crate::description::TrainingDescription;
use crate::device::Device;
use crate::files::{self, Progress};
use crate::ledger::{
    ClippingRecord, DataRecord, DeviceRecord, LEDGER_SCHEMA, Ledger, ModelRecord, NoiseRecord,
    NotPrivate, SamplingRecord, SessionRecord,
};
use crate::model::Network;
use crate::recipe::Recipe;
use crate::replica::Replica;
use crate::summary::Summary;
use random::SecureKey;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vocabulary::{Phase, Run};

/// Which generator makes noise and batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseSource {
    /// Philox from the seed: for auditing and experiments.
    Fast,
    /// ChaCha20 under a fresh secret key, and sums on a grid: for a model to be released.
    Secure,
}

/// What happens, for whoever draws it.
#[derive(Clone, Debug)]
pub enum TrainingEvent {
    /// `done` of `steps` were found in a checkpoint.
    Started { steps: u64, done: u64 },
    /// A step was taken. Mean loss and accuracy are of its batch, before the update, where the
    /// device keeps them.
    Step { done: u64, steps: u64, loss: Option<f64>, accuracy: Option<f64> },
    /// All steps are done; accuracy is being measured.
    Evaluating,
}

/// How a training is carried out.
pub struct TrainingOptions<'a> {
    /// Folder for `model.safetensors`, `ledger.json` and, meanwhile, `checkpoint.safetensors`.
    pub out: &'a Path,
    pub noise: NoiseSource,
    pub device: &'a Device,
    /// Throws away what another training left in the folder.
    pub force: bool,
    /// Between checkpoints.
    pub checkpoint_every: Duration,
    /// Set to stop after the step in hand.
    pub stop: &'a AtomicBool,
    pub report: &'a (dyn Fn(&TrainingEvent) + Sync),
}

/// How it ended.
#[derive(Debug)]
pub enum TrainingOutcome {
    /// The files are written; `resumed_from` is the step a checkpoint had reached, `found` says
    /// that they were there already.
    Complete {
        ledger: Box<Ledger>,
        resumed_from: u64,
        found: bool,
    },
    Interrupted {
        done: u64,
        steps: u64,
    },
}

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
        let paths = Paths::new(options.out)?;
        let device = DeviceRecord { lanes: self.recipe.lanes, ..options.device.record.clone() };
        if options.noise == NoiseSource::Secure && device.kind != "cpu" {
            return Err(TrainingError::Device(
                "secure noise is made on the CPU only; use --device cpu".into(),
            ));
        }
        let plan = self.plan(options.noise, &device);
        if options.force {
            paths.remove_all()?;
        } else if let Some(ledger) = paths.finished()? {
            if ledger.plan != plan {
                return Err(TrainingError::Recipe(format!(
                    "{} holds another training; choose another folder, or --force to replace it",
                    options.out.display()
                )));
            }
            let resumed_from = self.recipe.steps();
            return Ok(TrainingOutcome::Complete {
                ledger: Box::new(ledger),
                resumed_from,
                found: true,
            });
        }
        let found = files::read_checkpoint(&paths.checkpoint)?;
        if let Some((progress, _)) = &found
            && progress.plan != plan
        {
            return Err(TrainingError::Checkpoint {
                path: paths.checkpoint.clone(),
                reason: "it belongs to another training (or another kind of device); choose \
                         another folder, or --force to start over"
                    .into(),
            });
        }
        let mut progress = Progress {
            plan,
            steps_done: 0,
            summary: Summary::default(),
            sessions: Vec::new(),
            secret_key: None,
        };
        let mut state = None;
        if let Some((saved, saved_state)) = found {
            (progress, state) = (saved, Some(saved_state));
        } else if options.noise == NoiseSource::Secure {
            let key = SecureKey::fresh().map_err(|error| {
                TrainingError::Device(format!("the system gives no randomness: {error}"))
            })?;
            progress.secret_key = Some(key.to_bytes());
        }
        self.recipe.secure = progress.key();
        let train = Arc::new(self.split.train.clone());
        let mut replicas =
            (options.device.open)(Arc::new(self.recipe.clone()), train, vec![Replica::new(0)])?;
        replicas.keep_statistics();
        let resumed_from = progress.steps_done;
        if let Some(state) = state {
            replicas.restore(resumed_from, vec![state])?;
        }
        progress.sessions.push(SessionRecord { from_step: resumed_from, to_step: resumed_from });
        let steps = self.recipe.steps();
        if !self.steps(replicas.as_mut(), &mut progress, &paths, options)? {
            return Ok(TrainingOutcome::Interrupted { done: progress.steps_done, steps });
        }
        (options.report)(&TrainingEvent::Evaluating);
        let mut parameters = Vec::new();
        replicas.all_parameters(&mut parameters)?;
        let ledger = self.ledger(&progress, &device, &parameters)?;
        // One entry only: the order of several would differ from run to run.
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        let bytes = files::model_bytes(&self.recipe.network, &parameters, metadata);
        files::write(&paths.model, bytes)?;
        let mut text = serde_json::to_string_pretty(&ledger).expect("a ledger is plain data");
        text.push('\n');
        files::write(&paths.ledger, text)?;
        paths.remove(&paths.checkpoint)?;
        Ok(TrainingOutcome::Complete { ledger: Box::new(ledger), resumed_from, found: false })
    }

    /// Takes the steps that are left; `false` when it was asked to stop.
    fn steps(
        &self,
        replicas: &mut dyn Replicas,
        progress: &mut Progress,
        paths: &Paths,
        options: &TrainingOptions<'_>,
    ) -> Result<bool, TrainingError> {
        let steps = self.recipe.steps();
        (options.report)(&TrainingEvent::Started { steps, done: progress.steps_done });
        let mut saved = Instant::now();
        if progress.secret_key.is_some() && progress.steps_done == 0 {
            // No step may be taken under a key that could be lost and drawn again.
            save(replicas, progress, paths)?;
        }
        while progress.steps_done < steps {
            if options.stop.load(Ordering::Relaxed) {
                save(replicas, progress, paths)?;
                return Ok(false);
            }
            let step = progress.steps_done;
            replicas.advance(1)?;
            progress.steps_done += 1;
            if let Some(session) = progress.sessions.last_mut() {
                session.to_step = progress.steps_done;
            }
            let (mut loss, mut accuracy) = (None, None);
            if let Some([found]) = replicas.statistics() {
                progress.summary.add(step, found);
                let size = found.batch_size.max(1) as f64;
                (loss, accuracy) = (Some(found.loss_sum / size), Some(found.correct as f64 / size));
            }
            let done = progress.steps_done;
            (options.report)(&TrainingEvent::Step { done, steps, loss, accuracy });
            if saved.elapsed() >= options.checkpoint_every {
                save(replicas, progress, paths)?;
                saved = Instant::now();
            }
        }
        Ok(true)
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
                "the run has {}: the numbers for Poisson sampling do not hold for them",
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

fn save(
    replicas: &mut dyn Replicas,
    progress: &Progress,
    paths: &Paths,
) -> Result<(), TrainingError> {
    let state = replicas.states()?.pop().expect("one replica is trained");
    files::write_checkpoint(&paths.checkpoint, progress, &state)
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
    const PART: usize = 2048;
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

/// The files of a training.
struct Paths {
    model: PathBuf,
    ledger: PathBuf,
    checkpoint: PathBuf,
}

impl Paths {
    fn new(folder: &Path) -> Result<Self, TrainingError> {
        std::fs::create_dir_all(folder).map_err(TrainingError::io("create the folder", folder))?;
        Ok(Self {
            model: folder.join("model.safetensors"),
            ledger: folder.join("ledger.json"),
            checkpoint: folder.join("checkpoint.safetensors"),
        })
    }

    fn finished(&self) -> Result<Option<Ledger>, TrainingError> {
        let text = match std::fs::read_to_string(&self.ledger) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(TrainingError::io("read", &self.ledger)(error)),
        };
        let ledger: Ledger =
            serde_json::from_str(&text).map_err(|error| TrainingError::Description {
                place: self.ledger.display().to_string(),
                message: format!("it is not a ledger: {error}; --force replaces it"),
            })?;
        Ok(Some(ledger))
    }

    fn remove(&self, path: &Path) -> Result<(), TrainingError> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(TrainingError::io("remove", path)(error))
            }
            _ => Ok(()),
        }
    }

    fn remove_all(&self) -> Result<(), TrainingError> {
        [&self.model, &self.ledger, &self.checkpoint].into_iter().try_for_each(|p| self.remove(p))
    }
}
