//! Membership scores in, bounds that are really bounds out.
//!
//! [`Scores`] are two sorted samples: what an attack gave to members and to non-members. A
//! [`Plan`] says, before they are looked at, what will be computed: the [`Design`] of the data
//! (trainings of their own, or canaries of one training), the [`Method`]s, the [`ThresholdRule`],
//! the confidence, and which bound is the headline. [`analyse`] carries it out and gives an
//! [`Audit`]: claims about epsilon, each labelled with what it holds for, the quality of the
//! attack with intervals, and a verdict against a claim.
//!
//! Three layers, each usable alone:
//! - counts to rates: [`rates`] (Clopper-Pearson, DKW), [`band`] (one rate at all thresholds) and
//!   [`joint`] (both rates at all thresholds);
//! - rates to leakage: [`Statistic`] (any mechanism, or the Gaussian family) and [`Family`]
//!   (DP-SGD families of pairs);
//! - choice of the threshold: [`ThresholdRule`], with the proof of each rule in its module.
//!
//! ```
//! use audit::{Design, Plan, Scores, analyse};
//!
//! let members: Vec<f64> = (0..500).map(|i| f64::from(i) + 300.0).collect();
//! let nonmembers: Vec<f64> = (0..500).map(f64::from).collect();
//! let scores = Scores::new(Design::Runs, members, nonmembers)?;
//! let audit = analyse(&scores, &Plan::new(Design::Runs), None)?;
//! let bound = audit.primary().unwrap();
//! assert!(bound.epsilon() > 3.0 && bound.valid_for == "any mechanism");
//! # Ok::<(), audit::AuditError>(())
//! ```

mod analysis;
pub mod band;
pub mod bayes;
mod column;
mod error;
mod exact;
mod family;
pub mod figures;
pub mod grid;
pub mod hash;
pub mod joint;
pub mod membership;
pub mod one_run;
mod plan;
pub mod planning;
pub mod quality;
mod ranks;
pub mod rates;
pub mod read;
mod rows;
mod rule;
mod scores;
mod search;
pub mod sequential;
mod sort;
mod split;
mod statistic;
pub mod verdict;
mod violation;
mod words;

pub use analysis::{analyse, by_reason};
pub use column::Column;
pub use error::AuditError;
pub use family::{Family, Seen, gaussian_epsilon};
pub use plan::Plan;
pub use rates::{RateBounds, Simultaneous};
pub use read::{SettledTable, Table};
pub use rule::{FOLDS, FamilyPoints, Measurement, RuleBound, ThresholdRule, family_points};
pub use scores::{Errors, Scores};
pub use search::{Best, best_threshold};
pub use statistic::{AttackDirection, Statistic};
// Runs and claims, for who depends on this crate alone.
pub use vocabulary;
pub use vocabulary::{Audit, Design, Finding, Method, NotValid, PowerAt, TestAt};
