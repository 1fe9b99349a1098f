//! Room for one chunk: activations and gradients of `slots` replicas with `rows` examples each.

use super::device::{Buffer, CudaDevice, out_of_memory};
use crate::TrainingError;
use crate::model::{Kind, Linear, Network};

/// The net with one hidden layer, whose end is one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) hidden: Linear,
    pub(super) output: Linear,
    /// As in `kernels.cu`: 1 ReLU, 2 tanh.
    pub(super) activation: i32,
}

impl Head {
    /// The output's weights lie in a block's shared memory, hidden numbers and classes in its
    /// threads' registers.
    const MOST_CLASSES: usize = 32;
    const MOST_HIDDEN: usize = 512;
    const MOST_WEIGHTS: usize = 10_000;
    /// Weights of the output that a lane keeps in registers, and as many sums; see `kernels.cu`.
    const SMALL: usize = 48;

    pub(super) fn of(network: &Network) -> Option<Self> {
        let kinds: Vec<&Kind> =
            network.operations.iter().map(|operation| &operation.kind).collect();
        let (hidden, output, activation) = match kinds.as_slice() {
            [Kind::Linear(hidden), Kind::Relu, Kind::Linear(output)] => (*hidden, *output, 1),
            [Kind::Linear(hidden), Kind::Tanh, Kind::Linear(output)] => (*hidden, *output, 2),
            _ => return None,
        };
        let fits = output.outputs <= Self::MOST_CLASSES
            && hidden.outputs <= Self::MOST_HIDDEN
            && hidden.outputs * output.outputs <= Self::MOST_WEIGHTS;
        fits.then_some(Self { hidden, output, activation })
    }

    pub(super) fn definitions(&self) -> Vec<String> {
        vec![
            format!("-DHIDDEN={}", self.hidden.outputs),
            format!("-DCLASSES={}", self.output.outputs),
            format!("-DACTIVATION={}", self.activation),
            format!("-DSMALL_HEAD={}", Self::SMALL),
        ]
    }

    /// Whether the kernel sums the gradients of the output layer and of the hidden bias itself.
    pub(super) fn sums_itself(&self) -> bool {
        self.hidden.outputs.div_ceil(32) * self.output.outputs <= Self::SMALL
    }
}

/// What an operation remembers between its passes.
pub(super) enum Memory {
    Nothing,
    Convolution { patches: Buffer<f32>, gradients: Buffer<f32>, biases: Buffer<f32> },
    Winners(Buffer<u8>),
    GroupNorm { normalised: Buffer<f32>, inverses: Buffer<f32>, gradients: Buffer<f32> },
}

pub(super) struct Workspace {
    pub(super) slots: usize,
    pub(super) rows: usize,
    /// The storage of each buffer: an activation that is its input's only reader writes over it.
    pub(super) storage: Vec<usize>,
    pub(super) activations: Vec<Buffer<f32>>,
    pub(super) gradients: Vec<Buffer<f32>>,
    pub(super) memories: Vec<Memory>,
    pub(super) scratch: Buffer<f32>,
    pub(super) labels: Buffer<i32>,
    pub(super) losses: Buffer<f32>,
    pub(super) correct: Buffer<u8>,
    pub(super) squares: Buffer<f64>,
    pub(super) input_squares: Buffer<f64>,
    pub(super) factors: Buffer<f32>,
    pub(super) addresses: Buffer<u64>,
}

/// Where each buffer is stored; see [`Workspace::storage`].
fn storage(network: &Network, fused: bool) -> Vec<usize> {
    let mut storage: Vec<usize> = (0..network.buffers.len()).collect();
    if fused {
        return storage;
    }
    let mut readers = vec![0; network.buffers.len()];
    for operation in &network.operations {
        readers[operation.input] += 1;
        if let Kind::Add { other } = operation.kind {
            readers[other] += 1;
        }
    }
    for operation in &network.operations {
        // What writes the input then applies the activation as well.
        let producer = network.operations.iter().find(|other| other.output == operation.input);
        let in_place = matches!(operation.kind, Kind::Relu | Kind::Tanh)
            && producer
                .is_some_and(|other| matches!(other.kind, Kind::Linear(_) | Kind::Convolution(_)))
            && readers[operation.input] == 1;
        if in_place {
            storage[operation.output] = storage[operation.input];
        }
    }
    storage
}

fn scratch(network: &Network) -> usize {
    let convolutions = network.operations.iter().filter(|operation| operation.input != 0);
    let lengths = convolutions.map(|operation| match &operation.kind {
        Kind::Convolution(layer) => layer.output.positions() * layer.patch(),
        _ => 0,
    });
    lengths.max().unwrap_or(0)
}

impl Workspace {
    /// Bytes that one example takes.
    pub(super) fn bytes_per_example(network: &Network, fused: bool) -> usize {
        let storage = storage(network, fused);
        let own = |from: usize| -> usize {
            (from..storage.len()).filter(|i| storage[*i] == *i).map(|i| network.buffers[i]).sum()
        };
        let mut numbers = own(0) + if fused { 0 } else { own(1) } + scratch(network) + 8;
        for operation in &network.operations {
            numbers += match &operation.kind {
                Kind::Convolution(layer) => {
                    layer.output.positions() * layer.patch()
                        + layer.weights()
                        + layer.output.channels
                }
                Kind::MaxPool(layer) => layer.output.len().div_ceil(4),
                Kind::GroupNorm(layer) => {
                    layer.image.len() + layer.groups + 2 * layer.image.channels
                }
                _ => 0,
            };
        }
        4 * numbers
    }

    /// The largest workspace of at most these sizes that fits `budget` bytes and the device.
    pub(super) fn new(
        device: &CudaDevice,
        network: &Network,
        fused: bool,
        (slots, rows): (usize, usize),
        budget: usize,
    ) -> Result<Self, TrainingError> {
        let examples = (budget / Self::bytes_per_example(network, fused)).max(1);
        let mut rows = rows.min(examples).max(1);
        let mut slots = slots.min(examples / rows).max(1);
        loop {
            match Self::allocate(device, network, fused, slots, rows) {
                Err(error) if out_of_memory(&error) && slots * rows > 1 => {
                    // What was reserved is given back only once the device has caught up.
                    device.finish()?;
                    if slots > 1 {
                        slots = slots.div_ceil(2);
                    } else {
                        rows = rows.div_ceil(2);
                    }
                }
                done => return done,
            }
        }
    }

    fn allocate(
        device: &CudaDevice,
        network: &Network,
        fused: bool,
        slots: usize,
        rows: usize,
    ) -> Result<Self, TrainingError> {
        let examples = slots * rows;
        let storage = storage(network, fused);
        let buffers = |from: usize| {
            (0..storage.len())
                .map(|i| {
                    let own = storage[i] == i && i >= from;
                    device.zeros(if own { examples * network.buffers[i] } else { 0 })
                })
                .collect::<Result<Vec<Buffer<f32>>, _>>()
        };
        let memories = network
            .operations
            .iter()
            .map(|operation| {
                Ok(match &operation.kind {
                    Kind::Convolution(layer) => Memory::Convolution {
                        patches: device
                            .zeros(examples * layer.output.positions() * layer.patch())?,
                        gradients: device.zeros(examples * layer.weights())?,
                        biases: device.zeros(examples * layer.output.channels)?,
                    },
                    Kind::MaxPool(layer) => {
                        Memory::Winners(device.zeros(examples * layer.output.len())?)
                    }
                    Kind::GroupNorm(layer) => Memory::GroupNorm {
                        normalised: device.zeros(examples * layer.image.len())?,
                        inverses: device.zeros(examples * layer.groups)?,
                        gradients: device.zeros(examples * 2 * layer.image.channels)?,
                    },
                    _ => Memory::Nothing,
                })
            })
            .collect::<Result<Vec<_>, TrainingError>>()?;
        Ok(Self {
            slots,
            rows,
            activations: buffers(0)?,
            gradients: buffers(if fused { usize::MAX } else { 1 })?,
            memories,
            scratch: device.zeros(examples * scratch(network))?,
            labels: device.zeros(examples)?,
            losses: device.zeros(examples)?,
            correct: device.zeros(examples)?,
            squares: device.zeros(examples)?,
            input_squares: device.zeros(examples)?,
            factors: device.zeros(examples)?,
            addresses: device.zeros(3 * slots)?,
            storage,
        })
    }

    pub(super) fn activation(&self, buffer: usize) -> u64 {
        self.activations[self.storage[buffer]].address()
    }

    pub(super) fn gradient(&self, buffer: usize) -> u64 {
        self.gradients[self.storage[buffer]].address()
    }
}
