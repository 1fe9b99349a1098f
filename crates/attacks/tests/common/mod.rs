//! A small training to attack, and audits of its scores.
#![allow(dead_code)]

use accounting::{Questions, account};
use attacks::{Conditions, Target, TrainedGame};
use audit::{Audit, Design, Plan, Scores, analyse};
use training::data::{Dataset, Provenance, Shape, Split};
use training::model::ModelDescription;
use training::{Device, OptimizerDescription};
use vocabulary::{Adjacency, Claim, LensName, Quantity, Run};

/// Two classes that a line separates, three features.
pub(crate) fn points(records: usize, shift: f64) -> Dataset {
    let mut features = Vec::new();
    let mut labels = Vec::new();
    for i in 0..records {
        let x = i as f64 + shift;
        let (a, b) = ((0.7 * x).sin(), (1.3 * x).cos());
        features.extend([a as f32, b as f32, 0.5]);
        labels.push(u32::from(a + 0.3 * b > 0.1));
    }
    Dataset {
        features,
        labels,
        classes: 2,
        shape: Shape::Flat(3),
        columns: Vec::new(),
        provenance: Provenance::default(),
    }
}

/// (noise multiplier, sample rate, steps) of a run, and its adjacency.
pub(crate) fn run(noise: f64, rate: f64, steps: u64, adjacency: Adjacency) -> Run {
    Run::builder().phase(noise, rate, steps).adjacency(adjacency).build().unwrap()
}

pub(crate) fn target(model: ModelDescription, run: Run, seed: u64) -> Target {
    let split = Split { train: points(40, 0.0), test: Some(points(600, 0.37)) };
    Target::new(model, OptimizerDescription::sgd(0.5), run, split, None, seed).unwrap()
}

pub(crate) fn softmax(run: Run, seed: u64) -> Target {
    target(ModelDescription::Softmax {}, run, seed)
}

/// Positive and negative scores of all trials.
pub(crate) fn scores(target: &Target, conditions: &Conditions, trials: u64) -> Scores {
    let game = TrainedGame::new(target, conditions, Device::cpu(), trials).unwrap();
    let (members, nonmembers) =
        game.play(0..trials).unwrap().into_iter().map(|[with, without]| (with, without)).unzip();
    Scores::new(Design::Runs, members, nonmembers).unwrap()
}

/// The proven epsilon of a run.
pub(crate) fn proven(run: &Run, delta: f64) -> Claim {
    let questions = Questions { deltas: vec![delta], ..Questions::default() };
    let claims = account(run, &questions).unwrap().claims;
    claims
        .into_iter()
        .find(|claim| claim.source == LensName::Composition && claim.quantity == Quantity::Epsilon)
        .unwrap()
}

pub(crate) fn audited(scores: &Scores, run: &Run, design: Design, delta: f64) -> Audit {
    let mut plan = Plan::new(design);
    plan.deltas = vec![delta];
    analyse(scores, &plan, Some(&proven(run, delta))).unwrap()
}
