//! Short ways to the numbers that several entries need.

use crate::PaperError;
use accounting::pairs::{BinomialGaussian, Composed};
use accounting::{AccountingError, OneWay, Pair, Solution, Target, Unknown, calibrate, directions};
use audit::{Family, Scores, ThresholdRule, family_points};
use games::DpSgd;
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
    let run = Run::builder().phase(1.0, sample_rate, steps).build()?;
    let target = Target::Epsilon { epsilon: target, delta };
    let found = calibrate(&run, Unknown::NoiseMultiplier, &target, LensName::Composition, &[])?;
    match found.solution {
        Solution::NoiseMultiplier(sigma) => Ok(six_digits(sigma)),
        other => Err(AccountingError::NotCertified(format!(
            "calibration answered {other:?} instead of a noise multiplier"
        ))
        .into()),
    }
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

/// Observed miss rates at given rates of false alarms: the threshold is the score without the
/// canary that has this share of its kind at or above it.
pub(crate) fn miss_rate(scores: &Scores, false_positive_rate: f64) -> f64 {
    let without = scores.nonmembers();
    let above = (false_positive_rate * without.len() as f64).round() as usize;
    let index = without.len().saturating_sub(above.max(1));
    let errors = scores.errors_at(without[index]);
    errors.false_negatives as f64 / errors.members as f64
}

/// The exact miss rate of an order; not a number (a gap in a figure, null in a table) where the
/// accounting cannot certify one.
pub(crate) fn exact_miss_rate(
    pair: &dyn Pair,
    false_positive_rate: f64,
) -> Result<f64, PaperError> {
    match pair.fnr(false_positive_rate, OneWay::Remove) {
        Ok(found) => Ok(found.value),
        Err(AccountingError::NotCertified(_) | AccountingError::OutsideDomain(_)) => Ok(f64::NAN),
        Err(error) => Err(error.into()),
    }
}

/// False alarm rates at which curves are drawn.
pub(crate) fn rates(from: f64) -> Vec<f64> {
    let points = 24;
    (0..=points)
        .map(|i| {
            let share = f64::from(i) / f64::from(points);
            // Even in the logarithm up to .1, then even.
            if share < 0.5 {
                from * (0.1 / from).powf(2.0 * share)
            } else {
                0.1 + (share - 0.5) * 1.78
            }
        })
        .collect()
}

pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, variance.sqrt())
}
