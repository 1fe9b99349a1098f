//! What the attacker makes of what he sees: a score for each candidate; the largest is his guess.
//!
//! **Last iterate**: the negative loss of each candidate under the released model. **All
//! iterates**: the likelihood of the noisy sums. The attacker knows all other records and which of
//! them are in each batch (P1's channel), so of step t he sees
//!
//! ```text
//! r_t = b g_s + n,   b ~ Bernoulli(p),   n ~ N(0, (sigma C)^2 I),
//! ```
//!
//! and sums log((1-p) + p exp((<r_t, g_v> - |g_v|^2 / 2) / (sigma C)^2)) for each candidate v: the
//! best attack there is against this channel (Neyman and Pearson).

use super::game::Candidate;
use super::{AttributeError, Moment};
use random::{Purpose, Stream};
use std::sync::Arc;
use training::cpu::Executor;
use training::{Recipe, TrainingError};
use vocabulary::Observe;

/// Gathers evidence for each candidate over one training.
pub(super) struct Attacker<'a> {
    recipe: &'a Recipe,
    candidates: &'a [Candidate],
    observe: Observe,
    secret: usize,
    /// The number that the canary's coin has.
    coin: u32,
    noise: Stream,
    executor: Executor,
    scores: Vec<f64>,
    gradients: Vec<Vec<f32>>,
    sum: Vec<f32>,
}

impl<'a> Attacker<'a> {
    pub(super) fn new(
        recipe: &'a Recipe,
        candidates: &'a [Candidate],
        observe: Observe,
        secret: usize,
        coin: u32,
        replica: u64,
    ) -> Self {
        let length = match observe {
            Observe::All => recipe.network.parameters,
            Observe::Last => 0,
        };
        Self {
            recipe,
            candidates,
            observe,
            secret,
            coin,
            noise: Stream::new(recipe.seed, Purpose::NOISE, replica),
            executor: Executor::new(Arc::clone(&recipe.network), 1),
            scores: vec![0.0; candidates.len()],
            gradients: vec![vec![0.0; length]; candidates.len()],
            sum: vec![0.0; length],
        }
    }

    /// Looks at a moment of the training.
    pub(super) fn see(&mut self, moment: &Moment<'_>) -> Result<(), AttributeError> {
        if moment.step == self.recipe.steps() {
            if self.observe == Observe::Last {
                self.score_losses(moment.parameters);
            }
            return Ok(());
        }
        if self.observe == Observe::Last {
            return Ok(());
        }
        let (parameters, clip_norm) = (moment.parameters, self.recipe.clip_norm);
        self.executor.prepare(parameters);
        for (candidate, gradient) in self.candidates.iter().zip(&mut self.gradients) {
            let Candidate { features, label, .. } = candidate;
            if !self.executor.clipped_gradient(parameters, features, *label, clip_norm, gradient) {
                let replica = 0;
                return Err(TrainingError::NotFinite { step: moment.step, replica }.into());
            }
        }
        let deviation = self.recipe.noise_deviation(moment.step);
        self.noise.fill_gaussians_f32(moment.step, 0, &mut self.sum);
        let sampled = moment.batch.binary_search(&self.coin).is_ok();
        let own = if sampled { 1.0 } else { 0.0 };
        for (sum, gradient) in self.sum.iter_mut().zip(&self.gradients[self.secret]) {
            *sum = deviation as f32 * *sum + own * gradient;
        }
        let rate = self.recipe.phase(moment.step).sample_rate;
        for (score, gradient) in self.scores.iter_mut().zip(&self.gradients) {
            let (inner, square) = products(&self.sum, gradient);
            *score += log_ratio((inner - 0.5 * square) / (deviation * deviation), rate);
        }
        Ok(())
    }

    fn score_losses(&mut self, parameters: &[f32]) {
        self.executor.prepare(parameters);
        for (candidate, score) in self.candidates.iter().zip(&mut self.scores) {
            self.executor.load(0, &candidate.features, candidate.label);
            *score = -f64::from(self.executor.evaluate(parameters, 1).losses[0]);
        }
    }

    pub(super) fn scores(&self) -> &[f64] {
        &self.scores
    }
}

/// <a, b> and |b|^2.
fn products(a: &[f32], b: &[f32]) -> (f64, f64) {
    a.iter().zip(b).fold((0.0, 0.0), |(inner, square), (a, b)| {
        let (a, b) = (f64::from(*a), f64::from(*b));
        (inner + a * b, square + b * b)
    })
}

/// log((1-p) + p e^x), for any x.
fn log_ratio(x: f64, p: f64) -> f64 {
    if x > 0.0 { x + (p + (1.0 - p) * (-x).exp()).ln() } else { (p * x.exp_m1()).ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_ratios() {
        for p in [1e-3, 0.4, 1.0] {
            for x in [-3.0, -1e-9, 0.0, 0.7, 20.0_f64] {
                let direct = (1.0 - p + p * x.exp()).ln();
                assert!((log_ratio(x, p) - direct).abs() < 1e-12, "{x} {p}");
            }
            assert!((log_ratio(800.0, p) - (800.0 + p.ln())).abs() < 1e-9);
        }
    }
}
