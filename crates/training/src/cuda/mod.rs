//! NVIDIA devices. Driver, NVRTC and cuBLAS are loaded at run time, so that the program builds and
//! runs without them; the kernels (`kernels.cu`, and `images.cu`, `norm.cu`, `first.cu` and
//! `convolution.cu` for nets of images) are compiled when they are needed.
//!
//! What a step does is specified in the crate's documentation and computed here from the same
//! random words: results differ from the CPU's by rounding only. Products are batched over the
//! replicas (cuBLAS, f32 unless TF32 is asked for by name); norms are summed in f64, clipping
//! factors rounded down, so that a clipped row never exceeds C (1 + 2^-20) in f32.
//!
//! Batches are drawn on the device. Replicas are sorted by the size of their batch and worked on
//! in chunks padded to the largest of the chunk; what does not fit the room becomes a second
//! micro-batch, and no record is ever left out. Models whose state does not fit the memory
//! together are trained group by group.

mod arguments;
mod canaries;
mod chunks;
pub mod compute;
mod convolution;
mod device;
mod drawing;
mod elementwise;
mod engine;
mod first;
pub mod fused;
mod gradients;
mod group_norm;
mod kept;
mod layer;
mod linear;
mod plan;
mod pooling;
mod products;
mod program;
mod replicas;
mod update;
mod weights;
mod workspace;

use crate::model::Kind;
use elementwise::{Activation, Add};
use layer::Layer;
use pooling::{AveragePool, MaxPool};

pub use device::{Buffer, CudaDevice, Kernels, Precision};
pub use replicas::CudaReplicas;

/// The layer of an operation.
fn layer(kind: &Kind) -> Box<dyn Layer> {
    match *kind {
        Kind::Linear(layer) => Box::new(layer),
        Kind::Relu => Box::new(Activation::RELU),
        Kind::Tanh => Box::new(Activation::TANH),
        Kind::Convolution(layer) => Box::new(layer),
        Kind::GroupNorm(layer) => Box::new(layer),
        Kind::MaxPool(pool) => Box::new(MaxPool(pool)),
        Kind::AveragePool(pool) => Box::new(AveragePool(pool)),
        Kind::Add { other } => Box::new(Add { other }),
    }
}

/// Bytes that one record occupies while it is worked on, on a device with tensor cores.
pub(crate) fn bytes_per_record(network: &crate::model::Network) -> usize {
    let fused = workspace::Head::of(network).is_some();
    let plan = plan::Plan::new(network, fused, plan::Abilities::ALL);
    workspace::Workspace::bytes_per_example(network, &plan, fused)
}
