//! Proves certified ends again, from the definition of the pair, in ball arithmetic.
//!
//! This crate shares nothing with the solver but the definition of the pairs: it does not use
//! `numerics` or `accounting`. A claim goes in with its run, and for both of its ends a proof comes
//! out: proven, wrong, or undecided with a reason ([`prove`]). Numbers are balls
//! ([`arithmetic`]); compositions are contour integrals whose every error is a ball
//! ([`contour`]); single steps, Gaussians and last iterates are closed forms ([`pairs`]).

pub mod arithmetic;
mod balls_and_bins;
mod chain;
mod composed;
pub mod contour;
mod deltas;
mod few;
mod hull;
mod maximum;
pub mod model;
mod mu;
mod obstacle;
pub mod pairs;
mod powers;
mod proof;
mod prove;
mod shelf;
mod slopes;
mod tradeoff;

pub use obstacle::{Limit, Obstacle};
pub use proof::{Certificate, Enclosure, EndProof, Outcome, Proof};
pub use prove::{certify, covers, prove, prove_within};
