//! How fast the games are: steps of the linear game against the generator's own rate, and the
//! encoding loss at the size P3 plays it. `cargo run --release -p games --example throughput`
#![allow(clippy::print_stdout)]

use games::{Attack, DpSgd, Encoding, Game, Observe, RepeaterVariant, play_in_memory};
use random::{Purpose, Stream};
use std::time::Instant;
use vocabulary::Direction;

fn seconds(game: Game, sigma: f64, q: f64, steps: u64, trials: u64, threads: usize) -> f64 {
    let trainer = DpSgd::new(sigma, q, steps);
    let attack = Attack::new(game, trainer, Observe::Last, Direction::Remove, 1, trials)
        .expect("the settings are in range");
    let start = Instant::now();
    let scores = play_in_memory(&attack, threads);
    assert_eq!(scores.len() as u64, trials);
    start.elapsed().as_secs_f64()
}

fn main() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (steps, replicas) = (1000, 200_000);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut numbers = vec![0.0; steps];
                for replica in (thread..replicas).step_by(threads) {
                    let stream = Stream::new(1, Purpose::NOISE, replica as u64);
                    stream.fill_gaussians(0, 0, &mut numbers);
                    assert!(numbers[steps - 1].is_finite());
                }
            });
        }
    });
    let generator = (steps * replicas) as f64 / start.elapsed().as_secs_f64();
    println!(
        "generator      {:6.0} million Gaussians a second on {threads} threads",
        generator / 1e6
    );
    let took = seconds(Game::Linear, 1.0, 0.01, 1000, 100_000, threads);
    let rate = 2.0 * 1000.0 * 100_000.0 / took;
    println!(
        "linear         {:6.0} million steps a second, {:.2} of the generator ({took:.2} s for 1e5 + 1e5 trials of 1000)",
        rate / 1e6,
        rate / generator
    );
    for (sigma, q, steps) in [(1.0, 0.1, 100), (0.5, 0.01, 1024)] {
        let encoding = Encoding::choose(sigma, q, steps);
        let took = seconds(Game::OurLoss { encoding }, sigma, q, steps, 5_000, threads);
        println!("our-loss       {took:.2} s for 5000 + 5000 trials of {steps} steps");
    }
    let analog = Game::Repeaters { variant: RepeaterVariant::Analog };
    let took = seconds(analog, 0.5, 0.1, 100, 10_000, threads);
    println!("repeaters      {took:.2} s for 10000 + 10000 trials of 100 steps");
}
