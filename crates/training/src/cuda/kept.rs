//! Norms and clipped sums of what is kept of each example.

use super::arguments::Argument::{Address, Int, Long};
use super::chunks::Chunk;
use super::device::{Buffer, CudaDevice};
use super::engine::Engine;
use super::layer::KeptTensor;
use super::plan::Plan;
use super::program::{THREADS, flag};
use super::weights::{Weights, pair};
use crate::TrainingError;

/// Columns of a part, and examples of a block, as in `images.cu`. Chunks of several replicas have
/// rows in multiples of eight, so that a block's examples are of one replica.
const COLUMNS: usize = 64;
const NORMED: usize = 4;

/// The parts whose norms are taken on their own, and the tensors that they make up: columns of
/// matrices first, then vectors, which are parts as they are.
pub(super) struct Parts {
    table: Buffer<u64>,
    vectors: Buffer<i32>,
    tensors: Buffer<i32>,
    columns: usize,
    count: usize,
    tensor_count: usize,
}

/// Most rows of what is taken as one vector: the scale and the shift of a normalisation.
const VECTOR_ROWS: usize = 2;

impl KeptTensor {
    fn is_vector(&self) -> bool {
        !self.standardised && self.rows <= VECTOR_ROWS
    }

    fn parts(&self) -> usize {
        if self.is_vector() { 1 } else { self.columns.div_ceil(COLUMNS) }
    }
}

/// Kept tensors of a network, each with its operation and where it begins.
fn tensors(plan: &Plan) -> Vec<(usize, usize, KeptTensor)> {
    let mut all = Vec::new();
    for (number, layer) in plan.layers.iter().enumerate() {
        let mut begin = plan.kept[number];
        for tensor in layer.kept_tensors() {
            all.push((number, begin, tensor));
            begin += tensor.rows * tensor.columns;
        }
    }
    all
}

impl Parts {
    /// How many there are.
    pub(super) fn count(plan: &Plan) -> usize {
        tensors(plan).iter().map(|(_, _, tensor)| tensor.parts()).sum()
    }

    pub(super) fn new(
        device: &CudaDevice,
        plan: &Plan,
        weights: &Weights,
    ) -> Result<Self, TrainingError> {
        let (mut table, mut list, mut count) = (Vec::new(), Vec::new(), 0);
        let (vectors, matrices): (Vec<_>, Vec<_>) =
            tensors(plan).into_iter().partition(|(_, _, tensor)| tensor.is_vector());
        for (number, offset, tensor) in matrices {
            let KeptTensor { rows, columns, standardised } = tensor;
            list.extend([count as i32, tensor.parts() as i32]);
            let in_use = weights.layers[number].as_ref().filter(|_| standardised);
            let addresses = in_use.map_or([0; 3], |layer| {
                [layer.used.address(), layer.scales.address(), layer.lengths.address()]
            });
            for first in (0..columns).step_by(COLUMNS) {
                table.extend(addresses);
                let lanes = (columns - first).clamp(16, COLUMNS).next_power_of_two();
                table.extend([pair(offset, rows), pair(columns, first), pair(lanes, 0)]);
                count += 1;
            }
        }
        let columns = count;
        let mut places = Vec::new();
        for (_, offset, tensor) in vectors {
            list.extend([count as i32, 1]);
            places.extend([offset as i32, (tensor.rows * tensor.columns) as i32]);
            count += 1;
        }
        let tensor_count = list.len() / 2;
        Ok(Self {
            table: device.upload(&table)?,
            vectors: device.upload(&places)?,
            tensors: device.upload(&list)?,
            columns,
            count,
            tensor_count,
        })
    }
}

impl Engine {
    /// The squared norms of what is kept of a chunk's examples.
    pub(super) fn kept_norms(&self, chunk: &Chunk) -> Result<bool, TrainingError> {
        let Some(images) = &self.images else { return Ok(false) };
        let (workspace, parts) = (&self.workspace, &images.parts);
        let examples = chunk.slots * chunk.rows;
        let mut arguments = [
            Address(workspace.part_norms.address()),
            Address(parts.table.address()),
            Address(workspace.kept.address()),
            Long(self.plan.kept_stride as u64),
            Address(chunk.order),
            Int(chunk.rows as i32),
            Int(examples as i32),
            Int(parts.count as i32),
        ];
        let grid = (examples.div_ceil(NORMED), parts.columns);
        self.device.launch(&images.kernels, "part_norms", grid, THREADS, &mut arguments)?;
        let mut arguments = [
            Address(workspace.part_norms.address()),
            Address(parts.vectors.address()),
            Address(workspace.kept.address()),
            Long(self.plan.kept_stride as u64),
            Int((parts.count - parts.columns) as i32),
            Int(parts.columns as i32),
            Int(parts.count as i32),
            Int(examples as i32),
        ];
        let grid = (examples.div_ceil(8), 1);
        self.device.launch(&images.kernels, "vector_norms", grid, THREADS, &mut arguments)?;
        let mut arguments = [
            Address(workspace.squares.address()),
            Address(workspace.part_norms.address()),
            Address(parts.tensors.address()),
            Int(parts.tensor_count as i32),
            Int(parts.count as i32),
            Int(examples as i32),
        ];
        let grid = (examples.div_ceil(8), 1);
        self.device.launch(&images.kernels, "kept_norms", grid, THREADS, &mut arguments)?;
        Ok(true)
    }

    /// sums (+)= clipping factors times what is kept.
    pub(super) fn kept_sums(&self, chunk: &Chunk, again: bool) -> Result<(), TrainingError> {
        let Some(images) = &self.images else { return Ok(()) };
        for (parameter, kept, length) in &self.plan.runs {
            let mut arguments = [
                Address(self.sums.address()),
                Address(self.workspace.kept.address()),
                Long(self.plan.kept_stride as u64),
                Address(self.workspace.factors.address()),
                Address(chunk.order),
                Long(self.stride as u64),
                Int(*parameter as i32),
                Int(*kept as i32),
                Int(chunk.rows as i32),
                Int(*length as i32),
                flag(again),
            ];
            let grid = (length.div_ceil(THREADS as usize), chunk.slots);
            self.device.launch(&images.kernels, "kept_sum", grid, THREADS, &mut arguments)?;
        }
        Ok(())
    }
}
