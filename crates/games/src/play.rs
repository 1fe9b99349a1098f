//! A game: a crafter, a trainer and a distinguisher, played many times.

use crate::{Crafter, Distinguisher, Randomness, Record, Release, Trainer};
use std::ops::Range;

/// The scores of one trial: one training with the canary, one without, independent of each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    pub with_canary: f64,
    pub without_canary: f64,
}

/// Plays trials of a game. Trial `i` uses replicas `2i` (with the canary) and `2i + 1`.
///
/// ```
/// use games::{DpSgd, Linear, Coordinate, play};
/// let trainer = DpSgd::new(1.0, 0.1, 100);
/// let mut scores = Vec::new();
/// play(&Linear, &trainer, &Coordinate(0), 7, 0..200, |trial| scores.push(trial));
/// let mean = |side: fn(&games::Trial) -> f64| scores.iter().map(side).sum::<f64>() / 200.0;
/// // Ten expected hits, noise of standard deviation 10 in each of 200 trials.
/// assert!((mean(|t| t.with_canary) - 10.0).abs() < 4.0 && mean(|t| t.without_canary).abs() < 4.0);
/// ```
pub fn play(
    crafter: &impl Crafter,
    trainer: &impl Trainer,
    distinguisher: &impl Distinguisher,
    seed: u64,
    trials: Range<u64>,
    mut each: impl FnMut(Trial),
) {
    let mut record = Record::default();
    let watch = distinguisher.sees_all_iterates();
    let mut once = |canary: bool, replica: u64| {
        trainer.train(crafter, canary, watch, &Randomness::new(seed, replica), &mut record);
        distinguisher.score(&Release { model: &record.model, steps: &record.steps })
    };
    for trial in trials {
        let with_canary = once(true, 2 * trial);
        let without_canary = once(false, 2 * trial + 1);
        each(Trial { with_canary, without_canary });
    }
}
