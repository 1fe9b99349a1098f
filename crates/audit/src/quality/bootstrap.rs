//! Bootstrap percentile intervals for AUROC and power: resampling within each side.
//!
//! A resample is drawn as counts per sorted value, so nothing is sorted again. Standing:
//! asymptotic; the exact intervals of this module do not need it, people ask for it to compare.

use super::Measured;
use crate::Scores;
use crate::split::{Dealer, Purpose};
use vocabulary::{Bootstrap, PowerAt};

/// Resamples `rounds` times.
pub fn bootstrap(
    scores: &Scores,
    fprs: &[f64],
    confidence: f64,
    rounds: usize,
    seed: u64,
) -> Bootstrap {
    let mut dealer = Dealer::of(scores, seed, Purpose::Resamples);
    let observed = |of: &dyn Fn(&Scores) -> f64| of(scores);
    let mut areas = Vec::with_capacity(rounds);
    let mut powers = vec![Vec::with_capacity(rounds); fprs.len()];
    for _ in 0..rounds {
        let resample = scores
            .part(redraw(scores.members(), &mut dealer), redraw(scores.nonmembers(), &mut dealer));
        areas.push(super::auroc(&resample, confidence).value);
        for (power, fpr) in powers.iter_mut().zip(fprs) {
            power.push(step_tpr(&resample, *fpr));
        }
    }
    let interval = |mut values: Vec<f64>, value: f64| {
        values.sort_unstable_by(f64::total_cmp);
        let tail = 0.5 * (1.0 - confidence);
        let at = |share: f64| {
            let last = values.len().saturating_sub(1);
            values.get((share * last as f64).round() as usize).copied().unwrap_or(value)
        };
        Measured { value, lower: at(tail).min(value), upper: at(1.0 - tail).max(value) }
    };
    Bootstrap {
        rounds,
        auroc: interval(areas, observed(&|s| super::auroc(s, confidence).value)),
        tpr: fprs
            .iter()
            .zip(powers)
            .map(|(fpr, values)| PowerAt {
                fpr: *fpr,
                measured: interval(values, step_tpr(scores, *fpr)),
            })
            .collect(),
    }
}

fn step_tpr(scores: &Scores, fpr: f64) -> f64 {
    let (members, nonmembers) = (scores.members(), scores.nonmembers());
    let allowed = (fpr * nonmembers.len() as f64 * (1.0 + 1e-12)).floor() as usize;
    if allowed >= nonmembers.len() {
        return 1.0;
    }
    let edge = nonmembers[nonmembers.len() - 1 - allowed];
    (members.len() - members.partition_point(|&score| score <= edge)) as f64 / members.len() as f64
}

/// A sample with replacement of sorted values, sorted: counts first, then values in order.
fn redraw(sorted: &[f64], dealer: &mut Dealer) -> Vec<f64> {
    let mut counts = vec![0_u32; sorted.len()];
    for _ in 0..sorted.len() {
        counts[dealer.below(sorted.len() as u64) as usize] += 1;
    }
    let mut drawn = Vec::with_capacity(sorted.len());
    for (value, count) in sorted.iter().zip(counts) {
        drawn.extend(std::iter::repeat_n(*value, count as usize));
    }
    drawn
}
