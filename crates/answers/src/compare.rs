//! Several runs side by side, a map of the heuristic over sample rates and steps, or one
//! heuristic epsilon for several batch sizes.

use crate::account::AccountQuestion;
use crate::run::{Described, TextFile};
use crate::{Refusal, Several, account, every_way};
use accounting::compare::{BatchSizes, Map, MapNoise, MapRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::{Account, LensName, Quantity};

/// The question of `compare`: the same about several runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompareQuestion {
    pub runs: Vec<NamedRun>,
    pub delta: Several<f64>,
    pub epsilon: Several<f64>,
    pub fpr: Several<f64>,
    pub prior: Several<f64>,
    pub directions: bool,
    pub lens: Several<LensName>,
    pub quantity: Several<Quantity>,
    /// Each run with its batches drawn in every way there is, for zeroing out a record unless the run
    /// says otherwise; `composition`, epsilon and advantage unless asked for more.
    pub every_sampling: bool,
    /// Of `every_sampling`: the noise multipliers to look at, in place of the run's own.
    pub noise_multipliers: Several<f64>,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
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
                    // A file's own mistakes name it already.
                    let told = one.files.iter().any(|file| refusal.message.starts_with(&file.name));
                    if told { refusal } else { refusal.at(&one.name) }
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
        ..AccountQuestion::default()
    }
}

/// The question of `compare --map`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MapQuestion {
    pub noise_multiplier: Option<f64>,
    /// Noise of each cell such that composition has this epsilon.
    pub standard_epsilon: Option<f64>,
    pub delta: Several<f64>,
    pub sample_rates: Several<f64>,
    pub steps_list: Several<u64>,
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
    let or = |given: &Several<f64>| if given.is_empty() { RATES.to_vec() } else { given.0.clone() };
    let request = MapRequest {
        noise,
        delta: one_delta(&question.delta)?,
        sample_rates: or(&question.sample_rates),
        steps: if question.steps_list.is_empty() {
            COUNTS.to_vec()
        } else {
            question.steps_list.0.clone()
        },
    };
    Ok(accounting::compare::map(&request)?)
}

/// The question of `compare --batch-sizes`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BatchSizesQuestion {
    pub batch_sizes: Several<u64>,
    pub dataset_size: Option<u64>,
    pub epochs: Option<f64>,
    /// The last-iterate epsilon that every batch size gets.
    pub heuristic_epsilon: Option<f64>,
    pub delta: Several<f64>,
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

fn one_delta(delta: &Several<f64>) -> Result<f64, Refusal> {
    match delta.as_slice() {
        [delta] => Ok(*delta),
        [] => Err(Refusal::bad_input("this comparison needs a delta; add --delta, e.g. 1e-5")),
        _ => Err(Refusal::bad_input("this comparison takes one --delta; drop the others")),
    }
}
