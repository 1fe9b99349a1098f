//! What is compared: pairs of distributions, by their definition.

mod count;
mod half_line;
mod step;

pub use count::Count;
pub use half_line::{HalfLine, Part};
pub use step::{Step, binomial};
