//! What the games give without being played.

mod known;
mod mixture;
mod quadratic;
mod repeaters;

pub use known::{KnownEpsilon, known};
pub use mixture::ShiftedGaussians;
pub use quadratic::QuadraticPair;
pub use repeaters::{BitCeiling, best_bit_threshold, bit_ceiling};
