//! Several runs side by side, a map of the heuristic over sample rates and steps, or one
//! heuristic epsilon for several batch sizes.

use crate::account::AccountQuestion;
use crate::flags::{nonnegative_integer, quantity, real};
use crate::run::{Described, TextFile};
use crate::several::several;
use crate::{Refusal, account, every_way};
use accounting::compare::{BatchSizes, Map, MapNoise, MapRequest};
use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::{Account, LensName, Quantity};

/// The question of `compare`: the same about several runs.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct CompareQuestion {
    #[arg(skip)]
    pub runs: Vec<NamedRun>,
    /// Print epsilon and mu at this delta (may be repeated)
    #[arg(short, long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, value_delimiter = ',', help_heading = "What to compute")]
    #[serde(deserialize_with = "several")]
    pub delta: Vec<f64>,
    /// Print delta at this epsilon (may be repeated)
    #[arg(long, value_name = "EPSILON", value_parser = real, allow_hyphen_values = true, value_delimiter = ',', help_heading = "What to compute")]
    #[serde(deserialize_with = "several")]
    pub epsilon: Vec<f64>,
    /// Print the best attack's true positive rate at this false positive rate [default: 0.001 and
    /// 0.01]
    #[arg(long, value_name = "FPR", value_parser = real, allow_hyphen_values = true, value_delimiter = ',', help_heading = "What to compute")]
    #[serde(deserialize_with = "several")]
    pub fpr: Vec<f64>,
    /// Print the success of the best reconstruction, where a blind guess succeeds with this
    /// probability (may be repeated)
    #[arg(long, value_name = "PRIOR", value_parser = real, allow_hyphen_values = true, value_delimiter = ',', help_heading = "What to compute")]
    #[serde(deserialize_with = "several")]
    pub prior: Vec<f64>,
    /// Also print adding and removing a record separately
    #[arg(long, help_heading = "What to compute")]
    pub directions: bool,
    #[arg(skip)]
    #[serde(deserialize_with = "several")]
    pub lens: Vec<LensName>,
    /// Print only this quantity, e.g. epsilon or tpr (may be repeated) [default: all]
    #[arg(long, value_name = "QUANTITY", value_parser = quantity, value_delimiter = ',', help_heading = "What to compute")]
    #[serde(deserialize_with = "several")]
    pub quantity: Vec<Quantity>,
    /// Compare all ways to draw the run's batches (--adjacency zero-out unless given)
    #[arg(long, help_heading = "What to compute")]
    pub every_sampling: bool,
    /// With --every-sampling: use these noise multipliers; --format svg draws them
    #[arg(long, value_name = "S,...", value_parser = real, allow_hyphen_values = true, value_delimiter = ',', help_heading = "What to compute")]
    #[serde(deserialize_with = "several")]
    pub noise_multipliers: Vec<f64>,
    /// Seconds of processor time that the answer may take [default: 10].
    #[arg(skip)]
    pub time_limit: Option<f64>,
}

/// One of the runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedRun {
    pub name: String,
    #[serde(default)]
    pub files: Vec<TextFile>,
    #[serde(default)]
    pub run: Described,
}

/// The `dosimeter.compare/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    pub schema: String,
    pub runs: Vec<NamedAccount>,
    /// Ways to draw batches that have no number for the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A way to draw batches without a number, and why.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LeftOut {
    pub name: String,
    pub reason: String,
}

/// A run's name and its account.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NamedAccount {
    pub name: String,
    pub account: Account,
}

impl Comparison {
    pub const SCHEMA: &'static str = "dosimeter.compare/1";
}

pub(crate) fn ask(question: &CompareQuestion) -> Result<Comparison, Refusal> {
    if !question.noise_multipliers.is_empty() && !question.every_sampling {
        return Err(Refusal::bad_input(
            "--noise-multipliers belongs to --every-sampling; add that or drop it",
        ));
    }
    let mut answer =
        Comparison { schema: Comparison::SCHEMA.into(), runs: Vec::new(), left_out: Vec::new() };
    for one in &question.runs {
        if question.every_sampling {
            every_way::ask(question, one, &mut answer)?;
        } else {
            let account = account::ask(&asked(question, one.files.clone(), one.run.clone()))
                .map_err(|refusal| {
                    // A file's own mistakes name it already, and a run in flags has no name to look for.
                    let told = one.files.iter().any(|file| refusal.message.starts_with(&file.name));
                    let alone = one.files.is_empty() && question.runs.len() == 1;
                    if told || alone { refusal } else { refusal.at(&one.name) }
                })?;
            answer.runs.push(NamedAccount { name: one.name.clone(), account });
        }
    }
    Ok(answer)
}

pub(crate) fn asked(
    question: &CompareQuestion,
    files: Vec<TextFile>,
    run: Described,
) -> AccountQuestion {
    AccountQuestion {
        files,
        run,
        delta: question.delta.clone(),
        epsilon: question.epsilon.clone(),
        fpr: question.fpr.clone(),
        prior: question.prior.clone(),
        directions: question.directions,
        lens: question.lens.clone(),
        quantity: question.quantity.clone(),
        time_limit: question.time_limit,
        ..AccountQuestion::default()
    }
}

/// The question of `compare --map`.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct MapQuestion {
    #[arg(skip)]
    pub noise_multiplier: Option<f64>,
    /// Choose the noise of each cell so that its proven epsilon is this; replaces
    /// --noise-multiplier
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true, help_heading = "The map")]
    pub standard_epsilon: Option<f64>,
    #[arg(skip)]
    #[serde(deserialize_with = "several")]
    pub delta: Vec<f64>,
    /// Sample rates of the map [default: 1e-4 to 1]
    #[arg(long, value_name = "Q,...", value_parser = real, allow_hyphen_values = true, value_delimiter = ',', help_heading = "The map")]
    #[serde(deserialize_with = "several")]
    pub sample_rates: Vec<f64>,
    /// Step counts of the map [default: 10 to 1e5]
    #[arg(long, value_name = "T,...", value_parser = nonnegative_integer, allow_hyphen_values = true, value_delimiter = ',', help_heading = "The map")]
    #[serde(deserialize_with = "several")]
    pub steps_list: Vec<u64>,
    /// Seconds of processor time that the answer may take [default: 10].
    #[arg(skip)]
    pub time_limit: Option<f64>,
}

const RATES: [f64; 9] = [1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0];
const COUNTS: [u64; 9] = [10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000];

pub(crate) fn map(question: &MapQuestion) -> Result<Map, Refusal> {
    let noise = match (question.noise_multiplier, question.standard_epsilon) {
        (Some(noise), None) => MapNoise::NoiseMultiplier(noise),
        (None, Some(epsilon)) => MapNoise::StandardEpsilon(epsilon),
        (Some(_), Some(_)) => {
            return Err(Refusal::bad_input(
                "--noise-multiplier and --standard-epsilon both fix the noise; drop one of them",
            ));
        }
        (None, None) => {
            return Err(Refusal::bad_input(
                "--map needs the noise; give --noise-multiplier 1, or --standard-epsilon 8",
            ));
        }
    };
    let or = |given: &[f64]| if given.is_empty() { RATES.to_vec() } else { given.to_vec() };
    let request = MapRequest {
        noise,
        delta: one_delta(&question.delta)?,
        sample_rates: or(&question.sample_rates),
        steps: if question.steps_list.is_empty() {
            COUNTS.to_vec()
        } else {
            question.steps_list.clone()
        },
    };
    Ok(accounting::compare::map(&request)?)
}

/// The question of `compare --batch-sizes`.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct BatchSizesQuestion {
    /// Print what is proven for each of these batch sizes when the noise just meets
    /// --heuristic-epsilon
    #[arg(long, value_name = "B,...", value_parser = nonnegative_integer, allow_hyphen_values = true, value_delimiter = ',', help_heading = "Batch sizes")]
    #[serde(deserialize_with = "several")]
    pub batch_sizes: Vec<u64>,
    #[arg(skip)]
    pub dataset_size: Option<u64>,
    #[arg(skip)]
    pub epochs: Option<f64>,
    /// With --batch-sizes: the last-iterate epsilon that each of them has to meet
    #[arg(long, value_name = "X", value_parser = real, allow_hyphen_values = true, help_heading = "Batch sizes")]
    pub heuristic_epsilon: Option<f64>,
    #[arg(skip)]
    #[serde(deserialize_with = "several")]
    pub delta: Vec<f64>,
    /// Seconds of processor time that the answer may take [default: 10].
    #[arg(skip)]
    pub time_limit: Option<f64>,
}

pub(crate) fn batch_sizes(question: &BatchSizesQuestion) -> Result<BatchSizes, Refusal> {
    let needed = |flag: &str| Refusal::bad_input(format!("--batch-sizes needs {flag}; add it"));
    Ok(accounting::compare::batch_sizes(
        &question.batch_sizes,
        question.dataset_size.ok_or_else(|| needed("--dataset-size"))?,
        question.epochs.ok_or_else(|| needed("--epochs"))?,
        question.heuristic_epsilon.ok_or_else(|| needed("--heuristic-epsilon"))?,
        one_delta(&question.delta)?,
    )?)
}

fn one_delta(delta: &[f64]) -> Result<f64, Refusal> {
    match delta {
        [delta] => Ok(*delta),
        [] => Err(Refusal::bad_input("this comparison needs a delta; add --delta, e.g. 1e-5")),
        _ => Err(Refusal::bad_input("this comparison takes one --delta; drop the others")),
    }
}
