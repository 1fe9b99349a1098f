//! Games that train: `gradient` and `input`, a training for each score; `canaries`, one training with a score for each
//! canary.

#[cfg(feature = "language")]
use super::CanariesQuestion;
use super::{Attacked, NothingElse, UntilDecided};
use crate::flags::{integer, nonnegative_integer, real, word};
use crate::play::{beside, write_run};
use crate::train::{PRECISIONS, checkpoints};
use crate::{Described, Play, Refusal, Work};
use attacks::{
    AttackError, CanaryKind, Conditions, Coordinate, InputCanary, ManyCanaries, Others, StartFrom,
    Target, TrainedGame,
};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use experiments::Experiment;
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};
use training::{Device, Fault, PrecisionName, TrainingDescription};
use vocabulary::rounding::with_commas;
use vocabulary::{Adjacency, Direction, Observe};

/// A game with one canary, and a training for each score.
#[derive(Clone, Debug, Deserialize, Args)]
pub struct OneCanaryQuestion<C: Args> {
    #[command(flatten)]
    #[serde(flatten)]
    pub training: TrainedTerms,
    #[command(flatten)]
    #[serde(flatten)]
    pub trials: TrialsTerms,
    #[command(flatten)]
    #[serde(flatten)]
    pub canary: C,
    #[command(flatten)]
    #[serde(flatten)]
    pub decided: UntilDecided,
    #[command(flatten)]
    #[serde(flatten)]
    pub play: Play,
    #[arg(skip)]
    #[serde(flatten)]
    _rest: NothingElse,
}

/// A game with many canaries in one training.
#[derive(Clone, Debug, Deserialize, Args)]
pub struct ManyCanariesQuestion {
    #[command(flatten)]
    #[serde(flatten)]
    pub training: TrainedTerms,
    #[command(flatten)]
    #[serde(flatten)]
    pub canaries: ManyTerms,
    #[command(flatten)]
    #[serde(flatten)]
    pub play: Play,
    #[arg(skip)]
    #[serde(flatten)]
    _rest: NothingElse,
}

/// The terms of every game that trains.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(default)]
pub struct TrainedTerms {
    /// The training: [run], [data], [model], [optimizer], as `train` reads it
    #[arg(value_name = "RUN.toml", help_heading = Option::<&str>::None)]
    pub file: PathBuf,
    /// Keys that override those of the file.
    #[arg(skip)]
    pub run: Described,
    /// What the attacker sees
    #[arg(long, value_parser = word::<Observe>(["last", "all"]), default_value = "last", help_heading = "The game")]
    pub observe: Observe,
    /// Where the models start
    #[arg(long, value_parser = word::<StartFrom>(starts()), default_value = "shared", help_heading = "The game")]
    pub start: StartFrom,
    /// Train on N of the records, evenly spread
    #[arg(long, value_name = "N", value_parser = integer, help_heading = "The game")]
    pub records: Option<u64>,
    /// Plant a mistake in the training, to see whether the audit finds it
    #[arg(long, value_parser = word::<Fault>(faults()), default_value = "none", help_heading = "The game")]
    pub fault: Fault,
    /// Seed of all randomness [default: the file's]
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, help_heading = "The game")]
    pub seed: Option<u64>,
    /// Where to compute: auto, cpu or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = "The work")]
    pub device: Option<String>,
}

/// The terms of games with a training for each score.
#[derive(Clone, Debug, Deserialize, Args)]
#[serde(default)]
pub struct TrialsTerms {
    /// Number of trainings with the canary; as many are done without it
    #[arg(long, value_name = "N", value_parser = integer, default_value_t = Self::default().trials, help_heading = "The game")]
    pub trials: u64,
    /// What a large score should mean: trained with the canary (remove) or without it (add)
    #[arg(long, value_parser = word::<Direction>(["add", "remove"]), default_value = "remove", help_heading = "The game")]
    pub direction: Direction,
    /// With --adjacency substitute: number of candidate records, one of which is in the data
    #[arg(long, value_name = "M", value_parser = integer, default_value_t = Self::default().candidates, help_heading = "The game")]
    pub candidates: u64,
    /// With --until-decided: the delta of the claim
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, requires = "until_decided", help_heading = "Until decided")]
    pub delta: Option<f64>,
}

impl Default for TrialsTerms {
    fn default() -> Self {
        Self { trials: 1000, direction: Direction::Remove, candidates: 2, delta: None }
    }
}

/// A canary that is a gradient.
#[derive(Clone, Copy, Debug, Deserialize, Args)]
#[serde(default)]
pub struct GradientCanary {
    /// What the other records contribute
    #[arg(long, value_parser = word::<Others>(rests().into_iter().filter(|rest| rest.get_name() != "blank")), default_value = "natural", help_heading = "The game")]
    pub rest: Others,
    /// Direction of the canary's gradient: random, quiet (the coordinate that moves least without
    /// noise) or the number of a coordinate
    #[arg(long, value_name = "J", value_parser = coordinate, default_value = "random", help_heading = "The game")]
    #[serde(deserialize_with = "written_coordinate")]
    pub coordinate: Coordinate,
    /// Insert the gradient at every K-th step only
    #[arg(long, value_name = "K", value_parser = integer, default_value_t = Self::default().every, help_heading = "The game")]
    pub every: u64,
}

impl Default for GradientCanary {
    fn default() -> Self {
        Self { rest: Others::Natural, coordinate: Coordinate::Random, every: 1 }
    }
}

/// A canary that is a record.
#[derive(Clone, Copy, Debug, Deserialize, Args)]
#[serde(default)]
pub struct RecordCanary {
    /// The canary record
    #[arg(long, value_parser = word::<InputCanary>(records()), default_value = "mislabelled", help_heading = "The game")]
    pub canary: InputCanary,
    /// What the other records contribute
    #[arg(long, value_parser = word::<Others>(rests()), default_value = "natural", help_heading = "The game")]
    pub rest: Others,
}

impl Default for RecordCanary {
    fn default() -> Self {
        Self { canary: InputCanary::Mislabelled, rest: Others::Natural }
    }
}

/// The terms of many canaries in one training.
#[derive(Clone, Debug, Deserialize, Args)]
#[serde(default)]
pub struct ManyTerms {
    /// What a canary is
    #[arg(long, value_enum, default_value_t, help_heading = "The game")]
    pub canary: ManyName,
    /// Seconds between checkpoints; they do not change the result
    #[arg(long, value_name = "SECONDS", value_parser = real, default_value = "5", help_heading = "The work")]
    pub checkpoint_every: Option<f64>,
    /// f32, or tf32 or bf16 on an NVIDIA device
    #[arg(long, value_parser = word::<PrecisionName>(PRECISIONS), default_value = "f32", help_heading = "The work")]
    pub precision: PrecisionName,
    /// How many canaries
    #[arg(long, value_name = "M", value_parser = integer, default_value_t = Self::default().canaries, help_heading = "The game")]
    pub canaries: u64,
    /// What the other records contribute
    #[arg(long, value_parser = word::<Others>(rests()), default_value = "natural", help_heading = "The game")]
    pub rest: Others,
}

impl Default for ManyTerms {
    fn default() -> Self {
        Self {
            canary: ManyName::Gradient,
            checkpoint_every: None,
            precision: PrecisionName::default(),
            canaries: 1000,
            rest: Others::Natural,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ManyName {
    /// A clipped gradient along a coordinate of its own
    #[default]
    Gradient,
    /// A real record with a wrong label
    Mislabelled,
    /// Along a direction in which the data vary little, with the least likely label
    ClipBkd,
    /// A real record as it is
    Natural,
}

/// What is named, with what a person reads of each.
fn named<const N: usize>(all: [(&'static str, &'static str); N]) -> [PossibleValue; N] {
    all.map(|(name, help)| match help {
        "" => PossibleValue::new(name),
        help => PossibleValue::new(name).help(help),
    })
}

fn rests() -> [PossibleValue; 3] {
    named([
        ("natural", "Their clipped gradients"),
        ("blank", "Gradients of the same records with all features zero"),
        ("zero", "Nothing: the worst case of the analysis"),
    ])
}

fn records() -> [PossibleValue; 4] {
    named([
        ("mislabelled", "A real record with a wrong label"),
        ("blank", "All features zero, with the least likely label"),
        (
            "clip-bkd",
            "Along the direction in which the data vary least, with the least likely label",
        ),
        ("natural", "A real record as it is"),
    ])
}

fn starts() -> [PossibleValue; 3] {
    named([
        ("shared", "All from the same random parameters"),
        ("own", "Each from its own"),
        (
            "pretrained",
            "All from a model trained without noise on the test records: the worst case",
        ),
    ])
}

fn faults() -> [PossibleValue; 4] {
    named([
        ("none", ""),
        ("half-noise", "Noise with half the standard deviation"),
        ("no-clipping", "Records are not clipped; inserted gradients are four times the clip norm"),
        ("repeated-batch", "Every step uses the batch of the first step"),
    ])
}

fn coordinate(text: &str) -> Result<Coordinate, String> {
    match text {
        "random" => Ok(Coordinate::Random),
        "quiet" => Ok(Coordinate::Quiet),
        _ => nonnegative_integer(text)
            .map(Coordinate::Number)
            .map_err(|_| "it must be random, quiet or the number of a parameter".to_owned()),
    }
}

fn written_coordinate<'de, D: Deserializer<'de>>(from: D) -> Result<Coordinate, D::Error> {
    crate::several::text(from).and_then(|text| coordinate(&text).map_err(serde::de::Error::custom))
}

/// What is particular to a game with one canary: the canary, and what the other records contribute.
pub(super) trait Canary {
    fn inserted(&self) -> (CanaryKind, Others);
}

impl Canary for GradientCanary {
    fn inserted(&self) -> (CanaryKind, Others) {
        let Self { rest, coordinate, every } = *self;
        (CanaryKind::Gradient { coordinate, every }, rest)
    }
}

impl Canary for RecordCanary {
    fn inserted(&self) -> (CanaryKind, Others) {
        (CanaryKind::Input(self.canary), self.rest)
    }
}

pub(super) fn one<C: Args + Canary>(
    question: &OneCanaryQuestion<C>,
    work: &dyn Work,
) -> Result<Attacked, Refusal> {
    let OneCanaryQuestion { training, trials, canary, decided, play, .. } = question;
    let target = training.target()?;
    let (canary, others) = canary.inserted();
    let mut conditions = training.conditions(canary, others);
    conditions.direction = trials.direction;
    conditions.candidates = usize::try_from(trials.candidates).unwrap_or(usize::MAX);
    let game_of = |count: u64| {
        let device = training.device(PrecisionName::F32)?;
        TrainedGame::new(&target, &conditions, device, count).map_err(refused)
    };
    let out = play.out.as_deref();
    let run = Some(target.run());
    let decided = decided.play(run, trials.delta, trials.trials, out, |count| {
        play.train(&game_of(count)?, out.unwrap_or(Path::new("")), work)
    })?;
    let count = decided.as_ref().map_or(trials.trials, |decided| decided.trials);
    let mut found = training.play(&game_of(count)?, play, work)?;
    let shown = with_commas(count);
    found.sentence = if target.run().adjacency() == Adjacency::Substitute {
        format!("{shown} trainings with the candidate asked for and {shown} with another")
    } else {
        format!("{shown} trainings with the canary and {shown} without")
    };
    found.played.decided = decided.map(|decided| decided.document);
    Ok(found)
}

pub(super) fn many(question: &ManyCanariesQuestion, work: &dyn Work) -> Result<Attacked, Refusal> {
    let ManyCanariesQuestion { training, canaries, play, .. } = question;
    let checkpoint_every = checkpoints(canaries.checkpoint_every)?;
    let target = training.target()?;
    let device = training.device(canaries.precision)?;
    let canary = match canaries.canary {
        ManyName::Gradient => CanaryKind::Gradient { coordinate: Coordinate::Random, every: 1 },
        ManyName::Mislabelled => CanaryKind::Input(InputCanary::Mislabelled),
        ManyName::ClipBkd => CanaryKind::Input(InputCanary::ClipBkd),
        ManyName::Natural => CanaryKind::Input(InputCanary::Natural),
    };
    let conditions = training.conditions(canary, canaries.rest);
    let count = usize::try_from(canaries.canaries).unwrap_or(usize::MAX);
    let mut game = ManyCanaries::new(&target, &conditions, device, count).map_err(refused)?;
    let kept = play.out.as_ref().map(|out| beside(out, ".work").join("state"));
    if let Some(kept) = &kept {
        game = game.checkpointed(kept.clone(), checkpoint_every);
    }
    let mut found = training.play(&game, play, work)?;
    found.sentence = format!("one training with {count} canaries, each in with probability 1/2");
    if let (Some(kept), true) = (kept, found.played.is_complete()) {
        // Only the time to write it again is lost if it stays.
        drop(std::fs::remove_file(kept));
    }
    Ok(found)
}

#[cfg(feature = "language")]
impl ManyCanariesQuestion {
    /// The same about the fine-tuning of a language model, where the file describes one: gradient canaries.
    pub(super) fn on_a_language_model(&self) -> Result<Option<CanariesQuestion>, Refusal> {
        let Self { training, canaries, play, .. } = self;
        checkpoints(canaries.checkpoint_every)?;
        let describes = language::finetune::FinetuneDescription::describes;
        if !training.text().is_ok_and(|text| describes(&text)) {
            return Ok(None);
        }
        if canaries.canary != ManyName::Gradient {
            return Err(Refusal::bad_input("on a language model these canaries are gradients")
                .hint("`attack token` plays canaries that are texts"));
        }
        let given = [
            ("--rest", canaries.rest != Others::Natural),
            ("--start", training.start != StartFrom::Shared),
            ("--records", training.records.is_some()),
            ("--fault", training.fault != Fault::None),
        ];
        if let Some((what, _)) = given.into_iter().find(|(_, given)| *given) {
            return Err(Refusal::bad_input(format!(
                "{what} is not available for language models; leave it out"
            )));
        }
        Ok(Some(CanariesQuestion {
            file: training.file.clone(),
            run: training.run.clone(),
            canaries: Some(canaries.canaries),
            gradients: Some(training.observe),
            seed: training.seed,
            device: training.device.clone(),
            precision: canaries.precision,
            checkpoint_every: canaries.checkpoint_every,
            play: play.clone(),
            ..CanariesQuestion::default()
        }))
    }
}

impl TrainedTerms {
    fn text(&self) -> Result<String, Refusal> {
        std::fs::read_to_string(&self.file).map_err(|error| {
            Refusal::bad_input(format!("cannot read {}: {error}", self.file.display()))
                .hint("`dosimeter train --help` shows such a file")
        })
    }

    fn target(&self) -> Result<Target, Refusal> {
        let place = self.file.display();
        let text = self.text()?;
        let description = TrainingDescription::from_toml_str(&text)
            .map_err(|error| Refusal::bad_input(error.to_string()).at(&place))?;
        let folder = self.file.parent().unwrap_or(Path::new(""));
        let split =
            description.data.load(folder).map_err(|error| Refusal::bad_input(error.to_string()))?;
        let records = self.records.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let size = records.map_or(split.train.len(), |count| count.min(split.train.len()));
        let keys = self.run.description()?;
        let mut described = description.run.clone().overridden_by(&keys)?;
        if described.dataset_size.is_none() || self.records.is_some() {
            described.dataset_size = Some(size as u64);
        }
        let run = described.resolve().map_err(|error| Refusal::from(error).of(&keys, &place))?.run;
        if run.group_size() != 1 {
            return Err(Refusal::bad_input("a canary is one record; leave --group-size out"));
        }
        let seed = self.seed.unwrap_or(description.seed);
        let (model, optimizer) = (description.model, description.optimizer);
        Target::new(model, optimizer, run, split, records, seed).map_err(refused)
    }

    fn device(&self, precision: PrecisionName) -> Result<Device, Refusal> {
        Device::with_precision(self.device.as_deref().unwrap_or("auto"), precision)
            .map_err(|error| Refusal::bad_input(error.to_string()))
    }

    fn conditions(&self, canary: CanaryKind, others: Others) -> Conditions {
        let mut conditions = Conditions::new(canary);
        conditions.others = others;
        conditions.start = self.start;
        conditions.observe = self.observe;
        conditions.fault = self.fault;
        conditions
    }

    /// Trains what is missing, and writes the run beside the scores.
    fn play(
        &self,
        game: &dyn Experiment,
        play: &Play,
        work: &dyn Work,
    ) -> Result<Attacked, Refusal> {
        let out = play.out()?;
        if self.fault != Fault::None {
            work.warn("a mistake is planted in these trainings; the scores are for testing audits");
        }
        let outcome = play.train(game, out, work)?;
        let found = Attacked::new(game, play.out.clone(), Some(outcome));
        if found.played.is_complete() {
            write_run(out, &game.plan().parameters["run"])?;
        }
        Ok(found)
    }
}

fn refused(error: AttackError) -> Refusal {
    Refusal::bad_input(error.to_string())
}
