//! Room for one chunk: activations and gradients of `slots` replicas with `rows` examples each.

use super::device::{Buffer, CudaDevice, out_of_memory};
use super::kept::Parts;
use super::plan::Plan;
use crate::TrainingError;
use crate::model::{Kind, Linear, Network};
use std::sync::Arc;

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

/// What an operation remembers between its passes; see [`super::layer::Layer::remembers`].
pub(super) struct Memory {
    pub(super) numbers: Buffer<f32>,
    pub(super) bytes: Buffer<u8>,
}

pub(super) struct Workspace {
    pub(super) slots: usize,
    pub(super) rows: usize,
    plan: Arc<Plan>,
    pub(super) activations: Vec<Buffer<f32>>,
    pub(super) gradients: Vec<Buffer<f32>>,
    pub(super) memories: Vec<Memory>,
    pub(super) scratch: Buffer<f32>,
    /// Gradients of convolutions and normalisations, example by example.
    pub(super) kept: Buffer<f32>,
    pub(super) part_norms: Buffer<f64>,
    pub(super) labels: Buffer<i32>,
    pub(super) losses: Buffer<f32>,
    pub(super) correct: Buffer<u8>,
    pub(super) squares: Buffer<f64>,
    pub(super) input_squares: Buffer<f64>,
    pub(super) factors: Buffer<f32>,
    pub(super) addresses: Buffer<u64>,
}

/// Numbers of scratch that one example needs.
fn scratch(network: &Network, plan: &Plan) -> usize {
    let operations = network.operations.iter().zip(&plan.layers).enumerate();
    let lengths = operations.map(|(number, (operation, layer))| match operation.input {
        0 => 0,
        _ => layer.scratch(plan.without_patches(number)),
    });
    lengths.max().unwrap_or(0)
}

impl Workspace {
    /// Bytes that one example takes.
    pub(super) fn bytes_per_example(network: &Network, plan: &Plan, fused: bool) -> usize {
        let all = 0..network.buffers.len();
        let own = all.clone().filter(|i| plan.owns(network, *i));
        let mut numbers: usize = own.map(|i| network.buffers[i]).sum();
        if !fused {
            let own = all.filter(|i| plan.owns_gradient(network, *i));
            numbers += own.map(|i| network.buffers[i]).sum::<usize>();
        }
        numbers += scratch(network, plan) + plan.kept_stride + 8;
        numbers += 4 * Parts::count(plan);
        for (number, layer) in plan.layers.iter().enumerate() {
            let (remembered, bytes) = layer.remembers(plan.without_patches(number));
            numbers += remembered + bytes.div_ceil(4);
        }
        4 * numbers
    }

    /// The largest workspace of at most these sizes that fits `budget` bytes and the device.
    pub(super) fn new(
        device: &CudaDevice,
        network: &Network,
        plan: &Arc<Plan>,
        fused: bool,
        (slots, rows): (usize, usize),
        budget: usize,
    ) -> Result<Self, TrainingError> {
        let examples = (budget / Self::bytes_per_example(network, plan, fused)).max(1);
        let mut rows = rows.min(examples).max(1);
        let mut slots = slots.min(examples / rows).max(1);
        loop {
            match Self::allocate(device, network, plan, fused, (slots, rows)) {
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
        plan: &Arc<Plan>,
        fused: bool,
        (slots, rows): (usize, usize),
    ) -> Result<Self, TrainingError> {
        let examples = slots * rows;
        let buffers = |own: &dyn Fn(usize) -> bool| {
            (0..network.buffers.len())
                .map(|i| device.zeros(if own(i) { examples * network.buffers[i] } else { 0 }))
                .collect::<Result<Vec<Buffer<f32>>, _>>()
        };
        let memories = plan
            .layers
            .iter()
            .enumerate()
            .map(|(number, layer)| {
                let (numbers, bytes) = layer.remembers(plan.without_patches(number));
                Ok(Memory {
                    numbers: device.zeros(examples * numbers)?,
                    bytes: device.zeros(examples * bytes)?,
                })
            })
            .collect::<Result<Vec<_>, TrainingError>>()?;
        Ok(Self {
            slots,
            rows,
            activations: buffers(&|i| plan.owns(network, i))?,
            gradients: buffers(&|i| !fused && plan.owns_gradient(network, i))?,
            memories,
            scratch: device.zeros(examples * scratch(network, plan))?,
            kept: device.zeros(examples * plan.kept_stride)?,
            part_norms: device.zeros(examples * 2 * Parts::count(plan))?,
            labels: device.zeros(examples)?,
            losses: device.zeros(examples)?,
            correct: device.zeros(examples)?,
            squares: device.zeros(examples)?,
            input_squares: device.zeros(examples)?,
            factors: device.zeros(examples)?,
            addresses: device.zeros(3 * slots)?,
            plan: Arc::clone(plan),
        })
    }

    pub(super) fn activation(&self, buffer: usize) -> u64 {
        self.activations[self.plan.storage[buffer]].address()
    }

    pub(super) fn gradient(&self, buffer: usize) -> u64 {
        self.gradients[self.plan.gradients[buffer]].address()
    }
}
