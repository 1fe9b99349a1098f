//! Membership: was the canary in?

mod candidates;
mod checkpoint;
mod conditions;
mod game;
mod many;
mod quiet;
mod size;
mod statistic;
mod target;

pub use conditions::{CanaryKind, Conditions, Coordinate, InputCanary, Others, StartFrom};
pub use game::TrainedGame;
pub use many::ManyCanaries;
pub use target::{Target, spread};
