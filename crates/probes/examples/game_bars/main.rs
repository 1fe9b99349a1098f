//! Tests of the games, at full size and printed as Markdown: minutes of work, so
//! outside the tests. `docs/games.md` keeps the tables of one run.
//!
//! `cargo run --release -p probes --example game_bars -- audits|all-iterates|curves|estimator`
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod audits;
mod curves;
mod estimator;

use audit::{Design, Scores};
use games::{Attack, DpSgd, Game, Observe, Trial, play_in_memory};
use vocabulary::Direction;

type Anything<T> = Result<T, Box<dyn std::error::Error>>;

/// (sigma, q, T).
type Setting = (f64, f64, u64);

const DELTA: f64 = 1e-5;

fn main() -> Anything<()> {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    let known = ["audits", "all-iterates", "curves", "estimator"];
    if parts.is_empty() || parts.iter().any(|part| !known.contains(&part.as_str())) {
        return Err(format!("name at least one of {}", known.join(", ")).into());
    }
    for part in parts {
        match part.as_str() {
            "audits" => audits::table(Observe::Last)?,
            "all-iterates" => audits::table(Observe::All)?,
            "curves" => curves::tables()?,
            _ => estimator::tables()?,
        }
    }
    Ok(())
}

fn play(game: Game, setting: Setting, observe: Observe, seed: u64, n: u64) -> Anything<Vec<Trial>> {
    let (sigma, q, steps) = setting;
    let trainer = DpSgd::new(sigma, q, steps);
    let attack = Attack::new(game, trainer, observe, Direction::Remove, seed, n)?;
    Ok(play_in_memory(&attack, std::thread::available_parallelism().map_or(1, usize::from)))
}

fn scores(trials: &[Trial]) -> Anything<Scores> {
    let with = trials.iter().map(|trial| trial.with_canary).collect();
    let without = trials.iter().map(|trial| trial.without_canary).collect();
    Ok(Scores::new(Design::Runs, with, without)?)
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    (mean, variance.sqrt())
}
