//! What to read, as the `[data]` table of a run says it.

use super::columns::{Classes, Column};
use super::csv::{CsvOptions, read_csv};
use super::error::{DataError, refuse};
use super::{Dataset, Pixels, Split, adult, cifar, idx, npy};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How files are to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// MNIST's format: a folder with four files.
    Idx,
    /// CIFAR-10's binary version: a folder.
    Cifar10,
    /// A folder for each class.
    Images,
    Csv,
    /// A file of records and one of labels.
    Npy,
    Parquet,
}

/// The `[data]` table: a known `name`, or a `path` with what is needed to understand it.
///
/// ```
/// let source: training::data::DataSource = toml::from_str(r#"
///     path = "people.csv"
///     label = "income"
///     classes = ["low", "high"]
///     column = [{ name = "age", mean = 40, deviation = 15 },
///               { name = "sex", categories = ["Female", "Male"] }]
/// "#)?;
/// assert_eq!(source.column.len(), 2);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSource {
    /// `adult` (built in), or `mnist`, `fashion-mnist`, `cifar-10`, `location` with their `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Told by the extension when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The file of labels that belongs to a .npy file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<PathBuf>,
    /// A file of test records like `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// The labels of a .npy file of test records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_labels: Option<PathBuf>,
    /// The name of the label column of a table; the last column when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How many classes, or their names in order. Public knowledge, so never counted here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Classes>,
    /// Whether a CSV file starts with names; yes when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// What becomes of each column of a table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub column: Vec<Column>,
    /// Public means to subtract, of pixels in [0, 1] or of the numbers of a .npy file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mean: Vec<f32>,
    /// Public deviations to divide by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deviation: Vec<f32>,
}

impl DataSource {
    /// The built-in data set.
    pub fn adult() -> Self {
        Self { name: Some("adult".to_owned()), ..Self::default() }
    }

    /// Reads it. Relative paths are taken from `folder`, that of the description.
    ///
    /// # Errors
    /// A description that does not say enough, or what is wrong with a file.
    pub fn load(&self, folder: &Path) -> Result<Split, DataError> {
        let here = |path: &Option<PathBuf>| path.as_ref().map(|path| folder.join(path));
        let path = here(&self.path);
        let Some(name) = self.name.as_deref() else {
            let path = path.ok_or_else(|| {
                self.refuse("has neither `name` nor `path`; `name = \"adult\"` needs no file")
            })?;
            return self.load_path(&path, folder);
        };
        if name == "adult" {
            if path.is_some() {
                return Err(self.refuse("`adult` is built in and takes no `path`"));
            }
            return adult::load();
        }
        let known = super::catalogue::known(name).ok_or_else(|| {
            let names: Vec<&str> =
                super::catalogue::KNOWN.iter().map(|dataset| dataset.name).collect();
            let name = name.escape_debug();
            self.refuse(&format!("data set `{name}` is not known: {}", names.join(", ")))
        })?;
        let path = path.ok_or_else(|| {
            let problem =
                "needs `path`, where its files are; `dosimeter data` says where to get them";
            self.refuse(&format!("data set `{name}` {problem}"))
        })?;
        let mut split = match name {
            "mnist" => idx::read_idx_folder(&path, 10, &self.pixels_or(Pixels::mnist))?,
            "fashion-mnist" => {
                idx::read_idx_folder(&path, 10, &self.pixels_or(Pixels::fashion_mnist))?
            }
            "cifar-10" => cifar::read_cifar10_folder(&path, &self.pixels_or(Pixels::cifar10))?,
            _ => Split { train: read_location(&path)?, test: None },
        };
        for part in [Some(&mut split.train), split.test.as_mut()].into_iter().flatten() {
            known.name.clone_into(&mut part.provenance.name);
            part.provenance.licence = Some(known.licence.to_owned());
        }
        Ok(split)
    }

    /// Mean and deviation by which a numeric column is standardised: feature = (value - mean) /
    /// deviation. A column about which nothing is said is taken as it is.
    pub fn scale(&self, column: &str) -> (f64, f64) {
        if self.name.as_deref() == Some("adult") {
            return adult::scale(column).unwrap_or((0.0, 1.0));
        }
        let found = self.column.iter().find(|known| known.name == column);
        found
            .map_or((0.0, 1.0), |known| (known.mean.unwrap_or(0.0), known.deviation.unwrap_or(1.0)))
    }

    fn load_path(&self, path: &Path, folder: &Path) -> Result<Split, DataError> {
        let pixels = self.pixels_or(|| Pixels::UNIT);
        let test = self.test.as_ref().map(|path| folder.join(path));
        match self.format.or_else(|| guess(path)) {
            Some(Format::Idx) => {
                let classes = self.count().unwrap_or(Ok(10))?;
                idx::read_idx_folder(path, classes, &pixels)
            }
            Some(Format::Cifar10) => cifar::read_cifar10_folder(path, &pixels),
            Some(Format::Images) => read_images(path, &pixels),
            Some(Format::Csv) => {
                let options = CsvOptions {
                    header: self.header.unwrap_or(true),
                    label: self.label.as_deref(),
                    classes: self.stated_classes()?,
                    columns: &self.column,
                };
                let read = |path: &Path| read_csv(path, &options);
                Ok(Split { train: read(path)?, test: test.map(|test| read(&test)).transpose()? })
            }
            Some(Format::Npy) => {
                let classes = self.count().unwrap_or_else(|| Err(self.no_classes()))?;
                let read = |records: &Path, labels: &Option<PathBuf>, key: &str| {
                    let labels = labels.as_ref().ok_or_else(|| {
                        self.refuse(&format!("a .npy file needs `{key}`, the file of its labels"))
                    })?;
                    npy::read_npy(records, &folder.join(labels), classes, &pixels)
                };
                Ok(Split {
                    train: read(path, &self.labels, "labels")?,
                    test: test
                        .map(|test| read(&test, &self.test_labels, "test_labels"))
                        .transpose()?,
                })
            }
            Some(Format::Parquet) => {
                let read = |path: &Path| self.parquet(path);
                Ok(Split { train: read(path)?, test: test.map(|test| read(&test)).transpose()? })
            }
            None if path.as_os_str().is_empty() => {
                Err(self.refuse("`path` is empty; give a file or a folder"))
            }
            None => Err(refuse(path, "has no extension that tells its format; state `format`")),
        }
    }

    #[cfg(feature = "parquet")]
    fn parquet(&self, path: &Path) -> Result<Dataset, DataError> {
        let classes = self.stated_classes()?;
        super::parquet::read_parquet(path, self.label.as_deref(), &classes, &self.column)
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(&self, path: &Path) -> Result<Dataset, DataError> {
        let hint = "this build does not read Parquet; build with the feature `parquet`, or use CSV";
        Err(refuse(path, hint))
    }

    fn pixels_or(&self, usual: impl Fn() -> Pixels) -> Pixels {
        if self.mean.is_empty() && self.deviation.is_empty() {
            usual()
        } else {
            Pixels { mean: self.mean.clone(), deviation: self.deviation.clone() }
        }
    }

    fn stated_classes(&self) -> Result<Classes, DataError> {
        self.classes.clone().ok_or_else(|| self.no_classes())
    }

    fn no_classes(&self) -> DataError {
        self.refuse("needs `classes`: how many there are, or their names in order")
    }

    fn count(&self) -> Option<Result<usize, DataError>> {
        self.classes.as_ref().map(|classes| match classes {
            Classes::Count(count) if *count >= 2 => Ok(*count),
            Classes::Count(count) => {
                Err(self.refuse(&format!("{count} classes; a classifier needs two")))
            }
            Classes::Names(names) => Ok(names.len()),
        })
    }

    fn refuse(&self, problem: &str) -> DataError {
        refuse(Path::new("[data]"), problem)
    }
}

fn guess(path: &Path) -> Option<Format> {
    if path.is_dir() {
        let holds = |name: &str| super::bytes::either(path, name).is_some();
        return Some(if holds("train-images-idx3-ubyte") {
            Format::Idx
        } else if holds("data_batch_1.bin") {
            Format::Cifar10
        } else {
            Format::Images
        });
    }
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [(".csv", Format::Csv), (".npy", Format::Npy), (".parquet", Format::Parquet)]
        .into_iter()
        .find(|(ending, _)| name.ends_with(ending))
        .map(|(_, format)| format)
}

#[cfg(feature = "images")]
fn read_images(path: &Path, pixels: &Pixels) -> Result<Split, DataError> {
    super::images::read_images(path, pixels)
}

#[cfg(not(feature = "images"))]
fn read_images(path: &Path, _: &Pixels) -> Result<Split, DataError> {
    Err(refuse(path, "this build does not read JPEG or PNG; build with the feature `images`"))
}

/// Location's file: no header, the class (1 to 30) first, then 446 zeros and ones.
fn read_location(path: &Path) -> Result<Dataset, DataError> {
    let classes = Classes::Names((1..=30).map(|class| class.to_string()).collect());
    let options = CsvOptions { header: false, label: Some("1"), classes, columns: &[] };
    read_csv(path, &options)
}
