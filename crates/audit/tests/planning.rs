//! A plan keeps its promise: audits of the planned size show the target as often as planned and at most
//! a twentieth more often, and audits of a third of it far less often. Every question has an answer or
//! a refusal in seconds, for one attack (mu 2).
#![allow(clippy::print_stdout)]

use crate::common;

use audit::one_run::{OneRunStatistic, one_run_bound};
use audit::planning::{Attack, Goal, Target, canaries_needed, runs_needed};
use audit::{AttackDirection, Family, Statistic, ThresholdRule};
use common::{Mechanism, Rng, processor_seconds as seconds, tally};

/// `DOSIMETER_COVERAGE=full` plays five times as many.
fn trials() -> usize {
    if common::full() { 1000 } else { 200 }
}

/// Four standard errors of a share near the planned power.
fn slack(power: f64) -> f64 {
    4.0 * (power * (1.0 - power) / trials() as f64).sqrt()
}

fn share(trial: impl Fn(u64) -> bool + Sync) -> f64 {
    let shown = tally(trials(), |index| f64::from(u8::from(trial(index))));
    shown.iter().sum::<f64>() / trials() as f64
}

fn kept(what: &str, planned: u64, power: f64, shows: impl Fn(u64, u64) -> bool + Sync) {
    let full = share(|trial| shows(planned, trial));
    let third = share(|trial| shows(planned / 3, trial));
    println!("{what}: {planned} rows, planned {power:.3}, seen {full:.3}, a third {third:.3}");
    assert!(full >= power - slack(power), "{what}: {full} of audits with {planned} rows");
    assert!(full <= power + 0.05 + slack(power), "{what}: {full} of audits, {power} promised");
    assert!(third < 0.7 * power, "{what}: a third of {planned} rows shows it in {third}");
}

#[test]
fn trainings() {
    let target = Target { epsilon: 1.0, delta: 0.0, confidence: 0.95, power: 0.8 };
    let (attack, goal) = (Attack::Gaussian { mu: 1.5 }, Goal::clopper_pearson(1.0, 0.0));
    let statistic = Statistic::Epsilon { delta: 0.0, direction: AttackDirection::Both };
    for rule in [
        ThresholdRule::Union,
        ThresholdRule::Dkw,
        ThresholdRule::Holdout,
        ThresholdRule::KFold,
        ThresholdRule::Fixed(0.0),
    ] {
        let needed = runs_needed(&attack, &goal, &target, &rule).unwrap();
        // A fixed threshold is where the plan puts it.
        let rule = match rule {
            ThresholdRule::Fixed(_) => {
                ThresholdRule::Fixed(numerics::special::inverse_normal_sf(needed.fpr))
            }
            other => other,
        };
        kept(&rule.to_string(), needed.count, needed.power, |count, trial| {
            let mut rng = Rng::new(70_000 + trial);
            let scores = Mechanism::Gaussian { mu: 1.5 }.scores(count as usize, &mut rng);
            rule.lower_bound(&scores, &statistic, 0.05, trial).unwrap().value >= 1.0
        });
    }
}

#[test]
fn trainings_for_a_family() {
    let target = Target { epsilon: 4.0, delta: 1e-5, confidence: 0.95, power: 0.8 };
    let goal = Goal::gaussian(4.0, 1e-5).unwrap();
    let rule = ThresholdRule::Union;
    let needed = runs_needed(&Attack::Gaussian { mu: 1.5 }, &goal, &target, &rule).unwrap();
    kept("gdp", needed.count, needed.power, |count, trial| {
        let mut rng = Rng::new(80_000 + trial);
        let scores = Mechanism::Gaussian { mu: 1.5 }.scores(count as usize, &mut rng);
        let mu = rule.lower_bound(&scores, &Statistic::GaussianMu, 0.05, trial).unwrap().value;
        audit::gaussian_epsilon(mu, 1e-5) >= 4.0
    });

    let family = Family::LastIterate { sample_rate: 0.2, steps: 10 };
    let pair = family.pair(0.7).unwrap();
    let target = Target { epsilon: 3.0, delta: 1e-3, ..target };
    let goal = Goal::family(family.clone(), 3.0, 1e-3).unwrap();
    let needed = runs_needed(&Attack::Pair(pair.as_ref()), &goal, &target, &rule).unwrap();
    let mechanism = Mechanism::LastIterate { sample_rate: 0.2, noise_multiplier: 0.7, steps: 10 };
    kept("last-iterate", needed.count, needed.power, |count, trial| {
        let mut rng = Rng::new(90_000 + trial);
        let scores = mechanism.scores(count as usize, &mut rng);
        let points = audit::family_points(&rule, &scores, 0.05, trial).unwrap();
        let noise = family.least_violated_noise(&points).unwrap();
        noise.is_some_and(|noise| family.epsilon(noise, 1e-3).unwrap() >= 3.0)
    });
}

#[test]
fn canaries() {
    let target = Target { epsilon: 1.0, delta: 1e-6, confidence: 0.95, power: 0.8 };
    for rule in [
        ThresholdRule::Union,
        ThresholdRule::Holdout,
        ThresholdRule::KFold,
        ThresholdRule::Fixed(0.0),
    ] {
        let needed = canaries_needed(&Attack::Gaussian { mu: 2.0 }, &target, &rule).unwrap();
        let rule = match rule {
            ThresholdRule::Fixed(_) => {
                ThresholdRule::Fixed(numerics::special::inverse_normal_sf(needed.fpr))
            }
            other => other,
        };
        kept(&format!("one-run {rule}"), needed.count, needed.power, |count, trial| {
            let mut rng = Rng::new(60_000 + trial);
            let scores = Mechanism::Gaussian { mu: 2.0 }.canaries(count as usize, &mut rng);
            let statistic = OneRunStatistic::Epsilon { delta: 1e-6 };
            one_run_bound(&scores, &rule, &statistic, audit::AttackDirection::Both, 0.05, trial)
                .unwrap()
                .value
                >= 1.0
        });
    }
}

const RULES: [ThresholdRule; 5] = [
    ThresholdRule::Union,
    ThresholdRule::Holdout,
    ThresholdRule::KFold,
    ThresholdRule::Dkw,
    ThresholdRule::Fixed(0.0),
];

/// A weak attack needs many trainings: all rules say how many, more for a larger target, in seconds; `k-fold`, whose power hardly rises
/// with the count here, may refuse instead, but not by saying that there is no such number.
#[test]
fn weak_attacks_are_planned_by_every_rule() {
    for rule in RULES {
        let mut last = 0;
        for epsilon in [0.03, 0.05, 0.08] {
            let target = Target { epsilon, delta: 0.0, confidence: 0.95, power: 0.8 };
            let goal = Goal::clopper_pearson(epsilon, 0.0);
            let before = seconds();
            let found = runs_needed(&Attack::Gaussian { mu: 0.1 }, &goal, &target, &rule);
            let spent = seconds() - before;
            assert!(spent < RETURNS, "{rule}, {epsilon}: {spent} s");
            let needed = match found {
                Ok(needed) => needed,
                Err(error) => {
                    println!("{rule}, {epsilon}: {error}, {spent:.2} s");
                    assert_eq!(rule, ThresholdRule::KFold, "{error}");
                    assert!(!error.to_string().contains("would be needed"), "{error}");
                    continue;
                }
            };
            println!(
                "{rule}, {epsilon}: {} per side, {:.3}, {spent:.2} s",
                needed.count, needed.power
            );
            assert!(spent < RETURNS, "{rule}, {epsilon}: {spent} s");
            assert!(needed.power >= 0.8 && needed.count > last, "{rule}, {epsilon}: {needed:?}");
            last = needed.count;
        }
    }
}

/// Questions that once did not return, and others at the edges.
#[test]
fn every_question_is_answered_or_refused() {
    let target = |epsilon, delta| Target { epsilon, delta, confidence: 0.95, power: 0.8 };
    let run = vocabulary::Run::builder().phase(1.0, 0.01, 1000).build().unwrap();
    let pair = accounting::pairs::Composed::for_run(&run).unwrap();
    let claimed =
        accounting::directions::epsilon(&pair, 1e-5, vocabulary::Direction::Both).unwrap();
    let attacks = [Attack::Gaussian { mu: 2.0 }];
    for attack in &attacks {
        for epsilon in [0.01, claimed.upper, 3.5, 5.0, 8.0] {
            for delta in [0.0, 1e-5, 0.3] {
                let target = target(epsilon, delta);
                for rule in RULES {
                    let goal = Goal::clopper_pearson(epsilon, delta);
                    let asked = |design: &str, ask: &dyn Fn() -> bool| {
                        let before = seconds();
                        let answered = ask();
                        let spent = seconds() - before;
                        println!(
                            "{design}, {epsilon} at {delta}, {rule}: {spent:.2} s, {answered}"
                        );
                        assert!(spent < RETURNS, "{design} {epsilon} {delta} {rule}: {spent} s");
                    };
                    let kept = |found: Result<audit::planning::Needed, audit::AuditError>| {
                        found.is_ok_and(|found| found.power >= 0.8 && found.count >= 10)
                    };
                    if rule != ThresholdRule::Dkw {
                        asked("one run", &|| kept(canaries_needed(attack, &target, &rule)));
                    }
                    asked("runs", &|| kept(runs_needed(attack, &goal, &target, &rule)));
                }
            }
        }
    }
}

/// The DP-SGD families, whose curves cost most: the example of the documentation among them, which is then
/// played.
#[test]
fn families_are_planned_in_seconds() {
    let (rate, steps, delta) = (0.1, 50, 1e-5);
    for seen in ["composition", "last-iterate"] {
        let family = match seen {
            "composition" => Family::Composition { sample_rate: rate, steps },
            _ => Family::LastIterate { sample_rate: rate, steps },
        };
        let epsilon = family.epsilon(0.8, delta).unwrap();
        let target = Target { epsilon, delta, confidence: 0.95, power: 0.8 };
        for noise in [0.5, 0.4] {
            let before = seconds();
            let pair = family.pair(noise).unwrap();
            let goal = Goal::family(family.clone(), epsilon, delta).unwrap();
            let attack = Attack::Pair(pair.as_ref());
            let needed = runs_needed(&attack, &goal, &target, &ThresholdRule::Union).unwrap();
            let spent = seconds() - before;
            println!(
                "{seen}, noise {noise}: {} per side, power {:.3}, {spent:.2} s",
                needed.count, needed.power
            );
            assert!(spent < RETURNS, "{seen}, noise {noise}: {spent} s");
            if seen == "last-iterate" {
                let mechanism =
                    Mechanism::LastIterate { sample_rate: rate, noise_multiplier: noise, steps };
                kept(
                    &format!("{seen}, noise {noise}"),
                    needed.count,
                    needed.power,
                    |count, trial| {
                        let mut rng = Rng::new(95_000 + trial);
                        let scores = mechanism.scores(count as usize, &mut rng);
                        let rule = ThresholdRule::Union;
                        let points = audit::family_points(&rule, &scores, 0.05, trial).unwrap();
                        let found = family.least_violated_noise(&points).unwrap();
                        found.is_some_and(|found| found <= 0.8)
                    },
                );
            }
        }
    }
}

/// A plan takes less than 2 s of a quiet core. This guards against questions that do not return: beside other work, and on
/// slower machines, the same plan takes longer.
const RETURNS: f64 = 10.0;
