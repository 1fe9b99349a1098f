//! Weight standardisation on the device: the weights in use of every replica, made anew whenever
//! the parameters have changed; see the CPU's module of the same name for the mathematics.

use super::arguments::Argument::{Address, Int, Long};
use super::device::{Buffer, CudaDevice, Kernels};
use crate::TrainingError;
use crate::model::{Convolution, Kind, Network};

/// The weights in use of one convolution.
pub(super) struct Standardised {
    pub(super) used: Buffer<f32>,
    pub(super) scales: Buffer<f64>,
    pub(super) lengths: Buffer<f64>,
}

impl Standardised {
    /// One for each operation that needs it.
    pub(super) fn all(
        device: &CudaDevice,
        network: &Network,
        replicas: usize,
    ) -> Result<Vec<Option<Self>>, TrainingError> {
        let make = |layer: &Convolution| {
            Ok(Self {
                used: device.zeros(replicas * layer.weights())?,
                scales: device.zeros(replicas * layer.output.channels)?,
                lengths: device.zeros(replicas * layer.output.channels)?,
            })
        };
        let operations = network.operations.iter();
        operations
            .map(|operation| match &operation.kind {
                Kind::Convolution(layer) if layer.standardised => make(layer).map(Some),
                _ => Ok(None),
            })
            .collect()
    }

    /// Bytes for one replica.
    pub(super) fn bytes(network: &Network) -> usize {
        let operations = network.operations.iter();
        let numbers = operations.map(|operation| match &operation.kind {
            Kind::Convolution(layer) if layer.standardised => {
                layer.weights() + 4 * layer.output.channels
            }
            _ => 0,
        });
        4 * numbers.sum::<usize>()
    }

    /// Takes over new parameters.
    pub(super) fn prepare(
        &self,
        device: &CudaDevice,
        kernels: &Kernels,
        layer: &Convolution,
        (parameters, stride): (u64, usize),
        replicas: usize,
    ) -> Result<(), TrainingError> {
        let mut arguments = [
            Address(self.used.address()),
            Address(self.scales.address()),
            Address(self.lengths.address()),
            Address(parameters),
            Long(stride as u64),
            Int(layer.weight as i32),
            Int(layer.patch() as i32),
            Int(layer.output.channels as i32),
        ];
        let grid = (layer.output.channels.div_ceil(128), replicas);
        device.launch(kernels, "standardise", grid, 128, &mut arguments)
    }

    /// Maps the summed gradients to those of the parameters.
    pub(super) fn pull_back(
        &self,
        device: &CudaDevice,
        kernels: &Kernels,
        layer: &Convolution,
        (sums, stride): (u64, usize),
        replicas: usize,
    ) -> Result<(), TrainingError> {
        let mut arguments = [
            Address(sums),
            Address(self.used.address()),
            Address(self.scales.address()),
            Long(stride as u64),
            Int(layer.weight as i32),
            Int(layer.patch() as i32),
            Int(layer.output.channels as i32),
        ];
        let grid = (layer.output.channels.div_ceil(128), replicas);
        device.launch(kernels, "pull_back", grid, 128, &mut arguments)
    }
}
