//! Turns bytes into parameters, and a seed into bytes.

/// Reads parameters off a slice; zeros once it is used up, so that every input is a case.
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    pub fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    /// A number in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number spread evenly in the logarithm over [low, high].
    pub fn logarithmic(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.fraction() * (high.ln() - low.ln())).exp().clamp(low, high)
    }

    /// Mostly a number in [low, high]; one time in eight any 64 bits at all: NaN, infinities,
    /// negative and subnormal numbers included.
    pub fn parameter(&mut self, low: f64, high: f64) -> f64 {
        if self.byte() % 8 == 7 { f64::from_bits(self.word()) } else { self.logarithmic(low, high) }
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014): enough to vary test inputs, the same everywhere.
pub struct Pseudorandom(u64);

impl Pseudorandom {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.div_ceil(8)).flat_map(|_| self.word().to_le_bytes()).take(count).collect()
    }
}
