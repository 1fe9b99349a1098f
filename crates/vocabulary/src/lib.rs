//! What Dosimeter talks about, and nothing else: no mathematics, no files.
//!
//! A [`Run`] is DP-SGD as data. It is looked at through lenses ([`LensName`]);
//! each lens makes [`Claim`]s. A claim is a [`Quantity`] about a [`Release`] and a
//! [`Secret`], a value with its certified ends, and a [`Standing`]: is it proven,
//! heuristic, an estimate, or measured? Every claim names the [`Side`] that a person
//! may quote, and every printed figure is rounded towards that side.

mod audit;
mod batches;
mod claim;
mod description;
pub mod figure;
mod interval;
mod lens;
mod method;
mod node;
mod observe;
mod policy;
mod problem;
mod quoted;
mod reasons;
pub mod rounding;
mod run;
mod schemas;
mod sign;
mod source;
mod verdict;
pub mod words;

pub use audit::{
    Audit, Bootstrap, Finding, Hashes, Measured, NotValid, PlanDocument, PowerAt, TestAt,
};
pub use batches::{Drawing, FurtherRelease, Matrix, Permutation, Sampling, batches_per_pass};
pub use claim::{
    Account, Aside, At, Claim, Direction, Ends, Quantity, Release, Secret, Side, Standing,
    Unsupported,
};
pub use description::{BatchesDescription, PhaseDescription, Resolved, RunDescription, RunFile};
pub use figure::Figure;
pub use interval::Interval;
pub use lens::LensName;
pub use method::{Design, Method, UnknownName};
pub use node::nearest;
pub use observe::Observe;
pub use policy::Policy;
pub use problem::{BadField, Problem};
pub use quoted::{AtLeast, AtMost, Quoted};
pub use reasons::{Difficulty, NotCertified, NotCovered};
pub use run::{Adjacency, Phase, RenyiFilter, Run, RunBuilder, RunError, Stopped};
pub use schemas::SCHEMAS;
pub use sign::{NOTHING_TO_SIGN, Sign};
pub use source::Source;
pub use verdict::{Status, Verdict};
