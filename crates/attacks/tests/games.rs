//! The scores are those of the law they should have, whatever the chunks.

mod common;

use attacks::{
    AttackError, CanaryKind, Conditions, Coordinate, InputCanary, ManyCanaries, Observe, Others,
    StartFrom, TrainedGame,
};
use audit::{Design, Scores};
use common::{audited, points, proven, run, scores, softmax, target};
use experiments::Experiment;
use training::data::Split;
use training::model::ModelDescription;
use training::{Device, OptimizerDescription};
use vocabulary::{Adjacency, Direction, Run};

fn dirac() -> CanaryKind {
    CanaryKind::Gradient { coordinate: Coordinate::Random, every: 1 }
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n)
}

/// Where the others are silent, a Dirac canary's last iterate is the linear game: Bin(T, q) +
/// N(0, T sigma^2) against N(0, T sigma^2). Means and variances within five of their own errors.
#[test]
fn the_last_iterate_is_the_linear_game() {
    let (noise, rate, steps, n) = (0.8, 0.3, 20, 3000);
    let attacked = run(noise, rate, steps, Adjacency::AddRemove);
    for every in [1, 5] {
        let kind = CanaryKind::Gradient { coordinate: Coordinate::Random, every };
        let conditions = Conditions { others: Others::Zero, ..Conditions::new(kind) };
        let found = scores(&softmax(attacked.clone(), 8), &conditions, n);
        let insertions = (steps / every) as f64;
        let spread = steps as f64 * noise * noise;
        let expected =
            [(insertions * rate, spread + insertions * rate * (1.0 - rate)), (0.0, spread)];
        for (side, (mean, variance)) in [found.members(), found.nonmembers()].iter().zip(expected) {
            let (m, v) = moments(side);
            assert!((m - mean).abs() < 5.0 * (variance / n as f64).sqrt(), "{every}: {m} {mean}");
            assert!((v / variance - 1.0).abs() < 5.0 * (2.5 / n as f64).sqrt(), "{v} {variance}");
        }
    }
}

/// The sum of log-likelihood ratios averages to what it must: E[exp(-score)] = 1 with the canary,
/// E[exp(score)] = 1 without, momentum and decay or not.
#[test]
fn all_iterates_give_a_likelihood_ratio() {
    let attacked = run(3.0, 0.3, 10, Adjacency::AddRemove);
    let optimizer = OptimizerDescription::Sgd {
        learning_rate: 0.5,
        momentum: 0.7,
        weight_decay: 0.2,
        regulariser: 0.1,
    };
    let split = Split { train: points(40, 0.0), test: None };
    let target =
        attacks::Target::new(ModelDescription::Softmax {}, optimizer, attacked, split, None, 9)
            .unwrap();
    let conditions =
        Conditions { others: Others::Zero, observe: Observe::All, ..Conditions::new(dirac()) };
    let found = scores(&target, &conditions, 4000);
    for (side, sign) in [(found.members(), -1.0), (found.nonmembers(), 1.0)] {
        let ratios: Vec<f64> = side.iter().map(|score| (sign * score).exp()).collect();
        let (mean, variance) = moments(&ratios);
        let error = (variance / ratios.len() as f64).sqrt();
        assert!((mean - 1.0).abs() < 5.0 * error, "{mean} with error {error}");
    }
}

#[test]
fn rows_do_not_depend_on_the_chunks() {
    let attacked = run(1.0, 0.3, 5, Adjacency::AddRemove);
    let mlp = ModelDescription::Mlp { hidden: vec![4], activation: Default::default() };
    for kind in [dirac(), CanaryKind::Input(InputCanary::Mislabelled)] {
        for start in [StartFrom::Shared, StartFrom::Own, StartFrom::Pretrained] {
            let conditions = Conditions { start, ..Conditions::new(kind) };
            let target = target(mlp.clone(), attacked.clone(), 10);
            let game = TrainedGame::new(&target, &conditions, Device::cpu(), 9).unwrap();
            let rows = |range| {
                let mut text = String::new();
                game.rows(range, &mut text).unwrap();
                text
            };
            assert_eq!(rows(0..9), rows(0..2) + &rows(2..3) + &rows(3..9));
            // Every training is its own: no two scores agree.
            let all = rows(0..9);
            let mut lines: Vec<&str> = all.lines().collect();
            lines.sort_unstable();
            lines.dedup();
            assert_eq!(lines.len(), 18, "{all}");
        }
    }
}

#[test]
fn add_is_remove_turned_round() {
    let attacked = run(1.0, 0.3, 5, Adjacency::AddRemove);
    let play = |direction| {
        let conditions = Conditions { direction, ..Conditions::new(dirac()) };
        let target = softmax(attacked.clone(), 11);
        let game = TrainedGame::new(&target, &conditions, Device::cpu(), 4).unwrap();
        game.play(0..4).unwrap()
    };
    for (remove, add) in play(Direction::Remove).iter().zip(play(Direction::Add)) {
        assert_eq!(add, [-remove[1], -remove[0]]);
    }
}

/// Of M candidates one is in. Two opposite gradients are twice as far apart as one and none; with
/// more candidates the asked one still stands out.
#[test]
fn one_of_several_candidates_is_told_from_another() {
    let (noise, rate, steps, n) = (1.0, 0.5, 12, 1500);
    let attacked = run(noise, rate, steps, Adjacency::Substitute);
    let conditions = Conditions { others: Others::Zero, ..Conditions::new(dirac()) };
    let two = scores(&softmax(attacked.clone(), 12), &conditions, n);
    // score = s - (-s) = 2 s, and s is Bin - or + noise.
    let (mean, variance) = moments(two.members());
    let expected = 2.0 * rate * steps as f64;
    assert!((mean - expected).abs() < 5.0 * (variance / n as f64).sqrt(), "{mean} {expected}");
    let (other, _) = moments(two.nonmembers());
    assert!((other + expected).abs() < 5.0 * (variance / n as f64).sqrt(), "{other}");
    for canary in [dirac(), CanaryKind::Input(InputCanary::Mislabelled)] {
        let conditions =
            Conditions { candidates: 4, others: Others::Zero, ..Conditions::new(canary) };
        let four = scores(&softmax(attacked.clone(), 13), &conditions, 400);
        let (with, _) = moments(four.members());
        let (without, variance) = moments(four.nonmembers());
        assert!(with - without > 5.0 * (variance / 400.0).sqrt(), "{canary:?}: {with} {without}");
    }
}

#[test]
fn every_input_canary_is_seen_when_there_is_little_noise() {
    let attacked = run(0.3, 0.8, 20, Adjacency::AddRemove);
    for kind in [InputCanary::Mislabelled, InputCanary::Blank, InputCanary::ClipBkd] {
        for (others, start, observe) in [
            (Others::Zero, StartFrom::Shared, Observe::Last),
            (Others::Natural, StartFrom::Pretrained, Observe::All),
            (Others::Blank, StartFrom::Shared, Observe::Last),
        ] {
            let kind = CanaryKind::Input(kind);
            let conditions = Conditions { others, start, observe, ..Conditions::new(kind) };
            let found = scores(&softmax(attacked.clone(), 14), &conditions, 200);
            let (with, spread) = moments(found.members());
            let (without, _) = moments(found.nonmembers());
            let error = (2.0 * spread / 200.0).sqrt();
            assert!(with - without > 3.0 * error, "{kind:?} {others:?}: {with} {without} {error}");
        }
    }
}

/// The quiet coordinate moves less than a random one: its scores vary less between trainings.
#[test]
fn a_quiet_coordinate_is_quieter() {
    let attacked = run(0.3, 0.5, 30, Adjacency::AddRemove);
    let mlp = ModelDescription::Mlp { hidden: vec![8], activation: Default::default() };
    let spread = |coordinate| {
        let kind = CanaryKind::Gradient { coordinate, every: 1 };
        let target = target(mlp.clone(), attacked.clone(), 15);
        moments(scores(&target, &Conditions::new(kind), 200).nonmembers())
    };
    let (quiet, random) = (spread(Coordinate::Quiet), spread(Coordinate::Random));
    assert!(quiet.0.abs() + quiet.1 < random.0.abs() + random.1, "{quiet:?} {random:?}");
}

#[test]
fn one_run_with_many_canaries() {
    let attacked: Run = run(0.8, 0.5, 20, Adjacency::AddRemove);
    let mlp = ModelDescription::Mlp { hidden: vec![100], activation: Default::default() };
    for kind in [dirac(), CanaryKind::Input(InputCanary::Mislabelled)] {
        let conditions = Conditions { others: Others::Zero, ..Conditions::new(kind) };
        let target = target(mlp.clone(), attacked.clone(), 16);
        let game = ManyCanaries::new(&target, &conditions, Device::cpu(), 500).unwrap();
        let (mut members, mut nonmembers) = (Vec::new(), Vec::new());
        for (score, member) in game.play().unwrap() {
            if member { members.push(score) } else { nonmembers.push(score) }
        }
        // Fair coins: 250 within five deviations.
        assert!((members.len() as f64 - 250.0).abs() < 5.0 * 11.2, "{}", members.len());
        let found = Scores::new(Design::OneRun, members, nonmembers).unwrap();
        let analysis = audited(&found, &attacked, Design::OneRun, 1e-5);
        let bound = analysis.primary().unwrap().epsilon();
        assert!(bound <= proven(&attacked, 1e-5).interval.upper, "{kind:?}: {bound}");
        if kind == dirac() {
            assert!(bound > 0.5, "{bound}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let attacked = run(1.0, 0.3, 5, Adjacency::AddRemove);
    let target = softmax(attacked, 17);
    let refuse = |conditions: &Conditions, trials| {
        TrainedGame::new(&target, conditions, Device::cpu(), trials).err().unwrap().to_string()
    };
    let kind = CanaryKind::Gradient { coordinate: Coordinate::Number(8), every: 1 };
    assert!(refuse(&Conditions::new(kind), 1).contains("coordinate 8 is not below 8"));
    assert!(refuse(&Conditions::new(dirac()), 0).contains("at least 1"));
    let many = ManyCanaries::new(&target, &Conditions::new(dirac()), Device::cpu(), 9);
    assert!(matches!(many.err().unwrap(), AttackError::TooManyCanaries { asked: 9, .. }));
}

/// Ended and begun again at any step, the training gives the same scores, with and without moments;
/// a file of another plan, or half a file, is not used.
#[test]
fn one_run_goes_on_from_its_state() {
    let attacked = run(1.0, 0.5, 60, Adjacency::AddRemove);
    let folder = tempfile::tempdir().unwrap();
    for optimizer in [OptimizerDescription::sgd(0.5), OptimizerDescription::adam(0.01)] {
        let state = folder.path().join("state");
        let split = Split { train: points(40, 0.0), test: Some(points(60, 0.37)) };
        let play = |seed: u64, path: Option<&std::path::Path>| {
            let model = ModelDescription::Mlp { hidden: vec![8], activation: Default::default() };
            let (run, split) = (attacked.clone(), split.clone());
            let target = attacks::Target::new(model, optimizer, run, split, None, seed).unwrap();
            let conditions = Conditions::new(CanaryKind::Input(InputCanary::Mislabelled));
            let mut game = ManyCanaries::new(&target, &conditions, Device::cpu(), 30).unwrap();
            if let Some(path) = path {
                game = game.checkpointed(path.to_owned(), std::time::Duration::ZERO);
            }
            game.play().unwrap()
        };
        let expected = play(1, None);
        assert_eq!(play(1, Some(&state)), expected);
        // The last state saved is after all steps; a training that finds it has nothing to do.
        let saved = std::fs::read(&state).unwrap();
        assert_eq!(play(1, Some(&state)), expected);
        assert_eq!(play(2, Some(&state)), play(2, None));
        std::fs::write(&state, &saved[..saved.len() - 4]).unwrap();
        assert_eq!(play(1, Some(&state)), expected);
    }
}
