//! How many trainings, or canaries, an audit needs.
//!
//! The attack is assumed: a trade-off curve (Gaussian, or any pair) or one pair of rates. For n
//! rows a side the power is P(bound >= target), computed exactly from the two binomial counts at
//! the threshold that is best for expected counts; under `union` the maximum over thresholds can
//! only show more, so that the power stated is a lower bound on it. The sum over false positives
//! is cut into blocks that count with their worst end, which understates the power by at most
//! one part in sixty-four.
//!
//! Direction: the number returned suffices. Cost: a few dozen powers of a millisecond each.

use crate::one_run::one_run_p_value;
use crate::{
    AttackDirection, AuditError, Errors, RateBounds, Simultaneous, Statistic, ThresholdRule, rates,
};
use accounting::{OneWay, Pair};
use numerics::beta::{binomial_log_at_least, binomial_log_tails};
use numerics::special::{inverse_normal_cdf, normal_cdf};
use vocabulary::Direction;

/// The attack that is expected.
pub enum Attack<'a> {
    /// Scores N(mu, 1) against N(0, 1).
    Gaussian { mu: f64 },
    /// One threshold with these true rates.
    Rates { fpr: f64, tpr: f64 },
    /// The best attack on a pair.
    Pair(&'a dyn Pair),
}

impl Attack<'_> {
    /// Thresholds to consider, as (false positive rate, true positive rate).
    fn points(&self) -> Result<Vec<(f64, f64)>, AuditError> {
        // Three a decade from both ends: forward bounds live at small rates, mirrored ones near 1.
        let small = (0..24).map(|step| 0.5 * 10f64.powf(-f64::from(step) / 3.0));
        let grid: Vec<f64> = small.clone().chain(small.skip(1).map(|rate| 1.0 - rate)).collect();
        match *self {
            Self::Rates { fpr, tpr } => Ok(vec![(fpr, tpr)]),
            Self::Gaussian { mu } => Ok(grid
                .iter()
                .map(|&fpr| (fpr, normal_cdf(inverse_normal_cdf(fpr) + mu)))
                .collect()),
            Self::Pair(pair) => {
                grid.iter().map(|&fpr| Ok((fpr, pair.tpr(fpr, OneWay::Remove)?.lower))).collect()
            }
        }
    }
}

/// What is to be shown, and how surely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    pub epsilon: f64,
    pub delta: f64,
    pub confidence: f64,
    /// Probability that the audit shows it.
    pub power: f64,
    pub direction: AttackDirection,
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
}

/// The largest epsilon that the attack's true rates show: beyond it no number of rows helps. For
/// a curve that is its epsilon at delta, sup over thresholds of ln((TPR - delta)/FPR).
///
/// # Errors
/// Those of the accounting.
pub fn largest_epsilon(attack: &Attack<'_>, target: &Target) -> Result<f64, AuditError> {
    match *attack {
        Attack::Gaussian { mu } => Ok(crate::gaussian_epsilon(mu, target.delta)),
        Attack::Pair(_) if target.delta <= 0.0 => Ok(f64::INFINITY),
        Attack::Pair(pair) => {
            Ok(accounting::directions::epsilon(pair, target.delta, Direction::Both)?.lower)
        }
        Attack::Rates { fpr, tpr } => {
            let statistic = Statistic::Epsilon { delta: target.delta, direction: target.direction };
            Ok(statistic.value(&exact(fpr, tpr)))
        }
    }
}

fn exact(fpr: f64, tpr: f64) -> RateBounds {
    RateBounds {
        false_positive_upper: fpr,
        true_negative_lower: 1.0 - fpr,
        false_negative_upper: 1.0 - tpr,
        true_positive_lower: tpr,
    }
}

/// More rows than this are not planned for.
const MOST: u64 = 1 << 34;

/// Trainings a side that show the target with the asked power.
///
/// # Errors
/// A target that the attack cannot show with any number, by name; rules without a closed power.
pub fn runs_needed(
    attack: &Attack<'_>,
    target: &Target,
    rule: &ThresholdRule,
) -> Result<Needed, AuditError> {
    let points = attack.points()?;
    refuse_unreachable(attack, target)?;
    search(target, |count| runs_power(&points, target, rule, count))
}

/// The power of `count` trainings a side, at the threshold best for expected counts.
fn runs_power(
    points: &[(f64, f64)],
    target: &Target,
    rule: &ThresholdRule,
    count: u64,
) -> Result<Needed, AuditError> {
    let level = 1.0 - target.confidence;
    let statistic = Statistic::Epsilon { delta: target.delta, direction: target.direction };
    let band = match rule {
        ThresholdRule::Union => Some(Simultaneous::martingale(count, count, level)),
        ThresholdRule::Dkw => Some(Simultaneous::dkw(count, count, level)),
        ThresholdRule::Fixed(_) => None,
        ThresholdRule::Holdout | ThresholdRule::KFold => {
            return Err(AuditError::InvalidInput(
                "plan knows union, dkw and fixed; holdout needs twice the runs of fixed".to_owned(),
            ));
        }
    };
    let bounds = |errors: &Errors| match &band {
        Some(band) => band.at(errors),
        None => rates::clopper_pearson(errors, level),
    };
    let errors_of = |false_positives: u64, false_negatives: u64| Errors {
        false_positives,
        nonmembers: count,
        false_negatives,
        members: count,
    };
    let n = count as f64;
    let mut best = (points[0], f64::NEG_INFINITY);
    for &(fpr, tpr) in points {
        let expected = errors_of((n * fpr).round() as u64, (n * (1.0 - tpr)).round() as u64);
        let value = statistic.value(&bounds(&expected));
        if value > best.1 {
            best = ((fpr, tpr), value);
        }
    }
    let (fpr, tpr) = best.0;
    // Blocks of false positives of equal probability, each with its largest count.
    const BLOCKS: u64 = 64;
    let (mut power, mut from_below) = (0.0, 0.0);
    for block in 1..BLOCKS {
        let last = binomial_quantile(count, fpr, block as f64 / BLOCKS as f64);
        let reached = binomial_log_tails(last, count, fpr).lower.exp();
        let mass = reached - from_below;
        from_below = reached;
        if mass <= 0.0 {
            continue;
        }
        let shows = |false_negatives: u64| {
            statistic.value(&bounds(&errors_of(last, false_negatives))) >= target.epsilon
        };
        if let Some(most) = largest_where(count, shows) {
            power += mass * binomial_log_tails(most, count, 1.0 - tpr).lower.exp();
        }
    }
    Ok(Needed { count, power, fpr, tpr })
}

/// Canaries of one run that show the target with the asked power, if canaries do not disturb
/// each other. Guesses are "in" at the best threshold; a Gaussian attack also guesses "out".
///
/// # Errors
/// A target that the attack cannot show with any number, by name.
pub fn canaries_needed(attack: &Attack<'_>, target: &Target) -> Result<Needed, AuditError> {
    let points = attack.points()?;
    let sides = if matches!(attack, Attack::Gaussian { .. }) { 2.0 } else { 1.0 };
    // A guess is right with probability tpr / (tpr + fpr); the bound never exceeds its log odds.
    let largest = points.iter().map(|(fpr, tpr)| (tpr / fpr).ln()).fold(0.0, f64::max);
    if target.epsilon >= largest {
        return Err(unreachable(target, largest));
    }
    search(target, |count| Ok(canaries_power(&points, target, sides, count)))
}

fn canaries_power(points: &[(f64, f64)], target: &Target, sides: f64, count: u64) -> Needed {
    let level = 1.0 - target.confidence;
    let mut best = Needed { count, power: 0.0, fpr: points[0].0, tpr: points[0].1 };
    for &(fpr, tpr) in points {
        let guesses = (sides * 0.5 * (fpr + tpr) * count as f64).floor().min(count as f64) as u64;
        if guesses == 0 || tpr <= fpr {
            continue;
        }
        // Smallest number of right guesses that rejects the target.
        let rejects = |right: u64| {
            one_run_p_value(count, guesses, right, target.epsilon, target.delta) <= level
        };
        if !rejects(guesses) {
            continue;
        }
        let (mut low, mut high) = (0, guesses);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if rejects(middle) { high = middle } else { low = middle }
        }
        let power = binomial_log_at_least(high, guesses, tpr / (tpr + fpr)).exp();
        if power > best.power {
            best = Needed { count, power, fpr, tpr };
        }
    }
    best
}

fn refuse_unreachable(attack: &Attack<'_>, target: &Target) -> Result<(), AuditError> {
    let largest = largest_epsilon(attack, target)?;
    if target.epsilon >= largest { Err(unreachable(target, largest)) } else { Ok(()) }
}

fn unreachable(target: &Target, largest: f64) -> AuditError {
    AuditError::InvalidInput(format!(
        "epsilon {} at delta {} cannot be shown by this attack with any number of scores: its true rates show at most {:.4}; lower the target or assume a stronger attack",
        target.epsilon, target.delta, largest
    ))
}

/// The smallest count with the power, to one part in 200.
fn search(
    target: &Target,
    power: impl Fn(u64) -> Result<Needed, AuditError>,
) -> Result<Needed, AuditError> {
    if !(target.power > 0.0 && target.power < 1.0) {
        return Err(AuditError::InvalidInput(format!("power {} is outside (0, 1)", target.power)));
    }
    let (mut few, mut count) = (0_u64, 8_u64);
    let mut enough = loop {
        let found = power(count)?;
        if found.power >= target.power {
            break found;
        }
        few = count;
        count *= 2;
        if count > MOST {
            return Err(AuditError::InvalidInput(format!(
                "more than {MOST} scores would be needed; the target is too close to what the attack can show at all"
            )));
        }
    };
    while enough.count - few > (enough.count / 200).max(1) {
        let found = power(few + (enough.count - few) / 2)?;
        if found.power >= target.power { enough = found } else { few = found.count }
    }
    Ok(enough)
}

/// The smallest k with P(B <= k) >= share.
fn binomial_quantile(n: u64, rate: f64, share: f64) -> u64 {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if binomial_log_tails(middle, n, rate).lower.exp() >= share {
            high = middle
        } else {
            low = middle + 1
        }
    }
    low
}

/// The largest value in 0..=n for which a predicate that holds up to some point holds.
fn largest_where(n: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if !holds(0) {
        return None;
    }
    let (mut low, mut high) = (0, n + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    Some(low)
}
