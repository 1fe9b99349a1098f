//! A run of DP-SGD is looked at through lenses; each lens turns the run into a *pair* of
//! distributions that dominate what an attacker sees with and without the record, and the
//! pair into claims.

pub mod directions;
mod error;
pub mod pairs;

pub use error::AccountingError;
pub use pairs::{OneWay, Pair};
