//! Membership scores in, bounds that are really bounds out.
pub mod band;
pub mod bayes;
mod error;
mod family;
pub mod grid;
pub mod one_run;
pub mod quality;
pub mod rates;
pub mod read;
mod rule;
mod scores;
mod search;
mod split;
mod statistic;

pub use error::AuditError;
pub use family::{Family, gaussian_epsilon};
pub use rates::{RateBounds, Simultaneous};
pub use read::{Design, Table};
pub use rule::{FOLDS, Measurement, RuleBound, ThresholdRule};
pub use scores::{Errors, Scores};
pub use search::{Best, best_threshold};
pub use statistic::{AttackDirection, Statistic};
