//! `memorize`: what a language model memorised, asked of completions or of the model itself.

use crate::flags::{integer, nonnegative_integer, real, word};
use crate::{Document, Refusal};
use clap::Args;
use language::LanguageError;
use language::compression::{Compressions, Gcg, Options, Procedure, Proposals, compress_secrets};
use language::finetune::weights::lay_over;
use language::load::Model;
use language::memorization::{
    Asking, Completion, Completions, Matching, Memorization, Metric, Normalization, Rule, ask,
    measure, read_secrets,
};
use language::model::Sampling;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What is asked.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "metric", rename_all = "kebab-case")]
pub enum MemorizeQuestion {
    /// Verbatim memorisation ratio: completions that start with the rest of the secret.
    Vmr(RatioQuestion),
    /// Attribute inference ratio: completions that contain the attribute.
    Air(RatioQuestion),
    /// Adversarial compression ratio: length of a secret over that of the shortest prompt for it.
    Acr(CompressionQuestion),
}

/// Of completions, or of a model that completes the secrets.
#[derive(Clone, Debug, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct RatioQuestion {
    /// Completions of the tuned model
    #[arg(value_name = "COMPLETIONS")]
    pub completions: Option<PathBuf>,
    /// Completions of the un-tuned model on the same secrets
    #[arg(long, value_name = "COMPLETIONS")]
    pub base: Option<PathBuf>,
    /// When a completion matches [default: prefix for vmr, words for air]
    #[arg(long = "match", value_parser = word::<Rule>(["prefix", "contains", "words", "exact"]), value_name = "RULE")]
    #[serde(rename = "match")]
    pub rule: Option<Rule>,
    /// Which differences are ignored [default: none for vmr, case for air]
    #[arg(long, value_parser = word::<Normalization>(["none", "space", "case", "loose"]), value_name = "HOW")]
    pub normalize: Option<Normalization>,
    /// Confidence of the intervals
    #[arg(long, value_name = "C", value_parser = real, default_value = "0.95", allow_hyphen_values = true)]
    pub confidence: f64,
    /// A folder with config.json and safetensors, a .gguf file, or a llama2.c .bin file
    #[arg(long, value_name = "PATH", help_heading = "The model")]
    pub model: Option<PathBuf>,
    /// The tokenizer file, if it is not beside the model
    #[arg(long, value_name = "FILE", help_heading = "The model")]
    pub tokenizer: Option<PathBuf>,
    /// The fine-tuned model that `train` wrote: its folder, or its model.safetensors
    #[arg(long, value_name = "PATH", help_heading = "The model")]
    pub tuned: Option<PathBuf>,
    /// Secrets as JSONL: prompt, target, and where known secret, attribute
    #[arg(long, value_name = "FILE", help_heading = "The model")]
    pub secrets: Option<PathBuf>,
    /// Seed of the sampled completions
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value = "42", help_heading = "The model")]
    pub seed: u64,
    /// Number of sampled completions per secret; 0 means one greedy completion
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value = "0", help_heading = "The model")]
    pub samples: u64,
    /// The largest number of tokens in a completion
    #[arg(long, value_name = "N", value_parser = integer, default_value = "50", help_heading = "The model")]
    pub new_tokens: u64,
    /// Temperature of sampling; below 1 likely tokens are drawn more often
    #[arg(long, value_name = "T", value_parser = real, default_value = "1", allow_hyphen_values = true, help_heading = "The model")]
    pub temperature: f64,
    /// Draw from the K most likely tokens only; 0 means all
    #[arg(long, value_name = "K", value_parser = nonnegative_integer, default_value = "50", help_heading = "The model")]
    pub top_k: u64,
    /// Draw from the most likely tokens that together have this probability
    #[arg(long, value_name = "P", value_parser = real, default_value = "1", allow_hyphen_values = true, help_heading = "The model")]
    pub top_p: f64,
    /// File for the model's completions
    #[arg(long, value_name = "FILE", help_heading = "The model")]
    pub save_completions: Option<PathBuf>,
}

impl Default for RatioQuestion {
    fn default() -> Self {
        let sampling = Sampling::default();
        Self {
            completions: None,
            base: None,
            rule: None,
            normalize: None,
            confidence: 0.95,
            model: None,
            tokenizer: None,
            tuned: None,
            secrets: None,
            seed: Gcg::default().seed,
            samples: 0,
            new_tokens: 50,
            temperature: sampling.temperature,
            top_k: sampling.top_k as u64,
            top_p: sampling.top_p,
            save_completions: None,
        }
    }
}

/// Of a model; the settings of the search are the reference's where they are not given.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct CompressionQuestion {
    /// A folder with config.json and safetensors, a .gguf file, or a llama2.c .bin file
    #[arg(long, value_name = "PATH", help_heading = "The model")]
    pub model: Option<PathBuf>,
    /// The tokenizer file, if it is not beside the model
    #[arg(long, value_name = "FILE", help_heading = "The model")]
    pub tokenizer: Option<PathBuf>,
    /// The fine-tuned model that `train` wrote: its folder, or its model.safetensors
    #[arg(long, value_name = "PATH", help_heading = "The model")]
    pub tuned: Option<PathBuf>,
    /// Secrets as JSONL: prompt, target, and where known secret, attribute
    #[arg(long, value_name = "FILE", help_heading = "The model")]
    pub secrets: Option<PathBuf>,
    /// Seed of the sampled completions
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value = "42", help_heading = "The model")]
    pub seed: Option<u64>,
    /// How the length of the prompt is searched
    #[arg(long, value_parser = word::<Procedure>(["bisection", "linear"]), default_value = "bisection")]
    pub procedure: Procedure,
    /// How replacements of tokens are proposed
    #[arg(long, value_parser = word::<Proposals>(["gradient", "random"]), default_value = "gradient")]
    pub proposals: Proposals,
    /// The most steps for one length of the prompt
    #[arg(long, value_name = "N", value_parser = integer, default_value = "200")]
    pub steps: Option<u64>,
    /// Candidates per step
    #[arg(long, value_name = "N", value_parser = integer, default_value = "100")]
    pub candidates: Option<u64>,
    /// Number of tokens tried in each place
    #[arg(long, value_name = "K", value_parser = nonnegative_integer, default_value = "250")]
    pub top_k: Option<u64>,
    /// Give up on a length after this many steps without progress; 0 means never [default: 15, or 0
    /// for `--procedure linear`]
    #[arg(long, value_name = "N", value_parser = nonnegative_integer)]
    pub patience: Option<u64>,
    /// The longest prompt [default: as long as the secret]
    #[arg(long, value_name = "N", value_parser = integer)]
    pub longest: Option<u64>,
}

/// The answer: the document of the question.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Memorized {
    Ratio(Memorization),
    Compression(Compressions),
}

impl Document for Memorized {
    fn warnings(&self) -> Vec<String> {
        match self {
            Self::Ratio(found) => found.warnings.clone(),
            Self::Compression(_) => Vec::new(),
        }
    }
}

/// Asks; `note` is called with the progress.
///
/// # Errors
/// A question without completions or a model, a file that cannot be read, and settings out of
/// range.
pub fn memorize(
    question: &MemorizeQuestion,
    note: &mut dyn FnMut(&str),
) -> Result<Memorized, Refusal> {
    match question {
        MemorizeQuestion::Vmr(asked) => ratio(Metric::Vmr, asked, note),
        MemorizeQuestion::Air(asked) => ratio(Metric::Air, asked, note),
        MemorizeQuestion::Acr(asked) => compression(asked, note),
    }
}

fn ratio(
    metric: Metric,
    asked: &RatioQuestion,
    note: &mut dyn FnMut(&str),
) -> Result<Memorized, Refusal> {
    let completions = match (&asked.completions, &asked.model) {
        (Some(path), None) => Completions::read(path)?,
        (None, Some(path)) => complete(metric, asked, path, note)?,
        (Some(_), Some(_)) => {
            return Err(Refusal::bad_input("both completions and a model to make them were given")
                .hint("leave out one of the two"));
        }
        (None, None) => {
            return Err(Refusal::bad_input("there is nothing to measure")
                .hint("give a JSONL file of completions, or --model with --secrets"));
        }
    };
    let base = asked.base.as_deref().map(Completions::read).transpose()?;
    let default = metric.matching();
    let matching = Matching {
        rule: asked.rule.unwrap_or(default.rule),
        normalization: asked.normalize.unwrap_or(default.normalization),
    };
    let found = measure(metric, matching, &completions, base.as_ref(), asked.confidence)?;
    Ok(Memorized::Ratio(found))
}

/// Lets the model complete every secret's prompt.
fn complete(
    metric: Metric,
    asked: &RatioQuestion,
    path: &Path,
    note: &mut dyn FnMut(&str),
) -> Result<Completions, Refusal> {
    let files = (asked.tokenizer.as_deref(), asked.tuned.as_deref(), asked.secrets.as_deref());
    let (model, secrets) = load(path, files)?;
    let asking = Asking {
        samples: asked.samples,
        new_tokens: size(asked.new_tokens),
        sampling: Sampling {
            temperature: asked.temperature,
            top_k: usize::try_from(asked.top_k).unwrap_or(usize::MAX),
            top_p: asked.top_p,
        },
        seed: asked.seed,
    };
    let (count, name) = (secrets.len(), metric.as_str());
    let mut done = |number: usize| {
        if number.is_multiple_of(50) {
            note(&format!("{number} of {count} secrets completed ({name})"));
        }
    };
    let all = ask(&model.decoder, &model.tokenizer, &model.stop, &secrets, &asking, &mut done)?;
    if let Some(path) = &asked.save_completions {
        formats::files::write(path, all.to_jsonl())
            .map_err(|error| Refusal::unwritable(path, &error))?;
    }
    Ok(all)
}

fn compression(
    asked: &CompressionQuestion,
    note: &mut dyn FnMut(&str),
) -> Result<Memorized, Refusal> {
    let path = asked.model.as_deref().ok_or_else(|| {
        Refusal::bad_input("no model is named")
            .hint("give one with --model, and secrets with --secrets")
    })?;
    let files = (asked.tokenizer.as_deref(), asked.tuned.as_deref(), asked.secrets.as_deref());
    let (model, secrets) = load(path, files)?;
    let default = match asked.procedure {
        Procedure::Linear => Gcg::reference(),
        Procedure::Bisection => Gcg::default(),
    };
    let options = Options {
        gcg: Gcg {
            steps: asked.steps.map_or(default.steps, size),
            candidates: asked.candidates.map_or(default.candidates, size),
            top_k: asked.top_k.map_or(default.top_k, size),
            seed: asked.seed.unwrap_or(default.seed),
            patience: asked.patience.map_or(default.patience, size),
            proposals: asked.proposals,
            ..default
        },
        procedure: asked.procedure,
        longest: asked.longest.map_or(0, size),
        ..Options::default()
    };
    Ok(Memorized::Compression(compress_secrets(&model, &secrets, &options, note)?))
}

/// The model, with what was trained laid over it, and the secrets.
fn load(
    path: &Path,
    (tokenizer, tuned, secrets): (Option<&Path>, Option<&Path>, Option<&Path>),
) -> Result<(Model, Vec<Completion>), Refusal> {
    let secrets = secrets.ok_or_else(|| {
        Refusal::bad_input("no secrets are given")
            .hint("give a JSONL file of prompt and target with --secrets")
    })?;
    let mut model = language::load::model(path, tokenizer)?;
    if let Some(tuned) = tuned {
        lay_over(&mut model.decoder, tuned)?;
    }
    Ok((model, read_secrets(secrets)?))
}

/// A count that fits into memory.
fn size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX).min(1 << 20)
}

impl From<LanguageError> for Refusal {
    fn from(error: LanguageError) -> Self {
        match error {
            LanguageError::Value(problem) => problem.into(),
            LanguageError::NoTokenizer { .. } => {
                Self::bad_input(error.to_string()).hint("name it with --tokenizer")
            }
            other => Self::bad_input(other.to_string()),
        }
    }
}
