//! One fine-tuning from description to files, resumable at any moment: the checkpoints, events and
//! ledger of the crate `training`. All randomness is a function of (seed, step), so a resumed
//! training ends in the same bytes as one that was never interrupted, at any number of threads.

use super::canaries::{Canaries, CanaryScore};
use super::data::{self, Texts};
use super::description::FinetuneDescription;
use super::layout::{Layout, Scope};
use super::trainer::{Recipe, Trainer};
use super::{Example, adapters, weights};
use crate::load::Model;
use crate::model::{Architecture, Decoder};
use crate::{LanguageError, load};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;
use training::data::{Constants, Preprocessing, Provenance};
use training::files::{self, Progress, write_atomically};
use training::model::ModelDescription;
use training::{
    ClippingRecord, DataRecord, DeviceRecord, LEDGER_SCHEMA, Ledger, ModelRecord, NoiseRecord,
    NoiseSource, NotPrivate, SamplingRecord, SessionRecord, Summary, TrainingError, TrainingEvent,
    TrainingOptions, TrainingOutcome,
};
use vocabulary::{Phase, Run, Sampling};

/// What clipping may exceed the clip norm by: norms are sums in f32 of blocks of 2048 squares, and
/// the sum of clipped gradients is formed in f32.
const SENSITIVITY: f64 = 1.0 + 1.0 / 16_384.0;

/// A model and its data, read.
pub struct Start {
    pub description: FinetuneDescription,
    pub model: Model,
    pub texts: Texts,
    pub test: Option<Texts>,
}

impl Start {
    /// Reads what a description names; relative paths begin at `folder`.
    ///
    /// # Errors
    /// Files that cannot be read or are not what they should be.
    pub fn open(description: FinetuneDescription, folder: &Path) -> Result<Self, LanguageError> {
        let table = &description.model;
        let tokenizer = table.tokenizer.as_ref().map(|path| folder.join(path));
        let model = load::model(&folder.join(&table.path), tokenizer.as_deref())?;
        let source = &description.data;
        let texts = source.read(&folder.join(&source.path), &model, table.length)?;
        let test = match &source.test {
            Some(path) => Some(source.read(&folder.join(path), &model, table.length)?),
            None => None,
        };
        Ok(Self { description, model, texts, test })
    }

    /// Records, canaries left out: what the sample rate and delta are reckoned with.
    pub fn records(&self) -> u64 {
        self.texts.examples.len() as u64
    }

    /// n^-1.1.
    pub fn delta(&self) -> f64 {
        (self.records() as f64).powf(-1.1)
    }

    /// Tokens of an example at most.
    fn length(&self) -> usize {
        self.description.model.length.min(self.model.decoder.architecture.context)
    }
}

/// Examples of a micro-batch that suit a model, the same on every machine.
pub fn micro_batch(a: &Architecture, length: usize) -> usize {
    let row = 7 * a.width + 3 * a.hidden + 2 * a.key_width() + a.heads * length;
    let example = length * (a.layers * row + a.vocabulary);
    ((1 << 24) / example.max(1)).clamp(2, 16)
}

/// A fine-tuning, checked.
pub struct Finetuning<'a> {
    start: &'a Start,
    run: Run,
    recipe: Recipe,
    decoder: Decoder,
    examples: Vec<Example>,
    pub canaries: Option<Canaries>,
}

impl<'a> Finetuning<'a> {
    /// Checks a run against what was read; `seed` is the root of all randomness.
    ///
    /// # Errors
    /// Whatever does not fit together.
    pub fn new(start: &'a Start, run: Run, seed: u64) -> Result<Self, LanguageError> {
        Self::with(start, &start.description, run, seed)
    }

    /// The same with another description of what is trained, and how, than the start's.
    ///
    /// # Errors
    /// As [`Finetuning::new`].
    pub fn with(
        start: &'a Start,
        description: &FinetuneDescription,
        run: Run,
        seed: u64,
    ) -> Result<Self, LanguageError> {
        let records = start.records();
        if let Some(stated) = run.dataset_size().filter(|stated| *stated != records) {
            return Err(LanguageError::InvalidInput(format!(
                "the run says dataset_size {stated}, but the data has {records} records; leave \
                 dataset_size out"
            )));
        }
        let mut decoder = start.model.decoder.clone();
        if let Some(lora) = description.lora()? {
            adapters::attach(&mut decoder, &lora, seed)?;
        }
        let scope = description.scope();
        let mut examples = start.texts.examples.clone();
        let canaries = match &description.canaries {
            None => None,
            Some(table) => {
                let trained = scope != Scope::Adapters { embedding: false };
                let reserved = [&start.model.stop[..], &[0, 1, 2]].concat();
                let planted =
                    Canaries::plant(&mut decoder, &examples, &reserved, table, trained, seed)?;
                examples.extend(planted.planted().cloned());
                Some(planted)
            }
        };
        let recipe = Recipe {
            run: run.clone(),
            optimizer: description.optimizer,
            scope,
            micro_batch: micro_batch(&decoder.architecture, start.length()),
            seed,
        };
        Ok(Self { start, run, recipe, decoder, examples, canaries })
    }

    /// The decoder: un-tuned before the training, tuned after it.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Takes all steps in one go, without files. `false` when it was stopped.
    ///
    /// # Errors
    /// Those of the decoder.
    pub fn train(&mut self, go_on: &dyn Fn() -> bool) -> Result<bool, LanguageError> {
        let steps = self.run.steps();
        let mut trainer = Trainer::new(&mut self.decoder, &self.examples, self.recipe.clone())?;
        for _ in 0..steps {
            if !go_on() {
                return Ok(false);
            }
            trainer.step()?;
        }
        Ok(true)
    }

    /// Trains, or goes on with what a checkpoint holds, and writes `model.safetensors`,
    /// `ledger.json` and, with canaries, `canaries.csv`.
    ///
    /// # Errors
    /// Files that cannot be read or written, another training's files, devices that cannot.
    pub fn carry_out(
        &mut self,
        options: &TrainingOptions<'_>,
    ) -> Result<TrainingOutcome, TrainingError> {
        let device = self.device(options)?;
        std::fs::create_dir_all(options.out).map_err(|source| TrainingError::Io {
            action: "create the folder",
            path: options.out.to_owned(),
            source,
        })?;
        let [model, ledger_path, canaries, checkpoint] =
            ["model.safetensors", "ledger.json", "canaries.csv", "checkpoint.safetensors"]
                .map(|name| options.out.join(name));
        let plan = self.plan(&device);
        let steps = self.run.steps();
        if options.force {
            for path in [&model, &ledger_path, &canaries, &checkpoint] {
                remove(path)?;
            }
        } else if let Some(ledger) = finished(&ledger_path)? {
            if ledger.plan != plan {
                return Err(TrainingError::Recipe(format!(
                    "{} holds another training; choose another folder, or --force to replace it",
                    options.out.display()
                )));
            }
            let ledger = Box::new(ledger);
            return Ok(TrainingOutcome::Complete { ledger, resumed_from: steps, found: true });
        }
        let mut progress = Progress {
            plan,
            steps_done: 0,
            summary: Summary::default(),
            sessions: Vec::new(),
            secret_key: None,
        };
        let mut trainer =
            Trainer::new(&mut self.decoder, &self.examples, self.recipe.clone()).map_err(wrong)?;
        if let Some((saved, state)) = files::read_checkpoint(&checkpoint)? {
            if saved.plan != progress.plan {
                return Err(TrainingError::Checkpoint {
                    path: checkpoint,
                    reason: "it belongs to another training (or another kind of device); choose \
                             another folder, or --force to start over"
                        .into(),
                });
            }
            trainer.restore(saved.steps_done, state).map_err(wrong)?;
            progress = saved;
        }
        let resumed_from = progress.steps_done;
        progress.sessions.push(SessionRecord { from_step: resumed_from, to_step: resumed_from });
        (options.report)(&TrainingEvent::Started { steps, done: resumed_from });
        let mut saved = Instant::now();
        while progress.steps_done < steps {
            if options.stop.load(Ordering::Relaxed) {
                files::write_checkpoint(&checkpoint, &progress, trainer.state())?;
                return Ok(TrainingOutcome::Interrupted { done: progress.steps_done, steps });
            }
            let found = trainer.step().map_err(wrong)?;
            progress.summary.add(progress.steps_done, &found);
            progress.steps_done += 1;
            if let Some(session) = progress.sessions.last_mut() {
                session.to_step = progress.steps_done;
            }
            let size = found.batch_size.max(1) as f64;
            (options.report)(&TrainingEvent::Step {
                done: progress.steps_done,
                steps,
                loss: Some(found.loss_sum / size),
                accuracy: Some(found.correct as f64 / size),
            });
            if saved.elapsed() >= options.checkpoint_every {
                files::write_checkpoint(&checkpoint, &progress, trainer.state())?;
                saved = Instant::now();
            }
        }
        (options.report)(&TrainingEvent::Evaluating);
        let layout = trainer.layout.clone();
        let ledger = self.ledger(&progress, &device, &layout).map_err(wrong)?;
        if let Some(planted) = &self.canaries {
            let scores = planted.scores(&self.decoder).map_err(wrong)?;
            write_atomically(&canaries, planted.to_csv(&scores).as_bytes(), false)?;
        }
        let vocabulary = self.start.model.decoder.architecture.vocabulary;
        let bytes = weights::to_safetensors(&self.decoder, &layout, vocabulary);
        write_atomically(&model, &bytes, false)?;
        let mut text = serde_json::to_string_pretty(&ledger).expect("a ledger is plain data");
        text.push('\n');
        write_atomically(&ledger_path, text.as_bytes(), false)?;
        remove(&checkpoint)?;
        Ok(TrainingOutcome::Complete { ledger: Box::new(ledger), resumed_from, found: false })
    }

    fn device(&self, options: &TrainingOptions<'_>) -> Result<DeviceRecord, TrainingError> {
        let record = options.device.record.clone();
        if record.kind != "cpu" {
            return Err(TrainingError::Device(
                "language models are trained on the CPU only; use --device cpu".into(),
            ));
        }
        if options.noise == NoiseSource::Secure {
            return Err(TrainingError::Device(
                "secure noise is not there for language models yet: what is trained here is for \
                 measuring, not for release; leave --noise out"
                    .into(),
            ));
        }
        Ok(DeviceRecord { lanes: 1, sensitivity: SENSITIVITY, ..record })
    }

    /// Names what has to be the same for two trainings to give the same model.
    fn plan(&self, device: &DeviceRecord) -> String {
        let document = serde_json::json!({
            "run": self.run,
            "seed": self.recipe.seed,
            "records": digest(self.examples.iter().flat_map(|example| {
                let first = (example.first as u32).to_le_bytes();
                std::iter::once(first).chain(example.tokens.iter().map(|t| t.to_le_bytes()))
            })),
            "weights": fingerprint(&self.start.model.decoder),
            "model": ModelDescription::Language(self.start.description.model.clone()),
            "optimizer": self.recipe.optimizer,
            "canaries": self.start.description.canaries,
            "micro_batch": self.recipe.micro_batch,
            "device": device,
        });
        digest([document.to_string().as_bytes()])
    }

    fn ledger(
        &self,
        progress: &Progress,
        device: &DeviceRecord,
        layout: &Layout,
    ) -> Result<Ledger, LanguageError> {
        let start = self.start;
        let generator = "philox4x32-10";
        let steps = self.run.steps();
        let loss = match &start.test {
            Some(test) => Some(data::loss(&self.decoder, &test.examples)?),
            None => None,
        };
        let mut preprocessing = vec![Preprocessing {
            step: format!("tokens, at most {} a record; longer ones cut", start.length()),
            constants: Constants::Public,
        }];
        if let Some(planted) = &self.canaries {
            let score = match planted.score {
                CanaryScore::Embedding => "the change of their token's row",
                CanaryScore::Loss => "their loss",
            };
            preprocessing.push(Preprocessing {
                step: format!(
                    "{} of {} token canaries added by coins, scored by {score}",
                    planted.members.iter().filter(|member| **member).count(),
                    planted.members.len()
                ),
                constants: Constants::Public,
            });
        }
        Ok(Ledger {
            schema: LEDGER_SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            planned_steps: steps,
            complete: progress.steps_done == steps,
            plan: progress.plan.clone(),
            sampling: SamplingRecord {
                scheme: self.run.sampling(),
                generator: generator.into(),
                seed: Some(self.recipe.seed),
                micro_batch: self.recipe.micro_batch,
            },
            clipping: ClippingRecord {
                norm: self.run.clip_norm(),
                unit: "record".into(),
                at_most: device.sensitivity,
                normalisers: self
                    .run
                    .phases()
                    .iter()
                    .map(|phase: &Phase| phase.sample_rate * start.records() as f64)
                    .collect(),
                normalised_by: "expected batch size, from the data set's size taken as public"
                    .into(),
            },
            noise: NoiseRecord {
                generator: generator.into(),
                secure: false,
                seed: Some(self.recipe.seed),
                precaution: "none: whoever knows the seed knows the noise; for audits and \
                             experiments, not for a model that is released"
                    .into(),
            },
            data: DataRecord {
                records: self.examples.len(),
                numbers_per_record: start.length(),
                classes: start.model.decoder.architecture.vocabulary,
                provenance: Provenance {
                    name: start.texts.name.clone(),
                    sha256: vec![start.texts.sha256.clone()],
                    licence: None,
                    preprocessing,
                },
            },
            model: ModelRecord {
                description: ModelDescription::Language(start.description.model.clone()),
                parameters: layout.size,
            },
            optimizer: self.recipe.optimizer,
            device: device.clone(),
            sessions: progress.sessions.clone(),
            warnings: self.warnings(),
            not_private: NotPrivate {
                note: "computed from records and covered by no guarantee".into(),
                test_accuracy: None,
                train_accuracy: None,
                test_loss: loss,
                statistics: progress.summary.record(),
            },
            run: self.run.clone(),
        })
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if matches!(self.run.sampling(), Sampling::Shuffle | Sampling::FixedSize) {
            warnings.push(
                "batches were not drawn by coins: the numbers for Poisson sampling do not hold \
                 for them"
                    .into(),
            );
        }
        if self.start.texts.cut > 0 {
            warnings.push(format!(
                "{} of {} records were longer than {} tokens and lost their end",
                self.start.texts.cut,
                self.start.records(),
                self.start.length()
            ));
        }
        warnings.push("fast noise: keep this model to yourself; it is for measuring".into());
        warnings
    }
}

/// SHA-256 of the weights.
pub(crate) fn fingerprint(decoder: &Decoder) -> String {
    let layout = Layout::new(decoder, Scope::Full);
    let mut hash = Sha256::new();
    hash.update(format!("{:?}", decoder.architecture));
    for (piece, _) in &layout.pieces {
        hash.update(piece.name());
        let numbers = piece.of(decoder).map_or(&[][..], Vec::as_slice);
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        hash.update(bytes);
    }
    hexadecimal(&hash.finalize())
}

pub(crate) fn digest<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hexadecimal(&hash.finalize())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn wrong(error: LanguageError) -> TrainingError {
    TrainingError::Recipe(error.to_string())
}

fn remove(path: &Path) -> Result<(), TrainingError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(TrainingError::Io { action: "remove", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn finished(path: &Path) -> Result<Option<Ledger>, TrainingError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(TrainingError::Io { action: "read", path: path.to_owned(), source });
        }
    };
    let ledger = serde_json::from_str(&text).map_err(|error| TrainingError::Description {
        place: path.display().to_string(),
        message: format!("it is not a ledger: {error}; --force replaces it"),
    })?;
    Ok(Some(ledger))
}
