//! P3's Algorithm 2: how high the estimator runs, and whether the encoding loss is estimated like
//! the ideal test. The ideal test is played with other seeds than the encoding loss.

use crate::curves::noise_for;
use crate::{Anything, DELTA, mean_and_deviation, play, scores};
use audit::Family;
use audit::grid::grid_estimate;
use games::{Encoding, Game, Observe};

const TRIALS: u64 = 5_000;
/// Errors of either kind that a threshold must have.
const COUNTS: [u64; 3] = [1, 10, 100];

pub(crate) fn tables() -> Anything<()> {
    println!("| q, T | epsilon | encoding loss | ideal test | apart, in standard deviations |");
    println!("|---|---|---|---|---|");
    for (q, steps) in [(0.1, 100), (0.01, 1024)] {
        for target in [1.0, 2.0, 4.0, 10.0] {
            let sigma = noise_for(target, q, steps)?;
            let encoded = Game::OurLoss { encoding: Encoding::choose(sigma, q, steps) };
            let repeat = |game: Game, observe: Observe, first: u64| -> Anything<(f64, f64)> {
                let found = (first..first + 5)
                    .map(|seed| estimate(game, (sigma, q, steps), observe, seed, &[10]))
                    .collect::<Anything<Vec<Vec<f64>>>>()?
                    .concat();
                Ok(mean_and_deviation(&found))
            };
            let (mean, deviation) = repeat(encoded, Observe::Last, 0)?;
            let (ideal, ideal_deviation) = repeat(Game::Linear, Observe::All, 100)?;
            println!(
                "| {q}, {steps} | {target} | {mean:.2} ± {deviation:.2} | {ideal:.2} ± {ideal_deviation:.2} | {:.1} |",
                (mean - ideal).abs() / deviation.max(ideal_deviation)
            );
        }
    }
    println!(
        "\n| q, T | least errors of a threshold | estimate at epsilon 1, ideal test | overshoot |"
    );
    println!("|---|---|---|---|");
    for (q, steps) in [(0.1, 100), (0.01, 1024)] {
        let sigma = noise_for(1.0, q, steps)?;
        let mut found = vec![Vec::new(); COUNTS.len()];
        for seed in 0..40 {
            let estimates = estimate(Game::Linear, (sigma, q, steps), Observe::All, seed, &COUNTS)?;
            found.iter_mut().zip(estimates).for_each(|(all, one)| all.push(one));
        }
        for (count, values) in COUNTS.iter().zip(&found) {
            let (mean, deviation) = mean_and_deviation(values);
            println!(
                "| {q}, {steps} | {count} | {mean:.2} ± {deviation:.2} | {:.0} % ± {:.0} % |",
                100.0 * (mean - 1.0),
                100.0 * deviation / (values.len() as f64).sqrt()
            );
        }
    }
    Ok(())
}

fn estimate(
    game: Game,
    setting: crate::Setting,
    observe: Observe,
    seed: u64,
    counts: &[u64],
) -> Anything<Vec<f64>> {
    let (_, sample_rate, steps) = setting;
    let family = Family::Composition { sample_rate, steps };
    let scores = scores(&play(game, setting, observe, seed, TRIALS)?)?;
    counts.iter().map(|count| Ok(grid_estimate(&scores, &family, DELTA, *count)?.epsilon)).collect()
}
