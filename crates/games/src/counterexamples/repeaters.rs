//! The malicious data set (P4 section 4.4, Algorithms 2-4): no regulariser; "repeater" records
//! read the model and rewrite it, so that the last iterate keeps what every step saw.
//!
//! The canary adds 1 to coordinate i at step i (when it is sampled); N repeaters ask each for 1/N
//! of the change they want, so that none is clipped. Corrections to the printed pseudo-code: the
//! canary fires when the uniform is *at most* q; the last coordinate's test reads coordinate i - 1;
//! steps run from 0 to T - 1.
//!
//! * [`PrintedRepeaters`] stores one bit per step: was the value above a threshold? A bit per step
//!   cannot carry the likelihood ratio; its exact ceiling is Bin(T, a1) against Bin(T, a0) with
//!   a0 = P(N(0, sigma^2) > t), a1 = (1 - q) a0 + q P(N(1, sigma^2) > t).
//! * [`AnalogRepeaters`] multiplies the fresh value once by K = 20 sqrt T and leaves it alone, so
//!   that later noise adds at most 1/400 of the variance; it reaches the composition curve.

use crate::distinguisher::step_log_ratio;
use crate::{Crafter, Distinguisher, Group, Released};

/// One bit per step, rewritten at every step (Algorithms 2-4 with the corrections above).
#[derive(Clone, Debug)]
pub struct PrintedRepeaters {
    steps: usize,
    threshold: f64,
    big: f64,
    groups: [Group; 1],
}

impl PrintedRepeaters {
    /// `threshold` decides the fresh bit. The stored levels are +-(10 sigma + 2).
    pub fn new(steps: u64, noise_multiplier: f64, threshold: f64) -> Self {
        let big = 10.0 * noise_multiplier + 2.0;
        let fresh = big + 1.0 + 5.0 * noise_multiplier;
        let noise = steps as f64 * noise_multiplier * noise_multiplier;
        let records = (1.5 * (noise + fresh * fresh).sqrt()).ceil() as u64;
        Self { steps: steps as usize, threshold, big, groups: [Group { records, always: true }] }
    }

    /// How many repeaters there are.
    pub fn repeaters(&self) -> u64 {
        self.groups[0].records
    }

    fn bit(&self, coordinate: usize, step: usize, value: f64) -> bool {
        value > if coordinate + 1 == step { self.threshold } else { 0.0 }
    }
}

impl Crafter for PrintedRepeaters {
    fn dimension(&self) -> usize {
        self.steps
    }

    fn canary(&self, step: u64, _model: &[f64], gradient: &mut [f64]) {
        gradient[step as usize] = -1.0;
    }

    fn groups(&self) -> &[Group] {
        &self.groups
    }

    fn group(&self, _group: usize, step: u64, model: &[f64], gradient: &mut [f64]) {
        let step = step as usize;
        let share = 1.0 / self.groups[0].records as f64;
        for (j, (g, m)) in gradient.iter_mut().zip(model).enumerate() {
            let wanted = match j < step {
                false => 0.0,
                true if self.bit(j, step, *m) => self.big,
                true => -self.big,
            };
            // A descent step subtracts the gradient: minus the change.
            *g = (m - wanted) * share;
        }
    }
}

/// Counts the bits of the last iterate.
#[derive(Clone, Copy, Debug)]
pub struct PrintedReader {
    pub threshold: f64,
}

impl Distinguisher for PrintedReader {
    fn score(&self, release: &Released<'_>) -> f64 {
        let Some((last, earlier)) = release.model.split_last() else { return 0.0 };
        let stored = earlier.iter().filter(|value| **value > 0.0).count();
        stored as f64 + f64::from(*last > self.threshold)
    }
}

/// Each step's value amplified once.
#[derive(Clone, Debug)]
pub struct AnalogRepeaters {
    steps: usize,
    gain: f64,
    /// Expected number of repeaters in a batch.
    expected: f64,
    groups: [Group; 1],
}

impl AnalogRepeaters {
    /// Repeaters are sampled like every record; there are N/q of them, N expected in a batch: ten
    /// times what keeps each gradient within the clip norm, because the batch's size multiplies
    /// the stored value, and its relative error is 1/sqrt N.
    pub fn new(steps: u64, noise_multiplier: f64, sample_rate: f64) -> Self {
        let gain = 20.0 * (steps as f64).sqrt();
        let fresh = gain * (1.0 + 5.0 * noise_multiplier);
        let noise = steps as f64 * noise_multiplier * noise_multiplier;
        let expected = (12.0 * (noise + fresh * fresh).sqrt()).ceil();
        let records = (expected / sample_rate).ceil() as u64;
        Self {
            steps: steps as usize,
            gain,
            expected: records as f64 * sample_rate,
            groups: [Group { records, always: false }],
        }
    }

    /// The factor by which a stored value is larger than the step's.
    pub fn gain(&self) -> f64 {
        self.gain
    }
}

impl Crafter for AnalogRepeaters {
    fn dimension(&self) -> usize {
        self.steps
    }

    fn canary(&self, step: u64, _model: &[f64], gradient: &mut [f64]) {
        gradient[step as usize] = -1.0;
    }

    fn groups(&self) -> &[Group] {
        &self.groups
    }

    fn group(&self, _group: usize, step: u64, model: &[f64], gradient: &mut [f64]) {
        let step = step as usize;
        let share = 1.0 / self.expected;
        if step > 0 {
            gradient[step - 1] = -(self.gain - 1.0) * model[step - 1] * share;
        }
        for (g, m) in gradient[step..].iter_mut().zip(&model[step..]) {
            *g = m * share;
        }
    }
}

/// The likelihood ratio of the stored values.
#[derive(Clone, Copy, Debug)]
pub struct AnalogReader {
    pub gain: f64,
    pub noise_multiplier: f64,
    pub sample_rate: f64,
}

impl Distinguisher for AnalogReader {
    fn score(&self, release: &Released<'_>) -> f64 {
        let ratio = |v: f64| step_log_ratio(v, self.noise_multiplier, self.sample_rate);
        let Some((last, earlier)) = release.model.split_last() else { return 0.0 };
        ratio(*last) + earlier.iter().map(|value| ratio(value / self.gain)).sum::<f64>()
    }
}
