//! Bounds hold at every seed, the default one too: constant scores of every size from 10 to 1,000, and few distinct scores of
//! many sizes. What is decided by lot must not be decided the same way for all data of a size.

use crate::common;

use audit::one_run::{OneRunStatistic, one_run_bound};
use audit::{AttackDirection, Design, Scores, Statistic, ThresholdRule, quality};
use common::{Mechanism, Rng, allowed};
use numerics::beta::{binomial_log_at_least, binomial_log_pmf};

const LEVEL: f64 = 0.05;
const SEEDS: [u64; 4] = [0, 1, 7, 20_260_101];
const PURE: Statistic = Statistic::Epsilon { delta: 0.0, direction: AttackDirection::Both };

fn canaries(scores: &Scores, rule: &ThresholdRule, delta: f64, seed: u64) -> f64 {
    let statistic = OneRunStatistic::Epsilon { delta };
    one_run_bound(scores, rule, &statistic, AttackDirection::Both, LEVEL, seed).unwrap().value
}

fn constant(members: u64, nonmembers: u64) -> Scores {
    Scores::new(Design::Runs, vec![0.0; members as usize], vec![0.0; nonmembers as usize]).unwrap()
}

#[test]
fn constant_scores_of_trainings_show_nothing() {
    for size in 10..=1000 {
        let scores = constant(size, size + size % 3);
        for seed in SEEDS {
            for rule in [
                ThresholdRule::Union,
                ThresholdRule::Dkw,
                ThresholdRule::Holdout,
                ThresholdRule::KFold,
                ThresholdRule::Fixed(0.0),
            ] {
                if rule == ThresholdRule::Union && seed > 0 {
                    continue;
                }
                for statistic in [PURE, Statistic::GaussianMu] {
                    let value = rule.lower_bound(&scores, &statistic, LEVEL, seed).unwrap().value;
                    assert_eq!(value, 0.0, "{size} {rule} seed {seed}");
                }
            }
        }
    }
}

/// Constant scores tell nothing, so whatever is shown is owed to the coins: with as many members as
/// fair coins give in more than 5 % of trials nothing may be shown.
#[test]
fn constant_scores_of_canaries_show_what_fair_coins_do() {
    for all in 10_u64..=1000 {
        let exceeded = |members: u64| binomial_log_at_least(members, all, 0.5).exp();
        let most = (all / 2..all).find(|members| exceeded(members + 1) <= LEVEL).unwrap();
        for members in [most, all / 2, all - most] {
            let scores = constant(members, all - members);
            for rule in [
                ThresholdRule::Union,
                ThresholdRule::Holdout,
                ThresholdRule::KFold,
                ThresholdRule::Fixed(0.0),
            ] {
                if all < 20 && rule == ThresholdRule::KFold {
                    continue;
                }
                for seed in SEEDS {
                    for delta in [0.0, 1e-5] {
                        // A plan is made for each number of canaries at delta > 0: some of them.
                        if delta > 0.0 && all % 23 != 0 {
                            continue;
                        }
                        let value = canaries(&scores, &rule, delta, seed);
                        assert_eq!(value, 0.0, "{members} of {all}, {rule}, seed {seed}");
                    }
                }
            }
        }
    }
    // The case that once showed 0.03 "for any mechanism".
    assert_eq!(canaries(&constant(476, 477), &ThresholdRule::Union, 0.0, 0), 0.0);
}

/// Two scores on each side of randomised response are counts, so the share of misses at a seed is a finite
/// sum: it is taken exactly, at each of thirty seeds.
#[test]
fn binary_scores_hold_at_each_seed() {
    const N: u64 = 10;
    let epsilon: f64 = 0.5;
    let truthful = 1.0 / (1.0 + (-epsilon).exp());
    let side = |ones: u64| (0..N).map(|row| f64::from(u8::from(row < ones))).collect::<Vec<f64>>();
    for rule in [ThresholdRule::Holdout, ThresholdRule::KFold, ThresholdRule::Union] {
        for seed in 0..if rule == ThresholdRule::Union { 1 } else { 30 } {
            let mut missed = 0.0;
            for members in 0..=N {
                for nonmembers in 0..=N {
                    let scores =
                        Scores::new(Design::Runs, side(members), side(nonmembers)).unwrap();
                    let value = rule.lower_bound(&scores, &PURE, LEVEL, seed).unwrap().value;
                    if value > epsilon {
                        missed += (binomial_log_pmf(members, N, truthful)
                            + binomial_log_pmf(nonmembers, N, 1.0 - truthful))
                        .exp();
                    }
                }
            }
            assert!(missed <= LEVEL, "{rule}, seed {seed}: {missed}");
        }
    }
}

/// One data set of few distinct scores for each of many sizes (every fourth or eighth from 10 to 1,000), at fixed seeds: in at most
/// 5 % of the sizes, plus four standard errors, the bound is above the truth.
#[test]
fn few_distinct_scores_at_many_sizes() {
    let epsilon = 1.0;
    let response = Mechanism::RandomisedResponse { epsilon };
    let (sizes, seeds) = (10..=1000_usize, [0, 1]);
    for rule in [
        ThresholdRule::Union,
        ThresholdRule::Dkw,
        ThresholdRule::Holdout,
        ThresholdRule::KFold,
        ThresholdRule::Fixed(0.5),
    ] {
        for seed in seeds {
            // These do not read the seed.
            let lots = matches!(rule, ThresholdRule::Holdout | ThresholdRule::KFold);
            if seed > 0 && !lots {
                continue;
            }
            let step =
                if matches!(rule, ThresholdRule::Dkw | ThresholdRule::KFold) { 4 } else { 8 };
            let chosen: Vec<usize> = sizes.clone().step_by(step).collect();
            let missed = chosen.iter().filter(|&&size| {
                let scores = response.scores(size, &mut Rng::new(41 * size as u64));
                let bound = rule.lower_bound(&scores, &PURE, LEVEL, seed).unwrap().value;
                bound > epsilon
            });
            let share = missed.count() as f64 / chosen.len() as f64;
            assert!(share <= allowed(chosen.len()), "{rule}, seed {seed}: {share}");
        }
    }
    for rule in [ThresholdRule::Union, ThresholdRule::Holdout, ThresholdRule::KFold] {
        for seed in seeds {
            if seed > 0 && rule == ThresholdRule::Union {
                continue;
            }
            let chosen: Vec<usize> = (20..=1000).step_by(2).collect();
            let missed = chosen.iter().filter(|&&size| {
                let scores = response.canaries(size, &mut Rng::new(43 * size as u64));
                canaries(&scores, &rule, 0.0, seed) > epsilon
            });
            let share = missed.count() as f64 / chosen.len() as f64;
            assert!(share <= allowed(chosen.len()), "one run, {rule}, seed {seed}: {share}");
        }
    }
}

/// Many data sets of one size at the default seed, several distinct scores, no leakage and some.
#[test]
fn coverage_at_the_default_seed() {
    let coarse = |mechanism: Mechanism, n: usize, rng: &mut Rng, one_run: bool| {
        let scores = if one_run { mechanism.canaries(n, rng) } else { mechanism.scores(n, rng) };
        let rounded = |side: &[f64]| side.iter().map(|score| score.round()).collect::<Vec<f64>>();
        Scores::new(Design::Runs, rounded(scores.members()), rounded(scores.nonmembers())).unwrap()
    };
    let trials = 400;
    for (mechanism, truth) in [
        (Mechanism::Null, 0.0),
        (Mechanism::Laplace { epsilon: 1.0 }, 1.0),
        (Mechanism::RandomisedResponse { epsilon: 1.0 }, 1.0),
    ] {
        for n in [12, 100] {
            for rule in [ThresholdRule::Holdout, ThresholdRule::KFold] {
                for seed in [0, 1] {
                    let missed = (0..trials).filter(|trial| {
                        let mut rng = Rng::new(9_000 + trial);
                        let scores = coarse(mechanism, n, &mut rng, false);
                        rule.lower_bound(&scores, &PURE, LEVEL, seed).unwrap().value > truth
                    });
                    let share = missed.count() as f64 / trials as f64;
                    assert!(share <= allowed(trials as usize), "{rule} {n} {mechanism:?}: {share}");
                    let missed = (0..trials).filter(|trial| {
                        let mut rng = Rng::new(19_000 + trial);
                        let scores = coarse(mechanism, 2 * n, &mut rng, true);
                        canaries(&scores, &rule, 0.0, seed) > truth
                    });
                    let share = missed.count() as f64 / trials as f64;
                    assert!(share <= allowed(trials as usize), "one run, {rule} {n}: {share}");
                }
            }
        }
    }
}

/// The bootstrap reads its scores too: another data set has other resamples.
#[test]
fn resamples_depend_on_the_scores() {
    let shifted = |by: f64| {
        let side = |start: f64| (0..50).map(|i| f64::from(i) * 0.37 + start + by).collect();
        Scores::new(Design::Runs, side(3.0), side(0.0)).unwrap()
    };
    let interval = |by: f64| quality::bootstrap(&shifted(by), &[0.1], 0.95, 200, 0).auroc;
    assert_eq!(interval(0.0), interval(0.0));
    assert_ne!(interval(0.0), interval(1.0));
}
