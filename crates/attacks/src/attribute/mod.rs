//! Attribute inference: what the training of a model tells about one value of one record
//! (Cherubin et al. 2024, "Closed-form bounds for DP-SGD against record-level inference").
//!
//! Two things. **The bound**: along a training, the clipped gradients of records are computed for
//! every candidate value of the attribute ([`Probe`]); how far apart they are, step by step, is the
//! gradient sensitivity R_t ([`Collector`]) from which `accounting` makes the Bayes security of the
//! attribute. **The game** ([`AttributeGame`]): one of M candidate records is in the data, an attacker
//! who knows everything else guesses which, and the share of right guesses is to stay below the bound.
//!
//! Direction: R_t from all pairs is exact, from the centroid an upper bound, which is the safe
//! side; the bound is about the trajectory it was measured along. The game's accuracy is a lower
//! bound on what can be inferred.
//!
//! Cost: for networks of linear layers |A|^2 (inputs + outputs) multiplications per record and layer
//! beside |A| forward and backward passes; never |A| gradients of memory.

mod accuracy;
mod attacker;
mod collector;
mod error;
mod follow;
mod game;
mod probe;
mod read;
mod values;

pub use accuracy::{Accuracy, accuracy_bound};
pub use collector::{Collector, Diameter, write_csv};
pub use error::AttributeError;
pub use follow::{Moment, follow};
pub use game::{AttributeGame, Candidate};
pub use probe::{Probe, Spread};
pub use read::read_csv;
pub use values::{Attribute, Value};
pub use vocabulary::Observe;
