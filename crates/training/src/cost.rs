//! What one example costs, for choosing how the work is cut. Cutting changes rounding only.

use crate::model::{Kind, Network};

impl Network {
    /// Multiplications of one forward pass of one example.
    pub fn multiplications(&self) -> usize {
        let each = self.operations.iter().map(|operation| match &operation.kind {
            Kind::Linear(layer) => layer.inputs * layer.outputs,
            Kind::Convolution(layer) => layer.output.positions() * layer.weights(),
            _ => 0,
        });
        each.sum()
    }

    /// Numbers that one example occupies on its way through forward and backward.
    pub fn footprint(&self) -> usize {
        let buffers: usize = self.buffers.iter().sum();
        let patches = self.operations.iter().map(|operation| match &operation.kind {
            Kind::Convolution(layer) => layer.output.positions() * layer.patch(),
            Kind::GroupNorm(layer) => layer.image.len(),
            Kind::MaxPool(layer) => layer.output.len(),
            _ => 0,
        });
        2 * buffers + patches.sum::<usize>()
    }
}

/// Multiplications of a batch that are worth a lane of their own.
const LANE: f64 = 8_388_608.0;

/// Numbers that all lanes together may occupy: 2 GB.
const MEMORY: usize = 1 << 29;

/// Lanes for a single model: the same on every machine, so that results do not depend on the
/// number of cores.
pub(crate) fn lanes(network: &Network, batch: f64, micro_batch: usize) -> usize {
    let worth = (batch * network.multiplications() as f64 / LANE).clamp(1.0, 16.0) as usize;
    let room = MEMORY / (micro_batch * network.footprint() + network.parameters);
    worth.min(room.max(1))
}
