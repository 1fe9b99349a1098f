//! Membership games against DP-SGD, simulated exactly.
//!
//! A game has three parts. A [`Crafter`] chooses the gradients of the canary and of the other
//! records, and a regulariser. A [`Trainer`] runs DP-SGD on them ([`DpSgd`] is P4's Algorithm 1).
//! A [`Distinguisher`] looks at what is released, the last iterate or all of them, and gives a
//! score. [`play`] plays a game many times; [`Game`] names the papers' games and makes each an
//! experiment whose scores `audit` reads; [`exact`] says what can be said without playing.
//!
//! P3 = "It's Our Loss" (Annamalai 2024), P4 = "The Last Iterate Advantage" (Steinke et al. 2024).

mod catalogue;
mod counterexamples;
mod crafter;
mod distinguisher;
pub mod exact;
mod lockstep;
mod play;
mod trainer;

pub use catalogue::{Attack, Game, GameError, RepeaterVariant, play_in_memory};
pub use counterexamples::{
    AnalogReader, AnalogRepeaters, Coordinate, Encoding, Linear, OurLoss, PrintedReader,
    PrintedRepeaters, Quadratic, RegisterReader, ShiftRegister, Suitability, Zeroing,
};
pub use crafter::{Crafter, Group};
pub use distinguisher::{Distinguisher, LikelihoodRatio, Released, StepView};
pub use play::{Trial, play};
pub use trainer::{DpSgd, Randomness, Record, Trainer};
pub use vocabulary::Observe;
