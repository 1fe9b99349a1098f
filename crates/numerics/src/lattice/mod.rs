//! Lattices: Gauss-Legendre rules with a bound on their remainder, and powers of positive
//! sequences by FFT with a rigorous bound on the round-off of every entry.

pub mod gauss;
pub mod power;
