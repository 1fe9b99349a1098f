//! The DP-SGD family on its worked example: sample rate 0.1, noise multiplier 0.8, 50 steps,
//! delta 1e-5, 20 000 trainings per side, 95 %; true epsilon 8.06. With counts equal to their
//! expectation at FPR .01/.05/.15/.3 (FNR .8533/.6721/.4614/.2892) the bounds are
//! 7.42/7.60/7.64/7.58, and over random draws their standard deviations .23/.17/.15/.16
//! (methods of Nasr et al. 2023; values by an independent computation).
#![allow(clippy::print_stdout)]

use crate::common;

use audit::{AttackDirection, Design, Errors, Family, Scores, Statistic, rates};
use common::{Rng, tally};

const FAMILY: Family = Family::Composition { sample_rate: 0.1, steps: 50 };
const POINTS: [(f64, f64, f64); 4] =
    [(0.01, 0.8533, 7.42), (0.05, 0.6721, 7.60), (0.15, 0.4614, 7.64), (0.3, 0.2892, 7.58)];
/// The same counts for any mechanism: ln((1 - delta - FNR) / FPR) at the upper ends.
const PLAIN: [f64; 4] = [2.51, 1.80, 1.23, 0.83];
const TRAININGS: usize = 20_000;

fn bound(errors: &Errors) -> f64 {
    let noise = FAMILY.violated_noise(&rates::clopper_pearson(errors, 0.05)).unwrap().unwrap();
    FAMILY.epsilon(noise, 1e-5).unwrap()
}

/// The log-likelihood ratio of 50 subsampled steps, the best score there is.
fn score(member: bool, rng: &mut Rng) -> f64 {
    let (q, sigma) = (0.1_f64, 0.8_f64);
    (0..50)
        .map(|_| {
            let shift = if member && rng.bernoulli(q) { 1.0 } else { 0.0 };
            let x = sigma * rng.normal() + shift;
            (1.0 - q + q * ((2.0 * x - 1.0) / (2.0 * sigma * sigma)).exp()).ln()
        })
        .sum()
}

fn sample(members: usize, nonmembers: usize, seed: u64) -> Scores {
    let mut rng = Rng::new(seed);
    let members = (0..members).map(|_| score(true, &mut rng)).collect();
    let nonmembers = (0..nonmembers).map(|_| score(false, &mut rng)).collect();
    Scores::new(Design::Runs, members, nonmembers).unwrap()
}

#[test]
fn expected_counts() {
    for ((fpr, fnr, epsilon), expected_plain) in POINTS.into_iter().zip(PLAIN) {
        let count = |rate: f64| (rate * TRAININGS as f64).round() as u64;
        let errors = Errors {
            false_positives: count(fpr),
            nonmembers: TRAININGS as u64,
            false_negatives: count(fnr),
            members: TRAININGS as u64,
        };
        let got = bound(&errors);
        assert!((got - epsilon).abs() < 0.02, "at FPR {fpr}: {got}, expected {epsilon}");
        // Any mechanism: far less is shown.
        let plain = Statistic::Epsilon { delta: 1e-5, direction: AttackDirection::Forward }
            .value(&rates::clopper_pearson(&errors, 0.05));
        assert!((plain - expected_plain).abs() < 0.01, "{plain}, expected {expected_plain}");
    }
}

#[test]
fn fifty_seeds() {
    // The threshold is fixed beforehand from scores that are not audited.
    let pilot = sample(1, 400_000, 999_999);
    let quantile = |rate: f64| {
        let sorted = pilot.nonmembers();
        sorted[((1.0 - rate) * sorted.len() as f64) as usize]
    };
    let thresholds = POINTS.map(|(fpr, _, _)| quantile(fpr));
    let counts = std::sync::Mutex::new(Vec::new());
    tally(50, |seed| {
        let scores = sample(TRAININGS, TRAININGS, seed);
        counts.lock().unwrap().push(thresholds.map(|threshold| scores.errors_at(threshold)));
        0.0
    });
    let counts = counts.into_inner().unwrap();
    for (place, (fpr, _, expected)) in POINTS.into_iter().enumerate() {
        let bounds = tally(50, |seed| bound(&counts[seed as usize][place]));
        let mean = bounds.iter().sum::<f64>() / 50.0;
        let variance = bounds.iter().map(|b| (b - mean) * (b - mean)).sum::<f64>() / 49.0;
        let standard_error = (variance / 50.0).sqrt();
        assert!(
            (mean - expected).abs() < 2.0 * standard_error,
            "{fpr}: {mean} +- {standard_error}"
        );
        let above = bounds.iter().filter(|bound| **bound > 8.06).count();
        let deviation = variance.sqrt();
        println!("FPR {fpr}: mean {mean:.2} sd {deviation:.2}, {above} above, expected {expected}");
        assert!(above <= 2, "{above} of 50 bounds exceed the truth at FPR {fpr}");
    }
}
