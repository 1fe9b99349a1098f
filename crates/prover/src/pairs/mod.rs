//! What is compared: pairs of distributions, by their definition.

mod count;
mod draws;
mod half_line;
mod mask;
mod smooth;
mod step;

pub use count::Count;
pub use draws::{Drawn, Draws, drawn, drawn_alone};
pub use half_line::{HalfLine, Part};
pub use mask::{Edge, Factor, Mask, RoughMask};
pub use step::{Step, binomial, cell};
