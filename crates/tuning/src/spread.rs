//! How much memorisation varies at one (epsilon, delta), with the noise of seeds taken out.
//!
//! The variance of the configurations' means is that of the configurations plus that of the seeds
//! divided by their number: sigma_between^2 = Var(means) - mean(s^2 / n_i), s^2 the pooled variance
//! within configurations (one-way random effects, method of moments; negative estimates are 0).
//! Whether there is anything beyond seed noise is Fisher's F-test. The interval of sigma_between is
//! that of Williams (1962) with the harmonic mean of the n_i (Thomas and Hultquist 1978): approximate,
//! for normal scores.

use crate::{EpsilonGroup, chi_squared_quantile, f_quantile, f_upper_tail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Spread of the scores of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    pub configurations: usize,
    pub runs: usize,
    /// Mean of the configurations' means.
    pub mean: f64,
    /// Standard deviation of the configurations' means, seed noise included.
    pub observed: Option<f64>,
    /// Standard deviation of runs within a configuration; absent without repeated seeds.
    pub seed_noise: Option<f64>,
    /// Standard deviation between configurations, seed noise removed; absent without repeated
    /// seeds.
    pub between: Option<f64>,
    pub between_lower: Option<f64>,
    pub between_upper: Option<f64>,
    /// Share of the observed variance that is not seed noise.
    pub share: Option<f64>,
    /// F-test that all configurations have one mean.
    pub statistic: Option<f64>,
    pub p_value: Option<f64>,
    pub smallest: f64,
    pub largest: f64,
    pub range: f64,
    /// Largest over smallest; absent where the smallest is not above 0.
    pub ratio: Option<f64>,
}

/// Computes the spread of a group.
///
/// ```
/// let text = "batch_size,steps,learning_rate,epsilon,delta,seed,score_a\n\
///   1,1,1,8,1e-5,0,0.0\n1,1,1,8,1e-5,1,0.2\n2,1,1,8,1e-5,0,1.0\n2,1,1,8,1e-5,1,1.2\n";
/// let table = tuning::TrainingTable::from_csv(text, "t")?;
/// let spread = tuning::spread::spread(&tuning::groups(&table, 0)?[0], 0.95);
/// // Means 0.1 and 1.1 have variance 0.5; the runs' variance 0.02 gives 0.01 of it.
/// assert!((spread.between.unwrap().powi(2) - 0.49).abs() < 1e-12);
/// # Ok::<(), tuning::TuningError>(())
/// ```
pub fn spread(group: &EpsilonGroup, confidence: f64) -> Spread {
    let means: Vec<f64> = group.configurations.iter().map(|c| c.score).collect();
    let k = means.len();
    let runs = group.runs();
    let mean = means.iter().sum::<f64>() / k as f64;
    let variance = (k > 1)
        .then(|| means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (k as f64 - 1.0));
    let (mut within, mut inverse, mut between_squares) = (0.0, 0.0, 0.0);
    let grand = group.configurations.iter().flat_map(|c| &c.run_scores).sum::<f64>() / runs as f64;
    for c in &group.configurations {
        within += c.run_scores.iter().map(|s| (s - c.score) * (s - c.score)).sum::<f64>();
        inverse += 1.0 / c.run_scores.len() as f64;
        between_squares += c.run_scores.len() as f64 * (c.score - grand) * (c.score - grand);
    }
    let rest = runs - k;
    let pooled = (rest > 0).then(|| within / rest as f64);
    let mut found = Spread {
        configurations: k,
        runs,
        mean,
        observed: variance.map(f64::sqrt),
        seed_noise: pooled.map(f64::sqrt),
        between: None,
        between_lower: None,
        between_upper: None,
        share: None,
        statistic: None,
        p_value: None,
        smallest: means.iter().copied().fold(f64::INFINITY, f64::min),
        largest: means.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        range: 0.0,
        ratio: None,
    };
    found.range = found.largest - found.smallest;
    found.ratio = (found.smallest > 0.0).then(|| found.largest / found.smallest);
    let (Some(variance), Some(pooled)) = (variance, pooled) else { return found };
    let between = (variance - pooled * inverse / k as f64).max(0.0);
    found.between = Some(between.sqrt());
    found.share = (variance > 0.0).then(|| between / variance);
    if pooled > 0.0 {
        let (top, bottom) = (k as f64 - 1.0, rest as f64);
        let statistic = between_squares / top / pooled;
        found.statistic = Some(statistic);
        found.p_value = Some(f_upper_tail(statistic, top, bottom));
        let harmonic = k as f64 / inverse;
        let ratio = harmonic * variance / pooled;
        let end = |probability: f64| {
            let shrink = 1.0 - f_quantile(probability, top, bottom) / ratio;
            (top * variance / chi_squared_quantile(probability, top) * shrink).max(0.0).sqrt()
        };
        let tail = 0.5 * (1.0 - confidence);
        found.between_lower = Some(end(1.0 - tail));
        found.between_upper = Some(end(tail));
    }
    found
}
