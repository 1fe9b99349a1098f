//! `data`: the data sets known by name, where they are to be had and under which licence, with
//! checksums; and whether files are the published ones.

use crate::args::{Format, OutputArgs};
use crate::console::Console;
use crate::exit;
use crate::print::{Align, TextTable, WIDTH, wrap};
use answers::{Kind, Refusal};
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use training::data::adult;
use training::data::catalogue::{KNOWN, KnownDataset, Verification, Verified, known, verify_file};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter data
  dosimeter data fashion-mnist
  dosimeter data train-images-idx3-ubyte.gz cifar-10-batches-bin
  dosimeter data describe people.csv > training.toml
")]
pub struct DataArgs {
    /// The name of a known data set; a file or folder to verify; or `describe FILE.csv`, which
    /// begins a [data] table for a file of your own
    #[arg(value_name = "NAME|PATH|describe FILE.csv")]
    what: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &DataArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    // A file of that name would be written ./describe.
    if let Some((first, files)) = args.what.split_first()
        && first.as_os_str() == "describe"
    {
        return match files {
            [file] => super::data_describe::run(file, format, console),
            _ => Err(Refusal::bad_input("`data describe` takes one CSV file")),
        };
    }
    let mut described: Vec<&KnownDataset> = Vec::new();
    let mut files: Vec<PathBuf> = Vec::new();
    for what in &args.what {
        match what.to_str().and_then(known) {
            // A file of that name would be written ./adult.
            Some(dataset) => described.push(dataset),
            None => files.extend(files_of(what)?),
        }
    }
    let list = args.what.is_empty();
    if list {
        described.extend(KNOWN.iter());
    }
    let built_in = described.iter().any(|dataset| dataset.name == "adult").then(adult::verify);
    let verified: Vec<(PathBuf, Verified)> = files
        .into_iter()
        .map(|path| {
            let found = verify_file(&path)
                .map_err(|error| Refusal::bad_input(format!("{}: {error}", path.display())))?;
            Ok((path, found))
        })
        .collect::<Result<_, Refusal>>()?;
    if format == Format::Json {
        console.json(&DataDocument::new(&described, &verified))?;
    } else if list {
        console.answer(&table())?;
    } else {
        let mut text: Vec<String> = described.iter().map(|dataset| description(dataset)).collect();
        text.extend(verified.iter().map(|(path, found)| sentence(path, found)));
        console.answer(&text.join("\n"))?;
    }
    if let Some(Err(damaged)) = built_in {
        return Err(Refusal::new(Kind::Bug, damaged.to_string()));
    }
    let genuine = |(_, found): &(PathBuf, Verified)| {
        matches!(found.verification, Verification::Genuine { .. })
    };
    Ok(if verified.iter().all(genuine) { exit::ANSWERED } else { exit::CHECK_FAILED })
}

/// The file itself, or the files of a folder that have the name of a known one.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, Refusal> {
    if !path.is_dir() {
        if !path.exists() {
            let names: Vec<&str> = KNOWN.iter().map(|dataset| dataset.name).collect();
            let problem = "is neither a file nor a known data set";
            return Err(Refusal::bad_input(format!("{} {problem}", path.display()))
                .hint(format!("known by name are {}", names.join(", "))));
        }
        return Ok(vec![path.to_owned()]);
    }
    let mut names: Vec<&str> =
        KNOWN.iter().flat_map(|dataset| dataset.files.iter().map(|file| file.name)).collect();
    names.sort_unstable();
    names.dedup();
    let found: Vec<PathBuf> =
        names.into_iter().map(|name| path.join(name)).filter(|path| path.is_file()).collect();
    if found.is_empty() {
        let problem = "holds no file with the name of a known one";
        return Err(Refusal::bad_input(format!("{} {problem}", path.display()))
            .hint("`dosimeter data NAME` lists the files of a data set"));
    }
    Ok(found)
}

fn table() -> String {
    let mut table = TextTable::new([
        ("name", Align::Left),
        ("train", Align::Right),
        ("test", Align::Right),
        ("features", Align::Right),
        ("classes", Align::Right),
        ("licence", Align::Left),
    ]);
    for dataset in &KNOWN {
        let short = dataset.licence.split(&[';', ','][..]).next().unwrap_or_default();
        table.row([
            dataset.name.to_owned(),
            dataset.records[0].to_string(),
            dataset.records[1].to_string(),
            dataset.features.to_string(),
            dataset.classes.to_string(),
            if dataset.layout.is_empty() {
                format!("{short} (built in)")
            } else {
                short.to_owned()
            },
        ]);
    }
    format!(
        "{}\n{}",
        table.render(0),
        wrap(
            "Nothing is fetched. `dosimeter data NAME` says where a data set is, its licence, its \
             citation and its checksums; \
             `dosimeter data PATH` verifies files. Data of your own: `[data] path` with CSV, .npy, \
             Parquet, IDX, CIFAR-10 binary or a folder of images for each class; `dosimeter data \
             describe FILE.csv` begins the table.",
            "",
            0,
            WIDTH,
        )
    )
}

fn description(dataset: &KnownDataset) -> String {
    let [train, test] = dataset.records;
    let place = if dataset.layout.is_empty() {
        "built in; verified just now against the published files".to_owned()
    } else {
        format!("[data] name = \"{}\", path = {}", dataset.name, dataset.layout)
    };
    let mut text = format!(
        "{}: {}\n  {train} training and {test} test records, {} features, {} classes\n",
        dataset.name, dataset.title, dataset.features, dataset.classes,
    );
    for (name, words) in [
        ("licence", dataset.licence),
        ("source", dataset.source),
        ("cite", dataset.citation),
        ("use", &place),
    ] {
        text.push_str(&wrap(words, &format!("  {name:<8}"), 10, WIDTH));
    }
    // A checksum has 64 digits: the file's name does not fit beside it.
    for file in dataset.files {
        text.push_str(&format!("  {}\n    sha256  {}\n", file.name, file.sha256));
    }
    text
}

fn sentence(path: &Path, found: &Verified) -> String {
    let verdict = match &found.verification {
        Verification::Genuine { dataset, file } => format!("genuine: {file} of {dataset}"),
        Verification::Different { datasets, file } => {
            format!("NOT the {file} of {}: damaged, or another version", datasets.join(" or of "))
        }
        Verification::Unknown => "not a file of a data set known here".to_owned(),
    };
    format!("{}: {verdict}\n  {} bytes\n  sha256 {}\n", path.display(), found.bytes, found.sha256)
}

/// The `dosimeter.data/1` document.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DataDocument {
    schema: &'static str,
    datasets: Vec<DatasetEntry>,
    files: Vec<FileEntry>,
}

/// A known data set.
#[derive(Debug, Serialize, JsonSchema)]
struct DatasetEntry {
    name: &'static str,
    title: &'static str,
    /// Records to train on, and to test on.
    train: usize,
    test: usize,
    features: usize,
    classes: usize,
    built_in: bool,
    licence: &'static str,
    source: &'static str,
    citation: &'static str,
    files: Vec<PublishedFile>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PublishedFile {
    name: &'static str,
    sha256: &'static str,
}

/// A file that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
struct FileEntry {
    path: String,
    sha256: String,
    bytes: u64,
    status: FileStatus,
    /// The data sets that have a file of this name.
    datasets: Vec<&'static str>,
    file: Option<&'static str>,
}

/// Whether a file is the published one.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum FileStatus {
    Genuine,
    Different,
    Unknown,
}

impl DataDocument {
    pub(super) const SCHEMA: &'static str = "dosimeter.data/1";

    fn new(described: &[&KnownDataset], verified: &[(PathBuf, Verified)]) -> Self {
        Self {
            schema: Self::SCHEMA,
            datasets: described.iter().map(|dataset| entry(dataset)).collect(),
            files: verified.iter().map(file_entry).collect(),
        }
    }
}

fn entry(dataset: &KnownDataset) -> DatasetEntry {
    let file = |file: &training::data::catalogue::KnownFile| PublishedFile {
        name: file.name,
        sha256: file.sha256,
    };
    DatasetEntry {
        name: dataset.name,
        title: dataset.title,
        train: dataset.records[0],
        test: dataset.records[1],
        features: dataset.features,
        classes: dataset.classes,
        built_in: dataset.layout.is_empty(),
        licence: dataset.licence,
        source: dataset.source,
        citation: dataset.citation,
        files: dataset.files.iter().map(file).collect(),
    }
}

fn file_entry((path, found): &(PathBuf, Verified)) -> FileEntry {
    let (status, datasets, file) = match &found.verification {
        Verification::Genuine { dataset, file } => {
            (FileStatus::Genuine, vec![*dataset], Some(*file))
        }
        Verification::Different { datasets, file } => {
            (FileStatus::Different, datasets.clone(), Some(*file))
        }
        Verification::Unknown => (FileStatus::Unknown, Vec::new(), None),
    };
    FileEntry {
        path: path.display().to_string(),
        sha256: found.sha256.clone(),
        bytes: found.bytes,
        status,
        datasets,
        file,
    }
}
