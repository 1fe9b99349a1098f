//! A decoder: tokens in, logits out.
//!
//! One description ([`Architecture`]) covers GPT-2 (layer norm, learned positions, GELU) and the
//! Llama family (RMS norm, rotary positions, SwiGLU, grouped keys and values). Arithmetic is f32.
//!
//! - [`Decoder::forward`] runs tokens of equal-length sequences after what a [`Cache`] holds.
//! - [`Decoder::log_probabilities`] of every token given those before it.
//! - [`Decoder::backward`]: from the gradient at the output back to the embedded input, through
//!   frozen weights.
//! - [`generate`]: greedy and sampled continuations.

mod architecture;
mod attention;
mod backward;
mod decoder;
pub mod generate;
mod layers;
mod packed;

pub use architecture::{Activation, Architecture, Norm, Pairs, Position};
pub(crate) use backward::Observer;
pub use backward::{NormPlace, Projection, Record};
pub(crate) use decoder::log_sum_exp;
pub use decoder::{Adapter, Cache, Decoder, Layer, Linear, NormWeights};
pub use generate::{Choose, Sampling, greedy, sample};
pub(crate) use generate::{drawn, largest};
pub(crate) use layers::norm_direction;
pub use packed::Packed;
