//! Bernoulli draws from 32-bit words, exact to 2^-64 in the probability: a word equal to the
//! first 32 bits of the threshold (once in 4e9) is decided by a second word.

use crate::Stream;
use crate::philox::{LANES, philox_lanes, philox4x32_10};

/// A probability as a threshold on random words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bernoulli {
    high: u64,
    low: u32,
}

impl Bernoulli {
    /// Success probability `p` in [0, 1], honoured to 2^-64.
    ///
    /// # Panics
    /// If `p` is not in [0, 1].
    pub fn new(p: f64) -> Self {
        assert!((0.0..=1.0).contains(&p), "probability {p} is outside [0, 1]");
        if p == 1.0 {
            return Self { high: 1 << 32, low: 0 };
        }
        // Both products are exact: scaling by powers of two, then the fraction of a number.
        let scaled = p * 4294967296.0;
        let high = scaled.floor();
        let low = ((scaled - high) * 4294967296.0).floor();
        Self { high: high as u64, low: low as u32 }
    }

    /// A word below the first number succeeds, a word equal to it is decided by the second; for
    /// kernels that run elsewhere.
    pub const fn threshold(&self) -> (u64, u32) {
        (self.high, self.low)
    }

    /// Whether draw `index` of a row succeeds.
    pub fn draw(&self, stream: &Stream, row: u64, index: u64) -> bool {
        let word = stream.block(row, index / 4)[(index % 4) as usize];
        self.decide(stream, row, index, word)
    }

    fn decide(&self, stream: &Stream, row: u64, index: u64, word: u32) -> bool {
        if u64::from(word) != self.high {
            return u64::from(word) < self.high;
        }
        let block = index / 4;
        let counter = [block as u32, (block >> 32) as u32, row as u32, (row >> 32) as u32];
        philox4x32_10(counter, stream.tie_key)[(index % 4) as usize] < self.low
    }

    /// Draws `first ..` of a row, as [`Bernoulli::draw`] gives them one by one. `first` must be a
    /// multiple of 4.
    ///
    /// # Panics
    /// If `first` is not a multiple of 4.
    pub fn fill(&self, stream: &Stream, row: u64, first: u64, out: &mut [bool]) {
        assert!(first.is_multiple_of(4), "draws are filled from a multiple of 4, not from {first}");
        let fill = Fill { key: stream.key, high: self.high, row, first_block: first / 4, out };
        if pulp::Arch::new().dispatch(fill) {
            for (i, hit) in out.iter_mut().enumerate() {
                *hit = self.draw(stream, row, first + i as u64);
            }
        }
    }
}

/// The filling loop, compiled once for each instruction set; says whether a word met the
/// threshold exactly.
struct Fill<'a> {
    key: [u32; 2],
    high: u64,
    row: u64,
    first_block: u64,
    out: &'a mut [bool],
}

impl pulp::WithSimd for Fill<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _instructions: S) -> bool {
        let mut block = self.first_block;
        let mut ties = 0u64;
        for chunk in self.out.chunks_mut(4 * LANES) {
            let words = philox_lanes(self.key, self.row, block);
            let mut hits = [[false; 4]; LANES];
            for (word, lanes) in words.iter().enumerate() {
                for lane in 0..LANES {
                    hits[lane][word] = lanes[lane] < self.high;
                    ties |= u64::from(lanes[lane] == self.high);
                }
            }
            chunk.copy_from_slice(&hits.as_flattened()[..chunk.len()]);
            block = block.wrapping_add(LANES as u64);
        }
        ties != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Purpose;

    #[test]
    fn filling_and_picking_agree() {
        let stream = Stream::new(5, Purpose::SAMPLING, 2);
        for p in [0.0, 1e-9, 0.01, 0.5, 0.999, 1.0] {
            let bernoulli = Bernoulli::new(p);
            let mut out = vec![false; 203];
            bernoulli.fill(&stream, 9, 64, &mut out);
            for (i, &hit) in out.iter().enumerate() {
                assert_eq!(hit, bernoulli.draw(&stream, 9, 64 + i as u64));
            }
        }
    }

    #[test]
    fn ends() {
        let stream = Stream::new(5, Purpose::SAMPLING, 2);
        let mut out = vec![false; 4096];
        Bernoulli::new(1.0).fill(&stream, 0, 0, &mut out);
        assert!(out.iter().all(|hit| *hit));
        Bernoulli::new(0.0).fill(&stream, 0, 0, &mut out);
        assert!(out.iter().all(|hit| !*hit));
    }

    /// A threshold that a real word meets exactly, so that the second word decides.
    #[test]
    fn ties_are_decided_by_the_second_word() {
        let stream = Stream::new(5, Purpose::SAMPLING, 2);
        let word = u64::from(stream.block(0, 0)[1]);
        let mut out = [false; 4];
        for (low, expected) in [(0, false), (u32::MAX, true)] {
            let bernoulli = Bernoulli { high: word, low };
            bernoulli.fill(&stream, 0, 0, &mut out);
            assert_eq!(out[1], expected);
            assert_eq!(bernoulli.draw(&stream, 0, 1), expected);
        }
    }

    #[test]
    fn frequency() {
        let n = 1 << 20;
        let mut out = vec![false; n];
        for p in [0.01, 0.1, 0.37] {
            Bernoulli::new(p).fill(&Stream::new(1, Purpose::SAMPLING, 0), 0, 0, &mut out);
            let share = out.iter().filter(|hit| **hit).count() as f64 / n as f64;
            assert!((share - p).abs() < 5.0 * f64::sqrt(p * (1.0 - p) / n as f64), "{share}");
        }
    }
}
