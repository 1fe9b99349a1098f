//! What every training that can be broken off has in common: its folder, checkpoints, events and the
//! files at its end. Whoever trains implements [`Steps`]; the rest is here.
//!
//! A checkpoint is written every few seconds and when the program is asked to stop. It holds the
//! parameters, the optimiser's memory and the statistics; all randomness is a function of (seed or
//! key, step), so a resumed training ends in the same bytes as one that was never interrupted, and
//! its ledger covers all of it.

use crate::TrainingError;
use crate::backend::ReplicaState;
use crate::device::Device;
use crate::files::{self, Progress};
use crate::ledger::{Ledger, SessionRecord};
use crate::statistics::StepStatistics;
use crate::summary::Summary;
use random::SecureKey;
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Which generator makes noise and batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseSource {
    /// Philox from the seed: for auditing and experiments.
    #[default]
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

/// What takes the steps of one training.
pub trait Steps {
    /// Takes the next step; gives its statistics where the device keeps them.
    ///
    /// # Errors
    /// A gradient that is not finite, or trouble with the device.
    fn step(&mut self) -> Result<Option<StepStatistics>, TrainingError>;

    /// Parameters and optimiser memory, for a checkpoint.
    ///
    /// # Errors
    /// Trouble with the device.
    fn state(&mut self) -> Result<Cow<'_, ReplicaState>, TrainingError>;

    /// Goes back to a saved state after `steps_done` steps.
    ///
    /// # Errors
    /// When the state is that of another model, or trouble with the device.
    fn restore(&mut self, steps_done: u64, state: ReplicaState) -> Result<(), TrainingError>;
}

/// A training in its folder, from what was found there to the files at its end.
pub struct Session<'a> {
    options: &'a TrainingOptions<'a>,
    /// Of the whole training.
    steps: u64,
    progress: Progress,
    /// What a checkpoint held, until a trainer has it.
    found: Option<ReplicaState>,
    resumed_from: u64,
    /// Whether a checkpoint holds all that is needed to go on; else a training that is stopped starts over.
    pub resumable: bool,
}

impl<'a> Session<'a> {
    /// Looks into the folder. `plan` names what has to be the same for two trainings to give the same model;
    /// `others` are files that are written beside the model and the ledger. Breaks with the outcome where the
    /// training is there already.
    ///
    /// # Errors
    /// Files that cannot be read or written, another training's files, no randomness for a key.
    pub fn open(
        options: &'a TrainingOptions<'a>,
        plan: String,
        steps: u64,
        others: &[&str],
    ) -> Result<ControlFlow<TrainingOutcome, Self>, TrainingError> {
        let folder = options.out;
        std::fs::create_dir_all(folder).map_err(TrainingError::io("create the folder", folder))?;
        let mut session = Self {
            options,
            steps,
            progress: Progress {
                plan,
                steps_done: 0,
                summary: Summary::default(),
                sessions: Vec::new(),
                secret_key: None,
            },
            found: None,
            resumed_from: 0,
            resumable: true,
        };
        if options.force {
            for name in [MODEL, LEDGER, CHECKPOINT].iter().chain(others) {
                remove(&session.path(name))?;
            }
        } else if let Some(ledger) = finished(&session.path(LEDGER))? {
            if ledger.plan != session.progress.plan {
                return Err(TrainingError::Recipe(format!(
                    "the folder {} holds another training; choose another folder, or --force to replace it",
                    folder.display()
                )));
            }
            let ledger = Box::new(ledger);
            let outcome = TrainingOutcome::Complete { ledger, resumed_from: steps, found: true };
            return Ok(ControlFlow::Break(outcome));
        }
        let path = session.path(CHECKPOINT);
        if let Some((progress, state)) = files::read_checkpoint(&path)? {
            if progress.plan != session.progress.plan {
                return Err(TrainingError::Checkpoint {
                    path,
                    reason: "it belongs to another training (or another kind of device); choose \
                             another folder, or --force to start over"
                        .into(),
                });
            }
            session.resumed_from = progress.steps_done;
            (session.progress, session.found) = (progress, Some(state));
        } else if options.noise == NoiseSource::Secure {
            let key = SecureKey::fresh().map_err(|error| {
                TrainingError::Device(format!("the system gives no randomness: {error}"))
            })?;
            session.progress.secret_key = Some(key.to_bytes());
        }
        Ok(ControlFlow::Continue(session))
    }

    /// A file of the training.
    pub fn path(&self, name: &str) -> PathBuf {
        self.options.out.join(name)
    }

    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Takes the steps that are left; breaks with the outcome when it was asked to stop.
    ///
    /// # Errors
    /// Those of the trainer, and files that cannot be written.
    pub fn train(
        &mut self,
        trainer: &mut dyn Steps,
    ) -> Result<ControlFlow<TrainingOutcome>, TrainingError> {
        let (options, steps, from_step) = (self.options, self.steps, self.resumed_from);
        if let Some(state) = self.found.take() {
            trainer.restore(from_step, state)?;
        }
        self.progress.sessions.push(SessionRecord { from_step, to_step: from_step });
        (options.report)(&TrainingEvent::Started { steps, done: from_step });
        if self.progress.secret_key.is_some() && from_step == 0 {
            // No step may be taken under a key that could be lost and drawn again.
            self.save(trainer)?;
        }
        let mut saved = Instant::now();
        while self.progress.steps_done < steps {
            if options.stop.load(Ordering::Relaxed) {
                self.save(trainer)?;
                let done = if self.resumable { self.progress.steps_done } else { 0 };
                return Ok(ControlFlow::Break(TrainingOutcome::Interrupted { done, steps }));
            }
            let found = trainer.step()?;
            let (mut loss, mut accuracy) = (None, None);
            if let Some(found) = found {
                self.progress.summary.add(self.progress.steps_done, &found);
                let size = found.batch_size.max(1) as f64;
                (loss, accuracy) = (Some(found.loss_sum / size), Some(found.correct as f64 / size));
            }
            self.progress.steps_done += 1;
            let done = self.progress.steps_done;
            if let Some(session) = self.progress.sessions.last_mut() {
                session.to_step = done;
            }
            (options.report)(&TrainingEvent::Step { done, steps, loss, accuracy });
            if saved.elapsed() >= options.checkpoint_every {
                self.save(trainer)?;
                saved = Instant::now();
            }
        }
        (options.report)(&TrainingEvent::Evaluating);
        Ok(ControlFlow::Continue(()))
    }

    fn save(&self, trainer: &mut dyn Steps) -> Result<(), TrainingError> {
        if !self.resumable {
            return Ok(());
        }
        let state = trainer.state()?;
        files::write_checkpoint(&self.path(CHECKPOINT), &self.progress, &state)
    }

    /// Writes the model and the ledger; the checkpoint has served.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn finish(
        self,
        model: impl AsRef<[u8]>,
        ledger: Ledger,
    ) -> Result<TrainingOutcome, TrainingError> {
        files::write(&self.path(MODEL), model)?;
        let mut text = serde_json::to_string_pretty(&ledger).expect("a ledger is plain data");
        text.push('\n');
        files::write(&self.path(LEDGER), text)?;
        remove(&self.path(CHECKPOINT))?;
        let resumed_from = self.resumed_from;
        Ok(TrainingOutcome::Complete { ledger: Box::new(ledger), resumed_from, found: false })
    }
}

const MODEL: &str = "model.safetensors";
const LEDGER: &str = "ledger.json";
const CHECKPOINT: &str = "checkpoint.safetensors";

fn finished(path: &Path) -> Result<Option<Ledger>, TrainingError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(TrainingError::io("read", path)(error)),
    };
    let ledger = serde_json::from_str(&text).map_err(|error| TrainingError::Description {
        place: path.display().to_string(),
        message: format!("it is not a ledger: {error}; --force replaces it"),
    })?;
    Ok(Some(ledger))
}

fn remove(path: &Path) -> Result<(), TrainingError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(TrainingError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
