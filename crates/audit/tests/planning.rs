//! A plan keeps its promise: audits of the planned size show the target as often as planned and at most
//! a twentieth more often, and audits of a third of it far less often; for every rule, method and design. Every question has an answer or
//! a refusal soon after the limit of processor time.
#![allow(clippy::print_stdout)]

use crate::common;

use audit::one_run::{OneRunStatistic, one_run_bound};
use audit::planning::{Attack, Goal, Needed, Target, canaries_needed, runs_needed};
use audit::{AttackDirection, Design, Family, Scores, Seen, Statistic, ThresholdRule};
use common::{Mechanism, Rng, processor_seconds as seconds, tally};

/// What is promised is tested here, not how fast this machine is: plans get the time they need.
fn patiently<T>(plan: impl FnOnce() -> T) -> T {
    numerics::patience::within(100.0, plan).unwrap()
}

/// Audits that are played; `DOSIMETER_COVERAGE=full` plays four times as many.
fn trials(quick: bool) -> usize {
    let few = if quick { 1000 } else { 250 };
    if common::full() { 4 * few } else { few }
}

fn share(trials: usize, trial: impl Fn(u64) -> bool + Sync) -> f64 {
    let shown = tally(trials, |index| f64::from(u8::from(trial(index))));
    shown.iter().sum::<f64>() / trials as f64
}

fn kept(what: &str, planned: u64, power: f64, shows: impl Fn(u64, u64) -> bool + Sync) {
    kept_by(true, what, planned, power, shows);
}

/// The share of audits that show the target is between the promised power and .05 more, up to four standard errors of a thousand
/// audits (.05), or of 250 where an audit takes long.
fn kept_by(
    quick: bool,
    what: &str,
    planned: u64,
    power: f64,
    shows: impl Fn(u64, u64) -> bool + Sync,
) {
    let trials = trials(quick);
    let slack = 4.0 * (power * (1.0 - power) / trials as f64).sqrt();
    let full = share(trials, |trial| shows(planned, trial));
    let third = share(trials / 2, |trial| shows(planned / 3, trial));
    println!("{what}: {planned} rows, planned {power:.3}, seen {full:.3}, a third {third:.3}");
    assert!(full >= power - slack, "{what}: {full} of audits with {planned} rows");
    assert!(full <= power + 0.05 + slack, "{what}: {full} of audits, {power} promised");
    assert!(third < 0.8 * power, "{what}: a third of {planned} rows shows it in {third}");
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
        let needed = patiently(|| runs_needed(&attack, &goal, &target, &rule)).unwrap();
        // A fixed threshold is where the plan puts it.
        let rule = match rule {
            ThresholdRule::Fixed(_) => {
                ThresholdRule::Fixed(numerics::special::inverse_normal_sf(fpr_of(&needed)))
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

/// The false positive rate at the planned threshold; what is not planned is not a number, and no rule that asks takes it.
fn fpr_of(needed: &Needed) -> f64 {
    needed.threshold.map_or(f64::NAN, |(fpr, _)| fpr)
}

/// Where the plan puts a fixed threshold, for scores whose non-members have this quantile.
fn placed(rule: ThresholdRule, fpr: f64, quantile: impl Fn(f64) -> f64) -> ThresholdRule {
    match rule {
        ThresholdRule::Fixed(_) => ThresholdRule::Fixed(quantile(fpr)),
        other => other,
    }
}

#[test]
fn trainings_for_a_family() {
    let target = Target { epsilon: 4.0, delta: 1e-5, confidence: 0.95, power: 0.8 };
    let goal = Goal::gaussian(4.0, 1e-5).unwrap();
    let attack = Attack::Gaussian { mu: 1.5 };
    for rule in RULES {
        let needed = patiently(|| runs_needed(&attack, &goal, &target, &rule)).unwrap();
        let rule = placed(rule, fpr_of(&needed), numerics::special::inverse_normal_sf);
        kept(&format!("gdp {rule}"), needed.count, needed.power, |count, trial| {
            let mut rng = Rng::new(80_000 + trial);
            let scores = Mechanism::Gaussian { mu: 1.5 }.scores(count as usize, &mut rng);
            let mu = rule.lower_bound(&scores, &Statistic::GaussianMu, 0.05, trial).unwrap().value;
            audit::gaussian_epsilon(mu, 1e-5) >= 4.0
        });
    }
}

/// The scores of a training, with its best attack: the last iterate, or the likelihood ratio of all steps.
fn trained(seen: Seen, (rate, noise, steps): (f64, f64, u64), member: bool, rng: &mut Rng) -> f64 {
    match seen {
        Seen::LastIterate => {
            Mechanism::LastIterate { sample_rate: rate, noise_multiplier: noise, steps }
                .draw(member, rng)
        }
        Seen::AllIterates => (0..steps)
            .map(|_| {
                let used = member && rng.bernoulli(rate);
                let step = noise * rng.normal() + f64::from(u8::from(used));
                (1.0 - rate + rate * ((step - 0.5) / (noise * noise)).exp()).ln()
            })
            .sum(),
    }
}

/// The largest noise with this epsilon: an audit that rules it out shows the target, and epsilon need not be computed for each.
fn largest_noise(family: &Family, epsilon: f64, delta: f64) -> f64 {
    let (mut shows, mut not) = (0.5, 4.0);
    while not - shows > 1e-9 {
        let middle = 0.5 * (shows + not);
        if family.epsilon(middle, delta).unwrap() >= epsilon {
            shows = middle
        } else {
            not = middle
        }
    }
    shows
}

fn trainings_for_a_dp_sgd_family(seen: Seen, epsilon: f64) {
    let run = match seen {
        Seen::LastIterate => (0.2, 0.7, 10),
        Seen::AllIterates => (0.1, 0.8, 60),
    };
    let family = Family::of_groups(seen, run.0, run.2, 1);
    let pair = family.pair(run.1).unwrap();
    let target = Target { epsilon, delta: 1e-3, confidence: 0.95, power: 0.8 };
    let goal = Goal::family(family.clone(), epsilon, 1e-3).unwrap();
    let attack = Attack::Pair(pair.as_ref());
    let largest = largest_noise(&family, epsilon, 1e-3);
    let mut rng = Rng::new(89_000);
    let mut without: Vec<f64> = (0..200_000).map(|_| trained(seen, run, false, &mut rng)).collect();
    without.sort_by(f64::total_cmp);
    for rule in RULES {
        let needed = patiently(|| runs_needed(&attack, &goal, &target, &rule)).unwrap();
        let rule = placed(rule, fpr_of(&needed), |fpr| without[(2e5 * (1.0 - fpr)) as usize]);
        let what = format!("{} {rule}", family.describe());
        kept_by(false, &what, needed.count, needed.power, |count, trial| {
            let mut rng = Rng::new(90_000 + trial);
            let mut side =
                |member| (0..count).map(|_| trained(seen, run, member, &mut rng)).collect();
            let scores = Scores::new(Design::Runs, side(true), side(false)).unwrap();
            let points = audit::family_points(&rule, &scores, 0.05, trial).unwrap();
            family.least_violated_noise(&points).unwrap().is_some_and(|noise| noise <= largest)
        });
    }
}

#[test]
fn trainings_for_the_last_iterate() {
    trainings_for_a_dp_sgd_family(Seen::LastIterate, 3.0);
}

#[test]
fn trainings_for_all_iterates() {
    trainings_for_a_dp_sgd_family(Seen::AllIterates, 4.0);
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
        let goal = Goal::clopper_pearson(1.0, 1e-6);
        let needed =
            patiently(|| canaries_needed(&Attack::Gaussian { mu: 2.0 }, &goal, &target, &rule))
                .unwrap();
        let rule = match rule {
            ThresholdRule::Fixed(_) => {
                ThresholdRule::Fixed(numerics::special::inverse_normal_sf(fpr_of(&needed)))
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

/// The Gaussian family in one run: with the theorem for any canaries, and with canaries that share no randomness, which are planned as trainings.
#[test]
fn canaries_of_the_gaussian_family() {
    let (mu, epsilon, delta) = (4.0, 4.0, 1e-5);
    let target = Target { epsilon, delta, confidence: 0.95, power: 0.8 };
    let (attack, goal) = (Attack::Gaussian { mu }, Goal::gaussian(epsilon, delta).unwrap());
    let draw = |count: u64, trial: u64| {
        let mut rng = Rng::new(65_000 + trial);
        Mechanism::Gaussian { mu }.canaries(count as usize, &mut rng)
    };
    for rule in [ThresholdRule::Holdout, ThresholdRule::KFold] {
        let refused = canaries_needed(&attack, &goal, &target, &rule).unwrap_err().to_string();
        assert!(refused.contains("union or fixed"), "{refused}");
    }
    for rule in [ThresholdRule::Union, ThresholdRule::Fixed(0.0)] {
        let needed = patiently(|| canaries_needed(&attack, &goal, &target, &rule)).unwrap();
        let rule = placed(rule, fpr_of(&needed), numerics::special::inverse_normal_sf);
        kept(&format!("one-run-gdp {rule}"), needed.count, needed.power, |count, trial| {
            let (scores, statistic) = (draw(count, trial), OneRunStatistic::GaussianMu);
            let both = AttackDirection::Both;
            let bound = one_run_bound(&scores, &rule, &statistic, both, 0.05, trial).unwrap();
            audit::gaussian_epsilon(bound.value, delta) >= epsilon
        });
    }
    let target = Target { epsilon: 10.0, ..target };
    let goal = Goal::gaussian(10.0, delta).unwrap();
    let attack = Attack::Gaussian { mu: 3.0 };
    for rule in RULES {
        let needed = patiently(|| runs_needed(&attack, &goal, &target, &rule)).unwrap();
        let rule = placed(rule, fpr_of(&needed), numerics::special::inverse_normal_sf);
        let what = format!("one-run-independent {rule}");
        kept(&what, 2 * needed.count, needed.power, |count, trial| {
            let mut rng = Rng::new(66_000 + trial);
            let scores = Mechanism::Gaussian { mu: 3.0 }.canaries(count as usize, &mut rng);
            let bound = rule.lower_bound(&scores, &Statistic::GaussianMu, 0.05, trial).unwrap();
            audit::gaussian_epsilon(bound.value, delta) >= 10.0
        });
    }
}

/// Sizes at which `union` draws counts in place of scores, and at which the martingale has a share of the error.
#[test]
fn many_trainings() {
    let statistic = |delta| Statistic::Epsilon { delta, direction: AttackDirection::Both };
    for (mu, epsilon, delta) in [(1.0, 2.0, 0.0), (2.0, 1.9, 0.3)] {
        let target = Target { epsilon, delta, confidence: 0.95, power: 0.8 };
        let (attack, goal) = (Attack::Gaussian { mu }, Goal::clopper_pearson(epsilon, delta));
        let rule = ThresholdRule::Union;
        let needed = patiently(|| runs_needed(&attack, &goal, &target, &rule)).unwrap();
        kept_by(false, &format!("union, mu {mu}"), needed.count, needed.power, |count, trial| {
            let mut rng = Rng::new(75_000 + trial);
            let scores = Mechanism::Gaussian { mu }.scores(count as usize, &mut rng);
            rule.lower_bound(&scores, &statistic(delta), 0.05, trial).unwrap().value >= epsilon
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

/// A weak attack needs many trainings: all rules say how many, more for a larger target.
#[test]
fn weak_attacks_are_planned_by_every_rule() {
    for rule in RULES {
        let mut last = 0;
        for epsilon in [0.03, 0.08] {
            let target = Target { epsilon, delta: 0.0, confidence: 0.95, power: 0.8 };
            let goal = Goal::clopper_pearson(epsilon, 0.0);
            let attack = Attack::Gaussian { mu: 0.1 };
            let needed = patiently(|| runs_needed(&attack, &goal, &target, &rule)).unwrap();
            println!("{rule}, {epsilon}: {} per side, {:.3}", needed.count, needed.power);
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
    let attacks = [Attack::Gaussian { mu: 2.0 }, Attack::Rates { fpr: 1e-3, tpr: 0.9 }];
    for attack in &attacks {
        for (epsilon, delta) in
            [(0.01, 0.0), (8.0, 0.0), (claimed.upper, 1e-5), (3.5, 1e-5), (5.0, 1e-5), (1.0, 0.3)]
        {
            let target = target(epsilon, delta);
            for rule in RULES {
                let goal = Goal::clopper_pearson(epsilon, delta);
                let asked = |design: &str, ask: &dyn Fn() -> bool| {
                    let before = seconds();
                    let answered = ask();
                    let spent = seconds() - before;
                    println!("{design}, {epsilon} at {delta}, {rule}: {spent:.2} s, {answered}");
                    assert!(spent < RETURNS, "{design} {epsilon} {delta} {rule}: {spent} s");
                };
                let kept = |found: Result<audit::planning::Needed, audit::AuditError>| {
                    found.is_ok_and(|found| found.power >= 0.8 && found.count >= 10)
                };
                if rule != ThresholdRule::Dkw {
                    asked("one run", &|| kept(canaries_needed(attack, &goal, &target, &rule)));
                }
                asked("runs", &|| kept(runs_needed(attack, &goal, &target, &rule)));
            }
        }
    }
}

/// The DP-SGD families, whose curves cost most: the example of the documentation among them, which is then
/// played.
#[test]
fn families_are_planned() {
    let (rate, steps, delta) = (0.1, 50, 1e-5);
    for seen in ["composition", "last-iterate"] {
        let family = match seen {
            "composition" => Family::Composition { sample_rate: rate, steps },
            _ => Family::LastIterate { sample_rate: rate, steps },
        };
        let epsilon = family.epsilon(0.8, delta).unwrap();
        let target = Target { epsilon, delta, confidence: 0.95, power: 0.8 };
        for noise in [0.5, 0.4] {
            let pair = family.pair(noise).unwrap();
            let goal = Goal::family(family.clone(), epsilon, delta).unwrap();
            let attack = Attack::Pair(pair.as_ref());
            let needed =
                patiently(|| runs_needed(&attack, &goal, &target, &ThresholdRule::Union)).unwrap();
            println!("{seen}, noise {noise}: {} per side, power {:.3}", needed.count, needed.power);
            if seen == "last-iterate" {
                let mechanism =
                    Mechanism::LastIterate { sample_rate: rate, noise_multiplier: noise, steps };
                kept_by(
                    false,
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

/// The limit ends a plan. Beside other work the clock is read late, hence twice the limit.
const RETURNS: f64 = 2.0 * audit::planning::SECONDS;

/// A threshold that is named is one at which the target can be shown at all; a plan that did not look names none.
#[test]
fn a_named_threshold_is_one_that_shows_the_target() {
    let target = Target { epsilon: 1.0, delta: 0.0, confidence: 0.95, power: 0.8 };
    let (attack, goal) = (Attack::Gaussian { mu: 1.5 }, Goal::clopper_pearson(1.0, 0.0));
    for rule in RULES {
        let runs = patiently(|| runs_needed(&attack, &goal, &target, &rule)).ok();
        let canaries = patiently(|| canaries_needed(&attack, &goal, &target, &rule)).ok();
        let named = [runs, canaries].into_iter().flatten().filter_map(|needed| needed.threshold);
        for (fpr, tpr) in named {
            let shown = (tpr / fpr).ln().max(((1.0 - fpr) / (1.0 - tpr)).ln());
            assert!(shown > 1.0, "{rule}: FPR {fpr}, TPR {tpr}");
        }
    }
    // Few canaries are played as an audit, which names no threshold.
    let few = canaries_needed(&attack, &goal, &target, &ThresholdRule::Union).unwrap();
    assert_eq!((few.count <= 300, few.threshold), (true, None));
}
