//! `reproduce`: figures and tables of the papers, computed again.

use crate::flags::{integer, nonnegative_integer, real, word};
use crate::play::{on_threads, threads};
use crate::{Document, Kind, PRECISIONS, Refusal, Work, exit};
use clap::Args;
use papers::{Context, Entry, PaperError, Reproduction, TrainedContext, TrainedEntry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use training::{Device, PrecisionName};

/// What is computed again, and with what.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct ReproduceQuestion {
    /// What to reproduce, or `all`
    #[arg(value_name = "ID", required_unless_present = "list")]
    pub id: Option<String>,
    /// List everything that can be reproduced
    #[arg(long)]
    pub list: bool,
    /// Output folder; each ID gets a folder in it
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Number of games with and without the canary, instead of the paper's
    #[arg(long, value_name = "N", value_parser = integer)]
    pub trials: Option<u64>,
    /// Folder with the data sets that are not built in, each in a subfolder with its name
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A language model instead of the small built-in one: a folder, or a .gguf file
    #[arg(long, value_name = "PATH", help_heading = "Entries that train")]
    pub model: Option<PathBuf>,
    /// Where to train: auto, cpu or cuda:N
    #[arg(
        long,
        value_name = "DEVICE",
        default_value = "auto",
        help_heading = "Entries that train"
    )]
    pub device: Option<String>,
    /// f32, or tf32 or bf16 on an NVIDIA device
    #[arg(long, value_parser = word::<PrecisionName>(PRECISIONS), default_value = "f32", help_heading = "Entries that train")]
    pub precision: PrecisionName,
    /// Stop training after this many minutes and report what is done; the same command adds to it
    #[arg(long, value_name = "M", value_parser = real, help_heading = "Entries that train")]
    pub minutes: Option<f64>,
    /// Only these models, where an entry trains several: mlp, cnn, wrn-10-1, wrn-16-4
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Entries that train")]
    pub models: Vec<String>,
    /// Number of records in each training, instead of the default
    #[arg(long, value_name = "N", value_parser = integer, help_heading = "Entries that train")]
    pub records: Option<u64>,
    /// Seed of all randomness
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, default_value = "0")]
    pub seed: u64,
    /// Number of threads; it does not change the result [default: all cores]
    #[arg(long, value_name = "N", value_parser = integer)]
    pub threads: Option<u64>,
}

/// The `dosimeter.reproduce/1` document: what was done, or with `--list` what there is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reproduced {
    schema: &'static str,
    #[serde(flatten)]
    pub what: ReproducedWhat,
    /// Whether the time was up before all trainings were done.
    #[serde(skip)]
    pub incomplete: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ReproducedWhat {
    Done { done: Vec<DoneEntry> },
    List { entries: Vec<ListedEntry>, trained: Vec<ListedEntry> },
}

/// A figure or table that was made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DoneEntry {
    pub id: &'static str,
    pub title: &'static str,
    pub parameters: Value,
    pub paper_shows: &'static str,
    pub we_get: String,
    pub differs: String,
    pub folder: String,
    pub files: Vec<String>,
}

/// A figure or table that can be made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedEntry {
    pub id: &'static str,
    pub paper: &'static str,
    pub title: &'static str,
    /// About how long it takes on two cores, where it does not train.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
    /// What it needs, where it trains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<&'static str>,
}

impl Reproduced {
    pub const SCHEMA: &'static str = "dosimeter.reproduce/1";

    fn new(what: ReproducedWhat, incomplete: bool) -> Self {
        Self { schema: Self::SCHEMA, what, incomplete }
    }
}

impl Document for Reproduced {
    fn exit_code(&self) -> u8 {
        if self.incomplete { exit::INCOMPLETE } else { exit::ANSWERED }
    }
}

/// Computes what is asked for, or lists what there is.
///
/// # Errors
/// A name that is nobody's, settings that do not fit, and those of the entry.
pub fn reproduce(question: &ReproduceQuestion, work: &dyn Work) -> Result<Reproduced, Refusal> {
    if question.list {
        return Ok(listed());
    }
    let asked = question.id.as_deref().unwrap_or("all");
    let id = papers::named(asked);
    let trained = papers::trained_entries().into_iter().find(|known| known.entry.id == id);
    let chosen = match (&trained, id.as_str()) {
        (Some(_), _) => Vec::new(),
        (None, "all") => papers::entries(),
        (None, _) => vec![papers::entry(asked).map_err(refused)?],
    };
    let out = question.out.as_deref().ok_or_else(|| {
        Refusal::bad_input("`reproduce` needs a folder to write to").hint("add --out DIR")
    })?;
    if let Some(trained) = trained {
        let (done, incomplete) = question.train(&trained, &out.join(trained.entry.id), work)?;
        return Ok(Reproduced::new(ReproducedWhat::Done { done: vec![done] }, incomplete));
    }
    let mut done = Vec::new();
    for entry in &chosen {
        work.note(&format!("{}, about {} s on two cores", entry.id, entry.seconds));
        done.push(question.compute(entry, &out.join(entry.id), work)?);
    }
    if id == "all" {
        papers::write_index(&chosen, out).map_err(refused)?;
        work.note(&format!("index: {}", out.join("index.html").display()));
    }
    Ok(Reproduced::new(ReproducedWhat::Done { done }, false))
}

impl ReproduceQuestion {
    fn compute(&self, entry: &Entry, folder: &Path, work: &dyn Work) -> Result<DoneEntry, Refusal> {
        let context = Context {
            folder,
            threads: threads(self.threads),
            trials: self.trials,
            seed: self.seed,
            data: self.data.as_deref(),
            reporter: work,
            stop: &work.stop(),
        };
        written(entry, entry.reproduce(&context).map_err(refused)?, folder, work)
    }

    /// An entry that trains on the user's data, for as long as the user gives it; and whether the time was up.
    fn train(
        &self,
        trained: &TrainedEntry,
        folder: &Path,
        work: &dyn Work,
    ) -> Result<(DoneEntry, bool), Refusal> {
        let deadline = match self.minutes {
            None => None,
            Some(minutes) if (0.0..1e6).contains(&minutes) => {
                Some(Instant::now() + Duration::from_secs_f64(60.0 * minutes))
            }
            Some(minutes) => {
                let message = format!("--minutes {minutes} is not between 0 and 1e6");
                return Err(Refusal::bad_input(message));
            }
        };
        let device =
            Device::with_precision(self.device.as_deref().unwrap_or("auto"), self.precision)
                .map_err(|error| refused(error.into()))?;
        let incomplete = AtomicBool::new(false);
        let context = TrainedContext {
            folder,
            data: self.data.as_deref(),
            model: self.model.as_deref(),
            device: Arc::new(device),
            models: &self.models,
            trials: self.trials,
            records: self.records,
            seed: self.seed,
            deadline,
            reporter: work,
            stop: &work.stop(),
            incomplete: &incomplete,
        };
        let found = on_threads(self.threads, || trained.reproduce(&context))?.map_err(refused)?;
        let done = written(&trained.entry, found, folder, work)?;
        Ok((done, incomplete.load(Ordering::Relaxed)))
    }
}

fn written(
    entry: &Entry,
    found: Reproduction,
    folder: &Path,
    work: &dyn Work,
) -> Result<DoneEntry, Refusal> {
    let files = papers::write(entry, &found, folder).map_err(refused)?;
    work.note(&format!("{} files in {}", files.len(), folder.display()));
    Ok(DoneEntry {
        id: entry.id,
        title: entry.title,
        parameters: found.parameters,
        paper_shows: entry.shows,
        we_get: found.we_get,
        differs: found.differs,
        folder: folder.display().to_string(),
        files,
    })
}

fn listed() -> Reproduced {
    let listed = |entry: &Entry, seconds, needs| ListedEntry {
        id: entry.id,
        paper: entry.paper,
        title: entry.title,
        seconds,
        needs,
    };
    let entries = papers::entries();
    let trained = papers::trained_entries();
    let needs = Some("data (--data), a device");
    let what = ReproducedWhat::List {
        entries: entries.iter().map(|entry| listed(entry, Some(entry.seconds), None)).collect(),
        trained: trained.iter().map(|known| listed(&known.entry, None, needs)).collect(),
    };
    Reproduced::new(what, false)
}

fn refused(error: PaperError) -> Refusal {
    match error {
        PaperError::Experiment(error) => error.into(),
        PaperError::Accounting(error) => error.into(),
        PaperError::Run(error) => error.into(),
        PaperError::Interrupted => Refusal::new(Kind::Interrupted, error.to_string()),
        PaperError::Unknown { .. } => Refusal::bad_input(error.to_string())
            .hint("`dosimeter reproduce --list` says what each of them is"),
        PaperError::NoModel { .. }
        | PaperError::Game(_)
        | PaperError::Audit(_)
        | PaperError::Attribute(_)
        | PaperError::Unusable(_)
        | PaperError::Write { .. }
        | PaperError::Attack(_)
        | PaperError::Training(_)
        | PaperError::Read { .. }
        | PaperError::FineTuning(_)
        | PaperError::Data(_)
        | PaperError::NoFolder(_)
        | PaperError::NeedsData => Refusal::bad_input(error.to_string()),
    }
}
