//! Optional stopping: a claim that is true may be refuted at *some* moment in at most 5 % of audits, however
//! often one looks. `SEQUENTIAL_TRIALS=10000` looks as often as that, with more audits.
#![allow(clippy::print_stdout)]

use crate::common;

use audit::sequential::{HOPELESS, Question, Sequential, play};
use audit::vocabulary::{Adjacency, Claim, Side, Standing, Status};
use audit::{AttackDirection, gaussian_epsilon};
use common::{Mechanism, Rng, allowed, tally};

fn sizes() -> (u64, usize) {
    match std::env::var("SEQUENTIAL_TRIALS").ok().and_then(|text| text.parse().ok()) {
        Some(trials) => (trials, 400),
        None => (700, 120),
    }
}

/// The first trial after which the claim is refuted, looking after each.
fn refuted_at(mechanism: Mechanism, claim: f64, delta: f64, most: u64, seed: u64) -> Option<u64> {
    let mut rng = Rng::new(seed);
    let mut audit = Sequential::new(delta, AttackDirection::Both, 0.95).unwrap();
    (1..=most).find(|trial| {
        let member = trial % 2 == 0;
        audit.add(mechanism.draw(member, &mut rng), member).unwrap();
        audit.refutes(claim)
    })
}

#[test]
fn true_claims_survive_any_number_of_looks() {
    let (most, audits) = sizes();
    for (mechanism, claim, delta) in [
        (Mechanism::Null, 0.0, 0.0),
        (Mechanism::RandomisedResponse { epsilon: 1.0 }, 1.0, 0.0),
        (Mechanism::Laplace { epsilon: 1.0 }, 1.0, 0.0),
        (Mechanism::Gaussian { mu: 1.0 }, gaussian_epsilon(1.0, 0.05), 0.05),
    ] {
        let refuted = tally(audits, |trial| {
            f64::from(u8::from(refuted_at(mechanism, claim, delta, most, 500 + trial).is_some()))
        });
        let share = refuted.iter().sum::<f64>() / audits as f64;
        println!("{mechanism:?}: {share} of {audits} audits, {most} looks each");
        assert!(share <= allowed(audits), "{mechanism:?}: {share}");
    }
}

/// False claims are refuted, and much earlier when they are far off.
#[test]
fn false_claims_are_refuted_early() {
    let times = |claim: f64| {
        let mut times: Vec<u64> = (0..15)
            .map(|seed| {
                let mechanism = Mechanism::Gaussian { mu: 3.0 };
                refuted_at(mechanism, claim, 0.0, 3_000, 70 + seed).unwrap_or(u64::MAX)
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (far, near) = (times(0.5), times(2.0));
    println!("median trials: {far} against 0.5, {near} against 2");
    assert!(far <= 128 && near <= 700 && far <= near, "{far} {near}");
}

/// The bound is where the evidence reaches the bar, and no bound is above it at any later look.
#[test]
fn the_bound_is_the_root_of_the_evidence() {
    let mut rng = Rng::new(3);
    let mechanism = Mechanism::Gaussian { mu: 2.0 };
    let mut audit = Sequential::new(1e-5, AttackDirection::Both, 0.95).unwrap();
    for trial in 0..1_000 {
        audit.add(mechanism.draw(trial % 2 == 0, &mut rng), trial % 2 == 0).unwrap();
    }
    let bound = audit.epsilon();
    assert!(bound > 0.8, "{bound}");
    assert!(audit.refutes(bound) && !audit.refutes(bound + 1e-3));
    assert!(Sequential::new(1.0, AttackDirection::Both, 0.95).is_err());
    assert!(audit.add(f64::NAN, true).is_err());
}

fn asked(claim: Option<f64>) -> Question {
    Question {
        delta: 0.0,
        direction: AttackDirection::Both,
        confidence: 0.95,
        adjacency: Adjacency::AddRemove,
        claim: claim.map(|epsilon| Claim::stated(Adjacency::AddRemove, 0.0, epsilon)),
        budget: None,
    }
}

/// Where a claim is refuted, what is shown is at least the claim, however little it is refuted by.
#[test]
fn a_refuted_claim_is_below_the_bound() {
    let mut refuted = 0;
    for seed in 0..8 {
        let mut rng = Rng::new(900 + seed);
        let mut side = |member| -> Vec<f64> {
            (0..300).map(|_| Mechanism::Gaussian { mu: 2.5 }.draw(member, &mut rng)).collect()
        };
        let (members, nonmembers) = (side(true), side(false));
        let ask = |claim: Option<f64>| play(&members, &nonmembers, &asked(claim)).unwrap();
        // Claims just around what some look shows: refuted at a trial between two looks, or hardly.
        let shown = ask(None).epsilon();
        for claim in (-20..=5).map(|step| shown + 0.01 * f64::from(step)) {
            let found = ask(Some(claim));
            let Some(at) = found.refuted_at else { continue };
            refuted += 1;
            assert!(found.epsilon() >= claim, "{claim} refuted, {}", found.epsilon());
            let bound = &found.bound.claim;
            assert_eq!((bound.side, bound.standing), (Side::Lower, Standing::Measured));
            assert_eq!((bound.confidence, bound.interval.lower), (Some(0.95), found.epsilon()));
            assert_eq!(found.verdict.as_ref().unwrap().status, Status::Contradiction);
            let look = found.looks.iter().find(|look| look.trials == at).unwrap();
            assert!(look.epsilon_lower >= claim && look.evidence.unwrap() >= found.evidence_needed);
        }
    }
    assert!(refuted > 100, "{refuted}");
}

/// Every row is a trial, on sides of different lengths, too; before a set of thresholds counts anything the evidence is none.
#[test]
fn all_rows_are_trials() {
    let mut rng = Rng::new(77);
    for (m, n) in [(1_514, 1_486), (300, 3), (1, 40), (40, 0)] {
        let mut side = |member, count: usize| -> Vec<f64> {
            (0..count).map(|_| Mechanism::Gaussian { mu: 2.0 }.draw(member, &mut rng)).collect()
        };
        let (members, nonmembers) = (side(true, m), side(false, n));
        let found = play(&members, &nonmembers, &asked(Some(8.0))).unwrap();
        assert_eq!(found.trials, (m + n) as u64);
        assert_eq!(found.looks.last().unwrap().trials, found.trials);
        let first = &found.looks[0];
        if first.trials == 32 {
            assert_eq!((first.evidence, first.epsilon_lower), (Some(0.0), 0.0));
        }
    }
    let mut audit = Sequential::new(0.0, AttackDirection::Both, 0.95).unwrap();
    for trial in 0..33 {
        assert!(trial == 32 || audit.evidence(1.0) == 0.0, "{trial}: {}", audit.evidence(1.0));
        audit.add(rng.normal(), trial % 2 == 0).unwrap();
    }
    // From then on bits count, and an explanation of one bit is worse than knowing nothing.
    assert!(audit.evidence(1.0) < 0.0);
}

/// Sides of different lengths: true claims survive all the same.
#[test]
fn unbalanced_sides_are_valid() {
    for (mechanism, claim) in [(Mechanism::Null, 0.05), (Mechanism::Laplace { epsilon: 1.0 }, 1.0)]
    {
        let refuted = tally(400, |trial| {
            let mut rng = Rng::new(41_000 + trial);
            let mut side = |member, count: usize| -> Vec<f64> {
                (0..count).map(|_| mechanism.draw(member, &mut rng)).collect()
            };
            let (members, nonmembers) = (side(true, 200), side(false, 50));
            let found = play(&members, &nonmembers, &asked(Some(claim))).unwrap();
            f64::from(u8::from(found.refuted_at.is_some() || found.epsilon() > claim))
        });
        let share = refuted.iter().sum::<f64>() / 400.0;
        assert!(share <= allowed(400), "{mechanism:?}: {share}");
    }
}

/// Sorted tables have lost the order of the trials: null scores sorted on both sides refuted a claim of 0.2 after 47 rows.
/// They are refused, from the first row at which thresholds count; other orders are not.
#[test]
fn sorted_tables_are_refused() {
    let mut rng = Rng::new(31);
    for n in [16, 40, 300] {
        let mut side = || -> Vec<f64> { (0..n).map(|_| rng.normal()).collect() };
        let (members, nonmembers) = (side(), side());
        let sorted = |side: &[f64], rising: bool| {
            let mut side = side.to_vec();
            side.sort_by(f64::total_cmp);
            if !rising {
                side.reverse();
            }
            side
        };
        let ask = |a: &[f64], b: &[f64]| play(a, b, &asked(Some(0.2)));
        assert!(ask(&members, &nonmembers).unwrap().refuted_at.is_none());
        for (a, b) in [(true, true), (true, false), (false, false)] {
            let refused = ask(&sorted(&members, a), &sorted(&nonmembers, b)).unwrap_err();
            assert!(refused.to_string().contains("order of the trials"), "{refused}");
        }
        assert!(ask(&members, &sorted(&nonmembers, true)).is_err());
    }
}

/// Audits that are given up, played to the end of their budget all the same: they refute the claim in less than the stated share.
#[test]
fn what_is_given_up_is_hardly_ever_refuted() {
    let (mut given_up, mut refuted) = (0_u32, 0_u32);
    for (mechanism, claim, budget, audits) in [
        (Mechanism::Gaussian { mu: 1.0 }, 0.7, 3_000_u64, 75),
        (Mechanism::Gaussian { mu: 2.0 }, 2.2, 3_000, 75),
        (Mechanism::Laplace { epsilon: 1.0 }, 0.8, 3_000, 75),
        (Mechanism::Laplace { epsilon: 1.0 }, 0.8, 1_500, 300),
        (Mechanism::RandomisedResponse { epsilon: 1.0 }, 0.9, 3_000, 75),
        (Mechanism::RandomisedResponse { epsilon: 3.0 }, 2.2, 1_000, 300),
    ] {
        let ends = tally(audits, |seed| {
            let mut rng = Rng::new(4_400 + seed);
            let mut audit = Sequential::new(0.0, AttackDirection::Both, 0.95).unwrap();
            let mut hopeless = false;
            for trial in 1..=budget {
                let member = trial % 2 == 0;
                audit.add(mechanism.draw(member, &mut rng), member).unwrap();
                if trial % 50 != 0 {
                    continue;
                }
                if audit.refutes(claim) {
                    return if hopeless { 2.0 } else { 0.0 };
                }
                hopeless = hopeless || trial < budget && audit.hopeless(claim, budget - trial);
            }
            f64::from(u8::from(hopeless))
        });
        given_up += ends.iter().filter(|end| **end > 0.0).count() as u32;
        refuted += ends.iter().filter(|end| **end > 1.0).count() as u32;
    }
    println!("{refuted} of {given_up} audits that were given up refuted their claim");
    assert!(given_up > 350, "{given_up}");
    let error = (HOPELESS / f64::from(given_up)).sqrt();
    assert!(f64::from(refuted) / f64::from(given_up) < HOPELESS + 4.0 * error);
}
