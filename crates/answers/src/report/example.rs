//! The built-in example: a small network on UCI Adult, trained once for its ledger and thousands of
//! times with and without a canary.

use super::Inputs;
use crate::{Ended, Refusal, Work, exit};
use attacks::{AttackError, CanaryKind, Conditions, Coordinate, Target, TrainedGame};
use experiments::{Experiment, Outcome, Settings, Shard};
use report::Seed;
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
const TRAINING: &str = include_str!("example.toml");
/// As many of Adult's records, evenly spread, so that a training takes milliseconds.
const RECORDS: usize = 2560;
/// Trainings on either side: about a minute of work on two cores.
const TRIALS: u64 = 4000;
pub(super) const DELTA: f64 = 1e-5;
/// Where the example keeps its work.
const WORK: &str = ".dosimeter";

/// Plays the example (or finds it played) and takes its ledger and scores.
///
/// # Errors
/// No trials, and files that cannot be written.
pub(super) fn play(trials: Option<u64>, work: &dyn Work) -> Result<Ended<Inputs>, Refusal> {
    let trials = trials.unwrap_or(TRIALS);
    let example = Example::new()?;
    let game = example.game(trials).map_err(|error| Refusal::bad_input(error.to_string()))?;
    // The folder carries the plan's name, so that another version's example is not in the way.
    let folder = Path::new(WORK).join(format!("example-{}", &game.plan().digest()[..12]));
    std::fs::create_dir_all(&folder).map_err(|error| Refusal::unwritable(&folder, &error))?;
    let described = folder.join("training.toml");
    formats::files::write(&described, TRAINING)
        .map_err(|error| Refusal::unwritable(&described, &error))?;
    work.note("training a small network on UCI Adult with DP-SGD, for its ledger");
    let stop = work.stop();
    if !example.train(&folder.join("model"), &stop)? {
        return Ok(Ended::Stopped(exit::INTERRUPTED));
    }
    work.note(&format!(
        "attacking it: {} trainings with a canary and as many without, a minute or two on two \
         cores",
        vocabulary::rounding::with_commas(trials)
    ));
    let path = folder.join("scores.csv");
    // One chunk at a time, whose replicas share the threads.
    let settings =
        Settings { threads: 1, shard: Shard::ALL, force: false, reporter: work, stop: &stop };
    match experiments::run(&game, &path, &settings)? {
        Outcome::Complete { .. } => {}
        Outcome::Incomplete { .. } => return Ok(Ended::Stopped(exit::INCOMPLETE)),
        Outcome::Interrupted { .. } => return Ok(Ended::Stopped(exit::INTERRUPTED)),
    }
    let mut inputs = Inputs::default();
    let seed = example.description.seed;
    inputs.seeds.push(Seed { purpose: "training and attack".into(), seed });
    inputs.notes.push(format!(
        "The scores are those of: dosimeter attack gradient training.toml --records {RECORDS} \
         --coordinate quiet --trials {trials} --device cpu --out scores.csv"
    ));
    inputs.notes.push(
        "Every score is a training of its own, with its own batches and noise, on the same \
         records. The canary is a gradient of the clip norm along one coordinate of the model that \
         hardly moves otherwise; the attacker sees the first and the last iterate. Such a gradient \
         is stronger than a real record\u{2019}s, so what is measured is about the mechanism and \
         not about one of Adult\u{2019}s people."
            .into(),
    );
    inputs.add(&folder.join("model").join("ledger.json"), "ledger.json")?;
    inputs.add(&path, "scores.csv")?;
    Ok(Ended::Answered(inputs))
}

/// Everything that is computed with.
struct Example {
    description: TrainingDescription,
    split: Split,
    target: Target,
}

impl Example {
    /// Reads the data and checks the training.
    ///
    /// # Errors
    /// None: everything is built in.
    fn new() -> Result<Self, Refusal> {
        let description = TrainingDescription::from_toml_str(TRAINING).map_err(refused)?;
        let mut split = description
            .data
            .load(Path::new(""))
            .map_err(|error| Refusal::bad_input(error.to_string()))?;
        split.train = split.train.select(&attacks::spread(split.train.len(), RECORDS));
        let run = description.run.clone().resolve()?.run;
        let TrainingDescription { model, optimizer, seed, .. } = description.clone();
        let target = Target::new(model, optimizer, run, split.clone(), None, seed)
            .map_err(|error| Refusal::bad_input(error.to_string()))?;
        Ok(Self { description, split, target })
    }

    /// A Dirac gradient on a quiet coordinate, against the other records as they are; the attacker
    /// sees the last iterate.
    ///
    /// # Errors
    /// No trials.
    fn game(&self, trials: u64) -> Result<TrainedGame, AttackError> {
        let canary = CanaryKind::Gradient { coordinate: Coordinate::Quiet, every: 1 };
        TrainedGame::new(&self.target, &Conditions::new(canary), Device::cpu(), trials)
    }

    /// Trains the model itself, without a canary, and writes its ledger; `false` when it was asked
    /// to stop.
    ///
    /// # Errors
    /// Files that cannot be written.
    fn train(&self, out: &Path, stop: &AtomicBool) -> Result<bool, Refusal> {
        let run = self.target.run().clone();
        let mut training =
            Training::new(self.description.clone(), run, self.split.clone()).map_err(refused)?;
        let options = TrainingOptions {
            out,
            noise: NoiseSource::Fast,
            device: &Device::cpu(),
            force: false,
            checkpoint_every: Duration::from_secs(5),
            stop,
            report: &|_| {},
        };
        let outcome = training.carry_out(&options).map_err(refused)?;
        Ok(matches!(outcome, TrainingOutcome::Complete { .. }))
    }
}

fn refused(error: TrainingError) -> Refusal {
    Refusal::bad_input(error.to_string())
        .hint("run in a folder you may write to; deleting .dosimeter starts the example over")
}
