//! `reproduce`: a figure or table of the papers, with its data.

use crate::args::{Format, OutputArgs, integer, nonnegative_integer, real, word};
use crate::console::Console;
use crate::exit;
use crate::print::{WIDTH, wrap};
use crate::progress::Progress;
use answers::{Kind, PRECISIONS, Refusal};
use clap::Args;
use papers::{Context, Entry, PaperError, Reproduction, TrainedContext, TrainedEntry};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use training::{Device, PrecisionName};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter reproduce --list
  dosimeter reproduce last-iterate-section-4.2 --out figures
  dosimeter reproduce all --out figures
  dosimeter reproduce last-iterate-figure-2 --data data --device cuda:0 \\
      --minutes 8 --out figures
  dosimeter reproduce last-iterate-table-1-trained --data data --device cpu \\
      --out figures
")]
pub struct ReproduceArgs {
    /// What to reproduce, or `all`
    #[arg(value_name = "ID", required_unless_present = "list")]
    id: Option<String>,
    /// List everything that can be reproduced
    #[arg(long)]
    list: bool,
    /// Output folder; each ID gets a folder in it
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of games with and without the canary, instead of the paper's
    #[arg(long, value_name = "N", value_parser = integer)]
    trials: Option<u64>,
    /// Folder with the data sets that are not built in, each in a subfolder with its name
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A language model instead of the small built-in one: a folder, or a .gguf file
    #[arg(long, value_name = "PATH", help_heading = "Entries that train")]
    model: Option<PathBuf>,
    /// Where to train: auto, cpu or cuda:N
    #[arg(
        long,
        value_name = "DEVICE",
        default_value = "auto",
        help_heading = "Entries that train"
    )]
    device: String,
    /// f32, or tf32 or bf16 on an NVIDIA device
    #[arg(long, value_parser = word::<PrecisionName>(PRECISIONS), default_value = "f32", help_heading = "Entries that train")]
    precision: PrecisionName,
    /// Stop training after this many minutes and report what is done; the same command adds to it
    #[arg(long, value_name = "M", value_parser = real, help_heading = "Entries that train")]
    minutes: Option<f64>,
    /// Only these models, where an entry trains several: mlp, cnn, wrn-10-1, wrn-16-4
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Entries that train")]
    models: Vec<String>,
    /// Number of records in each training, instead of the default
    #[arg(long, value_name = "N", value_parser = integer, help_heading = "Entries that train")]
    records: Option<u64>,
    /// Seed of all randomness
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, default_value = "0")]
    seed: u64,
    /// Number of threads; it does not change the result [default: all cores]
    #[arg(long, value_name = "N", value_parser = integer)]
    threads: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &ReproduceArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    if args.list {
        return list(format, console);
    }
    let asked = args.id.as_deref().unwrap_or("all");
    let id = &papers::named(asked);
    if let Some(trained) = papers::trained_entries().iter().find(|known| known.entry.id == *id) {
        return trained_entry(args, trained, format, console);
    }
    let chosen =
        if id == "all" { papers::entries() } else { vec![papers::entry(asked).map_err(failure)?] };
    let Some(out) = &args.out else {
        return Err(
            Refusal::bad_input("`reproduce` needs a folder to write to").hint("add --out DIR")
        );
    };
    let mut done = Vec::new();
    for entry in &chosen {
        console.note(&format!("{}, about {} s on two cores", entry.id, entry.seconds));
        done.push(one(args, entry, out, console)?);
    }
    if id == "all" {
        papers::write_index(&chosen, out).map_err(failure)?;
        console.note(&format!("index: {}", out.join("index.html").display()));
    }
    tell(done, format, console)?;
    Ok(exit::ANSWERED)
}

/// The `dosimeter.reproduce/1` document: what was done, or with `--list` what there is.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReproduceDocument {
    schema: &'static str,
    #[serde(flatten)]
    what: What,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum What {
    Done { done: Vec<Done> },
    List { entries: Vec<Listed>, trained: Vec<Listed> },
}

/// A figure or table that was made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Done {
    id: &'static str,
    title: &'static str,
    parameters: Value,
    paper_shows: &'static str,
    we_get: String,
    differs: String,
    folder: String,
    files: Vec<String>,
}

/// A figure or table that can be made.
#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    id: &'static str,
    paper: &'static str,
    title: &'static str,
    /// About how long it takes on two cores, where it does not train.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<u32>,
    /// What it needs, where it trains.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<&'static str>,
}

impl ReproduceDocument {
    pub(super) const SCHEMA: &'static str = "dosimeter.reproduce/1";

    fn new(what: What) -> Self {
        Self { schema: Self::SCHEMA, what }
    }
}

fn tell(done: Vec<Done>, format: Format, console: &mut Console) -> Result<(), Refusal> {
    match format {
        Format::Json => console.json(&ReproduceDocument::new(What::Done { done }))?,
        _ => {
            for item in done {
                let mut text = wrap(item.title, "", 2, WIDTH);
                for (name, words) in [
                    ("the paper shows", item.paper_shows),
                    ("we get", &item.we_get),
                    ("differences", &item.differs),
                    ("files", &item.folder),
                ] {
                    text.push_str(&wrap(words, &format!("  {name}: "), 4, WIDTH));
                }
                console.answer(&text)?;
            }
        }
    }
    Ok(())
}

/// An entry that trains on the user's data, for as long as the user gives it.
fn trained_entry(
    args: &ReproduceArgs,
    trained: &TrainedEntry,
    format: Format,
    console: &mut Console,
) -> Result<u8, Refusal> {
    let Some(out) = &args.out else {
        return Err(
            Refusal::bad_input("`reproduce` needs a folder to write to").hint("add --out DIR")
        );
    };
    let deadline = match args.minutes {
        None => None,
        Some(minutes) if (0.0..1e6).contains(&minutes) => {
            Some(Instant::now() + Duration::from_secs_f64(60.0 * minutes))
        }
        Some(minutes) => {
            return Err(Refusal::bad_input(format!(
                "--minutes {minutes} is not between 0 and 1e6"
            )));
        }
    };
    let device = Device::with_precision(&args.device, args.precision)
        .map_err(|error| failure(error.into()))?;
    let folder = out.join(trained.entry.id);
    let (stop, incomplete) = (crate::interrupt::stop_flag(), AtomicBool::new(false));
    let work = |console: &mut Console| {
        let reporter = Progress::new(console);
        let context = TrainedContext {
            folder: &folder,
            data: args.data.as_deref(),
            model: args.model.as_deref(),
            device: Arc::new(device),
            models: &args.models,
            trials: args.trials,
            records: args.records,
            seed: args.seed,
            deadline,
            reporter: &reporter,
            stop: &stop,
            incomplete: &incomplete,
        };
        trained.reproduce(&context)
    };
    let found = match args.threads {
        None => work(console),
        Some(threads) => rayon::ThreadPoolBuilder::new()
            .num_threads(usize::try_from(threads).unwrap_or(usize::MAX).min(1024))
            .build()
            .map_err(|error| Refusal::new(Kind::Bug, error.to_string()))?
            .install(|| work(console)),
    };
    let found = found.map_err(failure)?;
    let files = papers::write(&trained.entry, &found, &folder).map_err(failure)?;
    console.note(&format!("{} files in {}", files.len(), folder.display()));
    tell(vec![answer(&trained.entry, found, &folder, files)], format, console)?;
    if incomplete.load(Ordering::Relaxed) {
        console.hint("the time was up; the same command adds trainings to these");
        return Ok(exit::INCOMPLETE);
    }
    Ok(exit::ANSWERED)
}

fn answer(entry: &Entry, found: Reproduction, folder: &Path, files: Vec<String>) -> Done {
    Done {
        id: entry.id,
        title: entry.title,
        parameters: found.parameters,
        paper_shows: entry.shows,
        we_get: found.we_get,
        differs: found.differs,
        folder: folder.display().to_string(),
        files,
    }
}

fn one(
    args: &ReproduceArgs,
    entry: &Entry,
    out: &std::path::Path,
    console: &mut Console,
) -> Result<Done, Refusal> {
    let folder = out.join(entry.id);
    let threads = match args.threads {
        Some(threads) => usize::try_from(threads).unwrap_or(usize::MAX),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let stop = crate::interrupt::stop_flag();
    let found = {
        let reporter = Progress::new(console);
        let context = Context {
            folder: &folder,
            threads,
            trials: args.trials,
            seed: args.seed,
            data: args.data.as_deref(),
            reporter: &reporter,
            stop: &stop,
        };
        entry.reproduce(&context).map_err(failure)?
    };
    let files = papers::write(entry, &found, &folder).map_err(failure)?;
    console.note(&format!("{} files in {}", files.len(), folder.display()));
    Ok(answer(entry, found, &folder, files))
}

fn list(format: Format, console: &mut Console) -> Result<u8, Refusal> {
    let entries = papers::entries();
    if format == Format::Json {
        let listed = |entry: &Entry, seconds, needs| Listed {
            id: entry.id,
            paper: entry.paper,
            title: entry.title,
            seconds,
            needs,
        };
        let trained = papers::trained_entries();
        let what = What::List {
            entries: entries.iter().map(|entry| listed(entry, Some(entry.seconds), None)).collect(),
            trained: trained
                .iter()
                .map(|known| listed(&known.entry, None, Some("data (--data), a device")))
                .collect(),
        };
        console.json(&ReproduceDocument::new(what))?;
    } else {
        let trained = papers::trained_entries();
        let mut text = String::new();
        let all = entries.iter().chain(trained.iter().map(|known| &known.entry));
        let width = all.clone().map(|entry| entry.id.len()).max().unwrap_or(0);
        for paper in in_order(all) {
            text.push_str(&wrap(paper, "", 2, WIDTH));
            let mut line = |entry: &Entry, cost: &str| {
                text.push_str(&format!("  {:<width$} {cost}\n", entry.id));
                text.push_str(&wrap(entry.title, "      ", 6, WIDTH));
            };
            for entry in entries.iter().filter(|entry| entry.paper == paper) {
                line(entry, &format!("about {} s", entry.seconds));
            }
            for known in trained.iter().filter(|known| known.entry.paper == paper) {
                line(&known.entry, "trains; needs --data");
            }
            text.push('\n');
        }
        text.push_str(
            "Entries that train take minutes on a large GPU; `--minutes` stops them earlier.\n\
             A paper may be named by its number: p1 closed-form, p2 empirical-variance,\n\
             p3 our-loss, p4 last-iterate.\n",
        );
        console.answer(&text)?;
    }
    Ok(exit::ANSWERED)
}

/// The papers, each once.
fn in_order<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<&'static str> {
    let mut papers = Vec::new();
    for entry in entries {
        if !papers.contains(&entry.paper) {
            papers.push(entry.paper);
        }
    }
    papers
}

fn failure(error: PaperError) -> Refusal {
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
        | PaperError::Unusable(_) => Refusal::bad_input(error.to_string()),
        PaperError::Write { .. }
        | PaperError::Attack(_)
        | PaperError::Training(_)
        | PaperError::Read { .. }
        | PaperError::FineTuning(_)
        | PaperError::Data(_)
        | PaperError::NoFolder(_)
        | PaperError::NeedsData => Refusal::bad_input(error.to_string()),
    }
}
