//! A claim about a training, how many trainings refute each mistake in it, and whether given scores
//! do: one plan for mistakes drawn from their law and for mistakes trained.

use audit::planning::{Attack, Goal, Target, runs_needed};
use audit::{Design, Family, Method, Plan, Scores, ThresholdRule, analyse};
use vocabulary::{Adjacency, Claim, Interval, Source, Standing, Status};

pub(crate) const Q: f64 = 0.1;
pub(crate) const NOISE: f64 = 0.8;
pub(crate) const STEPS: u64 = 50;
const DELTA: f64 = 1e-5;

pub(crate) struct Planned {
    pub(crate) claim: Claim,
    /// Trainings per side. Half the noise stands for none and for no clipping, which are larger
    /// mistakes.
    pub(crate) half: u64,
    pub(crate) twice: u64,
    pub(crate) repeated: u64,
}

pub(crate) fn planned() -> Planned {
    let family = Family::LastIterate { sample_rate: Q, steps: STEPS };
    let epsilon = family.epsilon(NOISE, DELTA).unwrap();
    let interval = Interval::new(epsilon, epsilon, epsilon * (1.0 + 1e-9));
    let claim =
        Claim::epsilon(Source::Stated, Adjacency::AddRemove, Standing::Proven, DELTA, interval);
    let target =
        Target { epsilon: claim.interval.upper, delta: DELTA, confidence: 0.95, power: 0.99 };
    let goal = Goal::family(family.clone(), claim.interval.upper, DELTA).unwrap();
    let needed = |attack: &Attack<'_>| {
        runs_needed(attack, &goal, &target, &ThresholdRule::Union).unwrap().count
    };
    let of_pair = |family: &Family, noise: f64| {
        let pair = family.pair(noise).unwrap();
        needed(&Attack::Pair(pair.as_ref()))
    };
    let half = of_pair(&family, NOISE / 2.0);
    let twice = of_pair(&Family::LastIterate { sample_rate: Q, steps: 2 * STEPS }, NOISE);
    // One coin decides about all steps: a tenth of the members are far above everybody else.
    let repeated = needed(&Attack::Rates { fpr: 1e-4, tpr: Q });
    Planned { claim, half, twice, repeated }
}

/// Whether these scores contradict the claim.
pub(crate) fn refuted(scores: &Scores, claim: &Claim) -> bool {
    let mut plan = Plan::new(Design::Runs);
    plan.deltas = vec![DELTA];
    plan.training = Some((Q, STEPS));
    plan.methods = vec![Method::LastIterate];
    plan.primary = Method::LastIterate;
    let analysis = analyse(scores, &plan, Some(claim)).unwrap();
    analysis.verdict.unwrap().status == Status::Contradiction
}
