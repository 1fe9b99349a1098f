//! Distribution of a sum of independent log likelihood ratios, by contour inversion.
//!
//! For steps with pairs (P_i, Q_i), each taken T_i times, Y = sum of log P_i/Q_i. The averages
//! E_Q (e^{Y-t} - 1)_+, E_Q min(e^{Y-t}, 1) and E_Q (1 - e^{Y-t})_+ come with certified ends,
//! relative accuracy at any size, and a cost that does not grow with T_i.

mod grid;
mod hard;
mod jumps;
mod line;
mod masked;
mod saddle;
mod smooth;
mod solve;
mod spread;
mod strip;
mod tail;
mod transform;
mod tries;
mod windows;

#[cfg(test)]
mod tests;

pub use line::{Obstacle, Zone};
pub use solve::{Ends, SumOfLogRatios};

use crate::mixture::MixtureRatio;

/// A pair and how many times it is taken.
#[derive(Clone, Debug)]
pub struct Part {
    pub pair: MixtureRatio,
    pub times: f64,
}
