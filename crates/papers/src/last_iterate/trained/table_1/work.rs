//! The trainings of the table as an experiment: a trial is one fine-tuning with its canaries.

use super::{BATCHES, CANARIES, DELTA, EPOCHS, HEURISTIC, PREFIX, TEST_RECORDS, canaries};
use crate::PaperError;
use crate::tools::{noise_for_heuristic, put};
use crate::trained::TrainedContext;
use experiments::{ChunkState, Experiment, ExperimentError, Metadata, Plan, Settings, Shard, run};
use formats::csv::row;
use language::finetune::game::{Site, play};
use language::finetune::{FinetuneDescription, Place, Start, data as texts, fingerprint, weights};
use serde_json::json;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use training::Device;
use vocabulary::Run;

static MODEL: &[u8] =
    include_bytes!("../../../../../language/tests/data/stories260K/stories260K.bin");
static TOKENIZER: &[u8] =
    include_bytes!("../../../../../language/tests/data/stories260K/tok512.bin");

/// One batch size with its training.
pub(super) struct Setting {
    pub(super) batch: u64,
    pub(super) run: Run,
    pub(super) start: Start,
}

/// All trainings: seed after seed, every batch size in each.
pub(super) struct Trainings {
    pub(super) settings: Vec<Setting>,
    pub(super) source: String,
    /// Whether the embedding was trained beside the adapters.
    pub(super) embedding: bool,
    folder: PathBuf,
    /// Where the scores of each training's canaries are kept.
    scores: PathBuf,
    device: Arc<Device>,
    seed: u64,
    /// Whether tokens are added to the vocabulary for canaries.
    extended: bool,
    /// The loss of the model that all trainings begin with.
    before: OnceLock<Result<f64, String>>,
    stop: Arc<AtomicBool>,
    plan: Plan,
}

impl Trainings {
    pub(super) fn new(context: &TrainedContext<'_>, seeds: u64) -> Result<Self, PaperError> {
        let fine_tuning =
            |error: language::LanguageError| PaperError::FineTuning(error.to_string());
        let folder = context.folder.join("work");
        let wanted = context.records.map_or(super::RECORDS, |n| n as usize);
        let sizes = (wanted, TEST_RECORDS.min(wanted));
        let (records, source) = super::data::write(context.data, &folder, sizes)?;
        let small = context.model.is_none();
        let model = match context.model {
            Some(path) => std::path::absolute(path)
                .map_err(|source| PaperError::Read { path: path.to_owned(), source })?,
            None => {
                put(&folder, "model.bin", MODEL)?;
                put(&folder, "tokenizer.bin", TOKENIZER)?;
                "model.bin".into()
            }
        };
        // A twentieth of the records are canaries that are in.
        let canaries = (CANARIES * records / super::RECORDS).clamp(40, CANARIES);
        let open = |rate: f64, embedding: bool| {
            let text = format!(
                "[run]\nsteps = 1\nbatch_size = 1\nnoise_multiplier = 1.0\n\
                 [data]\npath = \"train.jsonl\"\ntest = \"test.jsonl\"\n\
                 [model]\nkind = \"language\"\npath = {path}\n{tokenizer}\
                 train = \"lora\"\nrank = 8\nalpha = {alpha:?}\nlength = 64\n\
                 projections = [\"query\", \"key\", \"value\", \"output\", \"up\", \"down\"]\n\
                 embedding = {embedding}\n\
                 [optimizer]\nkind = \"adam\"\nlearning_rate = {rate:?}\n\
                 [canaries]\ncount = {canaries}\nprefix = {PREFIX}\n",
                path = toml_string(&model.display().to_string()),
                tokenizer = if small { "tokenizer = \"tokenizer.bin\"\n" } else { "" },
                // Adapters whose gradients are large would take the clip norm from the canary's row.
                alpha = if embedding { 4.0 } else { 16.0 },
                rate = if small { rate } else { 0.2 * rate },
            );
            let described = FinetuneDescription::from_toml_str(&text).map_err(fine_tuning)?;
            Start::open(described, &folder).map_err(fine_tuning)
        };
        // Canaries are scored by their row of the embedding, which is trained where that takes no
        // hours: of the small model, and on a device where it is the head too.
        let on_device = context.device.record.kind != "cpu";
        let mut embedding = small || on_device;
        let mut settings: Vec<Setting> = Vec::new();
        for (batch, rate) in BATCHES {
            let batch = (batch * records as u64 / super::RECORDS as u64).max(1);
            let sample_rate = batch as f64 / records as f64;
            let steps = (EPOCHS / sample_rate).round() as u64;
            let noise = noise_for_heuristic(HEURISTIC, DELTA, sample_rate, steps)?;
            let run = Run::builder()
                .phase(noise, sample_rate, steps)
                .dataset_size(records as u64)
                .build()?;
            let mut start = open(rate, embedding)?;
            if embedding && on_device && start.model.decoder.head.is_some() {
                embedding = false;
                start = open(rate, embedding)?;
            }
            settings.push(Setting { batch, run, start });
        }
        let device = Arc::clone(&context.device);
        let first = &settings[0].start;
        // Where the weights lie does not matter for what was trained.
        let mut described = json!(first.description.model);
        described["path"] = json!(model.file_name().map(|name| name.to_string_lossy()));
        let parameters = json!({
            "runs": settings.iter().map(|setting| &setting.run).collect::<Vec<_>>(),
            "model": described,
            "weights": fingerprint(&first.model.decoder),
            "rates": settings.iter().map(|s| s.start.description.optimizer).collect::<Vec<_>>(),
            "canaries": first.description.canaries,
            "data": [&first.texts.sha256, &first.test.as_ref().expect("it is described").sha256],
            "delta": DELTA,
            "device": device.record,
        });
        let trials = seeds * BATCHES.len() as u64;
        let plan = Plan::new("table 1", parameters, context.seed, HEADER, 1, trials);
        let (seed, stop) = (context.seed, Arc::new(AtomicBool::new(false)));
        let mut used: BTreeSet<u32> = [0, 1, 2].into();
        used.extend(&first.model.stop);
        used.extend(first.texts.examples.iter().flat_map(|example| &example.tokens));
        let extended = used.len() + canaries > first.model.decoder.architecture.vocabulary;
        let (scores, before) = (context.folder.join("scores"), OnceLock::new());
        Ok(Self {
            settings,
            source,
            embedding,
            folder,
            scores,
            device,
            seed,
            extended,
            before,
            stop,
            plan,
        })
    }

    /// Trains what is missing; `false` when the time was up before all was there. The table then has
    /// the seeds that are finished, if any.
    pub(super) fn carry_on(&mut self, context: &TrainedContext<'_>) -> Result<bool, PaperError> {
        let output = context.output("trainings");
        if let Some(folder) = output.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|source| PaperError::Write { path: folder.to_owned(), source })?;
        }
        if context.is_late() && self.are_drawn_elsewhere(&output, context)? {
            return Ok(false);
        }
        let finished = AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !finished.load(Ordering::Relaxed) {
                    if context.is_late() || context.stop.load(Ordering::Relaxed) {
                        self.stop.store(true, Ordering::Relaxed);
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
            // Trainings run side by side on processors, one after the other on a device.
            let threads = match self.device.record.kind.as_str() {
                "cpu" => rayon::current_num_threads(),
                _ => 1,
            };
            let settings = Settings {
                threads,
                shard: Shard::ALL,
                force: false,
                reporter: context.reporter,
                stop: &self.stop,
            };
            let outcome = run(self, &output, &settings);
            finished.store(true, Ordering::Relaxed);
            outcome
        });
        let stopped = self.stop.load(Ordering::Relaxed);
        match outcome {
            Ok(experiments::Outcome::Complete { .. }) => return Ok(true),
            Err(ExperimentError::ChunkFailed { .. }) if stopped => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        if context.stop.load(Ordering::Relaxed) {
            return Err(PaperError::Interrupted);
        }
        context.incomplete.store(true, Ordering::Relaxed);
        // Merges the seeds that are there: fewer trials of the same plan.
        let states = experiments::status(&output)?.chunks;
        let whole = states.iter().take_while(|state| **state == ChunkState::Done).count() as u64;
        self.plan.trials = whole - whole % BATCHES.len() as u64;
        if self.plan.trials > 0 {
            let settings = Settings {
                threads: 1,
                shard: Shard::ALL,
                force: false,
                reporter: context.reporter,
                stop: &AtomicBool::new(false),
            };
            run(self, &output, &settings)?;
        }
        Ok(false)
    }

    /// Whether the same trainings were carried out on another device, so that they can be drawn here
    /// and not be continued.
    fn are_drawn_elsewhere(
        &mut self,
        output: &Path,
        context: &TrainedContext<'_>,
    ) -> Result<bool, PaperError> {
        let Some(there) = Metadata::beside(output)? else { return Ok(false) };
        let own = &self.plan.parameters;
        let same = |name: &str| there.parameters.get(name) == own.get(name);
        let other = there.plan != self.plan.digest()
            && there.seed == self.plan.seed
            && ["runs", "canaries", "data", "delta"].into_iter().all(same);
        if other {
            self.embedding = there.parameters["model"]["embedding"].as_bool() == Some(true);
            let short = there.trials < self.plan.trials;
            context.incomplete.fetch_or(short, Ordering::Relaxed);
        }
        Ok(other)
    }

    /// The loss of the test texts before training.
    fn loss_before(&self) -> Result<f64, String> {
        let start = &self.settings[0].start;
        let test = start.test.as_ref().map_or(&[][..], |test| &test.examples);
        let longest = test.iter().map(|example| example.tokens.len()).max().unwrap_or(1);
        let measured = || {
            let place = Place::of(&self.device)?;
            place.measurer(&start.model.decoder, longest, true)?.loss(&start.model.decoder, test)
        };
        let found = self
            .before
            .get_or_init(|| measured().map_err(|error: language::LanguageError| error.to_string()));
        found.clone()
    }

    fn row(&self, trial: u64) -> Result<String, String> {
        let setting = &self.settings[trial as usize % BATCHES.len()];
        let number = trial / BATCHES.len() as u64;
        let seed = self.seed + number;
        let words = |error: &dyn std::fmt::Display| error.to_string();
        let site = Site {
            folder: self.folder.join(format!("batch{}-seed{seed}", setting.batch)),
            device: Arc::clone(&self.device),
            checkpoint_every: Duration::from_secs(20),
            stop: Arc::clone(&self.stop),
        };
        let start = &setting.start;
        let played = play(start, &setting.run, seed, &site).map_err(|e| words(&e))?;
        let own = played.ledger.not_private.test_loss;
        let loss = match own.filter(|_| !self.extended) {
            Some(loss) => loss,
            None => {
                // Tokens that were added for canaries are no text: the loss without them.
                let mut decoder = start.model.decoder.clone();
                weights::lay_over(&mut decoder, &site.folder).map_err(|e| words(&e))?;
                let test = start.test.as_ref().map_or(&[][..], |test| &test.examples);
                texts::loss(&decoder, test).map_err(|e| words(&e))?
            }
        };
        // The scores before the row: a row that is there has scores.
        let text = canaries::table(&played.scores);
        put(&self.scores, &canaries::file(setting.batch, seed), text.as_bytes())
            .map_err(|e| words(&e))?;
        let phase = setting.run.phases()[0];
        let (noise, before) = (phase.noise_multiplier, self.loss_before()?);
        let mut text = String::new();
        row(&mut text, &[&setting.batch, &phase.steps, &noise, &seed, &loss, &before]);
        Ok(text)
    }
}

const HEADER: &str = "batch_size,steps,noise_multiplier,seed,test_loss,loss_before";

impl Experiment for Trainings {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rows(&self, trials: Range<u64>, table: &mut String) -> Result<(), String> {
        let threads = usize::from(self.device.record.kind == "cpu");
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| error.to_string())?;
        for trial in trials {
            let row = pool.install(|| self.row(trial))?;
            table.push_str(&row);
        }
        Ok(())
    }
}

/// A TOML basic string.
fn toml_string(text: &str) -> String {
    let escaped: String = text
        .chars()
        .flat_map(|c| if c == '"' || c == '\\' { vec!['\\', c] } else { vec![c] })
        .collect();
    format!("\"{escaped}\"")
}
