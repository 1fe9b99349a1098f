//! Linear losses (P4 section 3), and what a regulariser does to them (P4 sections 4.1, 4.2).
//!
//! The canary's gradient is constant, all others are zero. After T steps the last iterate is
//! Bin(T, q) + N(0, T sigma^2) with the canary and N(0, T sigma^2) without: the pair of the
//! last-iterate heuristic. With r = |m|^2/(2 rate) every step forgets the past ([`Zeroing`]); with
//! r = alpha |m|^2/(2 rate) it is remembered with weights (1 - alpha)^i ([`Quadratic`]).

use crate::{Crafter, Distinguisher, Released};

/// The score is a coordinate of the last iterate; here it grows with the likelihood ratio.
#[derive(Clone, Copy, Debug)]
pub struct Coordinate(pub usize);

impl Distinguisher for Coordinate {
    fn score(&self, release: &Released<'_>) -> f64 {
        release.model[self.0]
    }
}

/// Loss -m for the canary, 0 for everyone else.
#[derive(Clone, Copy, Debug)]
pub struct Linear;

impl Crafter for Linear {
    fn dimension(&self) -> usize {
        1
    }

    fn canary(&self, _step: u64, _model: &[f64], gradient: &mut [f64]) {
        gradient[0] = -1.0;
    }
}

/// Linear, and a regulariser that wipes the model before each update.
#[derive(Clone, Copy, Debug)]
pub struct Zeroing;

impl Crafter for Zeroing {
    fn dimension(&self) -> usize {
        1
    }

    fn canary(&self, step: u64, model: &[f64], gradient: &mut [f64]) {
        Linear.canary(step, model, gradient);
    }

    fn regularise(&self, _step: u64, learning_rate: f64, model: &mut [f64]) {
        // grad r = m / rate.
        model[0] -= learning_rate * (model[0] / learning_rate);
    }
}

/// Linear, and the regulariser alpha |m|^2 / (2 rate).
#[derive(Clone, Copy, Debug)]
pub struct Quadratic {
    pub alpha: f64,
}

impl Crafter for Quadratic {
    fn dimension(&self) -> usize {
        1
    }

    fn canary(&self, step: u64, model: &[f64], gradient: &mut [f64]) {
        Linear.canary(step, model, gradient);
    }

    fn regularise(&self, _step: u64, _learning_rate: f64, model: &mut [f64]) {
        // rate * alpha m / rate.
        model[0] -= self.alpha * model[0];
    }
}
