//! A game: a crafter, a trainer and a distinguisher, played many times.

use crate::{Crafter, Distinguisher, Randomness, Record, Released, Trainer};
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
    let mut side = |canary: bool, trials: Range<u64>| {
        let replica = |trial| 2 * trial + u64::from(!canary);
        let randomness: Vec<Randomness> =
            trials.map(|trial| Randomness::new(seed, replica(trial))).collect();
        let mut scores = Vec::with_capacity(randomness.len());
        trainer.train_each(crafter, canary, watch, &randomness, &mut record, &mut |record| {
            let release = Released { model: &record.model, steps: &record.steps };
            scores.push(distinguisher.score(&release));
        });
        scores
    };
    let mut first = trials.start;
    while first < trials.end {
        let last = trials.end.min(first + ABREAST);
        let (with, without) = (side(true, first..last), side(false, first..last));
        for (with_canary, without_canary) in with.into_iter().zip(without) {
            each(Trial { with_canary, without_canary });
        }
        first = last;
    }
}

/// Trials handed to the trainer at a time.
const ABREAST: u64 = 64;
