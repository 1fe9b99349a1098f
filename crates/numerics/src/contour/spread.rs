//! Sums of w_j e^{i k h l_j} for k = 0..count by one real FFT, with a bound on the error.
//!
//! Each point is spread by a Gaussian over the cells of a ring of M >= 6 count cells, the ring is
//! transformed, and every mode is divided by the Gaussian's own (Greengard and Lee 2004). With
//! tau M^2 = 54 and 14 cells to either side:
//! - aliasing: modes k and k - M differ by e^{-54 (1 - 2 count/M)} <= e^{-36};
//! - cells left out: distances of 14 and more, e^{-pi^2 14^2 / 54} < e^{-35.8};
//! - division by e^{-k^2 tau} magnifies round-off by at most e^{54/36} < 4.5;
//! - the FFT errs by less than 8 u per bit of M in the 2-norm, relative: the counts of `fourier.rs` hold there too, since
//!   every stage is unitary up to its scale; 8 u per bit and 8 u are counted.
//!
//! Costs 28 multiply-adds a point and the FFT: the product of points and nodes never enters.

use crate::complex::Complex;
use crate::elementary::exp;
use crate::fourier::forward;
use std::f64::consts::{PI, TAU};

/// tau M^2.
const WIDTH: f64 = 54.0;
/// Cells used: from 13 below to 14 above the one a point lies in.
const BELOW: usize = 13;
const CELLS: usize = 28;
/// Points added up locally before they go into the ring, which bounds the chain of roundings.
const BLOCK: usize = 512;

/// The sums, and the absolute error that each may have, not counting that the phases k h l_j are
/// themselves rounded.
pub(crate) struct Spread {
    pub(crate) values: Vec<Complex>,
    pub(crate) error: f64,
}

/// Evaluates the sums; weights are not negative.
pub(crate) fn sums(lengths: &[f64], weights: &[f64], spacing: f64, count: usize) -> Spread {
    let cells = (6 * count.max(16)).next_power_of_two();
    let (ring, chain) = spread(lengths, weights, spacing, cells);
    let total: f64 = weights.iter().sum();
    let norm = (PI / WIDTH).sqrt();
    let square: f64 = ring.iter().map(|g| g * g).sum();

    let modes = forward(&ring);
    let magnified = exp(WIDTH * 0.25 / 9.0);
    let values = (0..count)
        .map(|k| {
            let part = k as f64 / cells as f64;
            let factor = norm * exp(WIDTH * part * part);
            Complex::new(factor * modes.re[k], -factor * modes.im[k])
        })
        .collect();
    let rounded =
        4.0 * f64::EPSILON * f64::from(cells.ilog2() + 1) * (square * cells as f64).sqrt();
    // Aliases and missing cells, the Gaussian's own digits, the chains of additions, the FFT.
    let error =
        total * (2e-15 + magnified * f64::EPSILON * (40.0 + chain)) + magnified * norm * rounded;
    Spread { values, error }
}

/// The ring of cells, and the longest chain of additions that any point went through.
fn spread(lengths: &[f64], weights: &[f64], spacing: f64, cells: usize) -> (Vec<f64>, f64) {
    let rate = PI * PI / WIDTH;
    let table: [f64; CELLS] = std::array::from_fn(|m| {
        let m = m as f64 - BELOW as f64;
        exp(-rate * m * m)
    });
    let mut ring = vec![0.0; cells];
    let mut visits = vec![0u32; cells];
    let mut local = [0.0; CELLS];
    let (mut held, mut home) = (0usize, usize::MAX);
    let flush = |local: &mut [f64; CELLS], home: usize, ring: &mut [f64], visits: &mut [u32]| {
        for (m, value) in local.iter_mut().enumerate() {
            let cell = (home + cells + m - BELOW) % cells;
            ring[cell] += *value;
            visits[cell] += 1;
            *value = 0.0;
        }
    };
    let per_length = spacing / TAU;
    for (&length, &weight) in lengths.iter().zip(weights) {
        let turns = per_length * length;
        let place = (turns - turns.floor()) * cells as f64;
        let cell = (place as usize).min(cells - 1);
        if cell != home || held >= BLOCK {
            if held > 0 {
                flush(&mut local, home, &mut ring, &mut visits);
            }
            (held, home) = (0, cell);
        }
        held += 1;
        let offset = place - cell as f64;
        // e^{-rate (m - offset)^2} = e^{-rate offset^2} (e^{2 rate offset})^m e^{-rate m^2}
        let ratio = exp(2.0 * rate * offset);
        let start = weight * exp(-rate * offset * (offset + 2.0 * BELOW as f64));
        let mut power = start;
        for (value, entry) in local.iter_mut().zip(&table) {
            *value += power * entry;
            power *= ratio;
        }
    }
    if held > 0 {
        flush(&mut local, home, &mut ring, &mut visits);
    }
    let most = visits.iter().copied().max().unwrap_or(0);
    (ring, f64::from(most) + BLOCK as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against plain sums with fresh sines: the error is within its bound, and small.
    #[test]
    fn sums_are_as_good_as_they_say() {
        for (points, count, spacing) in [(40, 100, 0.3), (3000, 700, 0.011), (900, 2000, 7.0)] {
            let lengths: Vec<f64> = (0..points)
                .map(|j| (f64::from(j) * 0.618_034).fract().powi(3) * 9.0 - 0.7)
                .collect();
            let weights: Vec<f64> =
                (0..points).map(|j| (-(f64::from(j) * 0.01 - 2.0).powi(2)).exp()).collect();
            let total: f64 = weights.iter().sum();
            let found = sums(&lengths, &weights, spacing, count);
            let mut worst = 0.0f64;
            for (k, value) in found.values.iter().enumerate() {
                let (mut re, mut im) = (0.0, 0.0);
                for (l, w) in lengths.iter().zip(&weights) {
                    let (sin, cos) = (k as f64 * (spacing * l)).sin_cos();
                    re += w * cos;
                    im += w * sin;
                }
                worst = worst.max((value.re - re).hypot(value.im - im));
            }
            // The phases' own rounding: k h l eps.
            let phases = f64::EPSILON * count as f64 * spacing * 9.0 * total;
            assert!(worst <= found.error + phases, "{points} {count}: {worst:e} {:e}", found.error);
            assert!(found.error <= 1e-10 * total, "{:e}", found.error / total);
            assert!(worst <= 1e-13 * total + phases, "{:e}", worst / total);
        }
    }
}
