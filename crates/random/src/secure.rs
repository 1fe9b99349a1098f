//! Randomness for a model that will be released: ChaCha20 under a 256-bit key from the operating
//! system. Philox streams are for auditing and simulation; whoever knows or guesses their seed
//! knows the noise.
//!
//! Stream `row` of a purpose is ChaCha20's stream number `row * 16 + purpose`, so that a training
//! that was interrupted draws the same numbers again; the key must be kept as secret as the data.

use crate::elementary::ln;
use crate::{Purpose, elementary::sine_cosine_of_turn};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A secret key; its `Debug` form shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecureKey([u8; 32]);

impl std::fmt::Debug for SecureKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SecureKey(..)")
    }
}

impl SecureKey {
    /// A fresh key from the operating system.
    ///
    /// # Errors
    /// When the operating system has no randomness to give.
    pub fn fresh() -> std::io::Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(std::io::Error::other)?;
        Ok(Self(key))
    }

    /// A key that was kept.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// To keep the key, in a place as safe as the data.
    pub const fn to_bytes(&self) -> [u8; 32] {
        self.0
    }

    /// The words of a purpose and row (a step).
    ///
    /// # Panics
    /// If the purpose's number is above 15.
    pub fn stream(&self, purpose: Purpose, row: u64) -> SecureStream {
        assert!(purpose.0 < 16, "a purpose of secure streams is below 16");
        let mut generator = ChaCha20Rng::from_seed(self.0);
        generator.set_stream(row.wrapping_mul(16) | u64::from(purpose.0));
        SecureStream { generator, second: None }
    }
}

/// Cryptographic random words, in order.
#[derive(Clone, Debug)]
pub struct SecureStream {
    generator: ChaCha20Rng,
    second: Option<f64>,
}

impl SecureStream {
    pub fn word(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A coin with success probability `p`, honoured to 2^-53.
    pub fn coin(&mut self, p: f64) -> bool {
        ((self.word() >> 11) as f64) * 2f64.powi(-53) < p
    }

    /// A standard Gaussian by Box-Muller from 104 + 54 random bits: the largest possible magnitude
    /// is 12, where a true Gaussian has probability 2^-105.
    ///
    /// ```
    /// use random::{Purpose, SecureKey};
    /// let mut stream = SecureKey::from_bytes([7; 32]).stream(Purpose::NOISE, 3);
    /// let sum: f64 = (0..10_000).map(|_| stream.gaussian()).sum();
    /// assert!(sum.abs() < 500.0);
    /// ```
    pub fn gaussian(&mut self) -> f64 {
        if let Some(second) = self.second.take() {
            return second;
        }
        let unit = 2f64.powi(-52);
        let (high, low) = ((self.word() >> 12) as f64, ((self.word() >> 12) as f64 + 0.5) * unit);
        let radius = (-2.0 * ln((high + low) * unit)).max(0.0).sqrt();
        let (sine, cosine) = sine_cosine_of_turn(self.word());
        self.second = Some(radius * sine);
        radius * cosine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_purposes_differ_and_repeat() {
        let key = SecureKey::from_bytes([3; 32]);
        let first = |purpose, row| key.stream(purpose, row).word();
        assert_eq!(first(Purpose::NOISE, 5), first(Purpose::NOISE, 5));
        assert_ne!(first(Purpose::NOISE, 5), first(Purpose::NOISE, 6));
        assert_ne!(first(Purpose::NOISE, 5), first(Purpose::SAMPLING, 5));
        assert_ne!(SecureKey::fresh().unwrap(), SecureKey::fresh().unwrap());
        assert_eq!(format!("{key:?}"), "SecureKey(..)");
    }

    /// ChaCha20 with a zero key, stream 0: the keystream of RFC 8439's first test vector.
    #[test]
    fn known_answer() {
        let mut stream = SecureKey::from_bytes([0; 32]).stream(Purpose(0), 0);
        assert_eq!(stream.word().to_le_bytes(), [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]);
    }

    #[test]
    fn moments_and_coins() {
        let mut stream = SecureKey::from_bytes([1; 32]).stream(Purpose::NOISE, 0);
        let n = 1 << 19;
        let numbers: Vec<f64> = (0..n).map(|_| stream.gaussian()).collect();
        for (k, mean, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            let found = numbers.iter().map(|x| x.powi(k)).sum::<f64>() / f64::from(n);
            assert!((found - mean).abs() < 5.0 * f64::sqrt(variance / f64::from(n)), "moment {k}");
        }
        let hits = (0..n).filter(|_| stream.coin(0.1)).count() as f64 / f64::from(n);
        assert!((hits - 0.1).abs() < 5.0 * f64::sqrt(0.09 / f64::from(n)), "{hits}");
    }
}
