//! A group of replicas whose state is on the device, and their steps.

use super::arguments::Argument::{Address, Int, Long, Update as UpdateArgument};
use super::arguments::Notes;
use super::canaries::Canaries;
use super::chunks::{Chunk, ROWS, chunks};
use super::convolution::kernels_of;
use super::device::{Buffer, CudaDevice, Kernels, Precision};
use super::drawing::Drawing;
use super::first::First;
use super::kept::Parts;
use super::plan::Plan;
use super::program::Pass;
use super::update::update_of;
use super::weights::Weights;
use super::workspace::{Head, Workspace};
use crate::data::Dataset;
use crate::recipe::{Fault, Recipe};
use crate::replica::Replica;
use crate::statistics::StepStatistics;
use crate::{OptimizerState, TrainingError};
use random::{Purpose, Stream};
use std::collections::HashMap;
use std::sync::Arc;

/// Share of the free memory for the workspace.
const SHARE: f64 = 0.8;

/// A group in training.
pub(super) struct Engine {
    pub(super) device: Arc<CudaDevice>,
    pub(super) kernels: Kernels,
    pub(super) precision: Precision,
    pub(super) recipe: Arc<Recipe>,
    pub(super) head: Option<Head>,
    pub(super) plan: Arc<Plan>,
    pub(super) workspace: Workspace,
    /// What nets of images need.
    pub(super) images: Option<Images>,
    pub(super) first: Option<Kernels>,
    pub(super) convolutions: HashMap<&'static str, Kernels>,
    /// Numbers from one replica's parameters to the next's.
    pub(super) stride: usize,
    pub(super) parameters: Buffer<f32>,
    pub(super) sums: Buffer<f32>,
    moments: Vec<Buffer<f32>>,
    replicas: Vec<Replica>,
    data: Buffer<f32>,
    labels: Buffer<i32>,
    squares: Buffer<f64>,
    canaries: Canaries,
    drawing: Drawing,
    noise_keys: Buffer<u32>,
    identity: Buffer<i32>,
    failed: Buffer<u64>,
    kept: Option<Kept>,
    /// The batches that the input buffer holds whole.
    resident: Option<(u64, u64)>,
}

/// Kernels of `images.cu` and what they work on.
pub(super) struct Images {
    pub(super) kernels: Kernels,
    pub(super) weights: Weights,
    pub(super) parts: Parts,
}

/// What the last step noted about each record.
struct Kept {
    norms: Buffer<f64>,
    losses: Buffer<f32>,
    correct: Buffer<u8>,
    capacity: usize,
    sizes: Vec<i32>,
}

/// State of a group on the host: parameters and moments, replica by replica.
pub(super) struct State {
    pub(super) parameters: Vec<f32>,
    pub(super) moments: Vec<Vec<f32>>,
}

/// Nothing failed so far.
const NEVER: u64 = u64::MAX;

impl Engine {
    /// Puts a group onto the device. `limit` bounds the bytes that may be used.
    pub(super) fn new(
        device: &Arc<CudaDevice>,
        precision: Precision,
        recipe: &Arc<Recipe>,
        data: &Dataset,
        replicas: &[Replica],
        state: &State,
        limit: usize,
    ) -> Result<Self, TrainingError> {
        let network = &recipe.network;
        let head = Head::of(network);
        let plan = Arc::new(Plan::new(network, head.is_some(), device.abilities));
        let stride = network.parameters.next_multiple_of(32);
        let (all, count) = (replicas.len() * stride, replicas.len());
        let fixed = all.saturating_mul(4 * (2 + state.moments.len()))
            + 4 * data.features.len()
            + count * Weights::bytes(network, &plan);
        if fixed > limit {
            return Err(TrainingError::Device(format!(
                "the device is out of memory: {count} models need {} MiB and {} MiB may be used; \
                 lower the model's width, or train on the processor with `--device cpu`",
                fixed >> 20,
                limit >> 20
            )));
        }
        let kernels = device.kernels(&head.map(|head| head.definitions()).unwrap_or_default())?;
        let padded = |flat: &[f32]| {
            let mut padded = vec![0.0; all];
            for (to, from) in padded.chunks_mut(stride).zip(flat.chunks(network.parameters)) {
                to[..from.len()].copy_from_slice(from);
            }
            device.upload(&padded)
        };
        let parameters = padded(&state.parameters)?;
        let moments = state.moments.iter().map(|flat| padded(flat)).collect::<Result<_, _>>()?;
        let sums = device.zeros(all)?;
        let images = if plan.runs.is_empty() {
            None
        } else {
            let weights = Weights::new(device, network, &plan, count)?;
            let parts = Parts::new(device, &plan, &weights)?;
            let rounded = precision == Precision::TensorFloat32;
            let definitions: &[String] = if rounded { &["-DROUNDED".to_owned()] } else { &[] };
            let source = if device.abilities.streams {
                concat!(include_str!("images.cu"), include_str!("norm.cu"))
            } else {
                include_str!("images.cu")
            };
            let kernels = device.compile("images.cu", source, definitions)?;
            Some(Images { kernels, weights, parts })
        };
        let first = First::kernels(device, plan.planes)?;
        let (canaries, examples) = Canaries::new(device, recipe, data.len(), replicas)?;
        let rows = data.len() + examples.labels.len();
        let drawing = Drawing::new(device, recipe, data.len(), replicas, canaries.most)?;
        let labels: Vec<i32> = data.labels.iter().map(|label| *label as i32).collect();
        let (data_device, squares) = if examples.labels.is_empty() {
            (device.upload(&data.features)?, device.zeros(rows)?)
        } else {
            let joined = [data.features.as_slice(), &examples.features].concat();
            (device.upload(&joined)?, device.zeros(rows)?)
        };
        let labels = device.upload(&[labels, examples.labels].concat())?;
        let keys: Vec<u32> = replicas
            .iter()
            .flat_map(|replica| {
                let [a, b] = Stream::new(recipe.seed, Purpose::NOISE, replica.number).key();
                [a, b, 0, 0]
            })
            .collect();
        let identity: Vec<i32> = (0..count as i32).collect();
        let (free, _) = device.memory()?;
        let budget = ((free as f64 * SHARE) as usize).min(limit - fixed).max(1);
        let wanted = (count, drawing.capacity.next_multiple_of(ROWS));
        let workspace = Workspace::new(device, network, &plan, head.is_some(), wanted, budget)?;
        let convolutions = kernels_of(device, network, &plan, precision, workspace.rows)?;
        let engine = Self {
            noise_keys: device.upload(&keys)?,
            identity: device.upload(&identity)?,
            failed: device.upload(&vec![NEVER; count])?,
            device: Arc::clone(device),
            kernels,
            precision,
            recipe: Arc::clone(recipe),
            head,
            plan,
            workspace,
            images,
            first,
            convolutions,
            stride,
            parameters,
            sums,
            moments,
            replicas: replicas.to_vec(),
            data: data_device,
            labels,
            squares,
            canaries,
            drawing,
            kept: None,
            resident: None,
        };
        let mut arguments = [
            Address(engine.squares.address()),
            Address(engine.data.address()),
            Int(rows as i32),
            Int(network.inputs() as i32),
        ];
        let grid = (rows.div_ceil(8), 1);
        engine.device.launch(&engine.kernels, "squared_rows", grid, 256, &mut arguments)?;
        Ok(engine)
    }

    /// Takes the steps `from..to`; the last one notes what it saw when `keep` is set.
    pub(super) fn advance(&mut self, from: u64, to: u64, keep: bool) -> Result<(), TrainingError> {
        for step in from..to {
            self.step(step, keep && step + 1 == to)?;
        }
        let failed = self.device.read(&self.failed, self.replicas.len())?;
        let first = failed.iter().zip(&self.replicas).min_by_key(|(step, _)| **step);
        match first {
            Some((step, replica)) if *step != NEVER => {
                Err(TrainingError::NotFinite { step: *step, replica: replica.number })
            }
            _ => Ok(()),
        }
    }

    fn step(&mut self, step: u64, keep: bool) -> Result<(), TrainingError> {
        let recipe = Arc::clone(&self.recipe);
        self.canaries.set_step(&self.device, step)?;
        let drawn = self.drawing.step(
            &self.device,
            &self.kernels,
            &recipe,
            &self.canaries,
            &self.replicas,
            step,
        )?;
        let (key, hits) = (drawn.key, drawn.hits);
        let (batch, counts) = (drawn.batch, drawn.counts);
        let sizes = keep.then(|| drawn.sizes.to_vec());
        let chunks = chunks(&drawn, &self.workspace, &self.identity);
        let capacity = self.drawing.capacity;
        if let Some(sizes) = sizes {
            self.keep(capacity, sizes)?;
        }
        self.prepare()?;
        let clip = if recipe.fault == Fault::NoClipping { 0.0 } else { recipe.clip_norm };
        let whole = chunks.len() == 1 && chunks[0].rows <= self.workspace.rows;
        for chunk in &chunks {
            if chunk.rows == 0 {
                self.clear(chunk)?;
            }
            let mut first = 0;
            while first < chunk.rows {
                let rows = (chunk.rows - first).min(self.workspace.rows);
                let part = Chunk { rows, ..*chunk };
                if !(whole && self.resident == Some(key)) {
                    self.gather(&part, batch, counts, first, capacity)?;
                }
                let notes = self.notes(keep);
                let again = first > 0;
                self.add_clipped(&part, Pass { step, first, again, clip, notes, capacity })?;
                first += rows;
            }
        }
        self.resident = whole.then_some(key);
        if let Some(images) = &self.images {
            let sums = (self.sums.address(), self.stride);
            images.weights.pull_back(&self.device, &images.kernels, sums)?;
        }
        if self.canaries.gradients {
            self.inject(hits)?;
        }
        self.update(step)
    }

    /// To be called whenever the parameters have changed.
    fn prepare(&self) -> Result<(), TrainingError> {
        if let Some(images) = &self.images {
            let parameters = (self.parameters.address(), self.stride);
            images.weights.prepare(&self.device, &images.kernels, parameters)?;
        }
        Ok(())
    }

    fn keep(&mut self, capacity: usize, sizes: Vec<i32>) -> Result<(), TrainingError> {
        let room = self.replicas.len() * capacity;
        match &mut self.kept {
            Some(kept) if kept.capacity == capacity => kept.sizes = sizes,
            kept => {
                *kept = Some(Kept {
                    norms: self.device.zeros(room)?,
                    losses: self.device.zeros(room)?,
                    correct: self.device.zeros(room)?,
                    capacity,
                    sizes,
                });
            }
        }
        Ok(())
    }

    fn notes(&self, keep: bool) -> Notes {
        let failed = self.failed.address();
        match &self.kept {
            Some(kept) if keep => Notes {
                norms: kept.norms.address(),
                losses: kept.losses.address(),
                correct: kept.correct.address(),
                failed,
            },
            _ => Notes { failed, ..Notes::default() },
        }
    }

    fn clear(&self, chunk: &Chunk) -> Result<(), TrainingError> {
        let mut arguments =
            [Address(self.sums.address()), Address(chunk.order), Long(self.stride as u64)];
        let grid = (self.stride.div_ceil(1024), chunk.slots);
        self.device.launch(&self.kernels, "clear", grid, 256, &mut arguments)
    }

    fn gather(
        &self,
        chunk: &Chunk,
        batch: u64,
        counts: u64,
        first: usize,
        capacity: usize,
    ) -> Result<(), TrainingError> {
        let mut arguments = [
            Address(self.workspace.activation(0)),
            Address(self.workspace.labels.address()),
            Address(self.workspace.input_squares.address()),
            Address(self.data.address()),
            Address(self.labels.address()),
            Address(self.squares.address()),
            Address(batch),
            Address(counts),
            Address(chunk.order),
            Int(capacity as i32),
            Int(first as i32),
            Int(chunk.rows as i32),
            Int(self.recipe.network.inputs() as i32),
        ];
        let grid = (chunk.rows.div_ceil(8), chunk.slots);
        self.device.launch(&self.kernels, "gather", grid, 256, &mut arguments)
    }

    fn inject(&self, hits: u64) -> Result<(), TrainingError> {
        let canaries = &self.canaries;
        let mut arguments = [
            Address(self.sums.address()),
            Address(canaries.injected.address()),
            Address(canaries.start.address()),
            Address(canaries.kind.address()),
            Address(hits),
            Address(canaries.places.address()),
            Address(canaries.values.address()),
            Address(canaries.factors.address()),
            Int(canaries.most as i32),
            Long(self.stride as u64),
        ];
        let grid = (self.replicas.len(), 1);
        self.device.launch(&self.kernels, "inject", grid, 128, &mut arguments)
    }

    fn update(&self, step: u64) -> Result<(), TrainingError> {
        let moment = |number: usize| self.moments.get(number).map_or(0, Buffer::address);
        let mut arguments = [
            Address(self.parameters.address()),
            Address(self.sums.address()),
            Address(moment(0)),
            Address(moment(1)),
            Address(self.noise_keys.address()),
            UpdateArgument(update_of(&self.recipe, step, self.stride)),
        ];
        let blocks = self.recipe.network.parameters.div_ceil(4).div_ceil(256);
        let grid = (blocks, self.replicas.len());
        self.device.launch(&self.kernels, "update", grid, 256, &mut arguments)
    }

    /// The parameters and moments of the group.
    pub(super) fn state(&self) -> Result<State, TrainingError> {
        let flat = |buffer: &Buffer<f32>| {
            let padded = self.device.read(buffer, self.replicas.len() * self.stride)?;
            let own = padded.chunks(self.stride);
            let own = own.flat_map(|one| &one[..self.recipe.network.parameters]);
            Ok::<_, TrainingError>(own.copied().collect())
        };
        Ok(State {
            parameters: flat(&self.parameters)?,
            moments: self.moments.iter().map(flat).collect::<Result<_, _>>()?,
        })
    }

    /// Loss of every record under every replica of the group, replica by replica, and how many
    /// records each has right.
    pub(super) fn losses(
        &mut self,
        data: &Dataset,
        out: &mut [f32],
        right: &mut [usize],
    ) -> Result<(), TrainingError> {
        self.resident = None;
        self.prepare()?;
        let network = Arc::clone(&self.recipe.network);
        let features = self.device.upload(&data.features)?;
        let labels: Vec<i32> = data.labels.iter().map(|label| *label as i32).collect();
        let labels = self.device.upload(&labels)?;
        let mut start = 0;
        while start < self.replicas.len() {
            let slots = self.workspace.slots.min(self.replicas.len() - start);
            let mut first = 0;
            while first < data.len() {
                let there = self.workspace.rows.min(data.len() - first);
                let rows = there.next_multiple_of(ROWS).min(self.workspace.rows);
                let order = self.identity.at(start);
                let chunk = Chunk { order, first: Some(start), slots, rows };
                let mut arguments = [
                    Address(self.workspace.activation(0)),
                    Address(self.workspace.labels.address()),
                    Address(features.address()),
                    Address(labels.address()),
                    Int(first as i32),
                    Int(there as i32),
                    Int(rows as i32),
                    Int(network.inputs() as i32),
                ];
                let grid = (rows.div_ceil(8), slots);
                self.device.launch(&self.kernels, "gather_same", grid, 256, &mut arguments)?;
                self.forward(&chunk)?;
                self.loss(&chunk, false)?;
                let losses = self.device.read(&self.workspace.losses, slots * rows)?;
                let correct = self.device.read(&self.workspace.correct, slots * rows)?;
                for slot in 0..slots {
                    let to = (start + slot) * data.len() + first;
                    let own = slot * rows..slot * rows + there;
                    out[to..to + there].copy_from_slice(&losses[own.clone()]);
                    right[start + slot] += correct[own].iter().filter(|hit| **hit == 1).count();
                }
                first += there;
            }
            start += slots;
        }
        Ok(())
    }

    /// What the last step saw of each replica, if it was told to note it.
    pub(super) fn statistics(&self) -> Result<Vec<StepStatistics>, TrainingError> {
        let Some(kept) = &self.kept else { return Ok(Vec::new()) };
        let room = self.replicas.len() * kept.capacity;
        let norms = self.device.read(&kept.norms, room)?;
        let losses = self.device.read(&kept.losses, room)?;
        let correct = self.device.read(&kept.correct, room)?;
        let statistics = kept.sizes.iter().enumerate().map(|(replica, &size)| {
            let from = replica * kept.capacity;
            let own = from..from + size as usize;
            StepStatistics {
                batch_size: size as usize,
                clipped: norms[own.clone()].iter().filter(|n| **n > self.recipe.clip_norm).count(),
                loss_sum: losses[own.clone()].iter().map(|loss| f64::from(*loss)).sum(),
                correct: correct[own.clone()].iter().map(|hit| usize::from(*hit)).sum(),
                norms: norms[own].to_vec(),
            }
        });
        Ok(statistics.collect())
    }

    pub(super) fn moments_of(recipe: &Recipe, replicas: usize) -> Vec<Vec<f32>> {
        let length = recipe.network.parameters * replicas;
        OptimizerState::new(&recipe.optimizer, length).moments
    }
}
