//! The table of results: one row per training.
//!
//! Columns: `batch_size`, `steps`, `learning_rate`, `epsilon`, `delta` (needed), any number of
//! `score_*` (memorisation; larger is worse), and where known `clip_norm`, `seed`, `utility`,
//! `audit_epsilon`, `noise_multiplier`. An empty cell is a missing value, which the first five may
//! not be. Other columns are kept out and named in [`TrainingTable::ignored`], so that a mistyped name is
//! seen.

mod csv;
mod jsonl;
#[cfg(feature = "parquet")]
mod parquet;

use crate::TuningError;
use std::path::Path;

/// One training.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingRow {
    pub batch_size: f64,
    pub steps: u64,
    pub learning_rate: f64,
    pub clip_norm: Option<f64>,
    pub epsilon: f64,
    pub delta: f64,
    pub seed: Option<String>,
    /// In the order of [`TrainingTable::scores`].
    pub scores: Vec<Option<f64>>,
    pub utility: Option<f64>,
    pub audit_epsilon: Option<f64>,
    pub noise_multiplier: Option<f64>,
}

/// The table, checked: every number is finite and in its range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingTable {
    pub rows: Vec<TrainingRow>,
    /// Names of the scores, `score_` left out (`score` alone is called `score`).
    pub scores: Vec<String>,
    /// Columns that were not read.
    pub ignored: Vec<String>,
}

impl TrainingTable {
    /// Reads CSV, JSONL (`.jsonl`, `.ndjson`) or, with the feature, Parquet.
    ///
    /// # Errors
    /// Names the file, the line and the value that is wrong.
    pub fn read(path: &Path) -> Result<Self, TuningError> {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
        if extension == "parquet" {
            #[cfg(feature = "parquet")]
            return parquet::read(path);
            #[cfg(not(feature = "parquet"))]
            return Err(TuningError::Table {
                place: path.display().to_string(),
                problem: "this build does not read Parquet; build with `--features parquet`, or give CSV or JSONL".into(),
            });
        }
        let bytes = std::fs::read(path)
            .map_err(|source| TuningError::Read { path: path.to_owned(), source })?;
        let place = path.display().to_string();
        let text = String::from_utf8(bytes).map_err(|_| TuningError::Table {
            place: place.clone(),
            problem: "is not text; give CSV or JSONL with one row per training".into(),
        })?;
        let json =
            ["jsonl", "ndjson"].contains(&extension.as_str()) || text.trim_start().starts_with('{');
        if json { Self::from_jsonl(&text, &place) } else { Self::from_csv(&text, &place) }
    }

    /// Reads CSV with a header line.
    ///
    /// ```
    /// let text = "batch_size,steps,learning_rate,epsilon,delta,seed,score_vmr,utility\n\
    ///             256,1000,1e-3,8,1e-5,0,0.25,0.9\n";
    /// let table = tuning::TrainingTable::from_csv(text, "results.csv")?;
    /// assert_eq!(table.scores, ["vmr"]);
    /// assert_eq!(table.rows[0].scores, [Some(0.25)]);
    /// # Ok::<(), tuning::TuningError>(())
    /// ```
    ///
    /// # Errors
    /// As [`TrainingTable::read`].
    pub fn from_csv(text: &str, place: &str) -> Result<Self, TuningError> {
        csv::read(text, place)
    }

    /// Reads one JSON object per line.
    ///
    /// # Errors
    /// As [`TrainingTable::read`].
    pub fn from_jsonl(text: &str, place: &str) -> Result<Self, TuningError> {
        jsonl::read(text, place)
    }

    /// The place of a score among [`TrainingTable::scores`]; the only one, if `name` is absent.
    ///
    /// # Errors
    /// Names the scores there are.
    pub fn score(&self, name: Option<&str>) -> Result<usize, TuningError> {
        let known = self.scores.join(", ");
        match name {
            Some(name) => {
                let short = name.strip_prefix("score_").unwrap_or(name);
                self.scores.iter().position(|score| score == short).ok_or_else(|| {
                    TuningError::invalid(format!("the table has no score `{name}`; it has {known}"))
                })
            }
            None if self.scores.len() == 1 => Ok(0),
            None => Err(TuningError::invalid(format!(
                "the table has several scores; choose one with --score: {known}"
            ))),
        }
    }
}

/// A cell of any source, as text or a number.
pub(crate) enum Cell {
    Number(f64),
    Text(String),
    Missing,
}

/// Turns rows of named cells into a [`TrainingTable`].
pub(crate) struct Builder {
    columns: Vec<Option<Column>>,
    table: TrainingTable,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    BatchSize,
    Steps,
    LearningRate,
    ClipNorm,
    Epsilon,
    Delta,
    Seed,
    Utility,
    AuditEpsilon,
    NoiseMultiplier,
    Score(usize),
}

const NAMES: [(&str, Column); 10] = [
    ("batch_size", Column::BatchSize),
    ("steps", Column::Steps),
    ("learning_rate", Column::LearningRate),
    ("clip_norm", Column::ClipNorm),
    ("epsilon", Column::Epsilon),
    ("delta", Column::Delta),
    ("seed", Column::Seed),
    ("utility", Column::Utility),
    ("audit_epsilon", Column::AuditEpsilon),
    ("noise_multiplier", Column::NoiseMultiplier),
];

impl Builder {
    pub(crate) fn new<'a>(
        names: impl IntoIterator<Item = &'a str>,
        place: &str,
    ) -> Result<Self, TuningError> {
        let refuse = |problem: String| TuningError::Table { place: place.to_owned(), problem };
        let (mut columns, mut table) = (Vec::new(), TrainingTable::default());
        let mut seen: Vec<String> = Vec::new();
        for name in names {
            if seen.iter().any(|other| other == name) {
                return Err(refuse(format!("the column `{}` appears twice", shown(name))));
            }
            seen.push(name.to_owned());
            let known = NAMES.iter().find(|(known, _)| *known == name).map(|(_, column)| *column);
            let column = known.or_else(|| {
                let score = if name == "score" { name } else { name.strip_prefix("score_")? };
                if score.is_empty() {
                    return None;
                }
                table.scores.push(score.to_owned());
                Some(Column::Score(table.scores.len() - 1))
            });
            if column.is_none() {
                table.ignored.push(name.to_owned());
            }
            columns.push(column);
        }
        for needed in &NAMES[..6] {
            if needed.0 != "clip_norm" && !columns.contains(&Some(needed.1)) {
                let near = vocabulary::nearest(
                    needed.0,
                    &seen.iter().map(String::as_str).collect::<Vec<_>>(),
                );
                let hint =
                    near.map_or_else(String::new, |name| format!("; is it `{}`?", shown(name)));
                return Err(refuse(format!("there is no column `{}`{hint}", needed.0)));
            }
        }
        if table.scores.is_empty() {
            return Err(refuse(
                "there is no score; columns called score_NAME hold what was memorised".into(),
            ));
        }
        Ok(Self { columns, table })
    }

    /// Adds a row whose cells are in the order of the names.
    pub(crate) fn row(&mut self, cells: Vec<Cell>, place: &str) -> Result<(), TuningError> {
        let refuse = |problem: String| TuningError::Table { place: place.to_owned(), problem };
        if cells.len() != self.columns.len() {
            return Err(refuse(format!(
                "the row has {} cells, the header {}",
                cells.len(),
                self.columns.len()
            )));
        }
        let mut row = TrainingRow {
            batch_size: f64::NAN,
            steps: 0,
            learning_rate: f64::NAN,
            clip_norm: None,
            epsilon: f64::NAN,
            delta: f64::NAN,
            seed: None,
            scores: vec![None; self.table.scores.len()],
            utility: None,
            audit_epsilon: None,
            noise_multiplier: None,
        };
        for (cell, column) in cells.into_iter().zip(&self.columns) {
            let Some(column) = *column else { continue };
            if column == Column::Seed {
                row.seed = match cell {
                    Cell::Text(text) => Some(text),
                    Cell::Number(number) => Some(number.to_string()),
                    Cell::Missing => None,
                };
                continue;
            }
            let name = self.name(column);
            let value =
                match cell {
                    Cell::Missing => None,
                    Cell::Number(number) => Some(number),
                    Cell::Text(text) => Some(text.trim().parse::<f64>().map_err(|_| {
                        refuse(format!("{name} `{}` is not a number", shown(&text)))
                    })?),
                };
            if let Some(value) = value
                && !value.is_finite()
            {
                return Err(refuse(format!("{name} {value} is not a finite number")));
            }
            let needed = || {
                value.ok_or_else(|| refuse(format!("{name} is missing; it is needed in every row")))
            };
            let positive = |value: f64| {
                if value > 0.0 {
                    Ok(value)
                } else {
                    Err(refuse(format!("{name} {value} is not above 0")))
                }
            };
            match column {
                Column::BatchSize => row.batch_size = positive(needed()?)?,
                Column::LearningRate => row.learning_rate = positive(needed()?)?,
                Column::Epsilon => row.epsilon = positive(needed()?)?,
                Column::Steps => {
                    let steps = positive(needed()?)?;
                    if steps.fract() != 0.0 || steps > 9e15 {
                        return Err(refuse(format!("steps {steps} is not a whole number")));
                    }
                    row.steps = steps as u64;
                }
                Column::Delta => {
                    let delta = positive(needed()?)?;
                    if delta >= 1.0 {
                        return Err(refuse(format!(
                            "delta {} is outside (0, 1)",
                            vocabulary::rounding::plain(delta)
                        )));
                    }
                    row.delta = delta;
                }
                Column::ClipNorm => row.clip_norm = value.map(positive).transpose()?,
                Column::NoiseMultiplier => {
                    row.noise_multiplier = value.map(positive).transpose()?
                }
                Column::Utility => row.utility = value,
                Column::AuditEpsilon => {
                    if let Some(value) = value
                        && value < 0.0
                    {
                        return Err(refuse(format!("audit_epsilon {value} is below 0")));
                    }
                    row.audit_epsilon = value;
                }
                Column::Score(index) => row.scores[index] = value,
                Column::Seed => {}
            }
        }
        self.table.rows.push(row);
        Ok(())
    }

    fn name(&self, column: Column) -> String {
        match column {
            Column::Score(index) => format!("score_{}", self.table.scores[index]),
            other => NAMES
                .iter()
                .find(|(_, known)| *known == other)
                .map_or_else(String::new, |(name, _)| (*name).to_owned()),
        }
    }

    pub(crate) fn finish(self, place: &str) -> Result<TrainingTable, TuningError> {
        if self.table.rows.is_empty() {
            return Err(TuningError::Table {
                place: place.to_owned(),
                problem: "has no rows; one row per training is needed".into(),
            });
        }
        Ok(self.table)
    }
}

/// The start of foreign text for a message, on one line and without control characters.
fn shown(text: &str) -> String {
    let mut short: String =
        text.chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().count() > 60 {
        short.push('…');
    }
    short
}
