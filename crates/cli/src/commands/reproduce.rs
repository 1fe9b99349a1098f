//! `reproduce`: a figure or table of the papers, with its data.

use super::attack;
use crate::args::{Format, OutputArgs, integer, nonnegative_integer};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use crate::progress::Progress;
use clap::Args;
use papers::{Context, Entry, PaperError};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter reproduce --list
  dosimeter reproduce p4-section-4.2 --out figures
  dosimeter reproduce all --out figures
")]
pub struct ReproduceArgs {
    /// What to reproduce, or `all`
    #[arg(value_name = "ID", required_unless_present = "list")]
    id: Option<String>,
    /// What there is to reproduce
    #[arg(long)]
    list: bool,
    /// Where the data, figures and words go, one folder for each ID
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Games a side, in place of the paper's number
    #[arg(long, value_name = "N", value_parser = integer)]
    trials: Option<u64>,
    /// Folder of the data sets that are not built in, each in a folder of its name
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Root of all randomness
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, default_value = "0")]
    seed: u64,
    /// Threads [default: all cores]; the result does not depend on it
    #[arg(long, value_name = "N", value_parser = integer)]
    threads: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &ReproduceArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    if args.list {
        return list(format, console);
    }
    let id = args.id.as_deref().unwrap_or("all");
    let chosen =
        if id == "all" { papers::entries() } else { vec![papers::entry(id).map_err(failure)?] };
    let Some(out) = &args.out else {
        return Err(Failure::bad_input("there is no place to write to").hint("add --out DIR"));
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
    match format {
        Format::Json => console.json(&json!({"schema": "dosimeter.reproduce/1", "done": done}))?,
        _ => {
            for item in &done {
                let words = |key: &str| item[key].as_str().unwrap_or("").to_owned();
                let text = format!(
                    "{}\n  the paper shows: {}\n  we get: {}\n  differences: {}\n  files: {}\n",
                    words("title"),
                    words("paper_shows"),
                    words("we_get"),
                    words("differs"),
                    words("folder")
                );
                console.answer(&text)?;
            }
        }
    }
    Ok(exit::ANSWERED)
}

fn one(
    args: &ReproduceArgs,
    entry: &Entry,
    out: &std::path::Path,
    console: &mut Console,
) -> Result<Value, Failure> {
    let folder = out.join(entry.id);
    let threads = match args.threads {
        Some(threads) => usize::try_from(threads).unwrap_or(usize::MAX),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let stop = console.stop_flag();
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
    Ok(json!({
        "id": entry.id,
        "title": entry.title,
        "parameters": found.parameters,
        "paper_shows": entry.shows,
        "we_get": found.we_get,
        "differs": found.differs,
        "folder": folder.display().to_string(),
        "files": files,
    }))
}

fn list(format: Format, console: &mut Console) -> Result<u8, Failure> {
    let entries = papers::entries();
    if format == Format::Json {
        let all: Vec<Value> = entries
            .iter()
            .map(|entry| {
                json!({"id": entry.id, "paper": entry.paper, "title": entry.title, "seconds": entry.seconds})
            })
            .collect();
        console.json(&json!({"schema": "dosimeter.reproduce/1", "entries": all}))?;
    } else {
        let mut text = String::new();
        for entry in &entries {
            text.push_str(&format!(
                "{:<16} {} (about {} s)\n",
                entry.id, entry.title, entry.seconds
            ));
        }
        console.answer(&text)?;
    }
    Ok(exit::ANSWERED)
}

fn failure(error: PaperError) -> Failure {
    match error {
        PaperError::Experiment(error) => attack::failure(error),
        PaperError::Accounting(error) => error.into(),
        PaperError::Run(error) => error.into(),
        PaperError::Interrupted => Failure::new(exit::INTERRUPTED, error.to_string()),
        PaperError::Unknown { .. }
        | PaperError::Game(_)
        | PaperError::Audit(_)
        | PaperError::Attribute(_)
        | PaperError::Data(_) => {
            Failure::bad_input(error.to_string())
        }
        PaperError::Write { .. } => Failure::bad_input(error.to_string()),
    }
}
