//! Continuations of a prompt: greedy, or sampled with temperature, top-k and top-p.
//!
//! Sampling is by inversion of the cumulative distribution at uniforms addressed by (seed, sample,
//! token), so that the same seed gives the same text at any number of threads.

use super::decoder::{Cache, Decoder};
use crate::LanguageError;
use random::{Purpose, Stream};
use vocabulary::Problem;

/// The purpose of the streams that draw tokens.
const GENERATION: Purpose = Purpose(0x4C47);

/// How tokens are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    pub temperature: f64,
    /// Only the k most likely tokens; 0: all.
    pub top_k: usize,
    /// Only the most likely tokens that together have this probability.
    pub top_p: f64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: 50, top_p: 1.0 }
    }
}

impl Sampling {
    /// # Errors
    /// Names the value that is out of range.
    pub fn check(&self) -> Result<(), LanguageError> {
        if !(self.temperature > 0.0 && self.temperature.is_finite()) {
            let expected = "a finite number above 0";
            let problem = Problem::is_not("temperature", self.temperature, expected);
            return Err(LanguageError::Value(problem));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return Err(LanguageError::Value(Problem::outside("top-p", self.top_p, "(0, 1]")));
        }
        Ok(())
    }
}

/// The most likely token after the prompt, again and again, until `stop` or `most` tokens.
///
/// # Errors
/// Those of [`Decoder::forward`].
pub fn greedy(
    decoder: &Decoder,
    prompt: &[u32],
    most: usize,
    stop: &[u32],
) -> Result<Vec<u32>, LanguageError> {
    extend(decoder, prompt, most, stop, |logits, _| largest(logits))
}

/// Sampled continuations of one prompt; sample `i` uses the stream (seed, i).
///
/// # Errors
/// Those of [`Decoder::forward`] and of [`Sampling::check`].
pub fn sample(
    decoder: &Decoder,
    prompt: &[u32],
    most: usize,
    stop: &[u32],
    sampling: &Sampling,
    (seed, number): (u64, u64),
) -> Result<Vec<u32>, LanguageError> {
    sampling.check()?;
    extend(decoder, prompt, most, stop, |logits, place| {
        drawn(logits, sampling, (seed, number), place)
    })
}

/// Names the next token, or `None` for the end, given a text's number, how many tokens it has been
/// given so far, and the logits.
pub type Choose<'a> = dyn Fn(usize, usize, &[f32]) -> Option<u32> + Sync + 'a;

/// The token of sample `number` at a place, of a sampling that was checked.
pub(crate) fn drawn(
    logits: &[f32],
    sampling: &Sampling,
    (seed, number): (u64, u64),
    place: usize,
) -> u32 {
    let stream = Stream::new(seed, GENERATION, number);
    draw(logits, sampling, stream.uniform(place as u64, 0))
}

fn extend(
    decoder: &Decoder,
    prompt: &[u32],
    most: usize,
    stop: &[u32],
    mut choose: impl FnMut(&[f32], usize) -> u32,
) -> Result<Vec<u32>, LanguageError> {
    let width = decoder.architecture.width;
    let room = decoder.architecture.context.min(prompt.len() + most);
    let mut cache = Cache::new(&decoder.architecture, 1, room.max(1));
    let mut hidden = decoder.forward(prompt, &mut cache)?;
    let mut found = Vec::new();
    while found.len() < most {
        let logits = decoder.logits(&hidden[hidden.len() - width..]);
        let token = choose(&logits, found.len());
        if stop.contains(&token) {
            break;
        }
        found.push(token);
        if found.len() == most || cache.len() == room {
            break;
        }
        hidden = decoder.forward(&[token], &mut cache)?;
    }
    Ok(found)
}

/// The first of the largest.
pub(crate) fn largest(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (i, x) in logits.iter().enumerate() {
        if *x > logits[best] {
            best = i;
        }
    }
    best as u32
}

fn draw(logits: &[f32], sampling: &Sampling, uniform: f64) -> u32 {
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    // Ties by number, so that the order is the same everywhere.
    let by = |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
    if sampling.top_k > 0 && sampling.top_k < order.len() {
        order.select_nth_unstable_by(sampling.top_k - 1, by);
        order.truncate(sampling.top_k);
    }
    order.sort_by(by);
    let top = f64::from(logits[order[0] as usize]);
    let mut weights: Vec<f64> = order
        .iter()
        .map(|token| ((f64::from(logits[*token as usize]) - top) / sampling.temperature).exp())
        .collect();
    if sampling.top_p < 1.0 {
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        // A token is kept while those before it have less than top_p.
        let kept = weights.iter().take_while(|weight| {
            let before = sum;
            sum += **weight;
            before < sampling.top_p * total
        });
        let kept = kept.count();
        weights.truncate(kept);
    }
    let mut left = uniform * weights.iter().sum::<f64>();
    for (token, weight) in order.iter().zip(&weights) {
        left -= weight;
        if left < 0.0 {
            return *token;
        }
    }
    order[weights.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_distribution() {
        let logits = [0.0_f32, 3.0_f32.ln(), 6.0_f32.ln(), -50.0];
        let count = |sampling: &Sampling| {
            let mut counts = [0; 4];
            for i in 0..1000 {
                counts[draw(&logits, sampling, (f64::from(i) + 0.5) / 1000.0) as usize] += 1;
            }
            counts
        };
        assert_eq!(count(&Sampling { top_k: 0, ..Sampling::default() }), [100, 300, 600, 0]);
        assert_eq!(count(&Sampling { top_k: 2, ..Sampling::default() }), [0, 333, 667, 0]);
        // 0.6 alone does not reach 0.7; 0.6 + 0.3 does.
        let nucleus = Sampling { top_k: 0, top_p: 0.7, temperature: 1.0 };
        assert_eq!(count(&nucleus), [0, 333, 667, 0]);
        // Temperature 1/2 squares the weights: 1, 9, 36 of 46.
        let cold = Sampling { top_k: 0, temperature: 0.5, top_p: 1.0 };
        assert_eq!(count(&cold), [22, 195, 783, 0]);
    }
}
