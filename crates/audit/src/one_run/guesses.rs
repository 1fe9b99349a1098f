//! The threshold rules of the many-run design, carried over to canaries of one run.

use super::chosen::Chosen;
use super::strategies::{Guesses, Strategy, chains, choices, size};
use super::union::{perfect, together};
use super::{one_run_epsilon, one_run_gaussian_mu, one_run_gaussian_rejects};
use crate::scores::at_least;
use crate::split::{Purpose, parts_of_canaries};
use crate::{AttackDirection, AuditError, FOLDS, Scores, ThresholdRule};

/// What a one-run audit bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OneRunStatistic {
    /// Epsilon at a delta, for any mechanism.
    Epsilon { delta: f64 },
    /// The Gaussian mu.
    GaussianMu,
}

impl OneRunStatistic {
    fn counted(&self, guesses: &Guesses) -> u64 {
        match *self {
            Self::Epsilon { delta } => guesses.counted(delta),
            Self::GaussianMu => guesses.planned,
        }
    }

    fn bound(&self, guesses: &Guesses, level: f64) -> f64 {
        let (canaries, total, right) = (guesses.canaries, self.counted(guesses), guesses.right);
        match *self {
            Self::Epsilon { delta } => one_run_epsilon(canaries, total, right, level, delta),
            Self::GaussianMu => one_run_gaussian_mu(canaries, total, right, level),
        }
    }
}

/// A one-run bound with the guesses it stands on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneRunBound {
    pub value: f64,
    pub guesses: Guesses,
    /// The error left to these guesses after the rule's correction.
    pub level: f64,
    /// Strategies tried.
    pub strategies: usize,
}

/// The bound under a threshold rule. `direction` says which guesses are made: "in" alone (forward),
/// "out" alone (mirror), or both.
///
/// # Errors
/// Too few canaries to split; `dkw`, which has no meaning for canaries of one run; `holdout` and `k-fold` for the
/// Gaussian mu; `fixed:V` with the mirror direction, since it guesses "in".
pub fn one_run_bound(
    scores: &Scores,
    rule: &ThresholdRule,
    statistic: &OneRunStatistic,
    direction: AttackDirection,
    level: f64,
    seed: u64,
) -> Result<OneRunBound, AuditError> {
    let canaries = size(scores);
    match *rule {
        ThresholdRule::Fixed(threshold) => {
            if direction == AttackDirection::Mirror {
                return Err(AuditError::NotValid(
                    "fixed:V guesses \"in\" at and above V, which is not the mirror direction; use --direction forward or both, or another threshold rule"
                        .to_owned(),
                ));
            }
            Ok(single(statistic, at_threshold(scores, threshold), level))
        }
        ThresholdRule::Union => match *statistic {
            OneRunStatistic::Epsilon { delta } => Ok(union(scores, delta, direction, level)),
            OneRunStatistic::GaussianMu => Ok(largest(scores, direction, level)),
        },
        ThresholdRule::Holdout => {
            if canaries < 8 {
                return Err(too_few("holdout"));
            }
            let chosen = Chosen::new(canaries, statistic, level)?;
            let parts = parts_of_canaries(scores, &[0.5], seed, Purpose::Halves);
            Ok(chosen_elsewhere(&parts[0], &parts[1], chosen, direction))
        }
        ThresholdRule::KFold => {
            // A fifth chooses, the rest counts, once per fold; the largest of five bounds at a
            // fifth of the error each (the guesses of the folds are about the same canaries, so
            // their p-values cannot be multiplied).
            if canaries < 4 * FOLDS as u64 {
                return Err(too_few("k-fold"));
            }
            let chosen = Chosen::new(canaries, statistic, level / FOLDS as f64)?;
            let folds =
                parts_of_canaries(scores, &[1.0 / FOLDS as f64; FOLDS - 1], seed, Purpose::Folds);
            let best = (0..FOLDS)
                .map(|fold| {
                    let others = folds.iter().enumerate().filter(|(other, _)| *other != fold);
                    let rest = merged(scores, others.map(|(_, part)| part));
                    chosen_elsewhere(&folds[fold], &rest, chosen, direction)
                })
                .reduce(|best, next| if next.value > best.value { next } else { best });
            best.map(|best| OneRunBound { strategies: FOLDS, ..best })
                .ok_or_else(|| too_few("k-fold"))
        }
        ThresholdRule::Dkw => Err(AuditError::NotValid(
            "the dkw rule needs independent runs; for one run use union, holdout, k-fold or fixed:V"
                .to_owned(),
        )),
    }
}

/// The bound that the rule would give for this many canaries if every guess were right.
pub(crate) fn one_run_reach(
    canaries: u64,
    rule: &ThresholdRule,
    statistic: &OneRunStatistic,
    direction: AttackDirection,
    level: f64,
) -> f64 {
    let most = |counted: u64| match direction {
        AttackDirection::Both => counted,
        _ => counted / 2,
    };
    let one = |guesses: u64, level: f64| {
        let all = Guesses {
            canaries,
            guessed_in: guesses,
            guessed_out: 0,
            right: guesses,
            planned: guesses,
        };
        statistic.bound(&all, level)
    };
    let chosen = |counted: u64, level: f64| {
        let guesses = most(counted);
        Chosen::new(canaries, statistic, level)
            .map_or(0.0, |chosen| chosen.epsilon(guesses, guesses))
    };
    match (rule, statistic) {
        (ThresholdRule::Fixed(_), _) => one(canaries / 2, level),
        (ThresholdRule::Union, OneRunStatistic::Epsilon { delta }) => {
            perfect(canaries, direction, level, *delta)
        }
        (ThresholdRule::Union, OneRunStatistic::GaussianMu) => {
            let strategies: usize = chains(canaries, direction).iter().map(Vec::len).sum();
            one(most(canaries), level / strategies as f64)
        }
        (ThresholdRule::KFold, _) => {
            chosen(canaries - canaries / FOLDS as u64, level / FOLDS as f64)
        }
        _ => chosen(canaries / 2, level),
    }
}

fn too_few(rule: &str) -> AuditError {
    AuditError::Scores(format!("too few canaries for the {rule} rule; use --threshold union"))
}

fn merged<'a>(whole: &Scores, parts: impl Iterator<Item = &'a Scores>) -> Scores {
    let (mut members, mut nonmembers) = (Vec::new(), Vec::new());
    for part in parts {
        members.extend_from_slice(part.members());
        nonmembers.extend_from_slice(part.nonmembers());
    }
    members.sort_unstable_by(f64::total_cmp);
    nonmembers.sort_unstable_by(f64::total_cmp);
    whole.part(members, nonmembers)
}

/// All strategies in one statement.
fn union(scores: &Scores, delta: f64, direction: AttackDirection, level: f64) -> OneRunBound {
    let guesses: Vec<Vec<Guesses>> = chains(size(scores), direction)
        .iter()
        .map(|chain| chain.iter().map(|strategy| strategy.guess(scores)).collect())
        .collect();
    let found = together(&guesses, level, delta);
    OneRunBound {
        value: found.epsilon,
        guesses: guesses[found.chain][found.place],
        level,
        strategies: guesses.iter().map(Vec::len).sum(),
    }
}

/// The largest mu of single strategies, each with its share of the error.
fn largest(scores: &Scores, direction: AttackDirection, level: f64) -> OneRunBound {
    let list: Vec<Strategy> = chains(size(scores), direction).into_iter().flatten().collect();
    let each = level / list.len() as f64;
    let mut best: Option<OneRunBound> = None;
    for strategy in &list {
        let guesses = strategy.guess(scores);
        let (canaries, planned, right) = (guesses.canaries, guesses.planned, guesses.right);
        // One test tells whether a search is worth it.
        let exceeds = |mu: f64| one_run_gaussian_rejects(canaries, planned, right, mu, each);
        if best.is_none_or(|best| exceeds(best.value)) {
            let next = single(&OneRunStatistic::GaussianMu, guesses, each);
            if best.is_none_or(|best| next.value > best.value) {
                best = Some(next);
            }
        }
    }
    let nothing = Strategy::Ends { inside: 0, outside: 0 };
    let best =
        best.unwrap_or_else(|| single(&OneRunStatistic::GaussianMu, nothing.guess(scores), each));
    OneRunBound { strategies: list.len(), ..best }
}

/// The choosers pick the strategy that would show most if the others were as they are, with half a
/// wrong guess added: choosers without an error are not proof of a perfect attack.
fn chosen_elsewhere(
    chooser: &Scores,
    counter: &Scores,
    chosen: Chosen,
    direction: AttackDirection,
) -> OneRunBound {
    let (few, many) = (size(chooser), size(counter));
    let list = choices(few, direction);
    let seen: Vec<(Strategy, Guesses)> =
        list.iter().map(|&strategy| (strategy, strategy.guess(chooser))).collect();
    let place = chosen.pick(&seen, few, many, |_, expected, known| {
        // One test tells whether a search is worth it.
        chosen.exceeds(expected, known).then(|| chosen.value(expected))
    });
    let guesses = list[place].scaled(few, many).guess(counter);
    let guesses = Guesses { canaries: chosen.canaries, ..guesses };
    OneRunBound { value: chosen.value(&guesses), guesses, level: chosen.level, strategies: 1 }
}

fn single(statistic: &OneRunStatistic, guesses: Guesses, level: f64) -> OneRunBound {
    OneRunBound { value: statistic.bound(&guesses, level), guesses, level, strategies: 1 }
}

/// Guesses "in" at or above a threshold and passes over the rest.
fn at_threshold(scores: &Scores, threshold: f64) -> Guesses {
    let right = at_least(scores.members(), threshold);
    let total = right + at_least(scores.nonmembers(), threshold);
    Guesses { canaries: size(scores), guessed_in: total, guessed_out: 0, right, planned: total }
}
