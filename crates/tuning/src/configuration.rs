//! Runs put together: a group has one (epsilon, delta), a configuration one (batch size, steps,
//! learning rate, clip norm); its runs differ by their seed.

use crate::{TrainingTable, TuningError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One choice of hyper-parameters, with the results of its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    pub batch_size: f64,
    pub steps: u64,
    pub learning_rate: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// The score of each run.
    pub run_scores: Vec<f64>,
    /// Their mean.
    pub score: f64,
    /// Mean utility of the runs that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utility: Option<f64>,
    /// Mean audited epsilon of the runs that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_epsilon: Option<f64>,
    /// From the table, where it says so and all runs agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// The seeds, in the order of the scores; empty where unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<String>,
}

impl Configuration {
    /// ln C, with C = bT: the records looked at.
    pub(crate) fn log_compute(&self) -> f64 {
        self.batch_size.ln() + (self.steps as f64).ln()
    }

    /// ln U, with U = bT eta.
    pub(crate) fn log_updates(&self) -> f64 {
        self.log_compute() + self.learning_rate.ln()
    }

    /// `b 256, T 1000, eta 0.001`, and the clip norm where there is one.
    pub fn name(&self) -> String {
        let mut name = format!(
            "b {}, T {}, eta {}",
            vocabulary::rounding::plain(self.batch_size),
            self.steps,
            vocabulary::rounding::plain(self.learning_rate)
        );
        if let Some(clip) = self.clip_norm {
            name.push_str(&format!(", clip {}", vocabulary::rounding::plain(clip)));
        }
        name
    }
}

/// All configurations at one (epsilon, delta), in the order of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct EpsilonGroup {
    pub epsilon: f64,
    pub delta: f64,
    pub configurations: Vec<Configuration>,
    /// Runs left out because they have no such score.
    pub without_score: usize,
}

impl EpsilonGroup {
    pub fn runs(&self) -> usize {
        self.configurations.iter().map(|c| c.run_scores.len()).sum()
    }
}

/// Whether two logarithms of composites are the same class of a grid (absolute 1e-9, so that
/// 256 x 0.001 and 512 x 0.0005 agree although their products round differently).
pub(crate) fn same(log_a: f64, log_b: f64) -> bool {
    (log_a - log_b).abs() <= 1e-9
}

/// The groups of a table for one score, in the order of epsilon.
///
/// # Errors
/// `TooLittle` if no run has the score; `InvalidInput` if a training is listed twice.
pub fn groups(table: &TrainingTable, score: usize) -> Result<Vec<EpsilonGroup>, TuningError> {
    let mut groups: Vec<EpsilonGroup> = Vec::new();
    let mut tallies: Vec<Vec<Tally>> = Vec::new();
    for row in &table.rows {
        let at = groups
            .iter()
            .position(|group| group.epsilon == row.epsilon && group.delta == row.delta)
            .unwrap_or_else(|| {
                groups.push(EpsilonGroup {
                    epsilon: row.epsilon,
                    delta: row.delta,
                    configurations: Vec::new(),
                    without_score: 0,
                });
                tallies.push(Vec::new());
                groups.len() - 1
            });
        let group = &mut groups[at];
        let Some(value) = row.scores[score] else {
            group.without_score += 1;
            continue;
        };
        let place = group
            .configurations
            .iter()
            .position(|c| {
                c.batch_size == row.batch_size
                    && c.steps == row.steps
                    && c.learning_rate == row.learning_rate
                    && c.clip_norm == row.clip_norm
            })
            .unwrap_or_else(|| {
                group.configurations.push(Configuration {
                    batch_size: row.batch_size,
                    steps: row.steps,
                    learning_rate: row.learning_rate,
                    clip_norm: row.clip_norm,
                    run_scores: Vec::new(),
                    score: 0.0,
                    utility: None,
                    audit_epsilon: None,
                    noise_multiplier: row.noise_multiplier,
                    seeds: Vec::new(),
                });
                tallies[at].push(Tally::default());
                group.configurations.len() - 1
            });
        let configuration = &mut group.configurations[place];
        if let Some(seed) = &row.seed {
            if configuration.seeds.contains(seed) {
                return Err(TuningError::invalid(format!(
                    "the training {} with seed {seed} at epsilon {} is listed twice",
                    configuration.name(),
                    row.epsilon
                )));
            }
            configuration.seeds.push(seed.clone());
        }
        configuration.run_scores.push(value);
        if configuration.noise_multiplier != row.noise_multiplier {
            configuration.noise_multiplier = None;
        }
        let tally = &mut tallies[at][place];
        tally.utilities.extend(row.utility);
        tally.audits.extend(row.audit_epsilon);
    }
    for (group, tallies) in groups.iter_mut().zip(&tallies) {
        for (configuration, tally) in group.configurations.iter_mut().zip(tallies) {
            configuration.score = mean(&configuration.run_scores).unwrap_or(f64::NAN);
            configuration.utility = mean(&tally.utilities);
            configuration.audit_epsilon = mean(&tally.audits);
            if configuration.seeds.len() != configuration.run_scores.len() {
                configuration.seeds.clear();
            }
        }
    }
    groups.retain(|group| !group.configurations.is_empty());
    if groups.is_empty() {
        return Err(TuningError::TooLittle(format!(
            "no run has the score `{}`",
            table.scores[score]
        )));
    }
    groups.sort_by(|a, b| a.epsilon.total_cmp(&b.epsilon).then(b.delta.total_cmp(&a.delta)));
    Ok(groups)
}

#[derive(Default)]
struct Tally {
    utilities: Vec<f64>,
    audits: Vec<f64>,
}

pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
