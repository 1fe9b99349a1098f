//! How sensitive a training is to an attribute of a record: gradient sensitivities along it, the Bayes
//! security that follows, and the game of guessing the attribute.

use super::NothingElse;
use super::played::{ATTACK_SCHEMA, Guesses, Played, Sensitivity};
use crate::flags::{integer, nonnegative_integer, word};
use crate::play::Play;
use crate::several::{several, text};
use crate::{Described, Document, Ended, Kind, Refusal, Work, exit};
use accounting::bayes_security::attribute::{self as bound, Mode, Sensitivities};
use accounting::lenses::Lens;
use accounting::{AccountingError, Questions};
use attacks::attribute::{
    Accuracy, Attribute, AttributeError, AttributeGame, Collector, Diameter, Probe, accuracy_bound,
    follow, write_csv,
};
use clap::Args;
use random::{Purpose, Stream};
use serde::{Deserialize, Serialize, Serializer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use training::data::Dataset;
use training::{Recipe, Replica, TrainingDescription};
use vocabulary::{
    Adjacency, AtLeast, AtMost, Claim, LensName, Observe, Quantity, Quoted, Run, Standing,
};

/// The question of `attack attribute`: with a file for the scores the game is played, else the
/// sensitivities are measured.
#[derive(Clone, Debug, Deserialize, Args)]
#[serde(default)]
pub struct AttributeQuestion {
    /// The training: [run], [data], [model], [optimizer]
    #[arg(value_name = "RUN.toml", help_heading = Option::<&str>::None)]
    pub file: PathBuf,
    /// Keys that override those of the file.
    #[arg(skip)]
    pub run: Described,
    /// The secret attribute: a numeric or categorical column of the data set
    #[arg(
        long,
        value_name = "COLUMN",
        required_unless_present = "candidate_records",
        help_heading = "The secret"
    )]
    pub attribute: Option<String>,
    /// Values it could have, 17..90 or Female,Male [default: all; of numbers, those that occur]
    #[arg(
        long,
        value_name = "LIST",
        requires = "attribute",
        allow_hyphen_values = true,
        help_heading = "The secret"
    )]
    pub values: Option<String>,
    /// Instead of an attribute, guess which of these records is in the data
    #[arg(
        long,
        value_name = "N,N,…",
        value_delimiter = ',',
        conflicts_with = "attribute",
        requires = "out",
        help_heading = "The secret"
    )]
    #[serde(deserialize_with = "several")]
    pub candidate_records: Vec<u32>,
    /// Worst case over: one record, all records, or the sampled batch (as in the paper)
    #[arg(long, value_parser = word::<Mode>(["batch", "dataset", "record"]), default_value = "record", help_heading = "The bound")]
    pub mode: Mode,
    /// Number of records to examine (drawn by the seed), or `all`; not for --mode batch
    #[arg(long, value_name = "N", default_value_t = Self::default().records, help_heading = "The bound")]
    #[serde(deserialize_with = "text")]
    pub records: String,
    /// Compare all pairs of values, or bound the distance by the centroid (larger, so on the safe
    /// side)
    #[arg(long, value_parser = word::<Diameter>(["full", "approximate"]), default_value = "full", help_heading = "The bound")]
    pub diameter: Diameter,
    /// File for the sensitivities, which `account` and `calibrate` read with
    /// --attribute-sensitivity
    #[arg(long, value_name = "FILE", conflicts_with = "out", help_heading = "The bound")]
    pub sensitivity: Option<PathBuf>,
    /// The record whose attribute is guessed
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value_t = Self::default().record, help_heading = "The game")]
    pub record: u64,
    /// The values to tell apart, or `all` [default: the first and the last]
    #[arg(
        long,
        value_name = "LIST",
        requires = "attribute",
        allow_hyphen_values = true,
        help_heading = "The game"
    )]
    pub secrets: Option<String>,
    /// What the attacker sees: the released model, or every noisy sum
    #[arg(long, value_parser = word::<Observe>(["last", "all"]), default_value = "last", help_heading = "The game")]
    pub observe: Observe,
    /// Number of trainings with each candidate
    #[arg(long, value_name = "N", value_parser = integer, default_value_t = Self::default().trials, help_heading = "The game")]
    pub trials: u64,
    /// Seed of all randomness [default: the file's]
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, help_heading = "The game")]
    pub seed: Option<u64>,
    #[command(flatten)]
    #[serde(flatten)]
    pub play: Play,
    #[arg(skip)]
    #[serde(flatten)]
    _rest: NothingElse,
}

impl Default for AttributeQuestion {
    fn default() -> Self {
        Self {
            file: PathBuf::new(),
            run: Described::default(),
            attribute: None,
            values: None,
            candidate_records: Vec::new(),
            mode: Mode::Record,
            records: "100".into(),
            diameter: Diameter::Full,
            sensitivity: None,
            record: 0,
            secrets: None,
            observe: Observe::Last,
            trials: 100,
            seed: None,
            play: Play::default(),
            _rest: NothingElse,
        }
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub enum AttributeAnswer {
    Measured(Box<AttributeMeasured>),
    Guessed(Box<AttributeGuessed>),
}

/// The Bayes security that follows from sensitivities along one training.
#[derive(Clone, Debug)]
pub struct AttributeMeasured {
    document: Sensitivity,
    pub attribute: String,
    pub data: String,
    pub values: usize,
    pub steps: u64,
    pub claims: Vec<Claim>,
    /// The most sensitive of the records that were looked at.
    pub worst: Option<String>,
    /// The file of sensitivities, where one was asked for.
    pub sensitivity: Option<PathBuf>,
}

/// A game that was played, and what its bounds allow.
#[derive(Clone, Debug)]
pub struct AttributeGuessed {
    pub played: Played,
    /// Where the guesses go.
    pub out: Option<PathBuf>,
    pub candidates: usize,
    pub observe: Observe,
    /// Blind guessing, the attacker's guesses, and what is allowed, as they are shown, in per cent.
    pub lines: Vec<(String, String)>,
    /// What the scores contradict.
    pub warnings: Vec<String>,
    pub is_bounded: bool,
}

impl Serialize for AttributeAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Measured(found) => found.document.serialize(serializer),
            Self::Guessed(found) => found.played.serialize(serializer),
        }
    }
}

impl Document for AttributeAnswer {
    fn warnings(&self) -> Vec<String> {
        match self {
            Self::Measured(_) => Vec::new(),
            Self::Guessed(found) => found.warnings.clone(),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Measured(_) => exit::ANSWERED,
            Self::Guessed(found) => found.played.exit_code(),
        }
    }
}

/// Why there is no answer: an interruption is none.
enum Stop {
    Refused(Refusal),
    Interrupted,
}

impl<E: Into<Refusal>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// Measures sensitivities, or plays the game.
///
/// # Errors
/// What is wrong with the question, the file or the data, and those of the accounting.
pub(super) fn attribute(
    question: &AttributeQuestion,
    work: &dyn Work,
) -> Result<Ended<AttributeAnswer>, Refusal> {
    let answer = Trainee::load(question).map_err(Stop::from).and_then(|trainee| {
        let threads = question.play.threads;
        if let Some(threads) =
            threads.map(|threads| usize::try_from(threads).unwrap_or(1).min(1024))
        {
            // Another part of the program may have asked for threads already; then they stay.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        }
        match (&question.play.out, &trainee.attribute) {
            (Some(out), _) => game(question, &trainee, out, work),
            (None, Some(attribute)) => measure(question, &trainee, attribute, work),
            (None, None) => {
                Err(Refusal::bad_input("candidate records make a game; add --out FILE").into())
            }
        }
    });
    match answer {
        Ok(answer) => Ok(Ended::Answered(answer)),
        Err(Stop::Interrupted) => Ok(Ended::Stopped(exit::INTERRUPTED)),
        Err(Stop::Refused(refusal)) => Err(refusal),
    }
}

/// What the file describes.
struct Trainee {
    run: Run,
    recipe: Arc<Recipe>,
    data: Arc<Dataset>,
    attribute: Option<Attribute>,
}

impl Trainee {
    fn load(question: &AttributeQuestion) -> Result<Self, Refusal> {
        let place = question.file.display();
        let text = std::fs::read_to_string(&question.file)
            .map_err(|error| Refusal::bad_input(format!("cannot read {place}: {error}")))?;
        let bad = |message: String| Refusal::bad_input(message).at(&place);
        let described =
            TrainingDescription::from_toml_str(&text).map_err(|error| bad(error.to_string()))?;
        let folder = question.file.parent().unwrap_or(Path::new(""));
        let split =
            described.data.load(folder).map_err(|error| Refusal::bad_input(error.to_string()))?;
        let data = split.train;
        let keys = question.run.description()?;
        let mut run = described.run.clone().overridden_by(&keys)?;
        run.dataset_size = run.dataset_size.or(Some(data.len() as u64));
        let run = run.resolve().map_err(|error| Refusal::from(error).of(&keys, &place))?.run;
        if !run.sampling().by_coins() {
            return Err(Refusal::new(
                Kind::NotCertified,
                format!(
                    "the attribute bound holds for Poisson and full batches, not for {}",
                    run.sampling().as_str()
                ),
            ));
        }
        let attribute = match &question.attribute {
            Some(name) => {
                let values = question.values.as_deref();
                let found = Attribute::of_column(&described.data, &data, name, values);
                Some(found.map_err(|error| Refusal::bad_input(error.to_string()))?)
            }
            None => None,
        };
        let network = described
            .model
            .network(data.shape, data.classes)
            .map_err(|error| bad(error.to_string()))?;
        let seed = question.seed.unwrap_or(described.seed);
        let recipe = Recipe::new(Arc::new(network), described.optimizer, &run, &data, seed)
            .map_err(|error| bad(error.to_string()))?;
        Ok(Self { run, recipe: Arc::new(recipe), data: Arc::new(data), attribute })
    }

    /// The records that are looked at, drawn by the seed.
    fn chosen(&self, records: &str) -> Result<Vec<u32>, Refusal> {
        let all = self.data.len();
        let count = match (records, records.parse::<usize>()) {
            ("all", _) => all,
            (_, Ok(count)) if count >= 1 => count.min(all),
            _ => {
                return Err(Refusal::bad_input(format!(
                    "`{records}` is not a count of records from 1; give --records 100, or --records all"
                )));
            }
        };
        let stream = Stream::new(self.recipe.seed, Purpose::SHUFFLE, 0);
        let mut keys: Vec<(u64, u32)> =
            (0..all as u32).map(|record| (stream.word(0, u64::from(record)), record)).collect();
        keys.sort_unstable();
        let mut found: Vec<u32> = keys.into_iter().take(count).map(|(_, record)| record).collect();
        found.sort_unstable();
        Ok(found)
    }

    /// Sensitivities along one training.
    fn along(
        &self,
        attribute: &Attribute,
        mut collector: Collector,
        work: &dyn Work,
    ) -> Result<Collector, Stop> {
        let Self { recipe, data, .. } = self;
        let mut recipe = Recipe::clone(recipe);
        recipe.lanes = recipe.suggested_lanes();
        let recipe = Arc::new(recipe);
        let probe = Probe::new(attribute.clone(), Arc::clone(&recipe.network), recipe.clip_norm);
        let stop = work.stop();
        let (start, mut last) = (Instant::now(), Instant::now());
        let steps = recipe.steps();
        follow(&recipe, data, Replica::new(0), &stop, |moment| {
            if moment.step < steps {
                collector.add(&probe, &recipe, data, moment)?;
            }
            if last.elapsed() >= Duration::from_secs(5) && moment.step > 0 {
                last = Instant::now();
                let done = moment.step as f64 / steps as f64;
                let left = start.elapsed().as_secs_f64() * (1.0 / done - 1.0);
                work.note(&format!("{} of {steps} steps, about {left:.0} s left", moment.step));
            }
            Ok(())
        })
        .map_err(stopped)?;
        Ok(collector)
    }
}

fn measure(
    question: &AttributeQuestion,
    trainee: &Trainee,
    attribute: &Attribute,
    work: &dyn Work,
) -> Result<AttributeAnswer, Stop> {
    let (mode, diameter) = (question.mode, question.diameter);
    let records =
        if mode == Mode::Batch { Vec::new() } else { trainee.chosen(&question.records)? };
    let looked_at = records.len();
    let collector = trainee.along(attribute, Collector::new(mode, diameter, records), work)?;
    if let Some(path) = &question.sensitivity {
        formats::files::write(path, write_csv(collector.rows()))
            .map_err(|error| Refusal::unwritable(path, &error))?;
    }
    let sensitivities = collector.sensitivities().map_err(stopped)?;
    let mut notes = vec![format!(
        "{} candidate values of `{}`; distances {}",
        attribute.values.len(),
        attribute.name,
        match diameter {
            Diameter::Full => "over all pairs of them",
            Diameter::Approximate => "bounded by twice the largest from the centroid",
        }
    )];
    if looked_at > 0 && looked_at < trainee.data.len() {
        notes.push(format!(
            "{looked_at} of {} records were examined; another one may be worse (--records all)",
            trainee.data.len()
        ));
    }
    let questions = Questions { notes, ..Questions::default() };
    let claims = bound::claims(&trainee.run, &sensitivities, &questions)?;
    let worst = worst(&sensitivities, &trainee.run)?;
    let document = Sensitivity {
        schema: ATTACK_SCHEMA,
        game: "attribute",
        attribute: attribute.name.clone(),
        values: attribute.values.iter().map(|value| value.name.clone()).collect(),
        mode: Mode::ALL.iter().find(|(_, known)| *known == mode).map_or("", |(name, _)| name),
        records: looked_at,
        worst_record: worst.clone(),
        steps: trainee.run.steps(),
        claims: claims.clone(),
        sensitivity: question.sensitivity.as_ref().map(|path| path.display().to_string()),
    };
    Ok(AttributeAnswer::Measured(Box::new(AttributeMeasured {
        document,
        attribute: attribute.name.clone(),
        data: trainee.data.provenance.name.clone(),
        values: attribute.values.len(),
        steps: trainee.run.steps(),
        claims,
        worst,
        sensitivity: question.sensitivity.clone(),
    })))
}

/// The record with the least Bayes security, in the mode `record`.
fn worst(sensitivities: &Sensitivities, run: &Run) -> Result<Option<String>, AccountingError> {
    if sensitivities.mode() != Mode::Record {
        return Ok(None);
    }
    let each = sensitivities.security_of_records(run)?;
    let least = each.iter().min_by(|a, b| a.1.central_limit.total_cmp(&b.1.central_limit));
    Ok(least.map(|(name, _)| (*name).to_owned()))
}

fn game(
    question: &AttributeQuestion,
    trainee: &Trainee,
    out: &Path,
    work: &dyn Work,
) -> Result<AttributeAnswer, Stop> {
    let observe = question.observe;
    let record = u32::try_from(question.record).unwrap_or(u32::MAX);
    let (recipe, data) = (Arc::clone(&trainee.recipe), Arc::clone(&trainee.data));
    let mut told_apart = None;
    let game = match &trainee.attribute {
        None => {
            let records = &question.candidate_records;
            AttributeGame::about_records(recipe, data, records, observe, question.trials)
        }
        Some(attribute) => {
            let secrets = secrets(question.secrets.as_deref(), attribute).map_err(stopped)?;
            let values = secrets.iter().map(|secret| attribute.values[*secret].clone()).collect();
            told_apart = Some(Attribute::new(&attribute.name, values).map_err(stopped)?);
            let trials = question.trials;
            AttributeGame::about_attribute(
                recipe, data, attribute, record, &secrets, observe, trials,
            )
        }
    }
    .map_err(stopped)?;
    let outcome = question.play.carry_out(&game, out, work)?;
    let candidates = game.candidates().len();
    let mut guessed = AttributeGuessed {
        played: Played::new(&game, Some(out), Some(outcome)),
        out: question.play.out.clone(),
        candidates,
        observe,
        lines: Vec::new(),
        warnings: Vec::new(),
        is_bounded: false,
    };
    let mut accuracy = None;
    let mut allowed = Vec::new();
    if guessed.played.is_complete() {
        let text = std::fs::read_to_string(out).map_err(|error| {
            Refusal::bad_input(format!("cannot read {}: {error}", out.display()))
        })?;
        accuracy = Accuracy::of_table(&text, 0.95);
        if let Some(attribute) = &told_apart {
            let collector = Collector::new(Mode::Record, Diameter::Full, vec![record]);
            let collector = trainee.along(attribute, collector, work)?;
            let sensitivities = collector.sensitivities().map_err(stopped)?;
            allowed = bound::claims(&trainee.run, &sensitivities, &Questions::default())?;
        } else {
            allowed = membership(&trainee.run)?;
        }
        allowed.retain(|claim| claim.quantity == Quantity::BayesSecurity);
    }
    if let Some(found) = &accuracy {
        guessed.lines = lines(found, &allowed, candidates);
        guessed.is_bounded = !allowed.is_empty();
        let certified = allowed.iter().find(|claim| claim.source == LensName::OF_ATTRIBUTES);
        if certified
            .is_some_and(|claim| found.lower > accuracy_bound(claim.interval.lower, candidates))
        {
            guessed.warnings.push(
                "the attacker was right more often than the certified form allows: the bound uses \
                 the sensitivities of one training, and these trainings may have larger ones"
                    .to_owned(),
            );
        }
    }
    let guesses = Guesses::new(observe, accuracy, &allowed, candidates);
    guessed.played = guessed.played.guessed(guesses);
    Ok(AttributeAnswer::Guessed(Box::new(guessed)))
}

/// What is known about replacing a record.
fn membership(run: &Run) -> Result<Vec<Claim>, Refusal> {
    let run = run.to_builder().adjacency(Adjacency::Substitute).build()?;
    let about_attributes = Lens::about_attributes().map(|lens| lens.name);
    let lenses = std::iter::once(LensName::SIGNED).chain(about_attributes).collect();
    let quantities = vec![Quantity::BayesSecurity];
    let questions = Questions { lenses, quantities, ..Questions::default() };
    Ok(accounting::account(&run, &questions)?.claims)
}

/// The candidates of the game: named ones, all, or the two ends.
fn secrets(text: Option<&str>, attribute: &Attribute) -> Result<Vec<usize>, AttributeError> {
    match text {
        None => Ok(vec![0, attribute.values.len() - 1]),
        Some("all") => Ok((0..attribute.values.len()).collect()),
        Some(names) => names.split(',').map(|name| attribute.position(name.trim())).collect(),
    }
}

/// The accuracies, each rounded to its safe side, with its standing.
fn lines(found: &Accuracy, allowed: &[Claim], candidates: usize) -> Vec<(String, String)> {
    let mut lines = vec![
        (
            "blind guessing".to_owned(),
            format!("{} %", Quoted::about(100.0 * (1.0 / candidates as f64))),
        ),
        (
            "the attacker's guesses".to_owned(),
            format!(
                "{} % ({} to {} % at {} % confidence, {}, {} of {})",
                Quoted::about(100.0 * found.value),
                AtLeast::new(found.lower).percent(),
                AtMost::new(found.upper).percent(),
                100.0 * found.confidence,
                Standing::Measured.as_str(),
                found.right,
                found.guesses
            ),
        ),
    ];
    for claim in allowed {
        // Less security allows more right answers.
        let right = |security: f64| accuracy_bound(security, candidates);
        let bound = if claim.is_bound() {
            Quoted::from(AtMost::new(right(claim.interval.lower)))
        } else {
            Quoted::about(right(claim.interval.value))
        };
        lines.push((
            format!("allowed by {}", claim.source),
            format!("{} % ({})", bound.times(100.0).shown(), claim.standing.as_str()),
        ));
    }
    lines
}

fn stopped(error: AttributeError) -> Stop {
    match error {
        AttributeError::Interrupted => Stop::Interrupted,
        AttributeError::Accounting(error) => error.into(),
        other => Refusal::bad_input(other.to_string()).into(),
    }
}
