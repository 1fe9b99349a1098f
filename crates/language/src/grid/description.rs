//! A grid as a file describes it: the tables of a fine-tuning, `[grid]` and `[measure]`.

use crate::LanguageError;
use crate::finetune::FinetuneDescription;
use crate::memorization::Metric;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The `[grid]` table: every combination is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridTable {
    pub batch_size: Vec<u64>,
    pub steps: Vec<u64>,
    pub learning_rate: Vec<f64>,
    #[serde(default = "one_clip")]
    pub clip_norm: Vec<f64>,
    pub epsilon: Vec<f64>,
    /// n^-1.1 where it is not given.
    #[serde(default)]
    pub delta: Option<f64>,
    #[serde(default = "one_seed")]
    pub seed: Vec<u64>,
}

fn one_clip() -> Vec<f64> {
    vec![1.0]
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

/// The `[measure]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureTable {
    /// JSONL of prompt, target and perhaps attribute.
    pub secrets: PathBuf,
    #[serde(default = "both")]
    pub metrics: Vec<MetricName>,
    /// Sampled completions per secret; 0: one greedy completion.
    #[serde(default)]
    pub samples: u64,
    #[serde(default = "fifty")]
    pub new_tokens: usize,
    /// Only the most likely tokens are drawn; 0: all.
    #[serde(default = "fifty")]
    pub top_k: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricName {
    Vmr,
    Air,
}

impl MetricName {
    pub fn metric(self) -> Metric {
        match self {
            Self::Vmr => Metric::Vmr,
            Self::Air => Metric::Air,
        }
    }
}

fn both() -> Vec<MetricName> {
    vec![MetricName::Vmr, MetricName::Air]
}

fn fifty() -> usize {
    50
}

/// Everything in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct GridDescription {
    pub training: FinetuneDescription,
    pub grid: GridTable,
    pub measure: MeasureTable,
}

impl GridDescription {
    /// Reads the text of a TOML file. `[run]` and the optimiser's learning rate are what the grid
    /// does not vary; they may be left out.
    ///
    /// # Errors
    /// What is wrong with a table, and tables that are missing.
    pub fn from_toml_str(text: &str) -> Result<Self, LanguageError> {
        let invalid = |message: String| LanguageError::InvalidInput(message);
        let mut tables: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            invalid(error.message().split_whitespace().collect::<Vec<_>>().join(" "))
        })?;
        let grid: GridTable = crate::finetune::required(
            &mut tables,
            "grid",
            "with lists of batch_size, steps, learning_rate and epsilon",
        )?;
        let measure: MeasureTable = crate::finetune::required(
            &mut tables,
            "measure",
            "with `secrets = \"secrets.jsonl\"`",
        )?;
        for (name, empty) in [
            ("batch_size", grid.batch_size.is_empty()),
            ("steps", grid.steps.is_empty()),
            ("learning_rate", grid.learning_rate.is_empty()),
            ("clip_norm", grid.clip_norm.is_empty()),
            ("epsilon", grid.epsilon.is_empty()),
            ("seed", grid.seed.is_empty()),
        ] {
            if empty {
                return Err(invalid(format!("[grid]: {name} is an empty list")));
            }
        }
        let run = tables
            .entry("run")
            .or_insert_with(|| toml::Value::Table(toml::Table::new()))
            .as_table_mut()
            .ok_or_else(|| invalid("[run] is not a table".into()))?;
        for key in ["batch_size", "steps", "epochs", "clip_norm", "noise_multiplier", "seed"] {
            if run.contains_key(key) {
                return Err(invalid(format!("[run]: {key} belongs in [grid]; move it there")));
            }
        }
        // Placeholders, replaced at every point of the grid.
        run.insert("steps".into(), 1.into());
        run.insert("batch_size".into(), 1.into());
        run.insert("noise_multiplier".into(), 1.0.into());
        if let Some(optimizer) = tables.get_mut("optimizer").and_then(|t| t.as_table_mut()) {
            optimizer.insert("learning_rate".into(), 0.0.into());
        }
        let text = toml::to_string(&tables).map_err(|error| invalid(error.to_string()))?;
        let training = FinetuneDescription::from_toml_str(&text)?;
        if training.privacy.is_some() {
            return Err(invalid("[privacy]: the epsilons belong in [grid]".into()));
        }
        Ok(Self { training, grid, measure })
    }
}
