//! Miss rates of the encoding loss and of the analog repeaters against the composition curve, in
//! standard errors: var = f(1-f)/n + f'^2 a(1-a)/n, because the threshold is estimated too.

use crate::{Anything, DELTA, Setting, play};
use accounting::pairs::{BinomialGaussian, Composed};
use accounting::{Order, Pair, Solution, Target, Unknown, calibrate};
use games::{Encoding, Game, Observe, RepeaterVariant, Trial};
use vocabulary::{LensName, Run};

const RATES: [f64; 4] = [0.01, 0.05, 0.1, 0.3];
const SEEDS: u64 = 5;

pub(crate) fn tables() -> Anything<()> {
    let head = |first: &str| {
        println!(
            "| {first} | sigma | FPR | composition | linear losses | played | deviations, {SEEDS} seeds |"
        );
        println!("|---|---|---|---|---|---|---|");
    };
    let mut all = Vec::new();
    head("our-loss: q, T, epsilon");
    for (q, steps) in [(0.1, 100), (0.01, 1024)] {
        for target in [1.0, 2.0, 4.0, 10.0] {
            let setting = (noise_for(target, q, steps)?, q, steps);
            let game = Game::OurLoss { encoding: Encoding::choose(setting.0, q, steps) };
            let name = format!("{q}, {steps}, {target}");
            all.extend(rows(&name, game, setting, 5_000)?);
        }
    }
    println!();
    head("repeaters: q, T");
    for setting in [(0.5, 0.1, 100), (0.8, 0.1, 50), (0.5, 0.01, 100)] {
        let game = Game::Repeaters { variant: RepeaterVariant::Analog };
        let name = format!("{}, {}", setting.1, setting.2);
        all.extend(rows(&name, game, setting, 10_000)?);
    }
    let beyond = all.iter().filter(|z| z.abs() > 3.0).count();
    let square = all.iter().map(|z| z * z).sum::<f64>() / all.len() as f64;
    println!(
        "\n{} deviations: {beyond} beyond 3 standard errors, mean square {square:.2}.",
        all.len()
    );
    Ok(())
}

fn rows(name: &str, game: Game, setting: Setting, trials: u64) -> Anything<Vec<f64>> {
    let (sigma, q, steps) = setting;
    let run = Run::builder().phase(sigma, q, steps).build()?;
    let (all, linear) = (Composed::for_run(&run)?, BinomialGaussian::for_run(&run)?);
    let played: Vec<Vec<Trial>> = (1..=SEEDS)
        .map(|seed| play(game, setting, Observe::Last, seed, trials))
        .collect::<Anything<_>>()?;
    let mut deviations = Vec::new();
    for fpr in RATES {
        let curve = |x: f64| all.fnr(x, Order::Remove).map(|found| found.value);
        let expected = curve(fpr)?;
        let slope = (curve(1.1 * fpr)? - curve(0.9 * fpr)?) / (0.2 * fpr);
        let n = trials as f64;
        let variance = expected * (1.0 - expected) + slope * slope * fpr * (1.0 - fpr);
        let error = (variance / n).sqrt();
        let found: Vec<f64> = played.iter().map(|trials| miss_rate(trials, fpr)).collect();
        let z: Vec<f64> = found.iter().map(|found| (found - expected) / error).collect();
        let words: Vec<String> = z.iter().map(|z| format!("{z:+.1}")).collect();
        println!(
            "| {name} | {sigma} | {fpr} | {expected:.3} | {:.3} | {:.3} | {} |",
            linear.fnr(fpr, Order::Remove)?.value,
            found.iter().sum::<f64>() / found.len() as f64,
            words.join(" ")
        );
        deviations.extend(z);
    }
    Ok(deviations)
}

/// The observed miss rate at the threshold that the scores without the canary put at `fpr`.
fn miss_rate(trials: &[Trial], fpr: f64) -> f64 {
    let mut without: Vec<f64> = trials.iter().map(|t| t.without_canary).collect();
    without.sort_by(|a, b| b.total_cmp(a));
    let threshold = without[(fpr * without.len() as f64) as usize];
    trials.iter().filter(|t| t.with_canary < threshold).count() as f64 / trials.len() as f64
}

/// The noise at which the composition has this epsilon, to six digits.
pub(crate) fn noise_for(epsilon: f64, q: f64, steps: u64) -> Anything<f64> {
    let run = Run::builder().phase(1.0, q, steps).build()?;
    let target = Target::Epsilon { epsilon, delta: DELTA };
    let found = calibrate(&run, Unknown::NoiseMultiplier, &target, LensName::Composition, &[])?;
    match found.solution {
        Solution::NoiseMultiplier(sigma) => Ok((sigma * 1e5).ceil() / 1e5),
        other => Err(format!("calibration answered {other:?}").into()),
    }
}
