//! Token canaries: many memberships decided by coins inside one training, for one-run audits.
//!
//! A canary is a record of its own: a few random tokens that the data uses, then a token that the
//! data never uses, of which alone the loss is (Panda et al., "Privacy auditing of large language
//! models", ICLR 2025; Steinke et al. 2025, section 3.2). Each is put into the training with
//! probability 1/2. Tokens that no record uses are taken first; where they are too few, the
//! vocabulary is extended for the training and cut again afterwards.
//!
//! Scores, larger for members:
//! - **embedding**: the change of the token's row of the matrix that turns states into logits (with
//!   tied weights the embedding), along the direction in which the canary's loss falls. With h the
//!   un-tuned model's state before the token, that row's gradient is (p - 1) h, so the score is
//!   <change, h> / |h|. Needs a trained embedding.
//! - **loss**: how much the canary's loss fell.

use super::{CanaryDescription, Example};
use crate::LanguageError;
use crate::model::{Cache, Decoder};
use random::{Purpose, Stream};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The purpose of the streams that make canaries; their coins are membership's.
const CANARY: Purpose = Purpose(0x4C43);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CanaryScore {
    Embedding,
    Loss,
}

/// Canaries that were planted.
pub struct Canaries {
    /// All of them, members or not.
    pub examples: Vec<Example>,
    pub members: Vec<bool>,
    pub score: CanaryScore,
    /// Tokens of the vocabulary before it was extended.
    pub vocabulary: usize,
    /// For each canary: loss, row, and direction of the un-tuned model.
    before: Vec<(f64, Vec<f32>, Vec<f32>)>,
}

impl Canaries {
    /// Makes canaries for data, extending the decoder's vocabulary where that is needed. `examples`
    /// is the data; `reserved` are tokens with a meaning.
    ///
    /// # Errors
    /// `InvalidInput` for a number of canaries that makes no sense, or a score that needs an
    /// embedding that is not trained.
    pub fn plant(
        decoder: &mut Decoder,
        examples: &[Example],
        reserved: &[u32],
        description: &CanaryDescription,
        embedding_is_trained: bool,
        seed: u64,
    ) -> Result<Self, LanguageError> {
        let losses = &mut cpu_losses;
        Self::plant_with(
            decoder,
            examples,
            reserved,
            description,
            embedding_is_trained,
            seed,
            losses,
        )
    }

    /// As [`Canaries::plant`], with losses of the un-tuned model computed by `losses`.
    ///
    /// # Errors
    /// As [`Canaries::plant`].
    pub(super) fn plant_with(
        decoder: &mut Decoder,
        examples: &[Example],
        reserved: &[u32],
        description: &CanaryDescription,
        embedding_is_trained: bool,
        seed: u64,
        losses: &mut Losses<'_>,
    ) -> Result<Self, LanguageError> {
        let invalid = |message: String| Err(LanguageError::InvalidInput(message));
        let count = description.count;
        if count == 0 || count > 1 << 20 {
            return invalid(format!("[canaries]: count {count} is outside 1 to 2^20"));
        }
        let room = decoder.architecture.context;
        if description.prefix == 0 || description.prefix + 1 > room {
            return invalid(format!(
                "[canaries]: prefix {} is outside 1 to {}",
                description.prefix,
                room - 1
            ));
        }
        let default = if embedding_is_trained { CanaryScore::Embedding } else { CanaryScore::Loss };
        let score = description.score.unwrap_or(default);
        if score == CanaryScore::Embedding && !embedding_is_trained {
            return invalid(
                "[canaries]: score \"embedding\" needs a trained embedding; set `embedding = true` \
                 in [model], or score by \"loss\""
                    .into(),
            );
        }
        let used: BTreeSet<u32> = examples.iter().flat_map(|e| e.tokens.iter().copied()).collect();
        let present: Vec<u32> = used.iter().copied().filter(|t| !reserved.contains(t)).collect();
        if present.is_empty() {
            return invalid("[canaries]: the data has no tokens to write canaries with".into());
        }
        let vocabulary = decoder.architecture.vocabulary;
        let mut tokens: Vec<u32> = (0..vocabulary as u32)
            .filter(|token| !used.contains(token) && !reserved.contains(token))
            .collect();
        let order = Stream::new(seed, CANARY, 0);
        tokens.sort_by_cached_key(|token| order.word(0, u64::from(*token)));
        tokens.truncate(count);
        extend_vocabulary(decoder, count - tokens.len(), seed);
        tokens.extend(vocabulary as u32..decoder.architecture.vocabulary as u32);
        let draw = Stream::new(seed, CANARY, 1);
        let coins = Stream::new(seed, Purpose::MEMBERSHIP, 0);
        let mut canaries = Vec::with_capacity(count);
        let mut members = Vec::with_capacity(count);
        for (number, token) in tokens.iter().enumerate() {
            let pick = |j: usize| {
                let word = draw.word(number as u64, j as u64);
                present[((u128::from(word) * present.len() as u128) >> 64) as usize]
            };
            let mut text: Vec<u32> = (0..description.prefix).map(pick).collect();
            text.push(*token);
            canaries.push(Example { tokens: text, first: description.prefix });
            members.push(coins.word(0, number as u64) >> 63 == 1);
        }
        let before = match score {
            CanaryScore::Loss => losses(decoder, &canaries)?
                .into_iter()
                .map(|loss| (loss, Vec::new(), Vec::new()))
                .collect(),
            CanaryScore::Embedding => looks(decoder, &canaries)?
                .into_iter()
                .zip(&canaries)
                .map(|((loss, state), canary)| (loss, row(decoder, canary), state))
                .collect(),
        };
        Ok(Self { examples: canaries, members, score, vocabulary, before })
    }

    /// The canaries that are in.
    pub fn planted(&self) -> impl Iterator<Item = &Example> {
        self.examples.iter().zip(&self.members).filter(|(_, member)| **member).map(|(e, _)| e)
    }

    /// The score of every canary, given the trained decoder.
    ///
    /// # Errors
    /// Those of the decoder.
    pub fn scores(&self, decoder: &Decoder) -> Result<Vec<f64>, LanguageError> {
        self.scores_with(decoder, &mut cpu_losses)
    }

    /// As [`Canaries::scores`], with losses computed by `losses`.
    ///
    /// # Errors
    /// As [`Canaries::scores`].
    pub(crate) fn scores_with(
        &self,
        decoder: &Decoder,
        losses: &mut Losses<'_>,
    ) -> Result<Vec<f64>, LanguageError> {
        if self.score == CanaryScore::Loss {
            let after = losses(decoder, &self.examples)?;
            return Ok(self.before.iter().zip(after).map(|((loss, ..), new)| loss - new).collect());
        }
        let scores = self.examples.iter().zip(&self.before).map(|(canary, (_, old, direction))| {
            let (mut along, mut square) = (0.0, 0.0);
            for ((new, old), h) in row(decoder, canary).iter().zip(old).zip(direction) {
                along += (f64::from(*new) - f64::from(*old)) * f64::from(*h);
                square += f64::from(*h) * f64::from(*h);
            }
            along / square.sqrt().max(f64::MIN_POSITIVE)
        });
        Ok(scores.collect())
    }
}

/// Computes the losses of canaries.
pub(crate) type Losses<'a> =
    dyn FnMut(&Decoder, &[Example]) -> Result<Vec<f64>, LanguageError> + 'a;

fn cpu_losses(decoder: &Decoder, canaries: &[Example]) -> Result<Vec<f64>, LanguageError> {
    Ok(looks(decoder, canaries)?.into_iter().map(|(loss, _)| loss).collect())
}

/// Canaries that are run together.
const TOGETHER: usize = 32;

/// The loss of each canary's token, and the state before it. All canaries are equally long.
fn looks(decoder: &Decoder, canaries: &[Example]) -> Result<Vec<(f64, Vec<f32>)>, LanguageError> {
    let (width, vocabulary) = (decoder.architecture.width, decoder.architecture.vocabulary);
    let parts: Vec<Vec<(f64, Vec<f32>)>> = canaries
        .par_chunks(TOGETHER)
        .map(|part| {
            let length = part[0].first;
            let mut cache = Cache::new(&decoder.architecture, part.len(), length);
            let tokens: Vec<u32> =
                part.iter().flat_map(|canary| canary.tokens[..length].iter().copied()).collect();
            let hidden = decoder.forward(&tokens, &mut cache)?;
            let states: Vec<f32> = hidden
                .chunks_exact(length * width)
                .flat_map(|rows| rows[(length - 1) * width..].iter().copied())
                .collect();
            let logits = decoder.logits(&states);
            Ok(part
                .iter()
                .zip(states.chunks_exact(width).zip(logits.chunks_exact(vocabulary)))
                .map(|(canary, (state, logits))| {
                    let own = f64::from(logits[canary.tokens[canary.first] as usize]);
                    (crate::model::log_sum_exp(logits) - own, state.to_vec())
                })
                .collect())
        })
        .collect::<Result<_, LanguageError>>()?;
    Ok(parts.into_iter().flatten().collect())
}

fn row(decoder: &Decoder, canary: &Example) -> Vec<f32> {
    let (width, token) = (decoder.architecture.width, canary.tokens[canary.first] as usize);
    decoder.head()[token * width..(token + 1) * width].to_vec()
}

/// Appends rows as large as those that are there.
fn extend_vocabulary(decoder: &mut Decoder, by: usize, seed: u64) {
    let width = decoder.architecture.width;
    for (number, matrix) in
        [Some(&mut decoder.embedding), decoder.head.as_mut()].into_iter().flatten().enumerate()
    {
        let square: f64 = matrix.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        let size = (square / matrix.len().max(1) as f64).sqrt() as f32;
        let mut rows = vec![0.0; by * width];
        let stream = Stream::new(seed, CANARY, 2 + number as u64);
        stream.fill_gaussians_f32(0, 0, &mut rows);
        matrix.extend(rows.into_iter().map(|x| size * x));
    }
    decoder.architecture.vocabulary += by;
}
