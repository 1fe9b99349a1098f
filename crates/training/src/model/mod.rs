//! A model as data: a program of operations over buffers, and where each parameter lies in one
//! flat vector. Every back end runs the same program.

mod build;
mod describe;
mod initialise;
mod layers;
mod network;

pub use build::NetworkBuilder;
pub use describe::{ActivationName, LanguageDescription, ModelDescription, TrainedWeights};
pub use layers::*;
pub use network::{Image, Network, Operation, Start, Tensor, TensorLayout};
