//! Standard Gaussians in f32, four from a block, specified to the bit: the noise of training,
//! where hundreds of thousands are wanted at each step and 24 bits are enough.
//!
//! From a pair of words (a, b): u = ((a >> 1) + ((b & 255) + 1/2) / 256) 2^-31, each operation
//! rounded to f32, so 2^-40 <= u <= 1; radius = sqrt(-2 ln u); angle = 2 pi (b >> 8) 2^-24. The
//! words w0, w1 of block `b` give Gaussians `4b` (radius cos) and `4b + 1` (radius sin), w2, w3
//! give `4b + 2` and `4b + 3`. Additions, multiplications, divisions and square roots only, each
//! rounded on its own and none fused, so that a graphics card makes the same bits.
//! The largest magnitude is sqrt(80 ln 2) = 7.45, beyond which a true Gaussian has probability
//! 1e-13. Not for a model that is released: the generator is not cryptographic.

use crate::Stream;
use crate::philox::{LANES, philox_lanes};

/// Natural logarithm of a positive normal f32, to about 1e-7 of its magnitude or of 1.
#[inline(always)]
fn ln(x: f32) -> f32 {
    const HALF_ROOT: u32 = 0x3F35_04F3;
    const LN2: f32 = std::f32::consts::LN_2;
    let shifted = x.to_bits().wrapping_sub(HALF_ROOT).wrapping_add(127 << 23);
    let exponent = ((shifted >> 23) as i32).wrapping_sub(127) as f32;
    let m = f32::from_bits((shifted & 0x007F_FFFF).wrapping_add(HALF_ROOT));
    let f = m - 1.0;
    let s = f / (m + 1.0);
    let z = s * s;
    let series = ((1.0 / 9.0 * z + 1.0 / 7.0) * z + 1.0 / 5.0) * z + 1.0 / 3.0;
    let tail = 2.0 * (z * series);
    exponent * LN2 + (f - s * (f - tail))
}

/// Sine and cosine of 2 pi (w >> 8) / 2^24.
#[inline(always)]
fn sine_cosine(w: u32) -> (f32, f32) {
    let offset = w.wrapping_add(1 << 29);
    let quarter = offset >> 30;
    let rest = ((offset >> 8) & 0x003F_FFFF) as i32;
    let r = rest.wrapping_sub(1 << 21) as f32 * (1.0 / 16_777_216.0);
    let z = r * r;
    let mut sine = 42.058_693_f32;
    sine = sine * z - 76.705_86;
    sine = sine * z + 81.605_25;
    sine = sine * z - 41.341_7;
    sine = sine * z + std::f32::consts::TAU;
    sine *= r;
    let mut cosine = 60.244_64_f32;
    cosine = cosine * z - 85.456_82;
    cosine = cosine * z + 64.939_4;
    cosine = cosine * z - 19.739_208;
    cosine = cosine * z + 1.0;
    let odd = (quarter & 1).wrapping_neg();
    let (sine_bits, cosine_bits) = (sine.to_bits(), cosine.to_bits());
    let first = (sine_bits & !odd) | (cosine_bits & odd);
    let second = (cosine_bits & !odd) | (sine_bits & odd);
    let sine_sign = (quarter >> 1) << 31;
    let cosine_sign = ((quarter ^ (quarter >> 1)) & 1) << 31;
    (f32::from_bits(first ^ sine_sign), f32::from_bits(second ^ cosine_sign))
}

/// The two Gaussians of a pair of words.
#[inline(always)]
fn box_muller(a: u32, b: u32) -> (f32, f32) {
    let low = ((b & 255) as i32 as f32 + 0.5) * (1.0 / 256.0);
    let u = ((a >> 1) as i32 as f32 + low) * (1.0 / 2_147_483_648.0);
    let radius = (-2.0 * ln(u)).sqrt();
    let (sine, cosine) = sine_cosine(b);
    (radius * cosine, radius * sine)
}

impl Stream {
    /// Gaussian number `index` of a row, in f32 (other numbers than [`Stream::gaussian`]).
    pub fn gaussian_f32(&self, row: u64, index: u64) -> f32 {
        let words = self.block(row, index / 4);
        let pair = (index % 4 / 2) as usize * 2;
        let (even, odd) = box_muller(words[pair], words[pair + 1]);
        if index.is_multiple_of(2) { even } else { odd }
    }

    /// Gaussians `first ..` of a row in f32, as [`Stream::gaussian_f32`] gives them one by one.
    ///
    /// ```
    /// use random::{Purpose, Stream};
    /// let stream = Stream::new(7, Purpose::NOISE, 0);
    /// let mut noise = [0.0; 9];
    /// stream.fill_gaussians_f32(3, 4, &mut noise);
    /// assert_eq!(noise[8], stream.gaussian_f32(3, 12));
    /// ```
    ///
    /// # Panics
    /// If `first` is not a multiple of 4.
    pub fn fill_gaussians_f32(&self, row: u64, first: u64, out: &mut [f32]) {
        assert!(first.is_multiple_of(4), "noise is filled from a multiple of 4, not from {first}");
        pulp::Arch::new().dispatch(Fill { key: self.key, row, first_block: first / 4, out });
    }
}

struct Fill<'a> {
    key: [u32; 2],
    row: u64,
    first_block: u64,
    out: &'a mut [f32],
}

/// Blocks abreast: two sets of lanes, because f32 is half as wide as the lanes' slots.
const WIDE: usize = 2 * LANES;

#[inline(always)]
fn lanes(key: [u32; 2], row: u64, first_block: u64, out: &mut [f32; 4 * WIDE]) {
    let halves = [
        philox_lanes(key, row, first_block),
        philox_lanes(key, row, first_block.wrapping_add(LANES as u64)),
    ];
    let mut words = [[0u32; WIDE]; 4];
    for word in 0..4 {
        for lane in 0..LANES {
            words[word][lane] = halves[0][word][lane] as u32;
            words[word][lane + LANES] = halves[1][word][lane] as u32;
        }
    }
    let mut numbers = [[0.0f32; WIDE]; 4];
    for pair in [0, 2] {
        for lane in 0..WIDE {
            let (cosine, sine) = box_muller(words[pair][lane], words[pair + 1][lane]);
            numbers[pair][lane] = cosine;
            numbers[pair + 1][lane] = sine;
        }
    }
    for lane in 0..WIDE {
        for word in 0..4 {
            out[4 * lane + word] = numbers[word][lane];
        }
    }
}

impl pulp::WithSimd for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _instructions: S) {
        let mut block = self.first_block;
        let (whole, rest) = self.out.as_chunks_mut::<{ 4 * WIDE }>();
        for chunk in whole {
            lanes(self.key, self.row, block, chunk);
            block = block.wrapping_add(WIDE as u64);
        }
        if !rest.is_empty() {
            let mut last = [0.0; 4 * WIDE];
            lanes(self.key, self.row, block, &mut last);
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
        for first in [0u64, 4, 32, (1 << 34) - 8] {
            for length in [0usize, 1, 3, 31, 32, 33, 95] {
                let mut out = vec![0.0; length];
                stream.fill_gaussians_f32(17, first, &mut out);
                for (i, &x) in out.iter().enumerate() {
                    let one = stream.gaussian_f32(17, first + i as u64);
                    assert_eq!(x.to_bits(), one.to_bits());
                }
            }
        }
    }

    /// Frozen: a change of these bits is a change of every trained result with a seed.
    #[test]
    fn frozen_bits() {
        let stream = Stream::new(0x0123_4567_89AB_CDEF, Purpose::NOISE, 42);
        let found: Vec<u32> = (0..4).map(|i| stream.gaussian_f32(5, 12 + i).to_bits()).collect();
        assert_eq!(found, FROZEN);
    }
    const FROZEN: [u32; 4] = [1_058_851_881, 1_054_557_033, 3_212_855_957, 1_057_804_751];

    /// Against the same map in f64: errors of a few units in the last place of the radius.
    #[test]
    fn the_map_is_accurate() {
        let mut a = 0x9E37_79B9u32;
        for _ in 0..200_000 {
            a = a.wrapping_mul(0x0019_660D).wrapping_add(0x3C6E_F35F);
            let b = a.rotate_left(13) ^ 0x5bd1_e995;
            let low = (f64::from(b & 255) + 0.5) / 256.0;
            let u = (f64::from(a >> 1) + low) / 2f64.powi(31);
            // The number that u is rounded to.
            let radius = (-2.0 * f64::from(u as f32).ln()).sqrt();
            let angle = std::f64::consts::TAU * f64::from(b >> 8) / 2f64.powi(24);
            let (even, odd) = box_muller(a, b);
            // Rounding u twice moves ln u by 2^-24, and the radius by that over itself.
            let allowed = 4e-7 * (radius + 1.0) + 1.2e-7 / radius.max(2.4e-4);
            assert!((f64::from(even) - radius * angle.cos()).abs() < allowed, "{a} {b}");
            assert!((f64::from(odd) - radius * angle.sin()).abs() < allowed, "{a} {b}");
        }
        let largest = f64::from(box_muller(0, 0).0);
        assert!((largest - (80.0 * 2f64.ln()).sqrt()).abs() < 1e-5, "{largest}");
    }

    #[test]
    fn moments() {
        let n = 1 << 20;
        let mut numbers = vec![0.0f32; n];
        Stream::new(11, Purpose::NOISE, 0).fill_gaussians_f32(0, 0, &mut numbers);
        for (k, mean, variance) in
            [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0), (6, 15.0, 10_170.0)]
        {
            let found = numbers.iter().map(|x| f64::from(*x).powi(k)).sum::<f64>() / n as f64;
            let error = f64::sqrt(variance / n as f64);
            assert!((found - mean).abs() < 5.0 * error, "moment {k}: {found}");
        }
        for distance in 1..4 {
            let pairs = numbers.iter().zip(&numbers[distance..]);
            let found = pairs.map(|(x, y)| f64::from(x * y)).sum::<f64>() / n as f64;
            assert!(found.abs() < 5.0 / (n as f64).sqrt(), "correlation {distance}: {found}");
        }
    }
}
