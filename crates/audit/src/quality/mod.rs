//! How good the attack is, apart from any epsilon: AUROC, power at a false positive rate,
//! advantage, each with an interval.

mod auroc;
mod bootstrap;
mod power;

pub use auroc::auroc;
pub use bootstrap::{Bootstrap, bootstrap};
pub use power::{advantage, tpr_at};

/// An estimate with a two-sided interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Measured {
    pub value: f64,
    pub lower: f64,
    pub upper: f64,
}
