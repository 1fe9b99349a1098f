//! The bodies of the fuzz targets. Each takes any bytes and panics when a law is broken: the
//! coverage-guided fuzzers in `fuzz/` call them, and so do ordinary tests with a few thousand
//! pseudo-random inputs, so that every test run fuzzes a little.

mod bytes;
mod description;
mod numerics;
mod scores;

pub use bytes::{Bytes, Pseudorandom};
pub use description::{run_description, some_description};
pub use numerics::numerics;
pub use scores::{any_scores, score_file, some_score_file};
