//! Random streams that are the same bytes on every machine.
//!
//! A [`Stream`] is named by (root seed, [`Purpose`], replica). Inside it every random word has an
//! address (row, index), so any part can be made by any thread in any order, skipped, or made
//! again. The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
//! 1, 2, 3", SC 2011); a step of training is a row, a coordinate of the model an index.
//!
//! # The specification, to the bit
//!
//! * **Key.** `words = philox(counter = [replica_low, replica_high, purpose, 0x444F_5349], key =
//!   [seed_low, seed_high])`; the stream's key is `[words[0], words[1]]`.
//! * **Words.** Block `b` of row `r` is `philox(counter = [b_low, b_high, r_low, r_high], key)`,
//!   four 32-bit words `w0..w3`.
//! * **64-bit words.** Number `i` of row `r` is in block `i / 2`: `w0 | w1 << 32` if `i` is even,
//!   `w2 | w3 << 32` if it is odd.
//! * **Uniforms** in (0, 1): `(k + 1/2) 2^-52` with `k` the top 52 bits of a 64-bit word.
//! * **Gaussians** `2b` and `2b + 1` of a row come from block `b` by the Box-Muller map of
//!   [`gaussian`]; logarithm, sine, cosine and square root are the kernels of [`elementary`], which
//!   use only IEEE additions, multiplications, divisions and square roots, each rounded on its own.
//!   Rust never fuses a multiplication with an addition, so the result does not depend on the
//!   instruction set or on a mathematics library.
//! * **Gaussians in f32**, four from a block, for the noise of training: the map in
//!   `gaussian_f32.rs`, specified in the same way.
//! * **Bernoulli(p)** number `i` of a row is 1 when word `i % 4` of block `i / 4` is below
//!   `floor(p 2^32)`; a word equal to it is decided by the next 32 bits of p and by the same
//!   address of the stream with purpose [`Purpose::tie_of`]. So p is honoured to 2^-64.
//!
//! ```
//! use random::{Purpose, Stream};
//! let noise = Stream::new(7, Purpose::NOISE, 0);
//! let mut all = [0.0; 9];
//! noise.fill_gaussians(3, 0, &mut all);
//! let mut part = [0.0; 2];
//! noise.fill_gaussians(3, 5, &mut part);
//! assert_eq!(part, all[5..7]);
//! ```

mod bernoulli;
mod binomial;
pub mod elementary;
pub mod gaussian;
mod gaussian_f32;
mod philox;
mod secure;
mod stream;

pub use bernoulli::Bernoulli;
pub use binomial::Binomial;
pub use philox::philox4x32_10;
pub use secure::{SecureKey, SecureStream};
pub use stream::{Purpose, Stream};
