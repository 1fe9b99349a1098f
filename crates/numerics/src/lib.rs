//! Numbers with ends: what is computed comes as an interval that holds the truth, or as an end on a
//! side that is named. Knows no privacy.
//!
//! The question behind most of it: a random variable is a sum of many log-ratios of two laws; how
//! much mass lies above a point, and how much does it weigh? Several routes answer, each with its
//! own bound on what it leaves out:
//!
//! - [`contour`]: log-ratios of Gaussian mixtures, by an integral of the moment function along a line
//!   in the complex plane; nearly always the fastest and the sharpest.
//! - [`inversion`]: the same for laws with atoms and kinks.
//! - [`positive`] and [`lattice`]: masses on a grid, kept larger or smaller in convex order; for few
//!   summands and for tails that a transform cannot see.
//!
//! Under them stand [`special`] (normal tails and quantiles with stated errors), [`beta`] (binomial
//! tails and ends), [`mixture`] (the log-ratio of two mixtures) and [`roots`]. [`patience`] lets a
//! caller look up during a long computation, and ends one that takes too long.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod beta;
mod complex;
pub mod contour;
pub mod elementary;
mod fourier;
pub mod inversion;
pub mod lattice;
mod legendre;
pub mod lognormal;
pub mod mixture;
pub mod patience;
pub mod positive;
pub mod roots;
pub mod special;
mod sum;
