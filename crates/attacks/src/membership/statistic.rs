//! What the attacker computes for each candidate from the iterates of a training; larger means that
//! the candidate was in.
//!
//! * **Gradient, last iterate**: the inner product of the canary's direction with (start - last
//!   iterate), in units of one insertion of plain SGD.
//! * **Gradient, all iterates**: updates of SGD are unrolled (momentum, weight decay) to the noisy
//!   sum s_t along the direction, in clip norms; the log-likelihood ratio of the subsampled Gaussian,
//!   ln(1 - q + q exp((2 f s_t - f^2) / (2 sigma^2))) with f the strength of the insertion, is
//!   added up. The best score where the others contribute nothing along the direction.
//! * **Input, last iterate**: how much the canary's loss fell.
//! * **Input, all iterates**: the mean of that over the iterates.

use super::candidates::as_dataset;
use crate::AttackError;
use std::sync::Arc;
use training::data::Dataset;
use training::{Injection, OptimizerDescription, Recipe, Replicas, Schedule, TrainingError};
use vocabulary::Observe;

/// What is computed for the candidates.
#[derive(Clone, Debug)]
pub(super) enum Statistic {
    Projection { directions: Vec<Direction>, observe: Observe },
    Loss { candidates: Box<Dataset>, observe: Observe },
}

/// A gradient canary: unit direction and schedule.
#[derive(Clone, Debug)]
pub(super) struct Direction {
    entries: Arc<[(u32, f32)]>,
    norm: f64,
    schedule: Schedule,
}

impl Statistic {
    pub(super) fn new(
        recipe: &Recipe,
        like: &Dataset,
        injections: &[Injection],
        observe: Observe,
    ) -> Result<Self, AttackError> {
        let directions: Vec<Direction> = injections
            .iter()
            .filter_map(|injection| match injection {
                Injection::Gradient { entries, schedule } => {
                    let square: f64 = entries.iter().map(|(_, x)| f64::from(x * x)).sum();
                    let schedule = schedule.clone();
                    Some(Direction { entries: Arc::clone(entries), norm: square.sqrt(), schedule })
                }
                Injection::Example { .. } => None,
            })
            .collect();
        if directions.is_empty() {
            return Ok(Self::Loss { candidates: Box::new(as_dataset(like, injections)), observe });
        }
        if observe == Observe::All && !matches!(recipe.optimizer, OptimizerDescription::Sgd { .. })
        {
            return Err(AttackError::AllIteratesOfAdam);
        }
        Ok(Self::Projection { directions, observe })
    }

    /// Whether only the start and the last iterate are looked at.
    pub(super) fn is_of_the_last(&self) -> bool {
        let (Self::Projection { observe, .. } | Self::Loss { observe, .. }) = self;
        *observe == Observe::Last
    }

    /// Trains the replicas to the end: candidates' scores, replica by replica.
    pub(super) fn scores(
        &self,
        recipe: &Recipe,
        replicas: &mut dyn Replicas,
    ) -> Result<Vec<f64>, TrainingError> {
        match self {
            Self::Projection { directions, observe: Observe::Last } => {
                last_projection(recipe, replicas, directions)
            }
            Self::Projection { directions, observe: Observe::All } => {
                likelihood_ratio(recipe, replicas, directions)
            }
            Self::Loss { candidates, observe } => losses(recipe, replicas, candidates, *observe),
        }
    }
}

/// <direction, parameters> of every replica and candidate.
fn project(
    replicas: &mut dyn Replicas,
    directions: &[Direction],
    parameters: &mut Vec<f32>,
) -> Result<Vec<f64>, TrainingError> {
    replicas.all_parameters(parameters)?;
    let length = parameters.len() / replicas.len().max(1);
    let mut out = Vec::with_capacity(replicas.len() * directions.len());
    for own in parameters.chunks_exact(length.max(1)) {
        out.extend(directions.iter().map(|direction| {
            let along = direction.entries.iter();
            along.map(|(place, x)| f64::from(*x) * f64::from(own[*place as usize])).sum::<f64>()
                / direction.norm
        }));
    }
    Ok(out)
}

fn last_projection(
    recipe: &Recipe,
    replicas: &mut dyn Replicas,
    directions: &[Direction],
) -> Result<Vec<f64>, TrainingError> {
    let mut parameters = Vec::new();
    let mut scores = project(replicas, directions, &mut parameters)?;
    replicas.advance(recipe.steps())?;
    let last = project(replicas, directions, &mut parameters)?;
    let unit = recipe.normaliser(0) / (recipe.optimizer.learning_rate() * recipe.clip_norm);
    for (score, last) in scores.iter_mut().zip(last) {
        *score = (*score - last) * unit;
    }
    Ok(scores)
}

fn likelihood_ratio(
    recipe: &Recipe,
    replicas: &mut dyn Replicas,
    directions: &[Direction],
) -> Result<Vec<f64>, TrainingError> {
    let OptimizerDescription::Sgd { learning_rate, momentum, weight_decay, regulariser } =
        recipe.optimizer
    else {
        return Err(TrainingError::Recipe(AttackError::AllIteratesOfAdam.to_string()));
    };
    let decay = weight_decay + regulariser;
    let mut parameters = Vec::new();
    let mut before = project(replicas, directions, &mut parameters)?;
    let mut velocity = vec![0.0; before.len()];
    let mut scores = vec![0.0; before.len()];
    for step in 0..recipe.steps() {
        replicas.advance(1)?;
        let after = project(replicas, directions, &mut parameters)?;
        let phase = recipe.phase(step);
        let unit = recipe.normaliser(step) / recipe.clip_norm;
        for (index, score) in scores.iter_mut().enumerate() {
            let moved = (before[index] - after[index]) / learning_rate;
            let gradient = moved - momentum * velocity[index] - decay * before[index];
            velocity[index] = moved;
            let strength = directions[index % directions.len()].strength(step);
            let evidence = strength * (2.0 * gradient * unit - strength)
                / (2.0 * phase.noise_multiplier * phase.noise_multiplier);
            *score += training::log_mixture(phase.sample_rate, evidence);
        }
        before = after;
    }
    Ok(scores)
}

impl Direction {
    fn strength(&self, step: u64) -> f64 {
        match &self.schedule {
            Schedule::Always => 1.0,
            Schedule::Factors(factors) => {
                let place = usize::try_from(step).unwrap_or(usize::MAX);
                factors.get(place).map_or(0.0, |factor| f64::from(*factor))
            }
        }
    }
}

fn losses(
    recipe: &Recipe,
    replicas: &mut dyn Replicas,
    candidates: &Dataset,
    observe: Observe,
) -> Result<Vec<f64>, TrainingError> {
    let mut found = Vec::new();
    replicas.losses(candidates, &mut found)?;
    let first: Vec<f64> = found.iter().map(|loss| f64::from(*loss)).collect();
    let mut total = vec![0.0; first.len()];
    let (parts, steps) = match observe {
        Observe::Last => (1, recipe.steps()),
        Observe::All => (recipe.steps(), 1),
    };
    for _ in 0..parts {
        replicas.advance(steps)?;
        replicas.losses(candidates, &mut found)?;
        for (total, loss) in total.iter_mut().zip(&found) {
            *total += f64::from(*loss);
        }
    }
    Ok(first.iter().zip(total).map(|(first, total)| first - total / parts as f64).collect())
}
