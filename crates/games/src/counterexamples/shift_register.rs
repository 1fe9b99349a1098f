//! The shift register (P4 section 4.3): a regulariser moves every coordinate one place on and
//! multiplies it by v, so that the last iterate holds every step's noisy value in a place of its
//! own, and later noise is small beside it.
//!
//! The stored model is u_i = v^(1-i) m_i (i from 1), which does not overflow; the shift is then a
//! plain shift, and the noise of coordinate i is v^(1-i) sigma. After T steps
//! u_i = A_(T-i+1) + N(0, s_i^2), s_i^2 = sigma^2 (1 - v^(-2i))/(1 - v^(-2)), all independent, A the
//! canary's coins (the paper's index T - i is off by one). So the exact privacy of the last iterate
//! is the heterogeneous composition of T subsampled Gaussians with noise s_i, at most a factor
//! 1/sqrt(1 - v^(-2)) noisier than all iterates: see [`ShiftRegister::noise_multipliers`].

use crate::distinguisher::step_log_ratio;
use crate::{Crafter, Distinguisher, Released};

/// The crafter: as many coordinates as steps.
#[derive(Clone, Debug)]
pub struct ShiftRegister {
    spread: f64,
    scale: Vec<f64>,
}

impl ShiftRegister {
    /// `spread` is v, above 1.
    pub fn new(steps: u64, spread: f64) -> Self {
        let mut factor = 1.0;
        let scale = (0..steps)
            .map(|_| {
                let here = factor;
                factor /= spread;
                here
            })
            .collect();
        Self { spread, scale }
    }

    /// s_i / sigma for i = 1..T, the noise that each step's value has in the last iterate.
    pub fn noise_inflation(&self) -> Vec<f64> {
        let square = 1.0 / (self.spread * self.spread);
        let mut power = 1.0;
        let mut sum = 0.0;
        self.scale
            .iter()
            .map(|_| {
                sum += power;
                power *= square;
                sum.sqrt()
            })
            .collect()
    }
}

impl Crafter for ShiftRegister {
    fn dimension(&self) -> usize {
        self.scale.len()
    }

    fn canary(&self, _step: u64, _model: &[f64], gradient: &mut [f64]) {
        gradient[0] = -1.0;
    }

    fn regularise(&self, _step: u64, _learning_rate: f64, model: &mut [f64]) {
        let last = model.len() - 1;
        model.copy_within(0..last, 1);
        model[0] = 0.0;
    }

    fn scale(&self) -> Option<&[f64]> {
        Some(&self.scale)
    }
}

/// The likelihood ratio of the last iterate.
#[derive(Clone, Debug)]
pub struct RegisterReader {
    noise_multipliers: Vec<f64>,
    sample_rate: f64,
}

impl RegisterReader {
    pub fn new(register: &ShiftRegister, noise_multiplier: f64, sample_rate: f64) -> Self {
        let noise_multipliers = register
            .noise_inflation()
            .iter()
            .map(|inflation| noise_multiplier * inflation)
            .collect();
        Self { noise_multipliers, sample_rate }
    }
}

impl Distinguisher for RegisterReader {
    fn score(&self, release: &Released<'_>) -> f64 {
        release
            .model
            .iter()
            .zip(&self.noise_multipliers)
            .map(|(u, sigma)| step_log_ratio(*u, *sigma, self.sample_rate))
            .sum()
    }
}
