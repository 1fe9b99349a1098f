//! A counterexample of your own: the crafter's gradients and regulariser, a distinguisher, a run.
//! Here the regulariser turns the plane by a right angle at every step, so that four consecutive
//! steps of the canary cancel: the last iterate leaks as little as the last few steps.
//! `cargo run --release -p games --example own_counterexample`
#![allow(clippy::print_stdout)]

use games::{Coordinate, Crafter, DpSgd, play};

struct Carousel;

impl Crafter for Carousel {
    fn dimension(&self) -> usize {
        2
    }
    fn canary(&self, _step: u64, _model: &[f64], gradient: &mut [f64]) {
        gradient[0] = -1.0;
    }
    fn regularise(&self, _step: u64, _learning_rate: f64, model: &mut [f64]) {
        model.swap(0, 1);
        model[0] = -model[0];
    }
}

fn main() {
    let (trainer, trials) = (DpSgd::new(1.0, 1.0, 101), 20_000);
    let mut wins = 0;
    play(&Carousel, &trainer, &Coordinate(0), 1, 0..trials, |trial| {
        wins += u64::from(trial.with_canary > trial.without_canary);
    });
    let share = wins as f64 / trials as f64;
    // 101 steps with every record in every batch: 100 of them cancel, one is left, against the
    // noise of all; the linear game would win every trial.
    println!("the canary's side scores higher in {:.1} % of the trials", 100.0 * share);
    assert!((share - 0.528).abs() < 0.02);
}
