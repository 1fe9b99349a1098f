//! The built-in example: a run, and the simulated game that is played against it.

use games::{Attack, DpSgd, Game, GameError, Observe};
use report::Origin;
use vocabulary::{
    Adjacency, Direction, PhaseDescription, Resolved, RunDescription, RunError, Sampling,
};

/// Noise and rate of a small private training; the proven epsilon and the last-iterate
/// heuristic differ enough to be told apart by eye.
const NOISE_MULTIPLIER: f64 = 0.8;
const SAMPLE_RATE: f64 = 0.02;
const STEPS: u64 = 1000;
/// Enough to show a good part of the epsilon; a few seconds of work.
pub(crate) const TRIALS: u64 = 100_000;
pub(crate) const SEED: u64 = 0;
pub(crate) const DELTA: f64 = 1e-5;

/// The run, with everything stated.
///
/// # Errors
/// None: its numbers are in range.
pub(crate) fn run() -> Result<(Resolved, Origin), RunError> {
    let written = RunDescription {
        whole: PhaseDescription {
            noise_multiplier: Some(NOISE_MULTIPLIER),
            sample_rate: Some(SAMPLE_RATE),
            steps: Some(STEPS),
            ..PhaseDescription::default()
        },
        sampling: Some(Sampling::Poisson),
        adjacency: Some(Adjacency::AddRemove),
        clip_norm: Some(1.0),
        ..RunDescription::default()
    };
    let origin = Origin {
        sampling_stated: true,
        clip_stated: true,
        adjacency_stated: true,
        ..Origin::default()
    };
    Ok((written.resolve()?, origin))
}

/// The linear game against it, with and without the canary.
///
/// # Errors
/// None: its numbers are in range.
pub(crate) fn attack() -> Result<Attack, GameError> {
    let trainer = DpSgd::new(NOISE_MULTIPLIER, SAMPLE_RATE, STEPS);
    Attack::new(Game::Linear, trainer, Observe::Last, Direction::Remove, SEED, TRIALS)
}

/// The command that plays the same game.
pub(crate) fn attack_command() -> String {
    format!(
        "dosimeter attack linear --noise-multiplier {NOISE_MULTIPLIER} --sample-rate {SAMPLE_RATE} \
         --steps {STEPS} --trials {TRIALS} --seed {SEED} --out scores.csv"
    )
}
