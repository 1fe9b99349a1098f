//! How many trainings, or canaries, an audit needs.
//!
//! The attack is assumed: a trade-off curve (Gaussian, or any pair) or one pair of rates. The power
//! of n rows is P(the rule shows the target), from the rule itself played on simulated counts
//! ([`runs`], [`canaries`]); a fixed threshold for canaries is summed exactly.
//!
//! Direction: the power returned is the lower end of Wilson's interval at two standard errors, from trials that
//! the search has not seen ([`search`]). Cost: a trial takes about a tenth of a millisecond whatever the number of rows, and one or two
//! thousand trials are played. A plan that takes more than [`SECONDS`] of processor time is refused.

mod attack;
mod canaries;
mod draw;
mod goal;
mod lines;
mod runs;
mod search;

pub use attack::Attack;
pub use goal::{Curve, Goal};

use crate::one_run::NO_CHOICE;
use crate::{AuditError, ThresholdRule};
use numerics::patience::{is_limited, within};
use search::Range;
use std::cell::Cell;
use vocabulary::{AtMost, rounding};

/// What is to be shown, and how surely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    pub epsilon: f64,
    pub delta: f64,
    pub confidence: f64,
    /// Probability that the audit shows it.
    pub power: f64,
}

/// Rows that suffice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Needed {
    /// Trainings per side, or canaries in all.
    pub count: u64,
    /// Power at that count.
    pub power: f64,
    /// The true rates (false positives, true positives) at the threshold that shows the target most often; none where the rule
    /// was played without a look at which one does.
    pub threshold: Option<(f64, f64)>,
    /// Whether the power was simulated (and lowered by two standard errors).
    pub simulated: bool,
}

/// More rows than this are not planned for.
const MOST: u64 = 1 << 34;
/// Processor time after which a plan is refused.
pub const SECONDS: f64 = 1.8;
/// More canaries than this in one training are not planned for.
const MOST_CANARIES: u64 = 1 << 20;

/// Trainings per side that show the target with the asked power under a rule.
///
/// # Errors
/// A target that the attack cannot show with any number, by name; those of the accounting.
///
/// ```
/// use audit::ThresholdRule;
/// use audit::planning::{Attack, Goal, Target, runs_needed};
///
/// let target = Target { epsilon: 1.0, delta: 0.0, confidence: 0.95, power: 0.8 };
/// let goal = Goal::clopper_pearson(target.epsilon, target.delta);
/// let needed = runs_needed(&Attack::Gaussian { mu: 1.0 }, &goal, &target, &ThresholdRule::Union)?;
/// assert!((200..1500).contains(&needed.count) && needed.power >= 0.8);
/// # Ok::<(), audit::AuditError>(())
/// ```
pub fn runs_needed(
    attack: &Attack<'_>,
    goal: &Goal,
    target: &Target,
    rule: &ThresholdRule,
) -> Result<Needed, AuditError> {
    let between = match rule {
        ThresholdRule::Dkw => 32,
        ThresholdRule::Union => 6,
        // Averaged p-values take long.
        ThresholdRule::KFold if matches!(goal, Goal::Statistic { .. }) => 2,
        _ => 4,
    };
    let points = attack.dense_points(between)?;
    let largest = attack.largest_epsilon(target.delta)?;
    // A family may show more than the attack's own rates do.
    let plain = matches!(goal, Goal::Statistic { statistic: crate::Statistic::Epsilon { .. }, .. });
    if plain && target.epsilon >= largest {
        return Err(unreachable(target, largest));
    }
    let rates = || points.iter().map(|&(fpr, tpr)| attack::exact(fpr, tpr)).collect::<Vec<_>>();
    if !plain && goal.shown_by(&rates()).is_none() {
        return Err(AuditError::invalid(format!(
            "epsilon {} at delta {} cannot be shown by this attack with any number of scores: its true rates do not rule out the family's curve; lower the target or assume a stronger attack",
            rounding::plain(target.epsilon),
            rounding::plain(target.delta)
        )));
    }
    let near = Cell::new(None);
    in_time(|| {
        let guess = runs::guess(&points, goal, target, rule, MOST);
        // A promise lies two standard errors below what the last trials show, so more of them bring it closer. At one
        // threshold, and with few rows, a trial costs next to nothing.
        let last = match rule {
            ThresholdRule::Fixed(_) => 3000,
            ThresholdRule::KFold => 2500,
            ThresholdRule::Holdout if guess < 1000 => 4000,
            _ => 1000,
        };
        let range = Range { guess, most: MOST, first: 200, last };
        search::smallest(target, range, |count, played| {
            runs::power(&points, goal, target, rule, &near, count, played)
        })
    })?
}

/// Canaries of one run that show the target with the asked power under a rule, if canaries do
/// not disturb each other.
///
/// # Errors
/// A target that the attack cannot show with any number, by name; `dkw`, which one run has not; the goal of a DP-SGD
/// family, for which there is no one-run method.
pub fn canaries_needed(
    attack: &Attack<'_>,
    goal: &Goal,
    target: &Target,
    rule: &ThresholdRule,
) -> Result<Needed, AuditError> {
    if *rule == ThresholdRule::Dkw {
        return Err(AuditError::NotValid(
            "the dkw rule needs independent runs; for one run use union, holdout, k-fold or fixed"
                .to_owned(),
        ));
    }
    let shown = canaries::Shown::new(goal)?;
    if !shown.is_epsilon() && matches!(rule, ThresholdRule::Holdout | ThresholdRule::KFold) {
        return Err(AuditError::NotValid(format!("one-run-gdp {NO_CHOICE}")));
    }
    // Thresholds to choose from, and the curve between them.
    let (points, curve) = (attack.points()?, attack.dense_points(6)?);
    let largest = canaries::largest_epsilon(&points);
    if shown.is_epsilon() && target.epsilon >= largest {
        return Err(unreachable(target, largest));
    }
    // A trial at a threshold that other canaries chose costs little.
    let last = if *rule == ThresholdRule::Holdout { 4000 } else { 1000 };
    let range = Range { guess: 100, most: MOST_CANARIES, first: 200, last };
    in_time(|| {
        search::smallest(target, range, |count, played| {
            canaries::power([&points, &curve], &shown, target, rule, count, played)
        })
    })?
}

fn unreachable(target: &Target, largest: f64) -> AuditError {
    AuditError::invalid(format!(
        "epsilon {} at delta {} cannot be shown by this attack with any number of scores: its true rates show at most {}; lower the target or assume a stronger attack",
        rounding::plain(target.epsilon),
        rounding::plain(target.delta),
        AtMost::new(largest)
    ))
}

/// Runs a plan within the limit of whoever asks, and else as [`in_seconds`].
fn in_time<T>(work: impl FnOnce() -> T) -> Result<T, AuditError> {
    if is_limited() { Ok(work()) } else { in_seconds(work) }
}

/// Runs a plan, or what belongs to it, and refuses it after [`SECONDS`] of processor time.
///
/// # Errors
/// The refusal.
pub fn in_seconds<T>(work: impl FnOnce() -> T) -> Result<T, AuditError> {
    within(SECONDS, work).ok_or_else(|| {
        AuditError::invalid(format!(
            "this plan takes more than {SECONDS} s of processor time; a target further below what the attack can show, less power, or another threshold rule takes less"
        ))
    })
}
