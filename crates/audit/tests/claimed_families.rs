//! A claim is tested against its own pair: several phases, and every way to draw batches that has one.

use crate::common;

use audit::{Design, Family, Method, Plan, Scores, Seen, analyse};
use common::Rng;
use vocabulary::{Adjacency, Claim, Interval, Run, Sampling, Source, Standing, Status};

const DELTA: f64 = 1e-5;

fn plan(run: &Run, method: Method) -> Plan {
    let mut plan = Plan::new(Design::Runs);
    plan.deltas = vec![DELTA];
    plan.methods = vec![method];
    plan.primary = method;
    plan.claim = Some(run.clone());
    plan
}

#[test]
fn phases_are_composed() {
    let one = Run::builder().phase(0.8, 0.1, 50).build().unwrap();
    let two = Run::builder().phase(0.8, 0.1, 20).phase(0.8, 0.1, 30).build().unwrap();
    let plain = Family::of_run(Seen::AllIterates, &one);
    assert_eq!(plain, Family::Composition { sample_rate: 0.1, steps: 50 });
    let phases = Family::of_run(Seen::AllIterates, &two);
    assert!(phases.describe().contains("2 phases"), "{}", phases.describe());
    for noise in [0.6, 0.8, 1.3] {
        let (one, two) =
            (plain.epsilon(noise, DELTA).unwrap(), phases.epsilon(noise, DELTA).unwrap());
        assert!((one - two).abs() < 1e-6 * one, "{noise}: {one} {two}");
    }
    // Twice the noise in the second phase stays twice the noise.
    let other = Run::builder().phase(0.8, 0.1, 20).phase(1.6, 0.1, 30).build().unwrap();
    let other = Family::of_run(Seen::AllIterates, &other);
    let expected = Run::builder().phase(0.5, 0.1, 20).phase(1.0, 0.1, 30).build().unwrap();
    let pair = accounting::pairs::Composed::for_run(&expected).unwrap();
    let expected =
        accounting::directions::epsilon(&pair, DELTA, vocabulary::Direction::Both).unwrap();
    let found = other.epsilon(0.5, DELTA).unwrap();
    assert!((found - expected.lower).abs() < 1e-6 * found, "{found} {expected:?}");
}

/// Scores of one full-batch phase with little noise and one with much: Gaussian, with the mu of both together.
#[test]
fn healthy_phases_stand_and_broken_ones_are_refuted() {
    let run = Run::builder()
        .phase(4.0, 1.0, 2)
        .phase(8.0, 1.0, 4)
        .sampling(Sampling::Full)
        .build()
        .unwrap();
    let claimed = Family::of_run(Seen::AllIterates, &run).epsilon(4.0, DELTA).unwrap();
    let interval = Interval::new(claimed, claimed, claimed * (1.0 + 1e-6));
    let claim =
        Claim::epsilon(Source::Stated, Adjacency::AddRemove, Standing::Proven, DELTA, interval);
    let mu = (2.0 / 16.0 + 4.0 / 64.0_f64).sqrt();
    let status = |mu: f64, seed: u64| {
        let mut rng = Rng::new(seed);
        let members = (0..800).map(|_| rng.normal() + mu).collect();
        let nonmembers = (0..800).map(|_| rng.normal()).collect();
        let scores = Scores::new(Design::Runs, members, nonmembers).unwrap();
        let plan = plan(&run, Method::Composition);
        analyse(&scores, &plan, Some(&claim)).unwrap().verdict.unwrap().status
    };
    for seed in 0..4 {
        assert_ne!(status(mu, seed), Status::Contradiction, "seed {seed}");
        // A quarter of the noise in both phases.
        assert_eq!(status(4.0 * mu, seed), Status::Contradiction, "seed {seed}");
    }
}

#[test]
fn what_has_no_pair_says_why() {
    let build = |sampling, adjacency| {
        Run::builder()
            .phase(1.0, 0.1, 20)
            .sampling(sampling)
            .adjacency(adjacency)
            .dataset_size(1000)
            .build()
            .unwrap()
    };
    let fixed = build(Sampling::FixedSize, Adjacency::Substitute);
    assert_eq!(plan(&fixed, Method::Composition).objection(Method::Composition), None);
    let shuffled = build(Sampling::Shuffle, Adjacency::AddRemove);
    let objection = plan(&shuffled, Method::Composition).objection(Method::Composition).unwrap();
    assert!(objection.contains("no pair"), "{objection}");
    // The last iterate is known for coins and full batches alone.
    let objection = plan(&fixed, Method::LastIterate).objection(Method::LastIterate).unwrap();
    assert!(objection.contains("no pair"), "{objection}");
}
