//! Fine-tuning of LoRA adapters with differential privacy.
//!
//! The base is frozen. For an example i with inputs x_i (tokens x inputs) of an adapted projection and
//! gradients d_i of its output, the adapter's gradients are
//!
//! - up: scale d_i' (x_i down'), outputs x rank
//! - down: scale (d_i up)' x_i, rank x inputs
//!
//! so that every example's whole gradient is small and is formed exactly; it is clipped to the clip norm
//! over all adapters together ([`per_example`]). A step ([`Trainer`]) draws a Poisson batch, sums the
//! clipped gradients, adds Gaussian noise of noise_multiplier x clip_norm to each coordinate,
//! divides by the expected batch size (a public constant) and hands the result to SGD or Adam.
//! Examples are processed in micro-batches, which changes memory and nothing else.
//!
//! The loss of an example is the mean cross-entropy of its tokens from `first` on.

mod adapters;
mod gradients;
mod trainer;

pub use adapters::{Lora, attach, parameters, set_parameters};
pub use gradients::{Example, ExampleGradient, per_example};
pub use trainer::{Optimizer, Recipe, StepReport, Trainer};
