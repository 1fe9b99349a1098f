//! Lattices: Gauss-Legendre rules with a bound on their remainder, laws kept in convex order, and powers of positive
//! sequences by FFT with a rigorous bound on the round-off of every entry.

pub mod gauss;
pub mod ordered;
pub mod power;
