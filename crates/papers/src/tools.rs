//! Short ways to the numbers that several entries need.

use crate::PaperError;
use accounting::pairs::{BinomialGaussian, Composed};
use accounting::{AccountingError, Order, Pair, Solution, Target, Unknown, calibrate, directions};
use audit::{Family, Scores, ThresholdRule, family_points};
use games::DpSgd;
use numerics::special::{inverse_normal_sf, normal_sf};
#[cfg(feature = "language")]
use std::path::Path;
use vocabulary::{Direction, LensName, Run};

pub(crate) fn run_of(trainer: &DpSgd) -> Result<Run, PaperError> {
    let DpSgd { noise_multiplier, sample_rate, steps, .. } = *trainer;
    Ok(Run::builder().phase(noise_multiplier, sample_rate, steps).build()?)
}

pub(crate) fn composition(trainer: &DpSgd) -> Result<Composed, PaperError> {
    Ok(Composed::for_run(&run_of(trainer)?)?)
}

pub(crate) fn last_iterate(trainer: &DpSgd) -> Result<BinomialGaussian, PaperError> {
    Ok(BinomialGaussian::for_run(&run_of(trainer)?)?)
}

/// The upper end of epsilon, larger of both orders.
pub(crate) fn epsilon(pair: &dyn Pair, delta: f64) -> Result<f64, PaperError> {
    Ok(directions::epsilon(pair, delta, Direction::Both)?.upper)
}

/// The noise at which the composition has this epsilon, rounded up to six digits: a game's plan must
/// not depend on the last digits of a root.
pub(crate) fn noise_for(
    target: f64,
    delta: f64,
    sample_rate: f64,
    steps: u64,
) -> Result<f64, PaperError> {
    calibrated(LensName::Composition, target, delta, sample_rate, steps).map(six_digits)
}

/// The noise at which the heuristic has this epsilon, rounded up to four places, for the same reason.
pub(crate) fn noise_for_heuristic(
    target: f64,
    delta: f64,
    sample_rate: f64,
    steps: u64,
) -> Result<f64, PaperError> {
    let sigma = calibrated(LensName::LastIterate, target, delta, sample_rate, steps)?;
    Ok((sigma * 1e4).ceil() / 1e4)
}

fn calibrated(
    lens: LensName,
    epsilon: f64,
    delta: f64,
    sample_rate: f64,
    steps: u64,
) -> Result<f64, PaperError> {
    let run = Run::builder().phase(1.0, sample_rate, steps).build()?;
    let target = Target::Epsilon { epsilon, delta };
    let found = calibrate(&run, Unknown::NoiseMultiplier, &target, lens, &[])?;
    match found.solution {
        Solution::NoiseMultiplier(sigma) => Ok(sigma),
        other => Err(AccountingError::invalid(format!(
            "calibration answered {other:?} instead of a noise multiplier"
        ))
        .into()),
    }
}

/// Writes a file unless its bytes are there.
#[cfg(feature = "language")]
pub(crate) fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), PaperError> {
    let path = folder.join(name);
    if std::fs::read(&path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    std::fs::create_dir_all(folder)
        .and_then(|()| formats::files::write(&path, bytes))
        .map_err(|source| PaperError::Write { path, source })
}

fn six_digits(x: f64) -> f64 {
    let exponent = x.log10().floor() as i32 - 5;
    let digits = (x / 10f64.powi(exponent) - 1e-4).ceil();
    format!("{digits}e{exponent}").parse().unwrap_or(x)
}

/// The audited epsilon in a family: a lower bound at this confidence, valid for all thresholds.
pub(crate) fn audited(
    scores: &Scores,
    family: &Family,
    delta: f64,
    confidence: f64,
) -> Result<f64, PaperError> {
    let points = family_points(&ThresholdRule::Union, scores, 1.0 - confidence, 0)?;
    match family.least_violated_noise(&points)? {
        Some(noise) => Ok(family.epsilon(noise, delta)?),
        None => Ok(0.0),
    }
}

/// The observed miss rate at a rate of false alarms. Between two thresholds a coin decides, which
/// matters only where many scores are equal: a straight line between the two observed points.
pub(crate) fn miss_rate(scores: &Scores, false_positive_rate: f64) -> f64 {
    let (with, without) = (scores.members(), scores.nonmembers());
    let wanted = false_positive_rate * without.len() as f64;
    let index = without.len().saturating_sub((wanted.ceil() as usize).max(1));
    let threshold = without[index];
    // Of each side: scores below the threshold, and at or below it.
    let below = |side: &[f64]| side.partition_point(|score| *score < threshold) as f64;
    let up_to = |side: &[f64]| side.partition_point(|score| *score <= threshold) as f64;
    let n = without.len() as f64;
    let (most, least) = (n - below(without), n - up_to(without));
    let share = if most > least { (wanted - least) / (most - least) } else { 1.0 };
    (share * below(with) + (1.0 - share) * up_to(with)) / with.len() as f64
}

/// The exact miss rate of an order; not a number (a gap in a figure, null in a table) where the
/// accounting cannot certify one.
pub(crate) fn exact_miss_rate(
    pair: &dyn Pair,
    false_positive_rate: f64,
) -> Result<f64, PaperError> {
    match pair.fnr(false_positive_rate, Order::Remove) {
        Ok(found) => Ok(found.value),
        Err(AccountingError::NotCertified(_) | AccountingError::OutsideDomain(_)) => Ok(f64::NAN),
        Err(error) => Err(error.into()),
    }
}

/// False alarm rates at which curves are drawn: evenly over a probit axis, up to .99.
pub(crate) fn rates(from: f64) -> Vec<f64> {
    let points = 24;
    let (first, last) = (inverse_normal_sf(from), inverse_normal_sf(0.99));
    (0..=points)
        .map(|i| normal_sf(first + (last - first) * f64::from(i) / f64::from(points)))
        .collect()
}

pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, variance.sqrt())
}

/// Those points of a played curve that an axis from `least` up can show.
pub(crate) fn drawable(points: Vec<(f64, f64)>, least: f64) -> Vec<(f64, f64)> {
    points.into_iter().filter(|point| point.1 > least && point.1 < 1.0 - least).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use audit::Design;

    /// Two thirds of either side share a score: between the thresholds the rate is on the chord.
    #[test]
    fn equal_scores_are_decided_by_a_coin() {
        let scores = Scores::new(Design::Runs, vec![1.0, 1.0, 2.0], vec![0.0, 1.0, 1.0]).unwrap();
        assert!((miss_rate(&scores, 1.0 / 3.0) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(miss_rate(&scores, 2.0 / 3.0), 0.0);
        assert!((miss_rate(&scores, 0.0) - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn distinct_scores_are_counted() {
        let numbers = |shift: f64| (0..100).map(|i| f64::from(i) + shift).collect::<Vec<_>>();
        let scores = Scores::new(Design::Runs, numbers(10.5), numbers(0.0)).unwrap();
        // Ten false alarms are scores 90..99; members below 90 are those up to 89.5.
        assert_eq!(miss_rate(&scores, 0.1), 0.8);
    }
}
