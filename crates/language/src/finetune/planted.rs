//! Canaries of either kind, as a training has them.

use super::canaries::{Canaries, CanaryScore, Losses};
use super::gradient_canaries::GradientCanaries;
use super::layout::Layout;
use super::trainer::Recipe;
use crate::LanguageError;
use crate::model::Decoder;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use vocabulary::Observe;

/// The `[canaries]` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanaryDescription {
    #[serde(default, skip_serializing_if = "CanaryKind::is_token")]
    pub kind: CanaryKind,
    pub count: usize,
    /// Of tokens. Where it is not given: embedding if that is trained, else loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<CanaryScore>,
    /// Of tokens: how many before the canary's own.
    #[serde(default = "prefix")]
    pub prefix: usize,
    /// Of gradients: the last iterate where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observe: Option<Observe>,
}

/// What a canary is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CanaryKind {
    /// A text whose last token the data never use.
    #[default]
    Token,
    /// A clipped gradient along a coordinate of its own.
    Gradient,
}

impl CanaryKind {
    fn is_token(&self) -> bool {
        *self == Self::Token
    }
}

fn prefix() -> usize {
    8
}

impl CanaryDescription {
    pub fn new(kind: CanaryKind, count: usize) -> Self {
        Self { kind, count, score: None, prefix: prefix(), observe: None }
    }

    /// # Errors
    /// `InvalidInput` for a key of the other kind.
    pub(super) fn check(&self) -> Result<(), LanguageError> {
        let invalid = |message: &str| Err(LanguageError::InvalidInput(message.into()));
        match self.kind {
            CanaryKind::Token if self.observe.is_some() => {
                invalid("[canaries]: `observe` is for kind = \"gradient\"; leave it out")
            }
            CanaryKind::Gradient if self.score.is_some() => {
                invalid("[canaries]: `score` is for kind = \"token\"; leave it out")
            }
            _ => Ok(()),
        }
    }
}

/// Canaries that were planted.
pub enum Planted {
    Token(Canaries),
    Gradient(Arc<GradientCanaries>),
}

impl Planted {
    /// Which of all canaries are in.
    pub fn members(&self) -> &[bool] {
        match self {
            Self::Token(canaries) => &canaries.members,
            Self::Gradient(canaries) => &canaries.members,
        }
    }

    /// What is scored, as a word.
    pub(super) fn score(&self) -> &'static str {
        match self {
            Self::Token(Canaries { score: CanaryScore::Embedding, .. }) => "embedding",
            Self::Token(_) => "loss",
            Self::Gradient(canaries) if canaries.observe == Observe::Last => "last-iterate",
            Self::Gradient(_) => "all-iterates",
        }
    }

    /// The same in words.
    pub(super) fn scored(&self) -> &'static str {
        match self.score() {
            "embedding" => {
                "token canaries added by coins, scored by the change of their token's row"
            }
            "loss" => "token canaries added by coins, scored by their loss",
            "last-iterate" => {
                "gradient canaries added by coins, scored by the model's move along them"
            }
            _ => "gradient canaries added by coins, scored by the noisy sums along them",
        }
    }

    /// Whether evidence is gathered at every step.
    pub(super) fn watches(&self) -> bool {
        matches!(self, Self::Gradient(canaries) if canaries.observe == Observe::All)
    }

    /// The score of every canary; `records` are those of the data, `evidence` is what the trainer gathered.
    ///
    /// # Errors
    /// Those of the decoder.
    pub(super) fn scores(
        &self,
        decoder: &Decoder,
        (recipe, records): (&Recipe, usize),
        evidence: &[f64],
        losses: &mut Losses<'_>,
    ) -> Result<Vec<f64>, LanguageError> {
        match self {
            Self::Token(canaries) => canaries.scores_with(decoder, losses),
            Self::Gradient(canaries) => {
                let layout = Layout::new(decoder, recipe.scope);
                let run = &recipe.run;
                let rate = recipe.phase(0).sample_rate;
                let size = run.dataset_size().unwrap_or(records as u64) as f64;
                let normaliser = run.drawing().share(rate) * size;
                let unit = recipe.optimizer.learning_rate() * run.clip_norm() / normaliser;
                Ok(canaries.scores(decoder, &layout, unit, evidence))
            }
        }
    }

    /// Scores as `audit` reads them.
    pub(super) fn to_csv(&self, scores: &[f64]) -> String {
        let mut text = String::from("# design: one-run\nscore,member,canary\n");
        for (number, (score, member)) in scores.iter().zip(self.members()).enumerate() {
            formats::csv::row(&mut text, &[score, &u8::from(*member), &number]);
        }
        text
    }
}
