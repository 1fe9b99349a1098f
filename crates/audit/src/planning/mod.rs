//! How many trainings, or canaries, an audit needs.
//!
//! The attack is assumed: a trade-off curve (Gaussian, or any pair) or one pair of rates. The power
//! of n rows is P(the rule shows the target), from the rule itself played on simulated counts
//! ([`runs`], [`canaries`]); a fixed threshold for canaries is summed exactly.
//!
//! Direction: the power returned is the share of trials less two standard errors, from trials that
//! the search has not seen. Cost: a trial takes about a tenth of a millisecond whatever the number of rows, and some thousand trials are
//! played: less than two seconds. A plan that takes more than [`SECONDS`] of processor time is refused.

mod attack;
mod canaries;
mod draw;
mod goal;
mod lines;
mod runs;

pub use attack::Attack;
pub use goal::{Curve, Goal};

use crate::{AuditError, ThresholdRule};
use numerics::patience::{look_at_the_clock, within};
use std::cell::Cell;
use vocabulary::Problem;

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
    /// The threshold's true rates.
    pub fpr: f64,
    pub tpr: f64,
    /// Whether the power was simulated (and lowered by two standard errors).
    pub simulated: bool,
}

/// More rows than this are not planned for.
const MOST: u64 = 1 << 34;
/// Processor time after which a plan is refused.
const SECONDS: f64 = 5.0;
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
        _ => 4,
    };
    let points = attack.dense_points(between)?;
    let largest = attack.largest_epsilon(target.delta)?;
    // A family may show more than the attack's own rates do.
    let plain = matches!(goal, Goal::Statistic { statistic: crate::Statistic::Epsilon { .. }, .. });
    if plain && target.epsilon >= largest {
        return Err(unreachable(target, largest));
    }
    if !plain && !points.iter().any(|&(fpr, tpr)| goal.shown(&attack::exact(fpr, tpr))) {
        return Err(AuditError::invalid(format!(
            "epsilon {} at delta {} cannot be shown by this attack with any number of scores: its true rates do not rule out the family's curve; lower the target or assume a stronger attack",
            target.epsilon, target.delta
        )));
    }
    let (first, last) = match rule {
        ThresholdRule::KFold => (100, 500),
        ThresholdRule::Holdout => (100, 600),
        _ => (150, 1000),
    };
    let near = Cell::new(None);
    search(target, MOST, (first, last), |count, played| {
        runs::power(&points, goal, target, rule, &near, count, played)
    })
}

/// Canaries of one run that show the target with the asked power under a rule, if canaries do
/// not disturb each other.
///
/// # Errors
/// A target that the attack cannot show with any number, by name; `dkw`, which one run has not.
pub fn canaries_needed(
    attack: &Attack<'_>,
    target: &Target,
    rule: &ThresholdRule,
) -> Result<Needed, AuditError> {
    if *rule == ThresholdRule::Dkw {
        return Err(AuditError::NotValid(
            "the dkw rule needs independent runs; for one run use union, holdout, k-fold or fixed"
                .to_owned(),
        ));
    }
    let points = attack.points()?;
    let largest = canaries::largest_epsilon(&points);
    if target.epsilon >= largest {
        return Err(unreachable(target, largest));
    }
    search(target, MOST_CANARIES, (300, 2000), |count, played| {
        canaries::power(&points, target, rule, count, played)
    })
}

fn unreachable(target: &Target, largest: f64) -> AuditError {
    AuditError::invalid(format!(
        "epsilon {} at delta {} cannot be shown by this attack with any number of scores: its true rates show at most {:.4}; lower the target or assume a stronger attack",
        target.epsilon, target.delta, largest
    ))
}

/// Counts that are confirmed, at most.
const ATTEMPTS: u64 = 30;

/// The smallest count with the power, to a few per cent: found with `first` trials per count,
/// confirmed with `last` others.
fn search(
    target: &Target,
    most: u64,
    (first, last): (u32, u32),
    power: impl Fn(u64, (u32, u64)) -> Needed,
) -> Result<Needed, AuditError> {
    if !(target.power > 0.0 && target.power < 1.0) {
        return Err(AuditError::invalid(Problem::outside("power", target.power, "(0, 1)")));
    }
    within(SECONDS, || found(target, most, (first, last), power)).unwrap_or_else(|| {
        Err(AuditError::invalid(format!(
            "this plan takes more than {SECONDS} s of processor time; a target further below what the attack can show, less power, or another threshold rule takes less"
        )))
    })
}

fn found(
    target: &Target,
    most: u64,
    (first, last): (u32, u32),
    power: impl Fn(u64, (u32, u64)) -> Needed,
) -> Result<Needed, AuditError> {
    let power = |count: u64, played: (u32, u64)| {
        look_at_the_clock();
        power(count, played)
    };
    let too_many = || {
        AuditError::invalid(format!(
            "more than {most} rows would be needed; the target is too close to what the attack can show at all, or the delta term of this many canaries uses up the error"
        ))
    };
    let (mut few, mut enough) = (5_u64, 10_u64);
    while power(enough, (60, 1)).power < target.power {
        few = enough;
        enough *= 2;
        if enough > most {
            return Err(too_many());
        }
    }
    while enough - few > (enough / 50).max(1) {
        let middle = few + (enough - few) / 2;
        if power(middle, (first, 2)).power >= target.power { enough = middle } else { few = middle }
    }
    // The trials of the search are not those of the promise.
    for attempt in 0..ATTEMPTS {
        let found = power(enough, (last, 3 + attempt));
        // Small audits are played on fewer trials.
        let error = (found.power * (1.0 - found.power) / f64::from(last.min(600))).sqrt();
        let promised =
            if found.simulated { (found.power - 2.0 * error).max(0.0) } else { found.power };
        if promised >= target.power {
            return Ok(Needed { power: promised, ..found });
        }
        // Where the power hardly rises with the count, steps have to.
        let least = 0.01 * 1.2_f64.powi(attempt as i32);
        let more = 1.0 + (2.0 * (target.power - promised)).clamp(least.min(0.5), 0.5);
        enough = ((enough as f64 * more).ceil() as u64).max(enough + 1);
        if enough > most {
            return Err(too_many());
        }
    }
    Err(AuditError::invalid(format!(
        "with {enough} rows the power is still below {}, and it hardly rises with their number; ask for less power",
        target.power
    )))
}
