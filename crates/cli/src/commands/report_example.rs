//! The built-in example: a small network on UCI Adult, trained once for its ledger and thousands of
//! times with and without a canary.

use crate::failure::Failure;
use attacks::{AttackError, CanaryKind, Conditions, Coordinate, Target, TrainedGame};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use training::data::Split;
use training::{
    Device, NoiseSource, Training, TrainingDescription, TrainingError, TrainingOptions,
    TrainingOutcome,
};

/// The training, as `train` and `attack` read it. Its proven epsilon is small enough for a few
/// thousand scores to test, and large enough for them to show a good part of it.
pub(super) const TRAINING: &str = include_str!("report_example.toml");
/// As many of Adult's records, evenly spread, so that a training takes milliseconds.
const RECORDS: usize = 2560;
/// Trainings on either side: about a minute of work on two cores.
pub(super) const TRIALS: u64 = 4000;
pub(super) const DELTA: f64 = 1e-5;

/// Everything that is computed with.
pub(super) struct Example {
    description: TrainingDescription,
    split: Split,
    target: Target,
}

impl Example {
    /// Reads the data and checks the training.
    ///
    /// # Errors
    /// None: everything is built in.
    pub(super) fn new() -> Result<Self, Failure> {
        let description = TrainingDescription::from_toml_str(TRAINING).map_err(training_failure)?;
        let mut split = description
            .data
            .load(Path::new(""))
            .map_err(|error| Failure::bad_input(error.to_string()))?;
        split.train = split.train.select(&attacks::spread(split.train.len(), RECORDS));
        let run = description.run.clone().resolve()?.run;
        let TrainingDescription { model, optimizer, seed, .. } = description.clone();
        let target = Target::new(model, optimizer, run, split.clone(), None, seed)
            .map_err(|error| Failure::bad_input(error.to_string()))?;
        Ok(Self { description, split, target })
    }

    pub(super) fn seed(&self) -> u64 {
        self.description.seed
    }

    /// A Dirac gradient on a quiet coordinate, against the other records as they are; the attacker
    /// sees the last iterate.
    ///
    /// # Errors
    /// No trials.
    pub(super) fn game(&self, trials: u64) -> Result<TrainedGame, AttackError> {
        let canary = CanaryKind::Gradient { coordinate: Coordinate::Quiet, every: 1 };
        TrainedGame::new(&self.target, &Conditions::new(canary), Device::cpu(), trials)
    }

    /// Trains the model itself, without a canary, and writes its ledger; `false` when it was asked
    /// to stop.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub(super) fn train(&self, out: &Path, stop: &AtomicBool) -> Result<bool, Failure> {
        let run = self.target.run().clone();
        let mut training = Training::new(self.description.clone(), run, self.split.clone())
            .map_err(training_failure)?;
        let options = TrainingOptions {
            out,
            noise: NoiseSource::Fast,
            device: &Device::cpu(),
            force: false,
            checkpoint_every: Duration::from_secs(5),
            stop,
            report: &|_| {},
        };
        let outcome = training.carry_out(&options).map_err(training_failure)?;
        Ok(matches!(outcome, TrainingOutcome::Complete { .. }))
    }
}

/// The command that makes the same scores from the training's file.
pub(super) fn attack_command(trials: u64) -> String {
    format!(
        "dosimeter attack gradient training.toml --records {RECORDS} --coordinate quiet \
         --trials {trials} --device cpu --out scores.csv"
    )
}

fn training_failure(error: TrainingError) -> Failure {
    Failure::bad_input(error.to_string())
        .hint("run in a folder you may write to; deleting .dosimeter starts the example over")
}
