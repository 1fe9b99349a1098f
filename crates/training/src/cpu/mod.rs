//! The CPU back end: products by `gemm` on one thread each, loops compiled for the machine's
//! vectors, replicas (or lanes of one batch) side by side by `rayon`.

mod active;
mod convolution;
mod elementwise;
mod executor;
mod group_norm;
mod layer;
mod linear;
mod loss;
pub mod panels;
mod pooling;
pub mod product;
mod replicas;
mod secure;
mod standardise;
mod tiles;
pub mod transformer;
pub mod update;
mod vectorise;

pub use executor::{Executor, MicroBatch};
pub use replicas::CpuReplicas;
pub(crate) use replicas::evaluate;

use crate::model::Kind;
use convolution::ConvolutionMemory;
use elementwise::{Relu, Tanh};
use group_norm::GroupNormMemory;
use layer::Layer;
use pooling::{AveragePool, MaxPool};

/// The layer of an operation; an addition of two buffers is no layer.
fn layer(kind: &Kind, capacity: usize) -> Option<Box<dyn Layer>> {
    Some(match *kind {
        Kind::Linear(layer) => Box::new(layer),
        Kind::Relu => Box::new(Relu),
        Kind::Tanh => Box::new(Tanh),
        Kind::Convolution(layer) => Box::new((layer, ConvolutionMemory::new(&layer, capacity))),
        Kind::GroupNorm(layer) => Box::new((layer, GroupNormMemory::new(&layer, capacity))),
        Kind::MaxPool(layer) => Box::new(MaxPool::new(layer, capacity)),
        Kind::AveragePool(layer) => Box::new(AveragePool(layer)),
        Kind::Add { .. } => return None,
    })
}
