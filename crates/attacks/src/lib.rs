//! Games against DP-SGD that train real models.
//!
//! Where the simulated games know the released distribution, these train: many replicas of one
//! recipe, with a canary in half of them, and a score read off what an attacker would see.
//!
//! A [`Target`] is the training under attack. [`TrainedGame`] trains it N times with a canary and N
//! times without (or, where records are substituted, with one of two candidates), one score per
//! training. [`ManyCanaries`] trains it once with many canaries, each in with probability 1/2, one
//! score per canary. Both are experiments: chunks of trainings that are computed once, in any order.

pub mod attribute;
mod error;
mod membership;

pub use error::AttackError;
pub use membership::{
    CanaryKind, Conditions, Coordinate, InputCanary, ManyCanaries, Others, StartFrom, Target,
    TrainedGame, spread,
};
pub use vocabulary::Observe;
