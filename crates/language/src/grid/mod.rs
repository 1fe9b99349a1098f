//! Trainings over a grid of hyper-parameters at fixed (epsilon, delta), each measured, as one
//! experiment: a trial is a training from the same start, its row the line that `tune` reads.
//!
//! The noise of every point is calibrated to its epsilon; scores are those of `memorize`; utility is
//! minus the held-out loss in nats per token; with canaries, every training is audited.

mod description;

pub use description::{GridDescription, GridTable, MeasureTable, MetricName};

use crate::LanguageError;
use crate::finetune::{Finetuning, Place, Scope, Start, fingerprint};
use crate::memorization::{Asking, Completion, Questions, ask_with, measure, read_secrets};
use crate::model::Sampling;
use experiments::{Experiment, Plan};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use training::{Device, OptimizerDescription};
use vocabulary::{PhaseDescription, Run, RunDescription};

/// The noise multiplier at which a run meets (epsilon, delta).
pub type Calibrate<'a> = dyn Fn(&Run, f64, f64) -> Result<f64, String> + 'a;

/// From canaries' scores and memberships, at delta.
pub type AuditCanaries<'a> =
    dyn Fn(&[f64], &[bool], f64) -> Result<CanaryAudit, String> + Sync + 'a;

/// What canaries show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CanaryAudit {
    /// A lower bound.
    pub epsilon: f64,
    /// The share of pairs of a member and another in which the member's score is larger.
    pub auroc: f64,
}

/// One training of a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridPoint {
    pub batch_size: u64,
    pub steps: u64,
    pub learning_rate: f64,
    pub clip_norm: f64,
    pub epsilon: f64,
    pub seed: u64,
    pub noise_multiplier: f64,
}

/// A grid with its model, data and secrets.
pub struct Grid<'a> {
    start: Start,
    secrets: Vec<Completion>,
    measure: MeasureTable,
    points: Vec<GridPoint>,
    delta: f64,
    plan: Plan,
    audit: &'a AuditCanaries<'a>,
    place: Place,
    /// Held by the training that has the device.
    device: Mutex<()>,
    /// Tokens of the longest prompt with its completion.
    longest: usize,
}

/// A training of the grid: what `[run]` says of batches and neighbours, with sizes of its own.
fn described(
    start: &Start,
    batch_size: u64,
    steps: u64,
    noise_multiplier: f64,
    clip_norm: Option<f64>,
) -> Result<Run, LanguageError> {
    let whole = PhaseDescription {
        noise_multiplier: Some(noise_multiplier),
        batch_size: Some(batch_size),
        steps: Some(steps),
        ..PhaseDescription::default()
    };
    let dataset_size = Some(start.records());
    let run = RunDescription { whole, dataset_size, clip_norm, ..start.description.run.clone() };
    let resolved = run.resolve();
    resolved
        .map(|found| found.run)
        .map_err(|error| LanguageError::InvalidInput(format!("[grid]: {error}")))
}

impl<'a> Grid<'a> {
    /// Reads everything and calibrates every point.
    ///
    /// # Errors
    /// Files that are not what they should be, and points that cannot be.
    pub fn new(
        description: GridDescription,
        folder: &Path,
        calibrate: &Calibrate<'_>,
        audit: &'a AuditCanaries<'a>,
        device: &Device,
    ) -> Result<Self, LanguageError> {
        let place = Place::of(device)?;
        let GridDescription { training, grid, measure } = description;
        let start = Start::open(training, folder)?;
        let secrets = read_secrets(&folder.join(&measure.secrets))?;
        let records = start.records();
        let delta = grid.delta.unwrap_or_else(|| start.delta());
        let mut points = Vec::new();
        // Neighbouring trials share their noise; seeds come last, so that a table that is cut short
        // has whole configurations.
        for &epsilon in &grid.epsilon {
            for &batch_size in &grid.batch_size {
                if batch_size == 0 || batch_size > records {
                    return Err(LanguageError::InvalidInput(format!(
                        "[grid]: batch size {batch_size} is outside 1 to the {records} records"
                    )));
                }
                for &steps in &grid.steps {
                    let run = described(&start, batch_size, steps, 1.0, None)?;
                    let noise_multiplier =
                        calibrate(&run, epsilon, delta).map_err(LanguageError::InvalidInput)?;
                    for &learning_rate in &grid.learning_rate {
                        for &clip_norm in &grid.clip_norm {
                            for &seed in &grid.seed {
                                points.push(GridPoint {
                                    batch_size,
                                    steps,
                                    learning_rate,
                                    clip_norm,
                                    epsilon,
                                    seed,
                                    noise_multiplier,
                                });
                            }
                        }
                    }
                }
            }
        }
        let plan = plan(&start, &grid, &measure, &secrets, delta, points.len() as u64, device);
        let mut longest = 0;
        for secret in &secrets {
            longest = longest.max(start.model.tokenizer.encode(&secret.prompt, true)?.len());
        }
        let longest = (longest + measure.new_tokens).min(start.model.decoder.architecture.context);
        let device = Mutex::new(());
        let made =
            Self { start, secrets, measure, points, delta, plan, audit, place, device, longest };
        for point in &made.points {
            made.run(point)?;
        }
        Ok(made)
    }

    /// All trainings, in the order of the table.
    pub fn points(&self) -> &[GridPoint] {
        &self.points
    }

    pub fn delta(&self) -> f64 {
        self.delta
    }

    fn run(&self, point: &GridPoint) -> Result<Run, LanguageError> {
        let (noise, clip_norm) = (point.noise_multiplier, Some(point.clip_norm));
        described(&self.start, point.batch_size, point.steps, noise, clip_norm)
    }

    fn row(&self, point: &GridPoint) -> Result<String, LanguageError> {
        let mut start = self.start.description.clone();
        set_rate(&mut start.optimizer, point.learning_rate);
        let run = self.run(point)?;
        let place = &self.place;
        let mut training =
            Finetuning::with(&self.start, &start, run, point.seed, place, self.longest)?;
        let mut measurer = training.train(&|| true)?.unwrap_or_default();
        let decoder = training.decoder();
        let audit = match training.canary_scores(&mut measurer)? {
            Some((scores, members)) => {
                let found = (self.audit)(&scores, members, self.delta)
                    .map_err(LanguageError::InvalidInput)?;
                [found.epsilon.to_string(), found.auroc.to_string()]
            }
            None => [String::new(), String::new()],
        };
        let asking = Asking {
            samples: self.measure.samples,
            new_tokens: self.measure.new_tokens,
            sampling: Sampling { top_k: self.measure.top_k, ..Sampling::default() },
            seed: point.seed,
        };
        let model = &self.start.model;
        // Tokens that were added for canaries are no answer.
        let cut;
        let answering = if decoder.architecture.vocabulary > model.decoder.architecture.vocabulary {
            cut = decoder.with_vocabulary(model.decoder.architecture.vocabulary);
            drop(measurer);
            let same = start.scope() == (Scope::Adapters { embedding: false });
            measurer = self.place.measurer(&cut, self.longest.max(self.longest_test()), same)?;
            &cut
        } else {
            decoder
        };
        let questions = Questions {
            tokenizer: &model.tokenizer,
            stop: &model.stop,
            secrets: &self.secrets,
            asking: &asking,
        };
        let completions = ask_with(&mut measurer, answering, &questions, &mut |_| {})?;
        let mut scores = Vec::new();
        for name in &self.measure.metrics {
            let metric = name.metric();
            let found = measure(metric, metric.matching(), &completions, None, 0.95)?;
            scores.push(found.score.value.to_string());
        }
        let utility = match &self.start.test {
            Some(test) => (-measurer.loss(answering, &test.examples)?).to_string(),
            None => String::new(),
        };
        let described = [
            point.batch_size.to_string(),
            point.steps.to_string(),
            point.learning_rate.to_string(),
            point.clip_norm.to_string(),
            point.epsilon.to_string(),
            self.delta.to_string(),
            point.seed.to_string(),
            point.noise_multiplier.to_string(),
        ];
        let measured = scores.into_iter().chain([utility]).chain(audit);
        Ok(formats::csv::line(described.into_iter().chain(measured)))
    }
}

impl Grid<'_> {
    fn longest_test(&self) -> usize {
        let examples = self.start.test.iter().flat_map(|test| &test.examples);
        examples.map(|example| example.tokens.len()).max().unwrap_or(0)
    }
}

impl Experiment for Grid<'_> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rows(&self, trials: Range<u64>, table: &mut String) -> Result<(), String> {
        if self.place.is_device() {
            // One training has the device at a time.
            let _held = self.device.lock().unwrap_or_else(PoisonError::into_inner);
            for trial in trials {
                let point = &self.points[usize::try_from(trial).map_err(|e| e.to_string())?];
                table.push_str(&self.row(point).map_err(|error| error.to_string())?);
            }
            return Ok(());
        }
        // Trainings run side by side: one thread each.
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .map_err(|error| error.to_string())?;
        for trial in trials {
            let point = &self.points[usize::try_from(trial).map_err(|e| e.to_string())?];
            let row = pool.install(|| self.row(point)).map_err(|error| error.to_string())?;
            table.write_str(&row).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn set_rate(optimizer: &mut OptimizerDescription, rate: f64) {
    match optimizer {
        OptimizerDescription::Sgd { learning_rate, .. }
        | OptimizerDescription::Adam { learning_rate, .. }
        | OptimizerDescription::AdamW { learning_rate, .. } => *learning_rate = rate,
    }
}

fn plan(
    start: &Start,
    grid: &GridTable,
    measure: &MeasureTable,
    secrets: &[Completion],
    delta: f64,
    trials: u64,
    device: &Device,
) -> Plan {
    let mut hash = Sha256::new();
    for secret in secrets {
        hash.update(format!("{secret:?}\n"));
    }
    let asked: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let description = &start.description;
    let mut optimizer = description.optimizer;
    set_rate(&mut optimizer, 0.0);
    let mut parameters = serde_json::json!({
        "model": description.model,
        "weights": fingerprint(&start.model.decoder),
        "data": description.data,
        "data_sha256": start.texts.sha256,
        "test_sha256": start.test.as_ref().map(|test| test.sha256.clone()),
        "sampling": description.run.sampling.map(|sampling| sampling.as_str()),
        "optimizer": optimizer,
        "canaries": description.canaries,
        "grid": grid,
        "delta": delta,
        "measure": measure,
        "secrets_sha256": asked,
    });
    // Devices differ by rounding: a table is of one kind.
    if device.record.kind != "cpu" {
        let record = &device.record;
        parameters["device"] = serde_json::json!([record.kind, record.precision]);
    }
    let scores: String =
        measure.metrics.iter().map(|name| format!("score_{},", name.metric().as_str())).collect();
    let header = format!(
        "batch_size,steps,learning_rate,clip_norm,epsilon,delta,seed,noise_multiplier,{scores}\
         utility,audit_epsilon,canary_auroc"
    );
    Plan::new("tune grid", parameters, 0, header, 1, trials)
}
