//! `memorize`: what a language model memorised, asked of completions or of the model itself.

use crate::{Document, Refusal};
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
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RatioQuestion {
    /// JSONL of the tuned model's completions.
    pub completions: Option<PathBuf>,
    /// JSONL of the un-tuned model's completions of the same secrets.
    pub base: Option<PathBuf>,
    /// The metric's own, where none is given; the same for `normalize`.
    #[serde(rename = "match")]
    pub rule: Option<Rule>,
    pub normalize: Option<Normalization>,
    pub confidence: f64,
    pub model: Option<PathBuf>,
    pub tokenizer: Option<PathBuf>,
    /// What was trained, laid over the model.
    pub tuned: Option<PathBuf>,
    pub secrets: Option<PathBuf>,
    pub seed: u64,
    /// Sampled completions per secret; 0: one greedy completion.
    pub samples: u64,
    /// The most tokens in a completion.
    pub new_tokens: u64,
    pub temperature: f64,
    /// 0: all tokens.
    pub top_k: u64,
    pub top_p: f64,
    /// Where to write the model's completions.
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
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompressionQuestion {
    pub model: Option<PathBuf>,
    pub tokenizer: Option<PathBuf>,
    pub tuned: Option<PathBuf>,
    pub secrets: Option<PathBuf>,
    pub seed: Option<u64>,
    /// How lengths are tried.
    pub procedure: Procedure,
    /// How replacements are proposed.
    pub proposals: Proposals,
    /// The most steps for one length of the prompt.
    pub steps: Option<u64>,
    /// Candidates per step.
    pub candidates: Option<u64>,
    /// How many tokens are tried in each place.
    pub top_k: Option<u64>,
    /// Steps without progress after which a length is given up; 0: never.
    pub patience: Option<u64>,
    /// The longest prompt; as long as the secret where it is not given.
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

/// Asks; `note` hears how far the model has come.
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
            return Err(Refusal::bad_input("completions are given, and a model to make them")
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
