//! Language models: what they memorise, and the decoders to measure it on.
//!
//! - [`memorization`]: VMR and AIR of anyone's completions, with intervals over secrets and seeds
//!   and the base rate of the un-tuned model beside them.
//! - [`load`]: GPT-2 and Llama decoders from safetensors, GGUF and llama2.c files, with their
//!   tokenizers. Files are not trusted: a wrong one is refused with a sentence.
//! - [`model`]: the decoder itself: logits, log-probabilities, generation with a cache of keys and
//!   values, and the gradient of the loss with respect to the input.
//! - [`finetune`]: adapters, embeddings or whole models trained with DP-SGD or DP-Adam, every example
//!   clipped exactly; token canaries.
//! - `cuda`: the same on NVIDIA devices, for adapters.
//! - [`grid`]: trainings over a grid of hyper-parameters, each measured, as an experiment.
//! - [`compression`]: ACR, the length of a text over that of the shortest prompt that elicits it.

pub mod compression;
#[cfg(feature = "cuda")]
pub mod cuda;
mod error;
pub mod finetune;
pub mod grid;
pub mod load;
pub mod memorization;
pub mod model;
mod product;
pub mod text;

pub use error::LanguageError;
pub use model::Decoder;
pub use text::Tokenizer;
