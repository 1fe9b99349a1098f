//! Which canaries are guessed, and how the threshold rules of the many-run design carry over.

use super::{one_run_epsilon, one_run_gaussian_mu, one_run_gaussian_rejects, one_run_p_value};
use crate::scores::at_least;
use crate::split::{Dealer, deal_canaries};
use crate::{AuditError, FOLDS, Scores, ThresholdRule};

/// Guesses made about canaries, and how many were right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guesses {
    /// Canaries that count (those that chose the strategy do not).
    pub canaries: u64,
    /// Guessed "in" (score at or above a threshold).
    pub guessed_in: u64,
    /// Guessed "out" (score below a threshold).
    pub guessed_out: u64,
    /// Right guesses of both kinds.
    pub right: u64,
}

impl Guesses {
    /// All guesses.
    pub fn total(&self) -> u64 {
        self.guessed_in + self.guessed_out
    }
}

/// What a one-run audit bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OneRunStatistic {
    /// Epsilon at a delta, for any mechanism.
    Epsilon { delta: f64 },
    /// The Gaussian mu.
    GaussianMu,
}

impl OneRunStatistic {
    fn bound(&self, guesses: &Guesses, level: f64) -> f64 {
        let (canaries, total, right) = (guesses.canaries, guesses.total(), guesses.right);
        match *self {
            Self::Epsilon { delta } => one_run_epsilon(canaries, total, right, level, delta),
            Self::GaussianMu => one_run_gaussian_mu(canaries, total, right, level),
        }
    }

    /// Whether the bound of these guesses exceeds a value: one test in place of a search.
    fn exceeds(&self, guesses: &Guesses, level: f64, value: f64) -> bool {
        let (canaries, total, right) = (guesses.canaries, guesses.total(), guesses.right);
        match *self {
            Self::Epsilon { delta } => {
                total > 0 && one_run_p_value(canaries, total, right, value, delta) <= level
            }
            Self::GaussianMu => one_run_gaussian_rejects(canaries, total, right, value, level),
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

/// The bound under a threshold rule.
///
/// # Errors
/// Too few canaries to split; `dkw`, which has no meaning for canaries of one run.
pub fn one_run_bound(
    scores: &Scores,
    rule: &ThresholdRule,
    statistic: &OneRunStatistic,
    level: f64,
    seed: u64,
) -> Result<OneRunBound, AuditError> {
    match *rule {
        ThresholdRule::Fixed(threshold) => {
            let guesses = at_threshold(scores, threshold);
            Ok(single(statistic, guesses, level, 1))
        }
        ThresholdRule::Union => {
            let strategies = strategies(size(scores));
            let each = level / strategies.len() as f64;
            Ok(best_of(scores, &strategies, statistic, each, &mut Dealer::new(seed)))
        }
        ThresholdRule::Holdout => {
            if size(scores) < 8 {
                return Err(too_few("holdout"));
            }
            let (chooser, counter) = deal_canaries(scores, 0.5, seed);
            let mut dealer = Dealer::new(!seed);
            Ok(chosen_elsewhere(&chooser, &counter, statistic, level, &mut dealer))
        }
        ThresholdRule::KFold => {
            // A fifth chooses, the rest counts, once per fold; the largest of five bounds at a
            // fifth of the error each (the guesses of the folds are about the same canaries, so
            // their p-values cannot be multiplied).
            if size(scores) < 4 * FOLDS as u64 {
                return Err(too_few("k-fold"));
            }
            let each = level / FOLDS as f64;
            let best = (0..FOLDS as u64)
                .map(|fold| {
                    let share = 1.0 / FOLDS as f64;
                    let (chooser, counter) = deal_canaries(scores, share, seed.wrapping_add(fold));
                    let mut dealer = Dealer::new(!seed.wrapping_add(fold));
                    chosen_elsewhere(&chooser, &counter, statistic, each, &mut dealer)
                })
                .reduce(|best, next| if next.value > best.value { next } else { best });
            best.map(|best| OneRunBound { strategies: FOLDS, ..best }).ok_or_else(|| too_few("k-fold"))
        }
        ThresholdRule::Dkw => Err(AuditError::NotValid(
            "the dkw rule needs independent runs; for one run use union, holdout, k-fold or fixed:V"
                .to_owned(),
        )),
    }
}

fn too_few(rule: &str) -> AuditError {
    AuditError::Scores(format!("too few canaries for the {rule} rule; use --threshold union"))
}

fn size(scores: &Scores) -> u64 {
    (scores.members().len() + scores.nonmembers().len()) as u64
}

/// Numbers of guesses (in, out) to try: half, quarter, eighth … of the canaries on both sides,
/// and the same on the "in" side alone.
pub(crate) fn strategies(canaries: u64) -> Vec<(u64, u64)> {
    let mut list = Vec::new();
    let mut guesses = canaries / 2;
    // Fewer than five guesses show nothing at 95 %: 2^-5 < 0.05.
    while guesses >= 5 && list.len() < 20 {
        list.push((guesses, guesses));
        list.push((guesses, 0));
        guesses /= 2;
    }
    if list.is_empty() {
        list.push((canaries / 2, canaries - canaries / 2));
    }
    list
}

fn chosen_elsewhere(
    chooser: &Scores,
    counter: &Scores,
    statistic: &OneRunStatistic,
    level: f64,
    dealer: &mut Dealer,
) -> OneRunBound {
    let list = strategies(size(chooser));
    let mut chosen = (list[0], 0.0);
    for &(inside, outside) in &list {
        let guesses = guess(chooser, inside, outside, dealer);
        // The delta term scales with the canaries that count, so the choice is made for those.
        let scaled = Guesses { canaries: size(counter), ..guesses };
        // One test tells whether a search is worth it.
        if statistic.exceeds(&scaled, level, chosen.1) {
            let value = statistic.bound(&scaled, level);
            if value > chosen.1 {
                chosen = ((inside, outside), value);
            }
        }
    }
    let ratio = size(counter) as f64 / size(chooser).max(1) as f64;
    let scale = |part: u64| (part as f64 * ratio) as u64;
    let guesses = guess(counter, scale(chosen.0.0), scale(chosen.0.1), dealer);
    single(statistic, guesses, level, 1)
}

fn single(
    statistic: &OneRunStatistic,
    guesses: Guesses,
    level: f64,
    strategies: usize,
) -> OneRunBound {
    OneRunBound { value: statistic.bound(&guesses, level), guesses, level, strategies }
}

fn best_of(
    scores: &Scores,
    list: &[(u64, u64)],
    statistic: &OneRunStatistic,
    level: f64,
    dealer: &mut Dealer,
) -> OneRunBound {
    let mut best: Option<OneRunBound> = None;
    for &(inside, outside) in list {
        let guesses = guess(scores, inside, outside, dealer);
        if best.is_none_or(|best| statistic.exceeds(&guesses, level, best.value)) {
            let next = single(statistic, guesses, level, list.len());
            if best.is_none_or(|best| next.value > best.value) {
                best = Some(next);
            }
        }
    }
    best.unwrap_or_else(|| single(statistic, guess(scores, 0, 0, dealer), level, 1))
}

/// Guesses the `inside` highest scores in and the `outside` lowest out, exactly that many. Among
/// scores that tie at an edge lots are drawn: who of them was in must not decide, and the bounds
/// need a number of guesses that does not depend on the scores.
fn guess(scores: &Scores, inside: u64, outside: u64, dealer: &mut Dealer) -> Guesses {
    let all = size(scores);
    let (inside, outside) = (inside.min(all), outside.min(all - inside.min(all)));
    let upper = inside.checked_sub(1).and_then(|rank| scores.kth_largest(rank));
    let lower = if outside == 0 { None } else { scores.kth_largest(all - outside) };
    let above = |side: &[f64], edge: f64| {
        (side.len() - side.partition_point(|&score| score <= edge)) as u64
    };
    let below = |side: &[f64], edge: f64| side.partition_point(|&score| score < edge) as u64;
    let (members, nonmembers) = (scores.members(), scores.nonmembers());
    let tied = |edge: f64| {
        let count = |side: &[f64]| side.len() as u64 - above(side, edge) - below(side, edge);
        (count(members), count(nonmembers))
    };
    let (mut right_in, mut drawn) = (0, (0, 0));
    if let Some(edge) = upper {
        let (sure, wrong) = (above(members, edge), above(nonmembers, edge));
        drawn = draw(tied(edge), inside - sure - wrong, dealer);
        right_in = sure + drawn.0;
    }
    let mut right_out = 0;
    if let Some(edge) = lower {
        let (wrong, sure) = (below(members, edge), below(nonmembers, edge));
        let mut pool = tied(edge);
        // Who was guessed in already is not guessed again.
        if upper == Some(edge) {
            pool = (pool.0 - drawn.0, pool.1 - drawn.1);
        }
        right_out = sure + draw(pool, outside - sure - wrong, dealer).1;
    }
    Guesses { canaries: all, guessed_in: inside, guessed_out: outside, right: right_in + right_out }
}

/// How many members and non-members `count` lots from such a pool hold.
fn draw(pool: (u64, u64), count: u64, dealer: &mut Dealer) -> (u64, u64) {
    let (mut members, mut left) = pool;
    left += members;
    if count >= left {
        return pool;
    }
    let mut drawn = 0;
    for _ in 0..count {
        if dealer.below(left) < members {
            members -= 1;
            drawn += 1;
        }
        left -= 1;
    }
    (drawn, count - drawn)
}

/// Guesses "in" at or above a threshold and passes over the rest.
fn at_threshold(scores: &Scores, threshold: f64) -> Guesses {
    let right = at_least(scores.members(), threshold);
    let wrong = at_least(scores.nonmembers(), threshold);
    Guesses { canaries: size(scores), guessed_in: right + wrong, guessed_out: 0, right }
}
