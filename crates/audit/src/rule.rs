//! Threshold rules: how a threshold is chosen without spoiling the confidence.
//!
//! | rule | chooses on | pays with |
//! |---|---|---|
//! | `fixed:V` | nothing | nothing |
//! | `holdout` | a random half | the other half measures alone |
//! | `k-fold` | each fifth in turn | a factor 2 on the average of five p-values |
//! | `dkw` | all scores | a band of constant width at all thresholds |
//! | `union` | all scores | for epsilon the exact law of ranks ([`crate::ranks`]), else one martingale for both samples at all thresholds ([`crate::joint`]) |
//!
//! Each rule gives a statement that holds with probability at least 1 - level: `fixed` and `holdout`
//! by an exact unconditional test ([`crate::exact`]), `k-fold` and `dkw` with half of the level on each
//! error rate. An uncorrected maximum over thresholds is not offered. Why halves and folds hold at
//! every seed is in [`crate::split`].
//!
//! **k-fold.** Fold j chooses a threshold, the other folds measure at it: given fold j, the counts
//! on the rest are binomial at a threshold that does not depend on them, so the smallest level
//! p_j(v) at which Clopper-Pearson shows more than v is a valid p-value for "the statistic is at
//! most v". The p_j are dependent; twice their average is a p-value all the same (Rueschendorf
//! 1982; Vovk and Wang 2020, Theorem 1). The bound is the largest v with 2 mean_j p_j(v) <= level.

use crate::joint::{Joint, JointScores, Shown};
use crate::search::{Best, best_threshold};
use crate::split::{Purpose, deal};
use crate::statistic::Contour;
use crate::violation::{self, ByNoise, Certain, Violated};
use crate::{
    AttackDirection, AuditError, Errors, RateBounds, Scores, Simultaneous, Statistic, exact, ranks,
    rates,
};
use numerics::beta::{binomial_log_at_least, binomial_log_tails};
use std::str::FromStr;

/// How the threshold is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ThresholdRule {
    /// All thresholds at once, by one martingale for both samples.
    #[default]
    Union,
    /// A random half chooses, the other half measures.
    Holdout,
    /// Each of five folds chooses for the other four; p-values averaged.
    KFold,
    /// All thresholds at once, by the Dvoretzky-Kiefer-Wolfowitz band.
    Dkw,
    /// Fixed before the scores were seen.
    Fixed(f64),
}

/// Folds of the `k-fold` rule.
pub const FOLDS: usize = 5;

impl FromStr for ThresholdRule {
    type Err = AuditError;

    fn from_str(text: &str) -> Result<Self, AuditError> {
        match text {
            "union" => Ok(Self::Union),
            "holdout" => Ok(Self::Holdout),
            "k-fold" => Ok(Self::KFold),
            "dkw" => Ok(Self::Dkw),
            _ => match text.strip_prefix("fixed:").map(str::parse::<f64>) {
                Some(Ok(value)) if !value.is_nan() => Ok(Self::Fixed(value)),
                _ => Err(AuditError::invalid(format!(
                    "threshold rule `{text}` is not one of union, holdout, k-fold, dkw, fixed:V"
                ))),
            },
        }
    }
}

impl std::fmt::Display for ThresholdRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Union => f.write_str("union"),
            Self::Holdout => f.write_str("holdout"),
            Self::KFold => f.write_str("k-fold"),
            Self::Dkw => f.write_str("dkw"),
            Self::Fixed(value) => write!(f, "fixed:{value}"),
        }
    }
}

/// A threshold and the counts that measure at it; rates are bounded by `bounds`.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The threshold, +infinity when nothing was shown anywhere.
    pub threshold: f64,
    /// The errors of the scores that measure.
    pub errors: Errors,
    /// Upper ends of both error rates; together they hold with the stated confidence.
    pub rates: RateBounds,
    /// Lower ends of both error rates at the same confidence (another statement).
    pub opposite: RateBounds,
}

/// What a rule says about a statistic.
#[derive(Clone, Debug)]
pub struct RuleBound {
    /// The statistic is at least this, with probability 1 - level.
    pub value: f64,
    /// One measurement, or one per fold for `k-fold`.
    pub measurements: Vec<Measurement>,
}

impl ThresholdRule {
    /// The lower bound of a statistic at total error `level`; `seed` deals the parts of
    /// `holdout` and `k-fold`.
    ///
    /// # Errors
    /// Too few scores to deal into parts.
    pub fn lower_bound(
        &self,
        scores: &Scores,
        statistic: &Statistic,
        level: f64,
        seed: u64,
    ) -> Result<RuleBound, AuditError> {
        if *self == Self::Union {
            return Ok(union(scores, statistic, level));
        }
        let measurements = self.measure(scores, statistic, level, seed)?;
        let value = match self {
            Self::KFold => k_fold_value(&measurements, statistic, level),
            Self::Fixed(_) | Self::Holdout => {
                exact::lower_bound(&measurements[0].errors, statistic, level)
            }
            _ => statistic.value(&measurements[0].rates),
        };
        Ok(RuleBound { value, measurements })
    }

    /// The bound when the scores that measure make these errors at the threshold that is chosen (in
    /// every fold), and no other threshold shows more.
    pub(crate) fn lower_bound_of_counts(
        &self,
        errors: &Errors,
        statistic: &Statistic,
        level: f64,
    ) -> f64 {
        match self {
            Self::Union => match *statistic {
                Statistic::Epsilon { delta, direction } => {
                    let share = ranks::share(errors.nonmembers, errors.members, delta);
                    let first = ranks::epsilon_of_counts(errors, delta, direction, share * level);
                    if share >= 1.0 {
                        return first;
                    }
                    let rest = JointScores::of_counts(errors, (1.0 - share) * level);
                    first.max(shown(&rest, statistic).value)
                }
                _ => shown(&JointScores::of_counts(errors, level), statistic).value,
            },
            Self::Dkw => {
                let band = Simultaneous::dkw(errors.nonmembers, errors.members, level);
                statistic.value(&band.at(errors))
            }
            Self::Fixed(_) | Self::Holdout => exact::lower_bound(errors, statistic, level),
            Self::KFold => k_fold_value(&[measurement(0.0, *errors, level)], statistic, level),
        }
    }

    /// Chooses and measures. For `k-fold` every fold's rates hold at `level` each on its own,
    /// not together.
    ///
    /// # Errors
    /// Too few scores to deal into parts.
    pub fn measure(
        &self,
        scores: &Scores,
        statistic: &Statistic,
        level: f64,
        seed: u64,
    ) -> Result<Vec<Measurement>, AuditError> {
        let (nonmembers, members) =
            (scores.nonmembers().len() as u64, scores.members().len() as u64);
        match *self {
            Self::Fixed(threshold) => Ok(vec![measure_at(scores, threshold, level)]),
            Self::Union => Ok(union(scores, statistic, level).measurements),
            Self::Dkw => {
                let band = Simultaneous::dkw(nonmembers, members, level);
                Ok(vec![best_in_band(scores, statistic, &band)])
            }
            Self::Holdout => {
                enough(scores, 2, "holdout")?;
                let parts = deal(scores, 2, 0.5, seed, Purpose::Halves);
                let threshold = choose(&parts[0], statistic).threshold;
                Ok(vec![measure_at(&parts[1], threshold, level)])
            }
            Self::KFold => {
                enough(scores, FOLDS, "k-fold")?;
                let folds = deal(scores, FOLDS, 1.0 / FOLDS as f64, seed, Purpose::Folds);
                Ok((0..FOLDS)
                    .map(|chooser| {
                        let threshold = choose(&folds[chooser], statistic).threshold;
                        let rest = folds.iter().enumerate().filter(|(fold, _)| *fold != chooser);
                        let errors = rest
                            .map(|(_, fold)| fold.errors_at(threshold))
                            .reduce(add)
                            .unwrap_or_else(|| folds[chooser].errors_at(threshold));
                        measurement(threshold, errors, level)
                    })
                    .collect())
            }
        }
    }
}

fn add(a: Errors, b: Errors) -> Errors {
    Errors {
        false_positives: a.false_positives + b.false_positives,
        nonmembers: a.nonmembers + b.nonmembers,
        false_negatives: a.false_negatives + b.false_negatives,
        members: a.members + b.members,
    }
}

fn enough(scores: &Scores, parts: usize, rule: &str) -> Result<(), AuditError> {
    let smaller = scores.members().len().min(scores.nonmembers().len());
    if smaller < parts {
        return Err(AuditError::Scores(format!(
            "the {rule} rule needs at least {parts} scores per side, there are {smaller}; use --threshold union"
        )));
    }
    Ok(())
}

/// The threshold that looks best; only for scores that will not measure.
fn choose(scores: &Scores, statistic: &Statistic) -> Best {
    best_threshold(scores, statistic, &|errors| RateBounds::wilson(errors, 1.96))
}

fn measure_at(scores: &Scores, threshold: f64, level: f64) -> Measurement {
    measurement(threshold, scores.errors_at(threshold), level)
}

fn measurement(threshold: f64, errors: Errors, level: f64) -> Measurement {
    Measurement {
        threshold,
        errors,
        rates: rates::clopper_pearson(&errors, level),
        opposite: rates::clopper_pearson_opposite(&errors, level),
    }
}

fn best_in_band(scores: &Scores, statistic: &Statistic, band: &Simultaneous) -> Measurement {
    let best = best_threshold(scores, statistic, &|errors| band.at(errors));
    Measurement {
        threshold: best.threshold,
        errors: best.errors,
        rates: band.at(&best.errors),
        opposite: band.opposite(&best.errors),
    }
}

fn shown(joint: &JointScores, statistic: &Statistic) -> Shown {
    match *statistic {
        Statistic::Epsilon { delta, direction } => joint.epsilon(delta, direction),
        Statistic::GaussianMu => joint.mu(),
        Statistic::Advantage => joint.advantage(),
    }
}

fn union(scores: &Scores, statistic: &Statistic, level: f64) -> RuleBound {
    let Statistic::Epsilon { delta, direction } = *statistic else {
        return by_martingale(scores, statistic, level);
    };
    let (members, nonmembers) = (scores.members().len() as u64, scores.nonmembers().len() as u64);
    let share = ranks::share(nonmembers, members, delta);
    if share >= 1.0 {
        return by_ranks(scores, delta, direction, level, level, 0.0);
    }
    // Both statements hold together. The martingale costs less, and the ranks have to show more.
    let rest = by_martingale(scores, statistic, (1.0 - share) * level);
    let first = by_ranks(scores, delta, direction, share * level, level, rest.value);
    if first.value > rest.value { first } else { rest }
}

fn by_martingale(scores: &Scores, statistic: &Statistic, level: f64) -> RuleBound {
    let joint = JointScores::new(scores, level);
    let shown = shown(&joint, statistic);
    let measurement = match shown.vertex {
        Some(vertex) => at_vertex(&joint, vertex, level),
        None => {
            let mut nowhere = scores.errors_at(f64::INFINITY);
            (nowhere.false_positives, nowhere.false_negatives) = (0, nowhere.members);
            Measurement {
                threshold: f64::INFINITY,
                errors: nowhere,
                rates: joint.joint().rates(&nowhere),
                opposite: opposite(&nowhere, level),
            }
        }
    };
    RuleBound { value: shown.value, measurements: vec![measurement] }
}

/// What the exact law of ranks shows beyond `known` with a part of the error; its rates are those of the martingale, a statement of their own.
fn by_ranks(
    scores: &Scores,
    delta: f64,
    direction: AttackDirection,
    part: f64,
    level: f64,
    known: f64,
) -> RuleBound {
    let (members, nonmembers) = (scores.members(), scores.nonmembers());
    let shown = ranks::epsilon(scores, delta, direction, part, known);
    let threshold = shown.map(|shown| {
        if shown.mirror {
            return members[shown.rank];
        }
        // The lowest member above the non-member.
        let edge = nonmembers[nonmembers.len() - 1 - shown.rank];
        members[members.partition_point(|score| *score <= edge).min(members.len() - 1)]
    });
    let mut errors = scores.errors_at(threshold.unwrap_or(f64::INFINITY));
    if threshold.is_none() {
        (errors.false_positives, errors.false_negatives) = (0, errors.members);
    }
    let measurement = Measurement {
        threshold: threshold.unwrap_or(f64::INFINITY),
        errors,
        rates: Joint::new(errors.nonmembers, errors.members, level).rates(&errors),
        opposite: opposite(&errors, level),
    };
    RuleBound { value: shown.map_or(0.0, |shown| shown.value), measurements: vec![measurement] }
}

/// The ends that the rates are at least, by the band of each sample.
fn opposite(errors: &Errors, level: f64) -> RateBounds {
    Simultaneous::martingale(errors.nonmembers, errors.members, level).opposite(errors)
}

fn at_vertex(joint: &JointScores, vertex: usize, level: f64) -> Measurement {
    let errors = *joint.errors(vertex);
    Measurement {
        threshold: joint.threshold(vertex),
        errors,
        rates: joint.joint().rates(&errors),
        opposite: opposite(&errors, level),
    }
}

/// The largest v with 2 mean_j p_j(v) <= level, from below.
fn k_fold_value(measurements: &[Measurement], statistic: &Statistic, level: f64) -> f64 {
    let average = |value: f64| {
        let contours = statistic.critical_true_positive_rates(value);
        let sum: f64 = measurements.iter().map(|m| p_value(&m.errors, &contours, 1e-9)).sum();
        2.0 * sum / measurements.len() as f64
    };
    if average(0.0) > level {
        return 0.0;
    }
    let (mut shown, mut beyond) = (0.0, 1.0);
    while average(beyond) <= level {
        shown = beyond;
        beyond *= 2.0;
        if beyond > 1e6 {
            return shown;
        }
    }
    while beyond - shown > 1e-10 * beyond {
        let middle = 0.5 * (shown + beyond);
        if average(middle) <= level {
            shown = middle;
        } else {
            beyond = middle;
        }
    }
    shown
}

/// The smallest total level at which Clopper-Pearson at these counts shows more than a value,
/// which is given by its contours: the true positive rates above which more is shown, as functions
/// of the false positive rate, one for each way to show it.
///
/// At level 2 a the ends are u with P(Bin(n0, u) <= FP) = a and l with P(Bin(n1, l) >= TP) = a.
/// The bound equals the value when l lies on the contour over u, so a is where the two
/// tails agree along the contour: one falls in u, the other rises.
///
/// The root is bracketed within `precision` of the logarithm, and the larger end is taken.
pub(crate) fn p_value(errors: &Errors, contours: &[Contour<'_>], precision: f64) -> f64 {
    contours
        .iter()
        .map(|contour| {
            let tails = |rate: f64| {
                let positives =
                    binomial_log_tails(errors.false_positives, errors.nonmembers, rate).lower;
                let critical = contour(rate).clamp(0.0, 1.0);
                let negatives =
                    binomial_log_at_least(errors.true_positives(), errors.members, critical);
                (positives, negatives)
            };
            let size = errors.nonmembers as f64;
            let observed = errors.false_positives as f64 / size;
            let mut low = observed;
            // The levels are at most 1/2 each only beyond the observed rate; at it the first
            // tail is above 1/2, and a level of 1 shows nothing.
            let at_low = tails(low);
            if at_low.1 >= at_low.0 {
                return 1.0;
            }
            // Some standard deviations beyond, or further.
            let mut width = 4.0 * ((observed * (1.0 - observed) / size).sqrt() + 1.0 / size);
            let mut high = (low + width).min(1.0);
            let mut at_high = tails(high);
            let mut at_low = at_low;
            while at_high.1 < at_high.0 && high < 1.0 {
                (low, at_low) = (high, at_high);
                width *= 2.0;
                high = (low + width).min(1.0);
                at_high = tails(high);
            }
            for _ in 0..80 {
                let middle = 0.5 * (low + high);
                let here = tails(middle);
                if here.1 < here.0 {
                    (low, at_low) = (middle, here);
                } else {
                    (high, at_high) = (middle, here);
                }
                // The common value lies between; the larger is the safe one.
                if at_low.0 - at_high.0 < precision || high - low < 1e-15 * high {
                    break;
                }
            }
            (2.0 * at_low.0.exp()).min(1.0)
        })
        .fold(1.0, f64::min)
}

/// Where the true rates lie, at thresholds that hold together: what a rule says to a family.
pub struct FamilyPoints(Points);

enum Points {
    /// Boxes: upper ends of both rates.
    Boxes { measured: Vec<Measurement>, rates: Vec<RateBounds> },
    /// The regions of the joint martingale, at all thresholds.
    Joint { joint: JointScores, level: f64 },
}

impl FamilyPoints {
    /// What a rule says when its scores make these errors at one threshold.
    pub(crate) fn of_counts(rule: &ThresholdRule, errors: &Errors, level: f64) -> Self {
        let rates = match rule {
            ThresholdRule::Union => {
                let joint = JointScores::of_counts(errors, level);
                return Self(Points::Joint { joint, level });
            }
            ThresholdRule::Dkw => {
                Simultaneous::dkw(errors.nonmembers, errors.members, level).at(errors)
            }
            ThresholdRule::KFold => rates::clopper_pearson(errors, level / FOLDS as f64),
            _ => rates::clopper_pearson(errors, level),
        };
        Self(Points::Boxes { measured: Vec::new(), rates: vec![rates] })
    }

    pub(crate) fn least_violated(
        &self,
        family: &dyn ByNoise,
    ) -> Result<Option<Violated>, AuditError> {
        match &self.0 {
            Points::Boxes { rates, .. } => violation::least_violated_noise(family, &rates[..]),
            Points::Joint { joint, .. } => violation::least_violated_noise(family, joint),
        }
    }

    /// Whether lines of a curve show that its noise is violated.
    pub(crate) fn violates(&self, curve: &Certain) -> bool {
        match &self.0 {
            Points::Boxes { rates, .. } => curve.violated_by(&rates[..]),
            Points::Joint { joint, .. } => curve.violated_by(joint),
        }
    }

    /// The measurement at one of the thresholds that show a violation.
    pub(crate) fn measurement(&self, place: usize) -> Measurement {
        match &self.0 {
            Points::Boxes { measured, .. } => measured[place].clone(),
            Points::Joint { joint, level } => at_vertex(joint, place, *level),
        }
    }

    /// The threshold that came closest when nothing is violated.
    pub(crate) fn closest(&self) -> usize {
        match &self.0 {
            Points::Boxes { .. } => 0,
            Points::Joint { joint, .. } => joint.closest(),
        }
    }
}

/// What a rule says to [`Family::least_violated_noise`], at total error `level`: `union` at every
/// threshold, `dkw` at dozens along the curve, the others where they measure (`k-fold` with a share of
/// the level for each fold).
///
/// # Errors
/// Too few scores to deal into parts.
pub fn family_points(
    rule: &ThresholdRule,
    scores: &Scores,
    level: f64,
    seed: u64,
) -> Result<FamilyPoints, AuditError> {
    let statistic = Statistic::GaussianMu;
    let measured = match rule {
        ThresholdRule::Union => {
            let joint = JointScores::new(scores, level);
            return Ok(FamilyPoints(Points::Joint { joint, level }));
        }
        ThresholdRule::Dkw => along_the_curve(scores, level),
        ThresholdRule::KFold => rule.measure(scores, &statistic, level / FOLDS as f64, seed)?,
        _ => rule.measure(scores, &statistic, level, seed)?,
    };
    let rates = measured.iter().map(|one| one.rates).collect();
    Ok(FamilyPoints(Points::Boxes { measured, rates }))
}

/// The best thresholds by mu and by epsilon, and dozens along the curve.
fn along_the_curve(scores: &Scores, level: f64) -> Vec<Measurement> {
    let (nonmembers, members) = (scores.nonmembers().len() as u64, scores.members().len() as u64);
    let band = Simultaneous::dkw(nonmembers, members, level);
    let pure = Statistic::Epsilon { delta: 0.0, direction: crate::AttackDirection::Both };
    let mut found = vec![
        best_in_band(scores, &Statistic::GaussianMu, &band),
        best_in_band(scores, &pure, &band),
    ];
    // The band holds at every threshold, so more of them only help: eight per factor of ten in the
    // odds of a non-member being called a member, from both ends.
    let spread = (nonmembers as f64).ln();
    let steps = (2.0 * spread * 8.0 / std::f64::consts::LN_10).ceil() as u32;
    for step in 0..=steps {
        let log_odds = spread * (2.0 * f64::from(step) / f64::from(steps.max(1)) - 1.0);
        let share = 1.0 / (1.0 + (-log_odds).exp());
        let place = ((1.0 - share) * nonmembers as f64) as usize;
        let threshold = scores.nonmembers()[place.min(scores.nonmembers().len() - 1)];
        let errors = scores.errors_at(threshold);
        found.push(Measurement {
            threshold,
            errors,
            rates: band.at(&errors),
            opposite: band.opposite(&errors),
        });
    }
    found
}
