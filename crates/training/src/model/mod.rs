//! A model as data: a program of operations over buffers, and where each parameter lies in one
//! flat vector. Every back end runs the same program.

mod build;
mod describe;
mod initialise;
mod network;

pub use build::NetworkBuilder;
pub use describe::{ActivationName, LanguageDescription, ModelDescription, TrainedWeights};
pub use network::{
    Convolution, GroupNorm, Image, Kind, Linear, Network, Operation, Pool, Start, Tensor,
    TensorLayout,
};
