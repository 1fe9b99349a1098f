//! Greedy coordinate gradient for a prompt of fixed length.
//!
//! A step: the gradient of the loss with respect to the one-hot tokens of the prompt, E dL/dx, says
//! to first order how much each replacement would lower the loss. Every candidate replaces one
//! place, chosen uniformly, by one of that place's top-k tokens, chosen uniformly; the candidate
//! with the least loss becomes the prompt, even if it is worse. Random search is the same with
//! tokens drawn uniformly and no gradient. A length is given up early when the loss has stopped
//! falling: most of a search's cost is in lengths that fail.

use super::objective::{input_gradient, losses};
use crate::LanguageError;
use crate::model::Decoder;
use crate::product::{View, product};
use random::{Purpose, Stream};
use serde::Deserialize;
use std::collections::HashSet;

/// The purpose of the streams that draw candidates.
const CANDIDATES: Purpose = Purpose(0x4C43);

/// Where candidates come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proposals {
    #[default]
    Gradient,
    Random,
}

/// The settings. Steps, candidates and top-k are those of the reference code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gcg {
    pub steps: usize,
    pub candidates: usize,
    pub top_k: usize,
    pub proposals: Proposals,
    pub seed: u64,
    /// Steps without a smaller loss after which a length is given up; 0: never.
    pub patience: usize,
    /// No prompt is looked at twice: a repeated candidate costs a pass and says nothing, and for a
    /// prompt of one token the search becomes exhaustive.
    pub distinct: bool,
}

impl Gcg {
    /// As the reference code: no patience, repeated candidates.
    pub fn reference() -> Self {
        Self { patience: 0, distinct: false, ..Self::default() }
    }
}

impl Default for Gcg {
    fn default() -> Self {
        Self {
            steps: 200,
            candidates: 100,
            top_k: 250,
            proposals: Proposals::Gradient,
            seed: 42,
            patience: 15,
            distinct: true,
        }
    }
}

/// What a search of one length came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The prompt that elicits the target, or else the one with the least loss.
    pub prompt: Vec<u32>,
    pub success: bool,
    pub loss: f64,
    pub steps: usize,
    /// Forward passes over prompt and target; a backward pass counts as two.
    pub passes: u64,
}

impl Gcg {
    /// Searches for a prompt of as many tokens as `start` has. `allowed` says which tokens a prompt
    /// may hold; `stream` makes searches of one text differ.
    ///
    /// # Errors
    /// `InvalidInput` for an empty start or target; those of the decoder.
    pub fn attempt(
        &self,
        decoder: &Decoder,
        before: &[u32],
        start: &[u32],
        target: &[u32],
        allowed: &[bool],
        stream: u64,
    ) -> Result<Attempt, LanguageError> {
        if start.is_empty() || target.is_empty() || self.candidates == 0 {
            return Err(LanguageError::InvalidInput(
                "a search needs a prompt of at least one token, a target and a candidate".into(),
            ));
        }
        let draws = Stream::new(self.seed, CANDIDATES, stream);
        let first = losses(decoder, before, &[start.to_vec()], target)?[0];
        let mut prompt = start.to_vec();
        let mut best = Attempt {
            prompt: prompt.clone(),
            success: first.1,
            loss: first.0,
            steps: 0,
            passes: 1,
        };
        let choices: Vec<u32> =
            (0..allowed.len() as u32).filter(|token| allowed[*token as usize]).collect();
        let mut seen: HashSet<Vec<u32>> = HashSet::from([prompt.clone()]);
        let mut waited = 0;
        while !best.success && best.steps < self.steps {
            let ranked = match self.proposals {
                Proposals::Gradient => {
                    best.passes += 3;
                    Some(self.ranked(decoder, before, &prompt, target, allowed)?)
                }
                Proposals::Random => None,
            };
            let step = best.steps as u64;
            let candidate = |i: u64| {
                let draw = |index: u64, of: usize| {
                    ((draws.uniform(step, index) * of as f64) as usize).min(of - 1)
                };
                let place = draw(2 * i, prompt.len());
                let token = match &ranked {
                    Some(ranked) => ranked[place][draw(2 * i + 1, ranked[place].len())],
                    None => choices[draw(2 * i + 1, choices.len())],
                };
                let mut candidate = prompt.clone();
                candidate[place] = token;
                candidate
            };
            let mut candidates: Vec<Vec<u32>> = Vec::new();
            if self.distinct {
                // New ones become rare when most neighbours have been seen: a bounded number of
                // draws.
                for i in 0..16 * self.candidates as u64 {
                    let drawn = candidate(i);
                    if seen.insert(drawn.clone()) {
                        candidates.push(drawn);
                    }
                    if candidates.len() == self.candidates {
                        break;
                    }
                }
            } else {
                candidates.extend((0..self.candidates as u64).map(candidate));
            }
            if candidates.is_empty() {
                break; // every neighbour has been looked at
            }
            let found = losses(decoder, before, &candidates, target)?;
            best.passes += candidates.len() as u64;
            best.steps += 1;
            // A success ends the search whatever its loss; otherwise the least loss goes on.
            let chosen = found.iter().position(|(_, exact)| *exact).unwrap_or_else(|| {
                (0..found.len()).min_by(|a, b| found[*a].0.total_cmp(&found[*b].0)).unwrap_or(0)
            });
            prompt.clone_from(&candidates[chosen]);
            waited += 1;
            if found[chosen].1 || found[chosen].0 < best.loss {
                best.prompt.clone_from(&prompt);
                best.loss = found[chosen].0;
                best.success = found[chosen].1;
                waited = 0;
            }
            if self.patience > 0 && waited >= self.patience {
                break;
            }
        }
        Ok(best)
    }

    /// For every place of the prompt, the tokens that lower the loss most to first order.
    fn ranked(
        &self,
        decoder: &Decoder,
        before: &[u32],
        prompt: &[u32],
        target: &[u32],
        allowed: &[bool],
    ) -> Result<Vec<Vec<u32>>, LanguageError> {
        let (width, vocabulary) = (decoder.architecture.width, decoder.architecture.vocabulary);
        let tokens = [before, prompt, target].concat();
        let found = input_gradient(decoder, &tokens, before.len() + prompt.len())?;
        let gradient = &found.gradient[before.len() * width..][..prompt.len() * width];
        let mut slopes = vec![0.0; prompt.len() * vocabulary];
        let embedding = View::new(&decoder.embedding, vocabulary, width).transposed();
        product(&mut slopes, View::new(gradient, prompt.len(), width), embedding);
        Ok(slopes
            .chunks_exact(vocabulary)
            .map(|row| {
                let mut order: Vec<u32> =
                    (0..vocabulary as u32).filter(|token| allowed[*token as usize]).collect();
                let by =
                    |a: &u32, b: &u32| row[*a as usize].total_cmp(&row[*b as usize]).then(a.cmp(b));
                if self.top_k > 0 && self.top_k < order.len() {
                    order.select_nth_unstable_by(self.top_k - 1, by);
                    order.truncate(self.top_k);
                }
                order.sort_by(by);
                order
            })
            .collect())
    }
}
