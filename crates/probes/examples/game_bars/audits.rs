//! The linear game audited within its family, twenty seeds per setting.

use crate::{Anything, DELTA, Setting, play, scores};
use accounting::directions;
use audit::{Family, ThresholdRule, family_points};
use games::{Game, Observe};
use vocabulary::Direction;

const SEEDS: u64 = 20;
const SETTINGS: [(Setting, u64); 4] = [
    ((1.0, 0.01, 1000), 100_000),
    ((1.0, 0.1, 100), 100_000),
    ((0.62, 0.013, 900), 100_000),
    ((1.0, 0.01, 100), 1_000_000),
];

pub(crate) fn table(observe: Observe) -> Anything<()> {
    println!(
        "| sigma, q, T | games per side | true epsilon | least | mean | largest audited share | seeds above 1 |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (setting, trials) in SETTINGS {
        let (sigma, sample_rate, steps) = setting;
        let family = match observe {
            Observe::Last => Family::LastIterate { sample_rate, steps },
            Observe::All => Family::Composition { sample_rate, steps },
        };
        let pair = family.pair(sigma)?;
        let truth = directions::epsilon(pair.as_ref(), DELTA, Direction::Both)?.value;
        let mut shares = Vec::new();
        for seed in 0..SEEDS {
            let played = play(Game::Linear, setting, observe, seed, trials)?;
            let points = family_points(&ThresholdRule::Union, &scores(&played)?, 0.05, 0)?;
            let found = match family.least_violated_noise(&points)? {
                Some(noise) => family.epsilon(noise, DELTA)?,
                None => 0.0,
            };
            eprintln!("{setting:?} seed {seed}: {:.4}", found / truth);
            shares.push(found / truth);
        }
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = shares.iter().copied().fold(0.0, f64::max);
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let above = shares.iter().filter(|share| **share > 1.0).count();
        println!(
            "| {sigma}, {sample_rate}, {steps} | {trials} | {truth:.4} | {least:.3} | {mean:.3} | {largest:.3} | {above} of {SEEDS} |"
        );
    }
    Ok(())
}
