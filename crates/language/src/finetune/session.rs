//! One fine-tuning from description to files, resumable at any moment ([`Session`]). All randomness is a function of (seed, step), so a resumed
//! training ends in the same bytes as one that was never interrupted, at any number of threads.

use super::canaries::Canaries;
use super::data::Texts;
use super::description::FinetuneDescription;
use super::gradient_canaries::GradientCanaries;
use super::layout::{Layout, Scope};
use super::place::{Engine, Measurer, Place};
use super::planted::{CanaryKind, Planted};
use super::trainer::Recipe;
use super::{Example, adapters, weights};
use crate::load::Model;
use crate::model::{Architecture, Decoder};
use crate::{LanguageError, load};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use training::files;
use training::{
    Device, DeviceRecord, NoiseSource, PrecisionName, ReplicaState, Session, StepStatistics, Steps,
    TrainingError, TrainingOptions, TrainingOutcome,
};
use vocabulary::Run;

/// What clipping may exceed the clip norm by: norms are sums in f32 of blocks of 2048 squares, and
/// the sum of clipped gradients is formed in f32. On a device, in any precision, they are the norms
/// and the sum of the very gradients that are clipped, which is closer; what rounding may add to an
/// embedding's is in its norm.
const SENSITIVITY: f64 = 1.0 + 1.0 / 16_384.0;

/// A model and its data, read.
pub struct Start {
    pub description: FinetuneDescription,
    pub model: Model,
    pub texts: Texts,
    pub test: Option<Texts>,
}

impl Start {
    /// The device of a name for this training; `auto` is the first NVIDIA device where that can
    /// train it, else the CPU.
    ///
    /// # Errors
    /// Those of [`Device::with_precision`].
    pub fn device(&self, name: &str, precision: PrecisionName) -> Result<Device, TrainingError> {
        let head = self.description.scope() != Scope::Adapters { embedding: false };
        let only_cpu = head && self.model.decoder.head.is_some();
        if only_cpu && name == "auto" && precision == PrecisionName::F32 {
            return Ok(Device::cpu());
        }
        Device::with_precision(name, precision)
    }

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
    pub(super) fn length(&self) -> usize {
        self.description.model.length.min(self.model.decoder.architecture.context)
    }
}

/// Examples of a micro-batch that suit a model, the same on every machine.
pub fn micro_batch(a: &Architecture, length: usize) -> usize {
    let row = 7 * a.width + 3 * a.hidden + 2 * a.key_width() + a.heads * length;
    let example = length * (a.layers * row + a.vocabulary);
    ((1 << 24) / example.max(1)).clamp(2, 16)
}

/// The score of every canary, and which are in.
pub type ScoresAndMembers<'a> = (Vec<f64>, &'a [bool]);

/// A fine-tuning, checked.
pub struct Finetuning<'a> {
    pub(super) start: &'a Start,
    pub(super) run: Run,
    pub(super) recipe: Recipe,
    pub(super) decoder: Decoder,
    pub(super) examples: Vec<Example>,
    place: &'a Place,
    /// Tokens of the longest text that is measured after the training.
    longest: usize,
    pub canaries: Option<Planted>,
    /// What gradient canaries gathered of all iterates.
    evidence: Vec<f64>,
}

impl<'a> Finetuning<'a> {
    /// Checks a run against what was read; `seed` is the root of all randomness.
    ///
    /// # Errors
    /// Whatever does not fit together.
    pub fn new(
        start: &'a Start,
        run: Run,
        seed: u64,
        place: &'a Place,
    ) -> Result<Self, LanguageError> {
        Self::with(start, &start.description, run, seed, place, 0)
    }

    /// The same with another description of what is trained, and how, than the start's; texts of
    /// up to `longest` tokens are measured afterwards.
    ///
    /// # Errors
    /// As [`Finetuning::new`].
    pub fn with(
        start: &'a Start,
        description: &FinetuneDescription,
        run: Run,
        seed: u64,
        place: &'a Place,
        longest: usize,
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
            Some(table) if table.kind == CanaryKind::Gradient => {
                table.check()?;
                let layout = Layout::new(&decoder, scope);
                let observe = table.observe.unwrap_or_default();
                let planted =
                    GradientCanaries::plant(&decoder, &layout, table.count, observe, seed)?;
                Some(Planted::Gradient(Arc::new(planted)))
            }
            Some(table) => {
                let trained = scope != Scope::Adapters { embedding: false };
                let reserved = [&start.model.stop[..], &[0, 1, 2]].concat();
                let base = decoder.architecture.vocabulary;
                let mut losses = |decoder: &Decoder, canaries: &[Example]| {
                    // A longer vocabulary has rows of its own.
                    let same = decoder.architecture.vocabulary == base;
                    let most = canaries.iter().map(|c| c.tokens.len()).max().unwrap_or(1);
                    place.measurer(decoder, most, same)?.losses(decoder, canaries)
                };
                let planted = Canaries::plant_with(
                    &mut decoder,
                    &examples,
                    &reserved,
                    table,
                    trained,
                    seed,
                    &mut losses,
                )?;
                examples.extend(planted.planted().cloned());
                Some(Planted::Token(planted))
            }
        };
        let recipe = Recipe {
            run: run.clone(),
            optimizer: description.optimizer,
            scope,
            micro_batch: micro_batch(&decoder.architecture, start.length()),
            seed,
            canaries: match &canaries {
                Some(Planted::Gradient(planted)) => Some(Arc::clone(planted)),
                _ => None,
            },
        };
        let test = start.test.iter().flat_map(|test| &test.examples);
        let longest = test.map(|e| e.tokens.len()).max().unwrap_or(0).max(longest);
        let evidence = Vec::new();
        Ok(Self { start, run, recipe, decoder, examples, place, longest, canaries, evidence })
    }

    /// Whether the frozen weights are the start's.
    fn same(&self) -> bool {
        self.decoder.architecture == self.start.model.decoder.architecture
    }

    /// The decoder: un-tuned before the training, tuned after it.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Takes all steps in one go, without files, and hands out what the decoder is measured with;
    /// nothing when it was stopped.
    ///
    /// # Errors
    /// Those of the decoder.
    pub fn train(&mut self, go_on: &dyn Fn() -> bool) -> Result<Option<Measurer>, LanguageError> {
        let (steps, same) = (self.run.steps(), self.same());
        let mut trainer = self.place.trainer(
            &mut self.decoder,
            &self.examples,
            self.recipe.clone(),
            self.longest,
            same,
        )?;
        for _ in 0..steps {
            if !go_on() {
                return Ok(None);
            }
            trainer.step()?;
        }
        let evidence = trainer.evidence().to_vec();
        let measurer = trainer.finish()?;
        self.evidence = evidence;
        Ok(Some(measurer))
    }

    /// The score of every canary of a training that was carried out, and which are in.
    ///
    /// # Errors
    /// Those of the decoder.
    pub(crate) fn canary_scores(
        &self,
        measurer: &mut Measurer,
    ) -> Result<Option<ScoresAndMembers<'_>>, LanguageError> {
        let Some(planted) = &self.canaries else { return Ok(None) };
        let mut losses =
            |decoder: &Decoder, canaries: &[Example]| measurer.losses(decoder, canaries);
        let scores = planted.scores(
            &self.decoder,
            (&self.recipe, self.examples.len()),
            &self.evidence,
            &mut losses,
        )?;
        Ok(Some((scores, planted.members())))
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
        let plan = self.plan(&device);
        let mut session = match Session::open(options, plan, self.run.steps(), &[CANARIES])? {
            ControlFlow::Break(found) => return Ok(found),
            ControlFlow::Continue(session) => session,
        };
        // What was seen of the iterates so far is not in a checkpoint.
        session.resumable = !self.canaries.as_ref().is_some_and(Planted::watches);
        let layout = Layout::new(&self.decoder, self.recipe.scope);
        let same = self.same();
        let (recipe, longest) = (self.recipe.clone(), self.longest);
        let mut trainer = self
            .place
            .trainer(&mut self.decoder, &self.examples, recipe, longest, same)
            .map_err(as_training_error)?;
        if let ControlFlow::Break(stopped) = session.train(&mut trainer)? {
            return Ok(stopped);
        }
        let evidence = trainer.evidence().to_vec();
        let mut measurer = trainer.finish().map_err(as_training_error)?;
        self.evidence = evidence;
        let ledger = self
            .ledger(session.progress(), &device, &layout, &mut measurer)
            .map_err(as_training_error)?;
        if let (Some(planted), Some((scores, _))) =
            (&self.canaries, self.canary_scores(&mut measurer).map_err(as_training_error)?)
        {
            files::write(&session.path(CANARIES), planted.to_csv(&scores))?;
        }
        let vocabulary = self.start.model.decoder.architecture.vocabulary;
        session.finish(weights::to_safetensors(&self.decoder, &layout, vocabulary), ledger)
    }

    fn device(&self, options: &TrainingOptions<'_>) -> Result<DeviceRecord, TrainingError> {
        let record = options.device.record.clone();
        if options.noise == NoiseSource::Secure {
            return Err(TrainingError::Device(
                "secure noise is not available for language models yet: what is trained here is for \
                 measuring, not for release; leave --noise out"
                    .into(),
            ));
        }
        Ok(DeviceRecord { lanes: 1, sensitivity: SENSITIVITY, ..record })
    }
}

pub(super) fn as_training_error(error: LanguageError) -> TrainingError {
    match error {
        LanguageError::Device(message) => TrainingError::Device(message),
        other => TrainingError::Recipe(other.to_string()),
    }
}

/// Scores of canaries, beside the model.
const CANARIES: &str = "canaries.csv";

impl Steps for Engine<'_> {
    fn step(&mut self) -> Result<Option<StepStatistics>, TrainingError> {
        Self::step(self).map(Some).map_err(as_training_error)
    }

    fn state(&mut self) -> Result<Cow<'_, ReplicaState>, TrainingError> {
        Self::state(self).map(Cow::Borrowed).map_err(as_training_error)
    }

    fn restore(&mut self, steps_done: u64, state: ReplicaState) -> Result<(), TrainingError> {
        Self::restore(self, steps_done, state).map_err(as_training_error)
    }
}
