//! *Consistent* is said only where the rule, with these sizes, could have refuted the claim.

use crate::common;

use audit::{Design, Family, Method, Plan, Scores, Seen, ThresholdRule, analyse};
use common::{Mechanism, Rng, allowed, tally};
use vocabulary::Status;
use vocabulary::rounding::with_commas;

fn separated(design: Design, members: usize, nonmembers: usize) -> Scores {
    Scores::new(
        design,
        (0..members).map(|i| 1e7 + i as f64).collect(),
        (0..nonmembers).map(|i| i as f64).collect(),
    )
    .unwrap()
}

fn rules(design: Design) -> Vec<ThresholdRule> {
    let mut rules = vec![
        ThresholdRule::Union,
        ThresholdRule::Holdout,
        ThresholdRule::KFold,
        ThresholdRule::Fixed(5e6),
    ];
    if design == Design::Runs {
        rules.push(ThresholdRule::Dkw);
    }
    rules
}

/// What a rule could have shown is what it shows for separated scores: for the designs with parts up
/// to how the parts fall.
#[test]
fn could_show_is_what_separated_scores_show() {
    for (design, size) in [
        (Design::Runs, 20),
        (Design::Runs, 400),
        (Design::OneRun, 20),
        (Design::OneRun, 200),
        (Design::OneRun, 5_000),
    ] {
        for delta in [0.0, 1e-5] {
            for threshold in rules(design) {
                for method in [
                    Method::distribution_free(design),
                    match design {
                        Design::Runs => Method::Gdp,
                        Design::OneRun => Method::OneRunGdp,
                    },
                ] {
                    if method != Method::distribution_free(design) && delta == 0.0 {
                        continue;
                    }
                    let dealt = matches!(threshold, ThresholdRule::Holdout | ThresholdRule::KFold);
                    let mut plan = Plan::new(design);
                    plan.deltas = vec![delta];
                    plan.threshold = threshold;
                    plan.primary = method;
                    plan.claim_epsilon = Some(0.01);
                    // No scores may choose the guesses of the Gaussian family.
                    if dealt && method == Method::OneRunGdp {
                        assert!(plan.check().is_err());
                        continue;
                    }
                    let scores = separated(design, size, size);
                    let analysis = analyse(&scores, &plan, None).unwrap();
                    let shown = analysis.primary().unwrap().epsilon();
                    let could = analysis.verdict.unwrap().could_show.unwrap();
                    // A part chooses a threshold that need not separate the other part, and parts of
                    // canaries are dealt by their scores, so that their sizes vary.
                    // What could be shown is a limit; where nothing is dealt it is reached.
                    let (most, least) = match (dealt, size) {
                        (false, _) => (1.0001, 0.9999),
                        (true, 20) => (1.35, 0.0),
                        (true, _) => (1.08, 0.75),
                    };
                    assert!(
                        shown <= most * could + 1e-6 && shown >= least * could - 1e-6,
                        "{design} {size} {threshold} {method} at {delta}: {shown} {could}"
                    );
                }
            }
        }
    }
}

#[test]
fn perfect_canaries_show_nearly_what_any_rule_could() {
    for canaries in [20_u64, 100, 1_000, 10_000, 100_000] {
        for delta in [0.0, 1e-5] {
            // One strategy without an error on any part of the canaries, at the full level.
            let best = (0..40)
                .map(|step| (canaries as f64 * 0.8_f64.powi(step)) as u64)
                .filter(|counted| *counted >= 5)
                .map(|counted| {
                    audit::one_run::one_run_epsilon(counted, counted, counted, 0.05, delta)
                })
                .fold(0.0, f64::max);
            let mut rng = Rng::new(canaries);
            let scores = Mechanism::Gaussian { mu: 1e3 }.canaries(canaries as usize, &mut rng);
            let mut plan = Plan::new(Design::OneRun);
            plan.deltas = vec![delta];
            let shown = analyse(&scores, &plan, None).unwrap().primary().unwrap().epsilon();
            assert!(shown >= 0.95 * best, "{canaries} at delta {delta}: {shown} of {best}");
        }
    }
}

#[test]
fn inconclusive_says_how_many_scores_would_be_needed() {
    for (design, size, claim, delta) in [
        (Design::Runs, 50, 4.0, 1e-5),
        (Design::OneRun, 50, 5.0, 1e-5),
        (Design::OneRun, 30, 3.5, 0.0),
    ] {
        for threshold in rules(design) {
            let mut plan = Plan::new(design);
            plan.deltas = vec![delta];
            plan.threshold = threshold;
            plan.claim_epsilon = Some(claim);
            let verdict =
                analyse(&separated(design, size, size), &plan, None).unwrap().verdict.unwrap();
            assert_eq!(verdict.status, Status::Inconclusive, "{design} {threshold}");
            assert!(verdict.could_show.unwrap() <= claim);
            let Some(needed) = verdict.scores_needed else {
                panic!("{design} {threshold}: no number of scores");
            };
            assert!(verdict.reason.contains(&with_commas(needed)), "{}", verdict.reason);
            // With a quarter more, for the parts that choose, separated scores refute.
            let side = (needed as usize * 5).div_ceil(8);
            let verdict =
                analyse(&separated(design, side, side), &plan, None).unwrap().verdict.unwrap();
            assert_eq!(verdict.status, Status::Contradiction, "{design} {threshold} {needed}");
        }
    }
}

/// Canaries of one training are never taken for trainings of their own, nor these for canaries.
#[test]
fn a_plan_for_another_design_is_refused() {
    for (of, asked) in [(Design::Runs, Design::OneRun), (Design::OneRun, Design::Runs)] {
        let scores = separated(of, 50, 50);
        assert!(analyse(&scores, &Plan::new(of), None).is_ok());
        let refused = analyse(&scores, &Plan::new(asked), None).unwrap_err().to_string();
        assert!(refused.contains(of.as_str()) && refused.contains(asked.as_str()), "{refused}");
    }
}

/// 10^5 separated canaries were once "consistent" with a claim that the rule could not have refuted.
#[test]
fn a_claim_out_of_reach_is_not_consistent() {
    let mut plan = Plan::new(Design::OneRun);
    plan.deltas = vec![1e-5];
    let mut rng = Rng::new(9);
    let weak = Mechanism::Gaussian { mu: 2.0 }.canaries(1_000, &mut rng);
    plan.claim_epsilon = Some(8.0);
    let verdict = analyse(&weak, &plan, None).unwrap().verdict.unwrap();
    assert_eq!(verdict.status, Status::Inconclusive, "{}", verdict.reason);
    plan.claim_epsilon = Some(5.0);
    let verdict = analyse(&weak, &plan, None).unwrap().verdict.unwrap();
    assert_eq!(verdict.status, Status::Consistent, "{}", verdict.reason);
    plan.claim_epsilon = Some(f64::NAN);
    assert!(analyse(&weak, &plan, None).is_err());
}

/// A family for groups of two holds for trainings with and without two records, where the family for
/// one is wrong.
#[test]
fn groups_are_tested_against_their_own_pair() {
    let (q, noise, steps) = (0.1, 0.8, 50);
    let group = Family::of_groups(Seen::LastIterate, q, steps, 2);
    let one = Family::of_groups(Seen::LastIterate, q, steps, 1);
    assert_eq!(one, Family::LastIterate { sample_rate: q, steps });
    assert!(group.describe().contains("groups of 2"));
    // Two records in T steps are one record in 2 T steps, with the noise of T.
    let spread = noise * (steps as f64).sqrt();
    let scores = |trial: u64| {
        let mut rng = Rng::new(40 + trial);
        let mut side = |member: bool| -> Vec<f64> {
            (0..400)
                .map(|_| {
                    let uses = (0..2 * steps).filter(|_| member && rng.bernoulli(q)).count();
                    spread * rng.normal() + uses as f64
                })
                .collect()
        };
        let members = side(true);
        Scores::new(Design::Runs, members, side(false)).unwrap()
    };
    let trials = 60;
    let share = |family: Family| {
        let missed = tally(trials, |trial| {
            let points =
                audit::family_points(&ThresholdRule::Union, &scores(trial), 0.05, 0).unwrap();
            let found = family.least_violated_noise(&points).unwrap();
            f64::from(u8::from(found.is_some_and(|found| found < noise)))
        });
        missed.iter().sum::<f64>() / trials as f64
    };
    assert!(share(group) <= allowed(trials));
    assert!(share(one) > 0.5);
}

/// What is claimed is the upper end: a lower end of 0 (only an upper bound is proven), or one far below, makes no bound inconclusive that
/// could have been above the claim.
#[test]
fn a_claim_that_is_proven_from_above_alone_is_tested_by_its_upper_end() {
    use vocabulary::{Adjacency, Claim, Interval};
    let mut plan = Plan::new(Design::OneRun);
    plan.deltas = vec![1e-5];
    let scores = Mechanism::Gaussian { mu: 2.0 }.canaries(1_000, &mut Rng::new(9));
    let shown = analyse(&scores, &plan, None).unwrap().primary().unwrap().epsilon();
    assert!(shown > 1.9 && shown < 4.0, "{shown}");
    let verdict = |lower: f64, upper: f64| {
        let mut claim = Claim::stated(Adjacency::AddRemove, 1e-5, upper);
        claim.interval = Interval { lower, value: upper, upper };
        analyse(&scores, &plan, Some(&claim)).unwrap().verdict.unwrap()
    };
    for lower in [0.0, 1.827, 4.818] {
        let found = verdict(lower, 4.819);
        assert_eq!(found.status, Status::Consistent, "{lower}: {}", found.reason);
        assert!(found.reason.contains("below the claimed 4.819"), "{}", found.reason);
        assert!(found.could_show.unwrap() > 4.819);
        // Out of reach: inconclusive, whatever the lower end is.
        let far = verdict(lower, 8.0);
        assert_eq!(far.status, Status::Inconclusive, "{lower}: {}", far.reason);
        assert!(far.reason.contains("even a perfect attack"), "{}", far.reason);
    }
    let refuted = verdict(0.0, 0.9 * shown);
    assert_eq!(refuted.status, Status::Contradiction, "{}", refuted.reason);
}
