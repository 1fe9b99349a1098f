//! How good the attack is, apart from any epsilon: AUROC, power at a false positive rate,
//! advantage, each with an interval.

mod auroc;
mod bootstrap;
mod power;

pub use auroc::auroc;
pub use bootstrap::bootstrap;
pub use power::{advantage, tpr_at};
pub use vocabulary::{Bootstrap, Measured};
