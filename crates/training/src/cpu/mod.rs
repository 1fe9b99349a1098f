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
