//! Fine-tuning of decoders with differential privacy: adapters of low rank (LoRA), the embedding, or
//! every weight.
//!
//! Every example's whole gradient is clipped to the clip norm, exactly ([`clipped_sum`]). A step
//! ([`Trainer`]) draws a batch, sums the clipped gradients, adds Gaussian noise of noise_multiplier x
//! clip_norm to each coordinate, divides by the expected batch size (a public constant) and hands the
//! result to SGD or Adam; sampler, noise, optimisers and ledger are those of the crate `training`.
//! Examples are processed in micro-batches, which changes memory and rounding and nothing else.
//!
//! The loss of an example is the mean cross-entropy of its tokens from `first` on.
//!
//! [`Finetuning`] is a training from a file to its outputs, resumable at any moment, perhaps with
//! canaries of tokens ([`canaries`]) or of gradients ([`gradient_canaries`]); [`game`] is such a training as an experiment whose rows are scores.

mod adapters;
pub mod canaries;
pub mod data;
mod description;
pub mod game;
pub mod gradient_canaries;
mod gradients;
mod layout;
mod losses;
mod place;
mod planted;
mod records;
mod session;
mod terms;
mod trainer;
pub mod weights;

pub use adapters::{Lora, attach};
pub use description::FinetuneDescription;
pub(crate) use description::required;
pub use gradients::{Clipped, Example, ExampleGradient, clipped_sum, per_example};
pub use layout::{Layout, Piece, Scope};
pub use place::{Measurer, Place};
pub use planted::{CanaryDescription, CanaryKind, Planted};
pub use records::fingerprint;
pub use session::{Finetuning, ScoresAndMembers, Start, micro_batch};
pub use trainer::{Recipe, Trainer};
pub(crate) use trainer::{check_state, split};
