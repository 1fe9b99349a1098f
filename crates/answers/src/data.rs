//! The data sets known by name, whether files are the published ones, and what a CSV file holds.

use crate::{Document, Kind, Refusal, exit};
use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use training::data::catalogue::{
    KNOWN, KnownDataset, KnownFile, Verification, Verified, known, verify_file,
};
use training::data::{Holds, Sketch, SketchedColumn, adult, sketch_csv};

/// What is asked about.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct DataQuestion {
    /// The name of a known data set; a file or folder to verify; or `describe FILE.csv`, which
    /// begins a [data] table for a file of your own
    #[arg(value_name = "NAME|PATH|describe FILE.csv")]
    pub what: Vec<PathBuf>,
}

/// The answer: the document of the question.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum DataAnswer {
    Known(DataDocument),
    Described(DataDescription),
}

impl Document for DataAnswer {
    fn exit_code(&self) -> u8 {
        let genuine = |file: &FileEntry| file.status == FileStatus::Genuine;
        match self {
            Self::Known(found) if !found.files.iter().all(genuine) => exit::CHECK_FAILED,
            _ => exit::ANSWERED,
        }
    }
}

/// Looks names up, verifies files, or describes one; without either, the answer is about every known data set.
///
/// # Errors
/// A path that is nothing known, a file that cannot be read, and built-in data that are damaged.
pub fn data(question: &DataQuestion) -> Result<DataAnswer, Refusal> {
    // A file of that name would be written ./describe.
    if let Some((first, files)) = question.what.split_first()
        && first.as_os_str() == "describe"
    {
        return match files {
            [file] => Ok(DataAnswer::Described(DataDescription::new(file, &sketch(file)?))),
            _ => Err(Refusal::bad_input("`data describe` takes one CSV file")),
        };
    }
    let mut described: Vec<&KnownDataset> = Vec::new();
    let mut files: Vec<PathBuf> = Vec::new();
    for what in &question.what {
        match what.to_str().and_then(known) {
            // A file of that name would be written ./adult.
            Some(dataset) => described.push(dataset),
            None => files.extend(files_of(what)?),
        }
    }
    if question.what.is_empty() {
        described.extend(KNOWN.iter());
    }
    if described.iter().any(|dataset| dataset.name == "adult") {
        adult::verify().map_err(|damaged| Refusal::new(Kind::Bug, damaged.to_string()))?;
    }
    let verified = |path: PathBuf| match verify_file(&path) {
        Ok(found) => Ok(file_entry(&path, found)),
        Err(error) => Err(Refusal::bad_input(format!("{}: {error}", path.display()))),
    };
    Ok(DataAnswer::Known(DataDocument {
        schema: DataDocument::SCHEMA,
        datasets: described.into_iter().map(entry).collect(),
        files: files.into_iter().map(verified).collect::<Result<_, _>>()?,
    }))
}

fn sketch(path: &Path) -> Result<Sketch, Refusal> {
    sketch_csv(path).map_err(|error| {
        let refusal = Refusal::bad_input(error.to_string());
        let other = "`data describe` reads CSV; other formats need no table of columns";
        if path.is_file() { refusal.hint(other) } else { refusal }
    })
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

/// The `dosimeter.data/1` document.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DataDocument {
    pub schema: &'static str,
    pub datasets: Vec<DatasetEntry>,
    pub files: Vec<FileEntry>,
}

/// A known data set.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DatasetEntry {
    pub name: &'static str,
    pub title: &'static str,
    /// Records to train on, and to test on.
    pub train: usize,
    pub test: usize,
    pub features: usize,
    pub classes: usize,
    pub built_in: bool,
    /// How its files lie in a folder, as a value of `path`.
    #[serde(skip)]
    pub layout: &'static str,
    pub licence: &'static str,
    pub source: &'static str,
    pub citation: &'static str,
    pub files: Vec<PublishedFile>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct PublishedFile {
    pub name: &'static str,
    pub sha256: &'static str,
}

/// A file that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileEntry {
    pub path: String,
    pub sha256: String,
    pub bytes: u64,
    pub status: FileStatus,
    /// The data sets that have a file of this name.
    pub datasets: Vec<&'static str>,
    pub file: Option<&'static str>,
}

/// Whether a file is the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileStatus {
    Genuine,
    Different,
    Unknown,
}

impl DataDocument {
    pub const SCHEMA: &'static str = "dosimeter.data/1";
}

fn entry(dataset: &KnownDataset) -> DatasetEntry {
    let file = |file: &KnownFile| PublishedFile { name: file.name, sha256: file.sha256 };
    DatasetEntry {
        name: dataset.name,
        title: dataset.title,
        train: dataset.records[0],
        test: dataset.records[1],
        features: dataset.features,
        classes: dataset.classes,
        built_in: dataset.layout.is_empty(),
        layout: dataset.layout,
        licence: dataset.licence,
        source: dataset.source,
        citation: dataset.citation,
        files: dataset.files.iter().map(file).collect(),
    }
}

fn file_entry(path: &Path, found: Verified) -> FileEntry {
    let (status, datasets, file) = match found.verification {
        Verification::Genuine { dataset, file } => (FileStatus::Genuine, vec![dataset], Some(file)),
        Verification::Different { datasets, file } => (FileStatus::Different, datasets, Some(file)),
        Verification::Unknown => (FileStatus::Unknown, Vec::new(), None),
    };
    FileEntry {
        path: path.display().to_string(),
        sha256: found.sha256,
        bytes: found.bytes,
        status,
        datasets,
        file,
    }
}

/// The `dosimeter.data-description/1` document.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DataDescription {
    pub schema: &'static str,
    pub path: String,
    /// Whether the first line names the columns.
    pub header: bool,
    pub rows: u64,
    pub columns: Vec<DescribedColumn>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct DescribedColumn {
    pub name: String,
    #[serde(flatten)]
    pub holds: Content,
    /// Of whole numbers.
    #[serde(skip)]
    pub largest: Option<usize>,
}

/// What a column holds.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "holds", rename_all = "kebab-case")]
pub enum Content {
    Numbers,
    /// Few different texts: all of them.
    Texts {
        values: Vec<String>,
    },
    ManyTexts,
}

impl DataDescription {
    pub const SCHEMA: &'static str = "dosimeter.data-description/1";

    fn new(path: &Path, sketch: &Sketch) -> Self {
        let column = |column: &SketchedColumn| DescribedColumn {
            name: column.name.clone(),
            holds: match &column.holds {
                Holds::Numbers => Content::Numbers,
                Holds::Texts(values) => Content::Texts { values: values.clone() },
                Holds::ManyTexts => Content::ManyTexts,
            },
            largest: column.largest,
        };
        Self {
            schema: Self::SCHEMA,
            path: path.display().to_string(),
            header: sketch.header,
            rows: sketch.rows,
            columns: sketch.columns.iter().map(column).collect(),
        }
    }
}
