//! The game of many canaries: one fine-tuning, one score per canary (design one-run), as an experiment.
//!
//! The training keeps its state in a folder and goes on from there; the same plan gives the same
//! bytes at any number of threads and interruptions.

use super::place::Place;
use super::planted::Planted;
use super::records::fingerprint;
use super::session::{Finetuning, Start};
use crate::LanguageError;
use experiments::{Experiment, Plan};
use formats::csv::CsvTable;
use serde_json::json;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use training::{
    Device, Ledger, NoiseSource, TrainingError, TrainingEvent, TrainingOptions, TrainingOutcome,
};
use vocabulary::Run;

/// Where and how a training with canaries is carried out; nothing here but the device changes a
/// number.
pub struct Site {
    /// For the model, the ledger, the scores and meanwhile the checkpoint.
    pub folder: PathBuf,
    pub device: Arc<Device>,
    pub checkpoint_every: Duration,
    /// Set to stop after the step in hand.
    pub stop: Arc<AtomicBool>,
}

/// A training that was carried out.
pub struct Played {
    pub ledger: Box<Ledger>,
    /// Of every canary, and whether it was in.
    pub scores: Vec<(f64, bool)>,
}

/// Carries out the training of a description with canaries, or finds it done.
///
/// # Errors
/// Those of [`Finetuning::carry_out`]; a sentence for one that was stopped.
pub fn play(start: &Start, run: &Run, seed: u64, site: &Site) -> Result<Played, TrainingError> {
    let as_training_error = |error: LanguageError| TrainingError::Recipe(error.to_string());
    let place = Place::of(&site.device).map_err(as_training_error)?;
    let mut training =
        Finetuning::new(start, run.clone(), seed, &place).map_err(as_training_error)?;
    let options = TrainingOptions {
        out: &site.folder,
        noise: NoiseSource::Fast,
        device: &site.device,
        force: false,
        checkpoint_every: site.checkpoint_every,
        stop: &site.stop,
        report: &|_: &TrainingEvent| (),
    };
    match training.carry_out(&options)? {
        TrainingOutcome::Interrupted { done, steps } => Err(TrainingError::Recipe(format!(
            "interrupted after {done} of {steps} steps; run the same command again to resume"
        ))),
        TrainingOutcome::Complete { ledger, .. } => {
            let path = site.folder.join("canaries.csv");
            let text = std::fs::read_to_string(&path).map_err(|source| TrainingError::Io {
                action: "read",
                path: path.clone(),
                source,
            })?;
            let table = CsvTable::read(&text).map_err(TrainingError::Recipe)?;
            let scores = table.rows().filter_map(|(_, cells)| match cells {
                [score, member, ..] => Some((score.parse().ok()?, member == "1")),
                _ => None,
            });
            Ok(Played { ledger, scores: scores.collect() })
        }
    }
}

/// One training, one score per canary.
pub struct CanaryGame<'a> {
    start: &'a Start,
    run: Run,
    seed: u64,
    site: Site,
    plan: Plan,
}

impl<'a> CanaryGame<'a> {
    /// Checks a training whose description has canaries.
    ///
    /// # Errors
    /// A description without canaries, and whatever does not fit together.
    pub fn new(start: &'a Start, run: Run, seed: u64, site: Site) -> Result<Self, LanguageError> {
        let place = Place::of(&site.device)?;
        let checked = Finetuning::new(start, run.clone(), seed, &place)?;
        let Some(canaries) = &checked.canaries else {
            return Err(LanguageError::InvalidInput(
                "the description has no [canaries]; add `count = 500` there".into(),
            ));
        };
        let description = &start.description;
        let parameters = json!({
            "design": "one-run",
            "run": run,
            "model": description.model,
            "weights": fingerprint(&start.model.decoder),
            "data_sha256": start.texts.sha256,
            "records": start.records(),
            "optimizer": description.optimizer,
            "canaries": description.canaries,
            "score": canaries.score(),
            "device": site.device.record,
        });
        let count = canaries.members().len() as u64;
        let header = "# design: one-run\nscore,member,canary";
        let kind = match canaries {
            Planted::Token(_) => "attack token",
            Planted::Gradient(_) => "attack canaries language",
        };
        let plan = Plan::new(kind, parameters, seed, header, count, count);
        Ok(Self { start, run, seed, site, plan })
    }
}

impl Experiment for CanaryGame<'_> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    /// One training has all canaries, so that there is one chunk.
    fn rows(&self, trials: Range<u64>, table: &mut String) -> Result<(), String> {
        let played = play(self.start, &self.run, self.seed, &self.site)
            .map_err(|error| error.to_string())?;
        for ((score, member), number) in played.scores.iter().zip(0_u64..) {
            if trials.contains(&number) {
                let member = u8::from(*member);
                formats::csv::row(table, &[score, &member, &number]);
            }
        }
        Ok(())
    }
}
