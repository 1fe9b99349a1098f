//! A run of DP-SGD is looked at through lenses; each lens turns the run into a *pair* of
//! distributions that dominate what an attacker sees with and without the record, and the
//! pair into claims.
//!
//! ```text
//! Run -> lenses -> pairs -> directions -> account, calibrate, curve, compare
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod account;
pub mod bayes_security;
mod calibrate;
pub mod compare;
pub mod curve;
pub mod directions;
pub mod domain;
mod error;
pub mod hidden_state;
pub mod lenses;
mod mismatch;
pub mod pairs;
pub mod reconstruction;
pub mod schemes;
pub mod shuffling;
pub mod translation;

pub use account::{DEFAULT_FPRS, Questions, account};
pub use calibrate::{
    Advice, AdviceRow, Calibration, Solution, Target, Unknown, advice, calibrate,
    calibrate_attribute, calibrate_batch_size, in_epochs,
};
pub use error::AccountingError;
pub use lenses::Subject;
pub use numerics::patience;
pub use pairs::{Order, Pair};
// Runs and claims, for who depends on this crate alone.
pub use vocabulary;
