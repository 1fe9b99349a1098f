//! Flags that several commands share, and the numbers in them.

mod beyond;
mod numbers;
mod output;
mod questions;
mod run;
mod words;

pub use beyond::{AttributeArgs, CandidateArgs, LossArgs, ShuffleArgs};
pub use numbers::{integer, lens, nonnegative_integer, real};
pub use output::{Format, OutputArgs};
pub use questions::{Lenses, QuestionArgs};
pub use run::{RunArgs, claimed, flag, read_file, read_files};
pub use words::word;
