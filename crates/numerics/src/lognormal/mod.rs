//! Averages of log-normal numbers: W = (Y_1 + ... + Y_S)/S, Y = exp(g/sigma - 1/(2 sigma^2)), g standard
//! normal, so that E W = 1; and products of independent W.
//!
//! *Moments.* For c > 0 and a whole n >= 0,
//!   E W^{n-p} = 1/Gamma(p) * integral of z^{p-1} E[W^n e^{-zW}] dz, p = c + iu,
//! along any ray arg z = alpha, and E[W^n e^{-zW}] is the n-th coefficient, times n!/S^n, of the power series
//! (sum_k E[Y^k e^{-zY/S}] x^k/k!)^S. `moments.rs` takes both integrals by the trapezoid rule.
//!
//! *One identity bounds everything.* Moving all g by the same imaginary number turns Y and W by a factor
//! e^{-i kappa} and costs a factor e^{sigma^2 kappa^2/2} for each g:
//!   |E f(W)| <= e^{S sigma^2 kappa^2/2} E|f(W e^{-i kappa})|.
//! With f = W^{s+iu}: |E W^{s+iu}| <= E W^s exp(-u^2/(2 S sigma^2)), a decay for all u at once. With
//! f = W^n e^{-zW}, z = r e^{i beta}: |E W^n e^{-zW}| <= e^{S sigma^2 kappa^2/2} E W^n e^{-r cos(beta - kappa) W},
//! which bounds aliases and tails of the trapezoid rule.
//!
//! `line.rs` puts the moments into the inversion integral for E(W - e^t)_+ and E(e^t - W)_+.

mod gamma;
mod line;
mod moments;

pub use line::{Average, Averages};
