//! Special functions, contour inversion, lattices and roots that return the safe side. Knows no privacy.
pub mod beta;

mod complex;
pub mod contour;
pub mod lattice;
pub mod mixture;
pub mod patience;
pub mod roots;
pub mod special;
mod sum;
