//! A training as a file describes it: `[run]` with a `seed`, `[data]`, `[model]`, `[optimizer]`, and
//! perhaps `[privacy]`.

use crate::TrainingError;
use crate::data::DataSource;
use crate::model::ModelDescription;
use crate::optimizer::OptimizerDescription;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use vocabulary::{RunDescription, RunFile};

/// Everything in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingDescription {
    pub run: RunDescription,
    pub seed: u64,
    pub data: DataSource,
    pub model: ModelDescription,
    pub optimizer: OptimizerDescription,
    pub privacy: Option<PrivacyTarget>,
}

/// What the noise is to be calibrated to.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyTarget {
    pub target_epsilon: f64,
    /// n^-1.1 where it is not given.
    #[serde(default)]
    pub delta: Option<f64>,
}

#[derive(Deserialize)]
struct Seed {
    #[serde(default)]
    seed: u64,
}

impl TrainingDescription {
    /// Reads the text of a TOML file.
    ///
    /// ```
    /// let described = training::TrainingDescription::from_toml_str(r#"
    /// [run]
    /// noise_multiplier = 1.0
    /// batch_size = 256
    /// epochs = 1
    /// seed = 7
    /// [data]
    /// name = "adult"
    /// [model]
    /// kind = "mlp"
    /// hidden = [128]
    /// activation = "tanh"
    /// [optimizer]
    /// kind = "adam"
    /// learning_rate = 1e-3
    /// "#)?;
    /// assert_eq!(described.seed, 7);
    /// # Ok::<(), training::TrainingError>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong with a table, and tables that are missing.
    pub fn from_toml_str(text: &str) -> Result<Self, TrainingError> {
        let run = RunFile::from_toml_str(text)?.run;
        let mut tables: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            TrainingError::Description { place: "the file".into(), message: one_line(&error) }
        })?;
        let seed = match tables.get("run").and_then(|run| run.get("seed")) {
            None => Seed { seed: 0 },
            Some(seed) => {
                let mut table = toml::Table::new();
                table.insert("seed".into(), seed.clone());
                toml::Value::Table(table).try_into().map_err(|_| TrainingError::Description {
                    place: "[run]".into(),
                    message: format!("seed {seed} is not a whole number from 0 to 2^63"),
                })?
            }
        };
        Ok(Self {
            run,
            seed: seed.seed,
            data: table(
                &mut tables,
                "data",
                "for example `name = \"adult\"`, which needs no file",
            )?,
            model: table(&mut tables, "model", "for example `kind = \"mlp\"`")?,
            optimizer: table(
                &mut tables,
                "optimizer",
                "for example `kind = \"sgd\"` and `learning_rate = 0.1`",
            )?,
            privacy: match tables.contains_key("privacy") {
                true => Some(table(&mut tables, "privacy", "for example `target_epsilon = 8`")?),
                false => None,
            },
        })
    }
}

fn table<T: DeserializeOwned>(
    tables: &mut toml::Table,
    name: &str,
    hint: &str,
) -> Result<T, TrainingError> {
    let place = format!("[{name}]");
    match tables.remove(name) {
        None => Err(TrainingError::Description {
            message: format!("the table is missing; add it, {hint}"),
            place,
        }),
        Some(value) => value.try_into().map_err(|error: toml::de::Error| {
            TrainingError::Description { place, message: one_line(&error) }
        }),
    }
}

/// Foreign text on one line, without control characters.
fn one_line(error: &toml::de::Error) -> String {
    // The name of a type says nothing to who does not write Rust.
    let message =
        error.message().replace("expected usize", "expected a whole number of at least 0");
    let words: Vec<&str> = message.split_whitespace().collect();
    words.join(" ").chars().filter(|character| !character.is_control()).collect()
}
