use crate::elementary::unit_interval;
use crate::philox::philox4x32_10;

/// What a stream is for. Two purposes never share a random word by design, so that a run with
/// and a run without a canary can have the same noise and different batches, or the reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Purpose(pub u32);

impl Purpose {
    /// The Gaussian noise of the mechanism.
    pub const NOISE: Self = Self(1);
    /// Whether a record is in a batch.
    pub const SAMPLING: Self = Self(2);
    /// How many of a group of identical records are in a batch.
    pub const BATCH_SIZE: Self = Self(3);
    /// Where a model starts.
    pub const INITIALISATION: Self = Self(4);
    /// Which canaries are in.
    pub const MEMBERSHIP: Self = Self(5);
    /// Cutting or shuffling a data set.
    pub const SHUFFLE: Self = Self(6);

    /// The purpose whose words decide ties of a Bernoulli draw of this purpose.
    pub const fn tie_of(self) -> Self {
        Self(self.0 ^ 0x8000_0000)
    }
}

/// The random words of (root seed, purpose, replica), each with an address (row, index).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    pub(crate) key: [u32; 2],
    pub(crate) tie_key: [u32; 2],
}

/// "DOSI": keeps the blocks that make keys apart from everything else.
const KEY_TAG: u32 = 0x444F_5349;

const fn derive_key(seed: u64, purpose: Purpose, replica: u64) -> [u32; 2] {
    let counter = [replica as u32, (replica >> 32) as u32, purpose.0, KEY_TAG];
    let words = philox4x32_10(counter, [seed as u32, (seed >> 32) as u32]);
    [words[0], words[1]]
}

impl Stream {
    /// The stream of a purpose in one replica of the experiment with this root seed.
    pub const fn new(seed: u64, purpose: Purpose, replica: u64) -> Self {
        Self {
            key: derive_key(seed, purpose, replica),
            tie_key: derive_key(seed, purpose.tie_of(), replica),
        }
    }

    /// The four words of a block.
    pub const fn block(&self, row: u64, block: u64) -> [u32; 4] {
        let counter = [block as u32, (block >> 32) as u32, row as u32, (row >> 32) as u32];
        philox4x32_10(counter, self.key)
    }

    /// The key of the underlying generator, for kernels that run elsewhere.
    pub const fn key(&self) -> [u32; 2] {
        self.key
    }

    /// The key of the generator that decides ties of Bernoulli draws.
    pub const fn tie_key(&self) -> [u32; 2] {
        self.tie_key
    }

    /// 64-bit word `index` of a row.
    pub const fn word(&self, row: u64, index: u64) -> u64 {
        let words = self.block(row, index / 2);
        let half = (index % 2) as usize * 2;
        words[half] as u64 | (words[half + 1] as u64) << 32
    }

    /// Both 64-bit words of a block.
    pub(crate) const fn words(&self, row: u64, block: u64) -> [u64; 2] {
        let [w0, w1, w2, w3] = self.block(row, block);
        [w0 as u64 | (w1 as u64) << 32, w2 as u64 | (w3 as u64) << 32]
    }

    /// Uniform number `index` of a row, strictly between 0 and 1.
    ///
    /// ```
    /// # use random::{Purpose, Stream};
    /// let u = Stream::new(1, Purpose::SAMPLING, 0).uniform(0, 0);
    /// assert!(0.0 < u && u < 1.0);
    /// ```
    pub fn uniform(&self, row: u64, index: u64) -> f64 {
        unit_interval(self.word(row, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frozen: a change of these numbers is a change of every result with a seed.
    #[test]
    fn frozen_words() {
        let stream = Stream::new(0x0123_4567_89AB_CDEF, Purpose::NOISE, 42);
        assert_eq!(stream.key(), FROZEN_KEY);
        assert_eq!(stream.word(5, 3), FROZEN_WORD);
        assert_eq!(stream.uniform(5, 3).to_bits(), FROZEN_UNIFORM);
    }
    const FROZEN_KEY: [u32; 2] = [2_448_809_647, 392_206_548];
    const FROZEN_WORD: u64 = 0xae1c_8826_6616_43fe;
    const FROZEN_UNIFORM: u64 = 0x3fe5_c391_04cc_c2c9;

    #[test]
    fn purposes_and_replicas_differ() {
        let words: std::collections::HashSet<u64> = (0..1000u64)
            .flat_map(|replica| {
                [Purpose::NOISE, Purpose::SAMPLING, Purpose::NOISE.tie_of()]
                    .map(|purpose| Stream::new(9, purpose, replica).word(0, 0))
            })
            .collect();
        assert_eq!(words.len(), 3000);
    }
}
