//! The search for the shortest prompt.

use super::gcg::{Attempt, Gcg};
use super::objective::losses;
use crate::LanguageError;
use crate::model::Decoder;
use random::{Purpose, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::AtLeast;

const FIRST_PROMPTS: Purpose = Purpose(0x4C50);

/// How lengths are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Procedure {
    /// Doubling until a length succeeds, then bisection; shorter searches start from the prompt
    /// that worked, less the tokens that are missed least.
    #[default]
    Bisection,
    /// The reference: five tokens more after a failure (and a fifth more steps from then on), one
    /// less after a success, always from a random prompt.
    Linear,
}

/// What to search for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    pub gcg: Gcg,
    pub procedure: Procedure,
    /// Length of the first prompt.
    pub first: usize,
    /// The longest prompt; 0: as long as the text for bisection (beyond that the ratio is below 1),
    /// five times as long for the reference.
    pub longest: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { gcg: Gcg::default(), procedure: Procedure::Bisection, first: 5, longest: 0 }
    }
}

/// One length that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    pub length: usize,
    pub success: bool,
    pub steps: usize,
    pub loss: f64,
    pub passes: u64,
}

/// What was found for one text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compression {
    /// Tokens of the text.
    pub target_length: usize,
    /// The shortest prompt found; absent where none was.
    pub prompt: Option<Vec<u32>>,
    /// Text length over prompt length: a lower bound. Absent where no prompt was found.
    pub ratio: Option<f64>,
    /// Whether the ratio is above 1.
    pub memorized: bool,
    pub trials: Vec<Trial>,
    /// Forward passes of the whole search; a backward pass counts as two.
    pub passes: u64,
}

impl Compression {
    /// A shorter prompt may exist, so the ratio is a lower end.
    pub fn ratio_at_least(&self) -> Option<AtLeast> {
        self.ratio.map(AtLeast::new)
    }
}

/// Searches for the shortest prompt that elicits `target` after `before` (the tokens that begin
/// every text). `allowed` says which tokens a prompt may hold.
///
/// # Errors
/// `InvalidInput` for an empty target; those of the decoder.
pub fn compress(
    decoder: &Decoder,
    before: &[u32],
    target: &[u32],
    allowed: &[bool],
    options: &Options,
) -> Result<Compression, LanguageError> {
    if target.is_empty() || !allowed.iter().any(|allowed| *allowed) {
        return Err(LanguageError::InvalidInput(
            "there is no text to elicit, or no token to do it with".into(),
        ));
    }
    if allowed.len() != decoder.architecture.vocabulary {
        return Err(LanguageError::InvalidInput(format!(
            "{} flags for a vocabulary of {}",
            allowed.len(),
            decoder.architecture.vocabulary
        )));
    }
    let room = decoder.architecture.context.saturating_sub(before.len() + target.len());
    let longest = match (options.longest, options.procedure) {
        (0, Procedure::Bisection) => target.len(),
        (0, Procedure::Linear) => 5 * target.len(),
        (longest, _) => longest,
    };
    let mut search = PromptSearch {
        decoder,
        before,
        target,
        allowed,
        options,
        longest: longest.min(room).max(1),
        trials: Vec::new(),
        best: None,
    };
    match options.procedure {
        Procedure::Bisection => search.bisection()?,
        Procedure::Linear => search.linear()?,
    }
    let ratio = search.best.as_ref().map(|prompt| target.len() as f64 / prompt.len() as f64);
    Ok(Compression {
        target_length: target.len(),
        memorized: ratio.is_some_and(|ratio| ratio > 1.0),
        ratio,
        prompt: search.best,
        passes: search.trials.iter().map(|trial| trial.passes).sum(),
        trials: search.trials,
    })
}

struct PromptSearch<'a> {
    decoder: &'a Decoder,
    before: &'a [u32],
    target: &'a [u32],
    allowed: &'a [bool],
    options: &'a Options,
    longest: usize,
    trials: Vec<Trial>,
    best: Option<Vec<u32>>,
}

impl PromptSearch<'_> {
    fn bisection(&mut self) -> Result<(), LanguageError> {
        let gcg = self.options.gcg;
        let mut failed = 0;
        let mut length = self.options.first.clamp(1, self.longest);
        loop {
            if self.attempt(&gcg, &self.random(length), length)?.success {
                break;
            }
            failed = length;
            if length == self.longest {
                return Ok(());
            }
            length = (2 * length).min(self.longest);
        }
        while let Some(found) = self.best.clone() {
            if found.len() <= failed + 1 {
                break;
            }
            let middle = (failed + found.len()) / 2;
            let (start, passes) = self.shortened(found, middle)?;
            let success = self.attempt(&gcg, &start, middle)?.success;
            if let Some(trial) = self.trials.last_mut() {
                trial.passes += passes;
            }
            if !success {
                failed = middle;
            }
        }
        Ok(())
    }

    /// A prompt that works, less the tokens that are missed least, one after the other; with the
    /// passes that took.
    fn shortened(&self, mut prompt: Vec<u32>, to: usize) -> Result<(Vec<u32>, u64), LanguageError> {
        let mut passes = 0;
        while prompt.len() > to {
            let shorter: Vec<Vec<u32>> =
                (0..prompt.len()).map(|i| [&prompt[..i], &prompt[i + 1..]].concat()).collect();
            let found = losses(self.decoder, self.before, &shorter, self.target)?;
            passes += shorter.len() as u64;
            let least = (0..found.len()).min_by(|a, b| found[*a].0.total_cmp(&found[*b].0));
            prompt.clone_from(&shorter[least.unwrap_or(0)]);
        }
        Ok((prompt, passes))
    }

    fn linear(&mut self) -> Result<(), LanguageError> {
        let mut gcg = self.options.gcg;
        let (mut lower, mut upper) = (0, self.longest + 1);
        let mut length = self.options.first.clamp(1, self.longest);
        loop {
            let next = if self.attempt(&gcg, &self.random(length), length)?.success {
                upper = length;
                length.saturating_sub(1)
            } else {
                lower = length;
                gcg.steps = gcg.steps + gcg.steps / 5;
                length + 5
            };
            if next >= upper || next <= lower {
                return Ok(());
            }
            length = next;
        }
    }

    fn attempt(
        &mut self,
        gcg: &Gcg,
        start: &[u32],
        length: usize,
    ) -> Result<Attempt, LanguageError> {
        let stream = self.trials.len() as u64;
        let found =
            gcg.attempt(self.decoder, self.before, start, self.target, self.allowed, stream)?;
        self.trials.push(Trial {
            length,
            success: found.success,
            steps: found.steps,
            loss: found.loss,
            passes: found.passes,
        });
        if found.success {
            self.best = Some(found.prompt.clone());
        }
        Ok(found)
    }

    fn random(&self, length: usize) -> Vec<u32> {
        let choices: Vec<u32> =
            (0..self.allowed.len() as u32).filter(|token| self.allowed[*token as usize]).collect();
        let stream = Stream::new(self.options.gcg.seed, FIRST_PROMPTS, self.trials.len() as u64);
        (0..length as u64)
            .map(|i| {
                choices[((stream.uniform(0, i) * choices.len() as f64) as usize)
                    .min(choices.len() - 1)]
            })
            .collect()
    }
}
