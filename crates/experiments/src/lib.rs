//! Long experiments as plans of independent chunks.
//!
//! An [`Experiment`] is a [`Plan`] and a pure function from a range of trials to rows of a table.
//! [`run`] computes the chunks that are missing, on any number of threads, one shard of them or
//! all, and writes each to its own file: to a partial file, synced, then renamed, so that a file
//! with a chunk's name is always whole. Running the same command again is resuming. When no chunk
//! is missing, the rows are merged into the output, in the order of the trials; so the bytes do
//! not depend on threads, shards or interruptions, and more trials later extend the same files.
//!
//! ```text
//! scores.csv             the output
//! scores.csv.meta.json   what made it: the plan, the number of trials, the checksum
//! scores.csv.work/       plan.json, chunks/00000000.csv, chunks/00000001.csv, …
//! ```
//!
//! Nothing here prints: progress is a stream of [`Event`]s. Nothing here knows what a trial is.

mod chunk;
mod engine;
mod error;
mod event;
mod merge;
mod plan;
mod seed;
mod shard;
mod status;
mod store;

pub use engine::{Outcome, Settings, run};
pub use error::ExperimentError;
pub use event::{Event, Reporter, Silent};
pub use merge::Metadata;
pub use plan::{Experiment, Plan};
pub use seed::training_seed;
pub use shard::Shard;
pub use status::{ChunkState, WorkStatus, status};
pub use store::Folder;
