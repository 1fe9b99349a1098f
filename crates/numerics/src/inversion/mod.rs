//! Inversion for laws of the privacy loss that are not Gaussian mixtures on the whole line: a law is
//! a list of strands (stretches of a Gaussian variable on which the loss is smooth) and an atom at
//! loss zero. Ways to draw batches such as fixed-size sampling have such laws.
//!
//! With W the likelihood ratio of one step, Y the sum of ln W over all steps, and
//! K(s) = E_Q W^s for each part,
//!   E_Q f(Y - t) = 1/(2 pi i) * integral over Re s = c of K(s)^T e^{-st} k(s) ds,
//! k and f by [`crate::contour::Zone`]. The trapezoid sum with spacing eta is, by Poisson summation, the
//! sum over all integers m of e^{cmL} E f(Y - t - mL), L = 2 pi/eta: every alias is positive and
//! has a Chernoff bound. The other errors are bounded in
//! - [`grid`]: the quadrature of K, by Bernstein ellipses, and its round-off;
//! - [`decay`]: |K(c + iu)| for all u beyond the last node.
//!
//! An answer is a function of the laws and the question alone; what is kept between questions is, too ([`ladder`]).
//! Everything is a sum of bounds that are carried; no constant is left to experience.

mod cells;
mod decay;
mod grid;
mod ladder;
mod law;
mod line;
mod nodes;
mod rough;
mod solve;

pub use cells::{Cell, InCells};
pub use law::{Law, Strand};
pub use solve::{Composition, Obstacle, Times};
