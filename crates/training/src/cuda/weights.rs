//! The weights in use of every convolution, made anew whenever the parameters have changed:
//! standardised where the layer asks for it (see the CPU's `standardise` for the mathematics), and
//! packed for the products of `convolution.cu`.

use super::arguments::Argument::{Address, Long};
use super::device::{Buffer, CudaDevice, Kernels};
use super::plan::Plan;
use crate::TrainingError;
use crate::model::{Convolution, Kind, Network};

/// Columns that a block takes, and threads of a block, as in `images.cu`.
const LANES: usize = 32;
const THREADS: u32 = 1024;

/// The weights in use of one convolution; empty where nobody reads them.
pub(super) struct InUse {
    pub(super) used: Buffer<f32>,
    pub(super) forward: Buffer<f32>,
    pub(super) backward: Buffer<f32>,
    pub(super) scales: Buffer<f64>,
    pub(super) lengths: Buffer<f64>,
}

/// Those of all operations.
pub(super) struct Weights {
    pub(super) layers: Vec<Option<InUse>>,
    table: Buffer<u64>,
    blocks: usize,
    replicas: usize,
}

/// Two numbers of 32 bits, as they lie in a structure.
pub(super) fn pair(low: usize, high: usize) -> u64 {
    (low as u64) | ((high as u64) << 32)
}

fn needed(plan: &Plan, number: usize, kind: &Kind) -> Option<Convolution> {
    match kind {
        Kind::Convolution(layer) if layer.standardised || plan.implicit[number] => Some(*layer),
        _ => None,
    }
}

impl Weights {
    pub(super) fn new(
        device: &CudaDevice,
        network: &Network,
        plan: &Plan,
        replicas: usize,
    ) -> Result<Self, TrainingError> {
        let (mut layers, mut table, mut blocks) = (Vec::new(), Vec::new(), 0);
        for (number, operation) in network.operations.iter().enumerate() {
            let Some(layer) = needed(plan, number, &operation.kind) else {
                layers.push(None);
                continue;
            };
            let (implicit, columns) = (plan.implicit[number], layer.output.channels);
            let room = |wanted: bool, each: usize| if wanted { replicas * each } else { 0 };
            let in_use = InUse {
                used: device.zeros(room(layer.standardised, layer.weights()))?,
                forward: device.zeros(room(implicit, layer.weights()))?,
                backward: device.zeros(room(implicit, layer.weights()))?,
                scales: device.zeros(room(layer.standardised, columns))?,
                lengths: device.zeros(room(layer.standardised, columns))?,
            };
            let address = |wanted: bool, address: u64| if wanted { address } else { 0 };
            for first in (0..columns).step_by(LANES) {
                table.extend([
                    address(layer.standardised, in_use.used.address()),
                    address(implicit, in_use.forward.address()),
                    address(implicit, in_use.backward.address()),
                    in_use.scales.address(),
                    in_use.lengths.address(),
                    pair(layer.weight, layer.patch()),
                    pair(columns, first),
                    pair(layer.input.channels, usize::from(layer.standardised)),
                ]);
                blocks += 1;
            }
            layers.push(Some(in_use));
        }
        Ok(Self { layers, table: device.upload(&table)?, blocks, replicas })
    }

    /// Bytes for one replica.
    pub(super) fn bytes(network: &Network, plan: &Plan) -> usize {
        let operations = network.operations.iter().enumerate();
        let numbers = operations.filter_map(|(number, operation)| {
            let layer = needed(plan, number, &operation.kind)?;
            let copies = usize::from(layer.standardised) + 2 * usize::from(plan.implicit[number]);
            Some(copies * layer.weights() + 4 * layer.output.channels)
        });
        4 * numbers.sum::<usize>()
    }

    /// Takes over new parameters.
    pub(super) fn prepare(
        &self,
        device: &CudaDevice,
        kernels: &Kernels,
        (parameters, stride): (u64, usize),
    ) -> Result<(), TrainingError> {
        self.launch(device, kernels, "weights_in_use", (parameters, stride))
    }

    /// Maps the summed gradients to those of the parameters.
    pub(super) fn pull_back(
        &self,
        device: &CudaDevice,
        kernels: &Kernels,
        (sums, stride): (u64, usize),
    ) -> Result<(), TrainingError> {
        self.launch(device, kernels, "pull_back", (sums, stride))
    }

    fn launch(
        &self,
        device: &CudaDevice,
        kernels: &Kernels,
        name: &'static str,
        (numbers, stride): (u64, usize),
    ) -> Result<(), TrainingError> {
        let mut arguments = [Address(self.table.address()), Address(numbers), Long(stride as u64)];
        device.launch(kernels, name, (self.blocks, self.replicas), THREADS, &mut arguments)
    }
}
