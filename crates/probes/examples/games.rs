//! How fast the games are, as JSON: the generator's own rate, steps of the linear game, and the
//! encoding loss at the size P3 plays it. Arguments: `generator | linear | our-loss | repeaters`,
//! then sigma, q, T, trials and threads.
//! `cargo run --release -p probes --example games -- linear 1 0.01 1000 100000 2`
#![allow(clippy::print_stdout)]

use games::{Attack, DpSgd, Encoding, Game, Observe, RepeaterVariant, play_in_memory};
use random::{Purpose, Stream};
use std::time::Instant;
use vocabulary::Direction;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let what = arguments.first().map_or("linear", String::as_str);
    let number = |place: usize, or: f64| -> f64 {
        arguments.get(place).map_or(or, |text| text.parse().expect("arguments are numbers"))
    };
    let (sigma, q) = (number(1, 1.0), number(2, 0.01));
    let (steps, trials) = (number(3, 1000.0) as u64, number(4, 1e5) as u64);
    let threads = number(5, 2.0) as usize;
    let start = Instant::now();
    let per_trial = match what {
        "generator" => {
            generate(steps, 2 * trials, threads);
            steps
        }
        _ => {
            let (game, coordinates) = match what {
                "our-loss" => (Game::OurLoss { encoding: Encoding::choose(sigma, q, steps) }, 1),
                "repeaters" => (Game::Repeaters { variant: RepeaterVariant::Analog }, steps),
                _ => (Game::Linear, 1),
            };
            let trainer = DpSgd::new(sigma, q, steps);
            let attack = Attack::new(game, trainer, Observe::Last, Direction::Remove, 1, trials)
                .expect("the settings are in range");
            assert_eq!(play_in_memory(&attack, threads).len() as u64, trials);
            steps * coordinates
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    let rate = 2.0 * trials as f64 * per_trial as f64 / seconds;
    println!("{{\"wall_s\": {seconds}, \"rate\": {rate}}}");
}

/// The Gaussians of as many trainings, and nothing else.
fn generate(steps: u64, replicas: u64, threads: usize) {
    std::thread::scope(|scope| {
        for thread in 0..threads as u64 {
            scope.spawn(move || {
                let mut numbers = vec![0.0; steps as usize];
                for replica in (thread..replicas).step_by(threads) {
                    let stream = Stream::new(1, Purpose::NOISE, replica);
                    stream.fill_gaussians(0, 0, &mut numbers);
                    assert!(numbers[0].is_finite());
                }
            });
        }
    });
}
