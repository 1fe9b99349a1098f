//! Statistics over all steps of one training, small enough to be kept in every checkpoint.

use crate::ledger::{BatchSizes, HistoryPoint, Quantile, StatisticsRecord};
use crate::statistics::StepStatistics;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bins of gradient norms in an octave.
const BINS: f64 = 64.0;

/// Points of the history that are kept; beyond, every other one is dropped.
const POINTS: usize = 256;

/// What is kept of every step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    steps: u64,
    records: u64,
    clipped: u64,
    empty: u64,
    smallest: u64,
    largest: u64,
    /// Norms by floor(64 log2 norm).
    norms: BTreeMap<i32, u64>,
    history: Vec<HistoryPoint>,
    /// Steps between points.
    stride: u64,
}

impl Summary {
    /// Takes in a step.
    pub fn add(&mut self, step: u64, found: &StepStatistics) {
        let size = found.batch_size as u64;
        self.smallest = if self.steps == 0 { size } else { self.smallest.min(size) };
        self.largest = self.largest.max(size);
        self.empty += u64::from(size == 0);
        self.steps += 1;
        self.records += size;
        self.clipped += found.clipped as u64;
        for norm in &found.norms {
            let bin = (norm.max(f64::MIN_POSITIVE).log2() * BINS).floor() as i32;
            *self.norms.entry(bin).or_default() += 1;
        }
        self.stride = self.stride.max(1);
        if size > 0 && step.is_multiple_of(self.stride) {
            self.history.push(HistoryPoint {
                step,
                loss: found.loss_sum / size as f64,
                accuracy: found.correct as f64 / size as f64,
            });
            if self.history.len() > POINTS {
                self.stride *= 2;
                let stride = self.stride;
                self.history.retain(|point| point.step.is_multiple_of(stride));
            }
        }
    }

    /// As a ledger shows it; nothing before the first step.
    pub fn record(&self) -> Option<StatisticsRecord> {
        if self.steps == 0 {
            return None;
        }
        Some(StatisticsRecord {
            batch_sizes: BatchSizes {
                smallest: self.smallest,
                mean: self.records as f64 / self.steps as f64,
                largest: self.largest,
                empty: self.empty,
            },
            fraction_clipped: self.clipped as f64 / self.records.max(1) as f64,
            gradient_norm_quantiles: [0.05, 0.25, 0.5, 0.75, 0.95]
                .into_iter()
                .filter_map(|level| Some(Quantile { level, norm: self.quantile(level)? }))
                .collect(),
            history: self.history.clone(),
        })
    }

    fn quantile(&self, level: f64) -> Option<f64> {
        let total: u64 = self.norms.values().sum();
        let wanted = (level * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.norms.iter().find_map(|(bin, count)| {
            seen += count;
            (seen >= wanted).then(|| (f64::from(bin + 1) / BINS).exp2())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_sizes_and_history() {
        let mut summary = Summary::default();
        for step in 0..1000u64 {
            let norms: Vec<f64> = (1..=10).map(f64::from).collect();
            let found = StepStatistics {
                batch_size: if step == 17 { 0 } else { 10 },
                clipped: 3,
                loss_sum: 20.0,
                correct: 5,
                norms,
            };
            summary.add(step, &found);
        }
        let record = summary.record().unwrap();
        assert_eq!((record.batch_sizes.smallest, record.batch_sizes.empty), (0, 1));
        assert!((record.batch_sizes.mean - 9.99).abs() < 1e-12);
        let median = record.gradient_norm_quantiles[2].norm;
        assert!((5.0..5.0 * 1.011).contains(&median), "{median}");
        assert!(record.history.len() <= POINTS && record.history.len() > POINTS / 4);
        let text = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
    }
}
