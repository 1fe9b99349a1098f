//! Coverage where other tests do not look: clearly unbalanced trainings, mass that delta allows, and the families under
//! the rules that deal parts, at the default seed.
#![allow(clippy::print_stdout)]

use crate::common;

use audit::one_run::{OneRunStatistic, one_run_bound};
use audit::{AttackDirection, Design, Family, Scores, Statistic, ThresholdRule, family_points};
use common::{Mechanism, Rng, allowed, enough, summary};

const LEVEL: f64 = 0.05;
/// The seed of a plan that names none.
const SEED: u64 = 0;
const RULES: [ThresholdRule; 5] = [
    ThresholdRule::Union,
    ThresholdRule::Dkw,
    ThresholdRule::Holdout,
    ThresholdRule::KFold,
    ThresholdRule::Fixed(0.5),
];

fn check(what: &str, values: &[f64], truth: f64) {
    let (missed, mean) = summary(values, truth);
    println!("{what}: {missed:.4} of {} above {truth:.4}, mean {mean:.4}", values.len());
    assert!(missed <= allowed(values.len()), "{what}: {missed}");
}

#[test]
fn unbalanced_trainings() {
    for (members, nonmembers) in [(20, 500), (500, 20)] {
        for (mechanism, truth) in [
            (Mechanism::Null, 0.0),
            (Mechanism::Laplace { epsilon: 1.0 }, 1.0),
            (Mechanism::RandomisedResponse { epsilon: 1.0 }, 1.0),
        ] {
            for rule in RULES {
                let statistic = Statistic::Epsilon { delta: 0.0, direction: AttackDirection::Both };
                let values = enough(400, truth, |trial| {
                    let mut rng = Rng::new(610_000 + trial);
                    let mut side = |member, count: usize| -> Vec<f64> {
                        (0..count).map(|_| mechanism.draw(member, &mut rng)).collect()
                    };
                    let (with, without) = (side(true, members), side(false, nonmembers));
                    let scores = Scores::new(Design::Runs, with, without).unwrap();
                    rule.lower_bound(&scores, &statistic, LEVEL, SEED).unwrap().value
                });
                check(
                    &format!("{members} and {nonmembers}, {mechanism:?}, {rule}"),
                    &values,
                    truth,
                );
            }
        }
    }
}

/// Randomised response with epsilon 1; one member of fifty is told exactly, which is what delta 0.02 allows.
#[test]
fn delta_mass_of_trainings() {
    let (delta, response) = (0.02, Mechanism::RandomisedResponse { epsilon: 1.0 });
    let told: f64 = 1.0 / (1.0 + (-1.0_f64).exp());
    // The largest epsilon of both directions.
    let mirror = ((told - delta) / ((1.0 - delta) * (1.0 - told))).ln();
    let truth = (1.0 + (1.0 - delta).ln()).max(mirror);
    for n in [40, 300] {
        for rule in RULES {
            let statistic = Statistic::Epsilon { delta, direction: AttackDirection::Both };
            let values = enough(400, truth, |trial| {
                let mut rng = Rng::new(620_000 + trial);
                let nonmembers = (0..n).map(|_| response.draw(false, &mut rng)).collect();
                let members = (0..n)
                    .map(|_| if rng.bernoulli(delta) { 5.0 } else { response.draw(true, &mut rng) })
                    .collect();
                let scores = Scores::new(Design::Runs, members, nonmembers).unwrap();
                rule.lower_bound(&scores, &statistic, LEVEL, SEED).unwrap().value
            });
            check(&format!("delta mass, {n} per side, {rule}"), &values, truth);
        }
    }
}

/// More trainings than a few: all ranks are still read at 3,000 per side, and at 30,000 the martingale has a share of the error. A large delta
/// puts the same members above all ranks.
#[test]
fn many_trainings_by_union() {
    let both = AttackDirection::Both;
    for (n, trials, delta, epsilon) in [
        (3_000, 240, 0.0, 0.0),
        (3_000, 480, 0.0, 1.0),
        (2_500, 240, 0.3, 0.5),
        (30_000, 24, 0.0, 1.0),
    ] {
        let response = Mechanism::RandomisedResponse { epsilon };
        let told: f64 = 1.0 / (1.0 + (-epsilon).exp());
        let mirror = ((told - delta) / ((1.0 - delta) * (1.0 - told))).max(1e-9).ln();
        let truth = (epsilon + (1.0 - delta).ln()).max(mirror).max(0.0);
        let values = enough(trials, truth, |trial| {
            let mut rng = Rng::new(680_000 + trial);
            // Values in place of ties: uniform within each of the two answers, so that ranks count.
            let mut side = |member| -> Vec<f64> {
                (0..n)
                    .map(|_| match member && rng.bernoulli(delta) {
                        true => 5.0,
                        false => response.draw(member, &mut rng) + 0.5 * rng.uniform(),
                    })
                    .collect()
            };
            let scores = Scores::new(Design::Runs, side(true), side(false)).unwrap();
            let statistic = Statistic::Epsilon { delta, direction: both };
            ThresholdRule::Union.lower_bound(&scores, &statistic, LEVEL, SEED).unwrap().value
        });
        check(&format!("union, {n} per side, delta {delta}, epsilon {epsilon}"), &values, truth);
    }
}

/// `gdp`, a DP-SGD family and `one-run-gdp` where parts are dealt.
#[test]
fn families_at_the_default_seed() {
    for rule in [ThresholdRule::Holdout, ThresholdRule::KFold] {
        for mu in [0.0, 1.0] {
            let mechanism = Mechanism::Gaussian { mu };
            let values = enough(400, mu, |trial| {
                let scores = mechanism.scores(100, &mut Rng::new(630_000 + trial));
                rule.lower_bound(&scores, &Statistic::GaussianMu, LEVEL, SEED).unwrap().value
            });
            check(&format!("gdp mu {mu}, {rule}"), &values, mu);
            let values = enough(200, mu, |trial| {
                let scores = mechanism.canaries(200, &mut Rng::new(640_000 + trial));
                let (statistic, both) = (OneRunStatistic::GaussianMu, AttackDirection::Both);
                one_run_bound(&scores, &rule, &statistic, both, LEVEL, SEED).unwrap().value
            });
            check(&format!("one-run-gdp mu {mu}, {rule}"), &values, mu);
        }
        // Less noise leaks more: a bound is too large where the noise that is ruled out is not above the truth.
        let (sample_rate, steps, noise) = (0.2, 10, 0.7);
        let family = Family::LastIterate { sample_rate, steps };
        let mechanism = Mechanism::LastIterate { sample_rate, noise_multiplier: noise, steps };
        let values = enough(160, 1.0 / noise, |trial| {
            let scores = mechanism.scores(100, &mut Rng::new(650_000 + trial));
            let points = family_points(&rule, &scores, LEVEL, SEED).unwrap();
            family.least_violated_noise(&points).unwrap().map_or(0.0, f64::recip)
        });
        check(&format!("1/noise by last-iterate, {rule}"), &values, 1.0 / noise);
    }
}
