//! How many trainings, or canaries, an audit needs.
//!
//! The attack is assumed: a trade-off curve (Gaussian, or any pair) or one pair of rates. The
//! power of n rows is P(the bound reaches the target): exact for `fixed` and the bands
//! ([`runs`]), simulated for `holdout` and `k-fold` ([`dealt`]), binomial for canaries
//! ([`canaries`]).
//!
//! Direction: the number returned suffices, if the attack is as assumed. Cost: a few dozen powers
//! of milliseconds each.

mod attack;
mod canaries;
mod dealt;
mod goal;
mod runs;

pub use attack::Attack;
pub use goal::{Curve, Goal};

use crate::{AuditError, FOLDS, ThresholdRule};

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
    /// Trainings a side, or canaries in all.
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

/// Trainings a side that show the target with the asked power under a rule.
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
/// assert!((500..1500).contains(&needed.count) && needed.power >= 0.8);
/// # Ok::<(), audit::AuditError>(())
/// ```
pub fn runs_needed(
    attack: &Attack<'_>,
    goal: &Goal,
    target: &Target,
    rule: &ThresholdRule,
) -> Result<Needed, AuditError> {
    let points = attack.points()?;
    let largest = attack.largest_epsilon(target.delta)?;
    // A family may show more than the attack's own rates do.
    let plain = matches!(goal, Goal::Statistic { statistic: crate::Statistic::Epsilon { .. }, .. });
    if plain && target.epsilon >= largest {
        return Err(unreachable(target, largest));
    }
    if !plain && !points.iter().any(|&(fpr, tpr)| goal.shown(&attack::exact(fpr, tpr))) {
        return Err(AuditError::InvalidInput(format!(
            "epsilon {} at delta {} cannot be shown by this attack with any number of scores: its true rates do not rule out the family's curve; lower the target or assume a stronger attack",
            target.epsilon, target.delta
        )));
    }
    let level = 1.0 - target.confidence;
    search(target, |count| match rule {
        ThresholdRule::Union => {
            runs::power(&points, goal, &runs::band(target, count, false), count)
        }
        ThresholdRule::Dkw => runs::power(&points, goal, &runs::band(target, count, true), count),
        ThresholdRule::Fixed(_) => {
            runs::power(&points, goal, &runs::Bounds::Fixed { level }, count)
        }
        ThresholdRule::Holdout => dealt::power(&points, goal, target, 2, count),
        ThresholdRule::KFold => dealt::power(&points, goal, target, FOLDS, count),
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
    search(target, |count| canaries::power(&points, target, rule, count))
}

fn unreachable(target: &Target, largest: f64) -> AuditError {
    AuditError::InvalidInput(format!(
        "epsilon {} at delta {} cannot be shown by this attack with any number of scores: its true rates show at most {:.4}; lower the target or assume a stronger attack",
        target.epsilon, target.delta, largest
    ))
}

/// The smallest count with the power, to one part in 200.
fn search(target: &Target, power: impl Fn(u64) -> Needed) -> Result<Needed, AuditError> {
    if !(target.power > 0.0 && target.power < 1.0) {
        return Err(AuditError::InvalidInput(format!("power {} is outside (0, 1)", target.power)));
    }
    let (mut few, mut count) = (0_u64, 10_u64);
    let mut enough = loop {
        let found = power(count);
        if found.power >= target.power {
            break found;
        }
        few = count;
        count *= 2;
        if count > MOST {
            return Err(AuditError::InvalidInput(format!(
                "more than {MOST} scores would be needed; the target is too close to what the attack can show at all, or the delta term of this many canaries uses up the error"
            )));
        }
    };
    while enough.count - few > (enough.count / 200).max(1) {
        let found = power(few + (enough.count - few) / 2);
        if found.power >= target.power { enough = found } else { few = found.count }
    }
    Ok(enough)
}
