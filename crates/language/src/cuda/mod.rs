//! Decoders on NVIDIA devices: forward, loss, back, and DP fine-tuning of adapters, of an embedding
//! that is the head too, and of whole models. Driver, NVRTC and cuBLAS are those of the crate `training`, loaded at run time.
//!
//! A step computes what [`crate::finetune::Trainer`] computes, from the same random words: results
//! differ by rounding only. Products are cuBLAS's, strided over sequences and heads. A map's weights and
//! its adapters are one matrix, so that they are one product; in bf16 the product adds the bias and takes
//! GELU or its derivative before anything is stored, where cuBLASLt knows how. A group of
//! queries that shares its keys is one matrix of group x length rows, so that grouped attention
//! needs no copies. Every example's adapter gradients are formed in f32 (a batched product over its
//! places), their norms summed in f64 from those same numbers, and the factors rounded down: what is
//! clipped is what is summed, whatever the precision of the products before it. Gradients of an
//! embedding and of whole matrices are never formed for one example: their norms are ghosts.
//!
//! Precisions: f32; TF32 (operands of products rounded to 11 bits); bf16 (weights and activations
//! stored in 8 bits of mantissa, biases of what attention and the activation read too; residual stream,
//! norms, scores, logits and sums in f32; going back, the stream's gradient is stored like activations).
//!
//! Cost of a step: about three times a forward pass; memory: what [`workspace`] lists.

mod adapters;
mod backward;
mod context;
mod embedding;
mod evaluate;
mod forward;
mod gradients;
mod growing;
mod head;
mod trainer;
mod weights;
mod whole;
mod workspace;

pub use context::Precision;
pub use evaluate::CudaModel;
pub use trainer::CudaTrainer;
pub use weights::CudaDecoder;
