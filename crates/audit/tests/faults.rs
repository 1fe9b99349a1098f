//! Mistakes in a training are refuted by as many trainings as a plan says: half the noise, none, no clipping,
//! the same batch at every step, twice the steps; in each of 20 seeds. A healthy training is refuted in at
//! most one of 20. Trainings are linear losses seen at the end, drawn from their law;
//! `crates/cli/tests/attack_trained.rs` trains.
#![allow(clippy::print_stdout)]

use crate::common;

use audit::{Design, Scores};
use common::Rng;
use common::planned_faults::{NOISE, Planned, Q, STEPS, planned, refuted};
use vocabulary::Claim;

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
        refuted(&Scores::new(Design::Runs, members, side(false)).unwrap(), claim)
    }
}

#[test]
fn mistakes_are_refuted_within_the_plan_and_health_is_not() {
    let Planned { claim, half, twice, repeated } = planned();
    println!("claim {:.3}", claim.interval.upper);
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
