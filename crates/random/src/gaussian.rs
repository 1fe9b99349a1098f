//! Standard Gaussians by the Box-Muller map, specified to the bit.
//!
//! From a block's 64-bit words (a, b): u = 2 - m with m = the number in [1, 2) whose fraction is
//! the top 52 bits of a (so u is in (0, 1], never 0); radius = sqrt(-2 ln u); angle = 2 pi b / 2^64
//! from the top 54 bits of b. Gaussian `2 block` is radius cos, `2 block + 1` is radius sin.
//! The largest possible magnitude is sqrt(104 ln 2) = 8.49, beyond which a true Gaussian has
//! probability 2.1e-17: no simulation of fewer than 10^15 numbers can tell.

use crate::Stream;
use crate::elementary::{ln_normal, sine_cosine_of_turn};
use crate::philox::{LANES, philox_lanes};

/// The two Gaussians of a block's words.
#[inline(always)]
pub(crate) fn box_muller(a: u64, b: u64) -> (f64, f64) {
    let u = 2.0 - f64::from_bits((a >> 12) | 0x3FF0_0000_0000_0000);
    let radius = (-2.0 * ln_normal(u)).sqrt();
    let (sine, cosine) = sine_cosine_of_turn(b);
    (radius * cosine, radius * sine)
}

#[inline(always)]
fn gaussian_lanes(key: [u32; 2], row: u64, first_block: u64, out: &mut [f64; 2 * LANES]) {
    let [w0, w1, w2, w3] = philox_lanes(key, row, first_block);
    let mut cosines = [0.0; LANES];
    let mut sines = [0.0; LANES];
    for lane in 0..LANES {
        let a = w0[lane] | w1[lane] << 32;
        let b = w2[lane] | w3[lane] << 32;
        (cosines[lane], sines[lane]) = box_muller(a, b);
    }
    for lane in 0..LANES {
        out[2 * lane] = cosines[lane];
        out[2 * lane + 1] = sines[lane];
    }
}

impl Stream {
    /// Gaussian number `index` of a row.
    pub fn gaussian(&self, row: u64, index: u64) -> f64 {
        let [a, b] = self.words(row, index / 2);
        let (even, odd) = box_muller(a, b);
        if index.is_multiple_of(2) { even } else { odd }
    }

    /// Gaussians `first ..` of a row, the same numbers as [`Stream::gaussian`] gives one by one.
    pub fn fill_gaussians(&self, row: u64, first: u64, out: &mut [f64]) {
        let mut out = out;
        let mut first = first;
        if !first.is_multiple_of(2) && !out.is_empty() {
            out[0] = self.gaussian(row, first);
            out = &mut out[1..];
            first += 1;
        }
        pulp::Arch::new().dispatch(Fill { key: self.key, row, first_block: first / 2, out });
    }
}

/// The filling loop, compiled once for each instruction set.
struct Fill<'a> {
    key: [u32; 2],
    row: u64,
    first_block: u64,
    out: &'a mut [f64],
}

impl pulp::WithSimd for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _instructions: S) {
        let mut block = self.first_block;
        let (whole, rest) = self.out.as_chunks_mut::<{ 2 * LANES }>();
        for chunk in whole {
            gaussian_lanes(self.key, self.row, block, chunk);
            block = block.wrapping_add(LANES as u64);
        }
        if !rest.is_empty() {
            let mut last = [0.0; 2 * LANES];
            gaussian_lanes(self.key, self.row, block, &mut last);
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Purpose;

    #[test]
    fn filling_and_picking_agree() {
        let stream = Stream::new(3, Purpose::NOISE, 1);
        for first in [0u64, 1, 2, 31, 32, 33, u64::from(u32::MAX) * 2 - 7] {
            for length in [0usize, 1, 2, 3, 31, 32, 33, 95] {
                let mut out = vec![0.0; length];
                stream.fill_gaussians(17, first, &mut out);
                for (i, &x) in out.iter().enumerate() {
                    assert_eq!(x.to_bits(), stream.gaussian(17, first + i as u64).to_bits());
                }
            }
        }
    }

    /// Ends of the map: u = 1 gives zero, the smallest u the largest magnitude.
    #[test]
    fn extremes() {
        assert_eq!(box_muller(0, 0), (0.0, 0.0));
        let (largest, zero) = box_muller(u64::MAX, 0);
        assert!((largest - (104.0 * std::f64::consts::LN_2).sqrt()).abs() < 1e-14);
        assert_eq!(zero, 0.0);
    }

    /// Moments up to the eighth and a Kolmogorov distance, each at 5 standard errors.
    #[test]
    fn moments_and_distribution() {
        let n = 1 << 20;
        let mut numbers = vec![0.0; n];
        Stream::new(11, Purpose::NOISE, 0).fill_gaussians(0, 0, &mut numbers);
        // E x^k and the variance of x^k for k = 1..8.
        for (k, mean, variance) in [
            (1, 0.0, 1.0),
            (2, 1.0, 2.0),
            (3, 0.0, 15.0),
            (4, 3.0, 96.0),
            (6, 15.0, 10_395.0 - 225.0),
            (8, 105.0, 2_027_025.0 - 11_025.0),
        ] {
            let found = numbers.iter().map(|x: &f64| x.powi(k)).sum::<f64>() / n as f64;
            let error = f64::sqrt(variance / n as f64);
            assert!((found - mean).abs() < 5.0 * error, "moment {k}: {found}");
        }
        let neighbours: f64 = numbers.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n as f64;
        assert!(neighbours.abs() < 5.0 / (n as f64).sqrt(), "correlation {neighbours}");
        // Quantiles of the normal distribution at .001, .1, .25, .5, .9, .9999.
        for (quantile, below) in [
            (-3.090232306167813, 0.001),
            (-1.2815515655446004, 0.1),
            (-0.6744897501960817, 0.25),
            (0.0, 0.5),
            (1.2815515655446004, 0.9),
            (3.719016485455709, 0.9999),
        ] {
            let share = numbers.iter().filter(|x| **x < quantile).count() as f64 / n as f64;
            let error = f64::sqrt(below * (1.0 - below) / n as f64);
            assert!((share - below).abs() < 5.0 * error, "{quantile}: {share}");
        }
    }
}
