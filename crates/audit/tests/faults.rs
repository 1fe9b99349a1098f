//! Mistakes in a training are refuted by as many trainings as a plan says: half the noise, none, no clipping,
//! the same batch at every step, twice the steps; in each of 20 seeds. A healthy training is refuted in at
//! most one of 20. Trainings are linear losses seen at the end, drawn from their law;
//! `crates/cli/tests/attack_trained.rs` trains.
#![allow(clippy::print_stdout)]

use crate::common;

use audit::planning::{Attack, Goal, Target, runs_needed};
use audit::{Design, Family, Method, Plan, Scores, ThresholdRule, analyse};
use common::Rng;
use vocabulary::{Adjacency, Claim, Interval, Source, Standing, Status};

const Q: f64 = 0.1;
const NOISE: f64 = 0.8;
const STEPS: u64 = 50;
const DELTA: f64 = 1e-5;
const SEEDS: u64 = 20;

/// What was really done.
#[derive(Clone, Copy, Debug)]
enum Training {
    Healthy,
    HalfNoise,
    NoNoise,
    NoClipping,
    RepeatedBatch,
    TwiceTheSteps,
}

impl Training {
    fn score(self, member: bool, rng: &mut Rng) -> f64 {
        let mut uses = |steps: u64| (0..steps).filter(|_| rng.bernoulli(Q)).count() as f64;
        // Moves of the canary, steps, and noise per step.
        let (moved, steps, noise) = match self {
            Self::Healthy => (uses(STEPS), STEPS, NOISE),
            Self::HalfNoise => (uses(STEPS), STEPS, NOISE / 2.0),
            Self::NoNoise => (uses(STEPS), STEPS, 0.0),
            // Gradients of four times the clip norm.
            Self::NoClipping => (4.0 * uses(STEPS), STEPS, NOISE),
            Self::RepeatedBatch => (STEPS as f64 * uses(1), STEPS, NOISE),
            Self::TwiceTheSteps => (uses(2 * STEPS), 2 * STEPS, NOISE),
        };
        let moved = if member { moved } else { 0.0 };
        moved + noise * (steps as f64).sqrt() * rng.normal()
    }

    fn refuted(self, count: u64, claim: &Claim, seed: u64) -> bool {
        let mut rng = Rng::new(seed);
        let mut side = |member| (0..count).map(|_| self.score(member, &mut rng)).collect();
        let members = side(true);
        let scores = Scores::new(members, side(false)).unwrap();
        let mut plan = Plan::new(Design::Runs);
        plan.deltas = vec![DELTA];
        plan.training = Some((Q, STEPS));
        plan.methods = vec![Method::LastIterate];
        plan.primary = Method::LastIterate;
        let analysis = analyse(&scores, &plan, Some(claim)).unwrap();
        analysis.verdict.unwrap().status == Status::Contradiction
    }
}

#[test]
fn mistakes_are_refuted_within_the_plan_and_health_is_not() {
    let family = Family::LastIterate { sample_rate: Q, steps: STEPS };
    let epsilon = family.epsilon(NOISE, DELTA).unwrap();
    let interval = Interval::new(epsilon, epsilon, epsilon * (1.0 + 1e-9));
    let claim =
        Claim::epsilon(Source::Stated, Adjacency::AddRemove, Standing::Proven, DELTA, interval);
    let target =
        Target { epsilon: claim.interval.upper, delta: DELTA, confidence: 0.95, power: 0.99 };
    let goal = Goal::family(family.clone(), claim.interval.upper, DELTA).unwrap();
    let planned = |attack: &Attack<'_>| {
        runs_needed(attack, &goal, &target, &ThresholdRule::Union).unwrap().count
    };
    let of_pair = |family: &Family, noise: f64| {
        let pair = family.pair(noise).unwrap();
        planned(&Attack::Pair(pair.as_ref()))
    };
    // Half the noise stands for none and for no clipping, which are larger mistakes.
    let half = of_pair(&family, NOISE / 2.0);
    let twice = of_pair(&Family::LastIterate { sample_rate: Q, steps: 2 * STEPS }, NOISE);
    // One coin decides about all steps: a tenth of the members are far above everybody else.
    let repeated = planned(&Attack::Rates { fpr: 1e-4, tpr: Q });
    println!("claim {epsilon:.3}");
    for (training, count) in [
        (Training::HalfNoise, half),
        (Training::NoNoise, half),
        (Training::NoClipping, half),
        (Training::RepeatedBatch, repeated),
        (Training::TwiceTheSteps, twice),
    ] {
        let found = (0..SEEDS).filter(|&seed| training.refuted(count, &claim, seed)).count();
        println!("{training:?}: refuted in {found} of {SEEDS} with {count} per side");
        assert_eq!(found as u64, SEEDS, "{training:?}");
    }
    let alarms = (0..SEEDS).filter(|&seed| Training::Healthy.refuted(twice, &claim, seed)).count();
    println!("healthy: refuted in {alarms} of {SEEDS}");
    assert!(alarms <= 1, "{alarms}");
}
