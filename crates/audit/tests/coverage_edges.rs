//! Coverage where other tests do not look: clearly unbalanced trainings, mass that delta allows, the worst law of ranks, ties at low
//! rates, the families under the rules that deal parts, and canaries that know how they are dealt, at the default seed.
#![allow(clippy::print_stdout)]

use crate::common;

use audit::one_run::{OneRunStatistic, one_run_bound};
use audit::{
    AttackDirection, Design, Family, Scores, Statistic, ThresholdRule, family_points, quality,
};
use common::{Mechanism, Rng, allowed, enough, summary, tally};

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

/// `gdp` and a DP-SGD family where parts are dealt.
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

/// Canaries whose mechanism knows how they are dealt. Each bit passes through randomised response; with probability `delta` m / `told`
/// as many bits are told exactly, which is (epsilon, delta)-private in every canary. Then scores are chosen such that, at the default
/// seed, the told canaries alone count and all others choose.
struct Dealt {
    purpose: u64,
    share: f64,
    told: usize,
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The word that [`mix`] makes this one of.
fn unmix(mixed: u64) -> u64 {
    let undo = |z: u64, shift: u32| {
        let mut word = z;
        for _ in 0..64 / shift {
            word = z ^ (word >> shift);
        }
        word
    };
    let inverse = |odd: u64| {
        // Newton's steps double the bits that are right.
        (0..6).fold(odd, |x, _| x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x))))
    };
    let mut z = undo(mixed, 31);
    z = undo(z.wrapping_mul(inverse(0x94d0_49bb_1331_11eb)), 27);
    z = undo(z.wrapping_mul(inverse(0xbf58_476d_1ce4_e5b9)), 30);
    z.wrapping_sub(STEP)
}

impl Dealt {
    fn scores(&self, m: usize, epsilon: f64, delta: f64, rng: &mut Rng) -> Scores {
        let failed = rng.bernoulli(delta * m as f64 / self.told as f64);
        let right = 1.0 / (1.0 + (-epsilon).exp());
        let bits: Vec<bool> = (0..m).map(|_| rng.bernoulli(0.5)).collect();
        // Canaries are alike, so the told ones may be the first.
        let guess = |place: usize, rng: &mut Rng| {
            let told = failed && place < self.told;
            let truthful = told || rng.bernoulli(right);
            f64::from(u8::from(bits[place] == truthful)) + 0.5 * rng.uniform()
        };
        let pooled = rng.next();
        let key = mix(mix(mix(self.purpose + 1) ^ SEED) ^ mix(pooled));
        let chooses = |score: f64| {
            let ticket = mix(mix(score.to_bits()) ^ key) >> 32;
            ticket < (self.share * 2f64.powi(32)) as u64
        };
        loop {
            let mut scores: Vec<f64> = (0..m).map(|place| guess(place, rng)).collect();
            if failed {
                for (place, score) in scores.iter_mut().enumerate() {
                    while chooses(*score) != (place >= self.told) {
                        *score = score.floor() + 0.5 * rng.uniform();
                    }
                }
                // The last one, which tells nothing, makes the sum what it has to be.
                let sum = scores[..m - 1]
                    .iter()
                    .fold(0_u64, |sum, score| sum.wrapping_add(mix(score.to_bits())));
                scores[m - 1] = f64::from_bits(unmix(pooled.wrapping_sub(sum)));
                if scores[m - 1].is_nan() {
                    continue;
                }
            }
            let side = |member: bool| -> Vec<f64> {
                let rows = scores.iter().zip(&bits).filter(|(_, bit)| **bit == member);
                rows.map(|(score, _)| *score).collect()
            };
            return Scores::new(Design::OneRun, side(true), side(false)).unwrap();
        }
    }
}

#[test]
fn canaries_that_know_how_they_are_dealt() {
    assert_eq!(unmix(mix(12345)), 12345);
    let (m, epsilon, delta) = (2_000, 1.0, 5e-3);
    let both = AttackDirection::Both;
    for (rule, dealt) in [
        // What a part of the canaries would choose for the others, whatever the part.
        (ThresholdRule::Union, Dealt { purpose: 0, share: 0.5, told: 30 }),
        (ThresholdRule::Union, Dealt { purpose: 0, share: 0.9375, told: 30 }),
        (ThresholdRule::Holdout, Dealt { purpose: 0, share: 0.5, told: 30 }),
        (ThresholdRule::KFold, Dealt { purpose: 1, share: 0.2, told: 60 }),
    ] {
        let bound = |delta: f64, scores: &Scores| {
            let statistic = OneRunStatistic::Epsilon { delta };
            one_run_bound(scores, &rule, &statistic, both, LEVEL, SEED).unwrap().value
        };
        let values = enough(400, epsilon, |trial| {
            bound(delta, &dealt.scores(m, epsilon, delta, &mut Rng::new(690_000 + trial)))
        });
        check(&format!("dealt to count, {} told, {rule}", dealt.told), &values, epsilon);
        // The bound at delta 0 holds for this mechanism without the bits that are told.
        let values = enough(400, epsilon, |trial| {
            bound(0.0, &dealt.scores(m, epsilon, 0.0, &mut Rng::new(695_000 + trial)))
        });
        check(&format!("nothing told, {rule}"), &values, epsilon);
    }
    let scores = Mechanism::Null.canaries(100, &mut Rng::new(1));
    for rule in [ThresholdRule::Holdout, ThresholdRule::KFold] {
        let refused =
            one_run_bound(&scores, &rule, &OneRunStatistic::GaussianMu, both, LEVEL, SEED);
        assert!(refused.unwrap_err().to_string().contains("--threshold union"));
    }
}

/// The worst law that (epsilon, delta)-privacy allows, for which the law of ranks is exact: the share above the truth is about the level, not
/// only below it. Scores are those of the proof in `ranks`, or cut into a few values.
#[test]
fn ranks_of_the_worst_law() {
    for (nonmembers, members, trials) in
        [(10, 10, 2_000), (40, 3, 2_000), (400, 400, 600), (1_000, 10, 600), (50, 2_000, 200)]
    {
        for (epsilon, delta) in [(0.0, 0.0), (2.0, 0.0), (0.5, 0.02), (0.5, 0.3)] {
            for values in [None, Some(7.0)] {
                let trials = if common::full() { 4 * trials } else { trials };
                let direction = AttackDirection::Forward;
                let bounds = tally(trials, |trial| {
                    let mut rng = Rng::new(700_000 + trial);
                    let cut = |place: f64| values.map_or(-place, |n: f64| -(n * place).floor());
                    let without = (0..nonmembers).map(|_| cut(rng.uniform())).collect();
                    let worst = |uniform: f64| ((uniform - delta) * f64::exp(-epsilon)).max(0.0);
                    let with = (0..members).map(|_| cut(worst(rng.uniform()))).collect();
                    let scores = Scores::new(Design::Runs, with, without).unwrap();
                    let statistic = Statistic::Epsilon { delta, direction };
                    ThresholdRule::Union
                        .lower_bound(&scores, &statistic, LEVEL, SEED)
                        .unwrap()
                        .value
                });
                let what = format!("{nonmembers} and {members}, epsilon {epsilon}, delta {delta}");
                check(&format!("worst law, {what}, values {values:?}"), &bounds, epsilon);
            }
        }
    }
}

/// TPR at low FPR where scores have few values: N(1, 1) and N(0, 1) rounded to halves.
#[test]
fn power_among_ties() {
    use numerics::special::normal_cdf;
    for (members, nonmembers) in [(50, 50), (50, 3_000), (3_000, 50)] {
        for fpr in [1e-3, 1e-2, 0.1] {
            // The lowest value at which few enough non-members are.
            let values = (-20..20).map(|half| 0.5 * f64::from(half));
            let mut low = values.filter(|value| normal_cdf(0.25 - value) <= fpr);
            let truth = normal_cdf(1.25 - low.next().unwrap());
            let missed = enough(400, 0.0, |trial| {
                let mut rng = Rng::new(710_000 + trial);
                let mut side = |count: usize, mean: f64| -> Vec<f64> {
                    (0..count).map(|_| 0.5 * (2.0 * (rng.normal() + mean)).round()).collect()
                };
                let (with, without) = (side(members, 1.0), side(nonmembers, 0.0));
                let scores = Scores::new(Design::Runs, with, without).unwrap();
                let found = quality::tpr_at(&scores, fpr, 1.0 - LEVEL);
                f64::from(u8::from(!(found.lower <= truth && truth <= found.upper)))
            });
            check(&format!("TPR at {fpr}, {members} and {nonmembers}"), &missed, 0.0);
        }
    }
}
