//! Files that several crates read and write. A reader believes nothing in a header before the
//! bytes are there, and every refusal is a fragment that its caller completes with file and row.
//! A writer leaves a whole file or none.

pub mod csv;
#[cfg(feature = "scores")]
pub mod decimal;
#[cfg(all(test, feature = "scores"))]
mod dice;
pub mod files;
pub mod jsonl;
#[cfg(feature = "scores")]
pub mod lines;
pub mod npy;
pub mod numbers;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(feature = "scores")]
pub mod rows;
