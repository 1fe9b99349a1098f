//! Flags that several commands share, beside those that are keys of a question.

mod beyond;
mod limit;
mod output;
mod questions;
mod run;

pub use answers::flags::{integer, lens, nonnegative_integer, real, word};
pub use beyond::AttributeArgs;
pub use limit::LimitArgs;
pub use output::{Format, OutputArgs};
pub use questions::{LensArgs, Lenses};
pub use run::{RunArgs, claimed, read_file, read_files};
