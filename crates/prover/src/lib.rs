//! Proves certified ends again, from the definition of the pair, in ball arithmetic.

pub mod arithmetic;
pub mod contour;
pub mod model;
pub mod pairs;
