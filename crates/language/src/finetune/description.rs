//! A fine-tuning as a file describes it: `[run]`, `[data]`, `[model] kind = "language"`,
//! `[optimizer]`, and perhaps `[privacy]` and `[canaries]`.

use super::data::TextSource;
use super::{CanaryDescription, Lora, Scope};
use crate::LanguageError;
use crate::model::Projection;
use serde::de::DeserializeOwned;
use training::model::{LanguageDescription, ModelDescription, TrainedWeights};
use training::{OptimizerDescription, PrivacyTarget};
use vocabulary::{RunDescription, RunFile};

/// Everything in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct FinetuneDescription {
    pub run: RunDescription,
    pub seed: u64,
    pub data: TextSource,
    pub model: LanguageDescription,
    pub optimizer: OptimizerDescription,
    pub privacy: Option<PrivacyTarget>,
    pub canaries: Option<CanaryDescription>,
}

impl FinetuneDescription {
    /// Whether the text of a file describes the fine-tuning of a language model.
    pub fn describes(text: &str) -> bool {
        let tables: Option<toml::Table> = text.parse().ok();
        let kind = tables.as_ref().and_then(|tables| tables.get("model")?.get("kind")?.as_str());
        kind == Some("language")
    }

    /// Reads the text of a TOML file.
    ///
    /// # Errors
    /// What is wrong with a table, and tables that are missing.
    pub fn from_toml_str(text: &str) -> Result<Self, LanguageError> {
        let invalid = |message: String| LanguageError::InvalidInput(message);
        let run = RunFile::from_toml_str(text).map_err(|error| invalid(error.to_string()))?.run;
        let mut tables: toml::Table =
            text.parse().map_err(|error: toml::de::Error| invalid(one_line(&error)))?;
        let seed = match tables.get("run").and_then(|run| run.get("seed")) {
            None => 0,
            Some(seed) => {
                seed.as_integer().and_then(|seed| u64::try_from(seed).ok()).ok_or_else(|| {
                    invalid(format!("[run]: seed is {seed}, not a whole number from 0"))
                })?
            }
        };
        let model = match required(&mut tables, "model", "for example `kind = \"language\"`")? {
            ModelDescription::Language(model) => model,
            other => {
                return Err(invalid(format!(
                    "[model]: kind is `{}`, not `language`",
                    other.name()
                )));
            }
        };
        let described = Self {
            run,
            seed,
            data: required(&mut tables, "data", "for example `path = \"texts.jsonl\"`")?,
            model,
            optimizer: required(
                &mut tables,
                "optimizer",
                "for example `kind = \"adam\"` and `learning_rate = 1e-3`",
            )?,
            privacy: optional(&mut tables, "privacy")?,
            canaries: optional(&mut tables, "canaries")?,
        };
        described.lora()?;
        described.canaries.map_or(Ok(()), |table| table.check())?;
        described
            .optimizer
            .check()
            .map_err(|message| invalid(format!("[optimizer]: {message}")))?;
        Ok(described)
    }

    /// The adapters, where they are trained.
    ///
    /// # Errors
    /// `InvalidInput` for a projection that there is not.
    pub fn lora(&self) -> Result<Option<Lora>, LanguageError> {
        if self.model.train == TrainedWeights::Full {
            return Ok(None);
        }
        let mut projections = Vec::new();
        for name in &self.model.projections {
            let found = Projection::named(name).ok_or_else(|| {
                let known: Vec<&str> = Projection::ALL.iter().map(|p| p.name()).collect();
                LanguageError::InvalidInput(format!(
                    "[model]: projection `{}` is none of {}",
                    crate::error::shown(name),
                    known.join(", ")
                ))
            })?;
            projections.push(found);
        }
        Ok(Some(Lora { rank: self.model.rank, alpha: self.model.alpha as f32, projections }))
    }

    /// What is trained.
    pub fn scope(&self) -> Scope {
        match self.model.train {
            TrainedWeights::Full => Scope::Full,
            TrainedWeights::Lora => Scope::Adapters { embedding: self.model.embedding },
        }
    }
}

/// A table that has to be there.
pub(crate) fn required<T: DeserializeOwned>(
    tables: &mut toml::Table,
    name: &str,
    hint: &str,
) -> Result<T, LanguageError> {
    optional(tables, name)?.ok_or_else(|| {
        LanguageError::InvalidInput(format!("[{name}]: the table is missing; add it, {hint}"))
    })
}

/// A table that may be there.
pub(crate) fn optional<T: DeserializeOwned>(
    tables: &mut toml::Table,
    name: &str,
) -> Result<Option<T>, LanguageError> {
    let Some(value) = tables.remove(name) else { return Ok(None) };
    value.try_into().map(Some).map_err(|error: toml::de::Error| {
        LanguageError::InvalidInput(format!("[{name}]: {}", one_line(&error)))
    })
}

/// Foreign text on one line, without control characters.
fn one_line(error: &toml::de::Error) -> String {
    let words: Vec<&str> = error.message().split_whitespace().collect();
    words.join(" ").chars().filter(|character| !character.is_control()).collect()
}
