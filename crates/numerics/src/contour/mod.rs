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

/// The smallest total of all steps there can be, rounded down; -infinity where there is none. An infimum is known as well as the
/// weights it is made of, and a sum of n numbers of one sign has n - 1 roundings.
pub fn smallest(parts: &[Part]) -> f64 {
    let one = |part: &Part| {
        let room = 32.0 * f64::EPSILON + 2.0 * part.pair.weight_error();
        part.times * part.pair.infimum() * (1.0 + room)
    };
    parts.iter().map(one).sum::<f64>() * (1.0 + f64::EPSILON * (4.0 + parts.len() as f64))
}
