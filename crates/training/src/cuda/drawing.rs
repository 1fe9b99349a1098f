//! Which records each replica's batch holds. Poisson batches are drawn on the device, several
//! steps ahead (they do not depend on the training); other samplings on the host.

use super::arguments::Argument::{Address, Int};
use super::canaries::Canaries;
use super::device::{Buffer, CudaDevice, Kernels};
use crate::TrainingError;
use crate::recipe::{Fault, Recipe, Rest};
use crate::replica::Replica;
use crate::sampler::{Batch, Sampler};
use random::{Bernoulli, Purpose, Stream};
use rayon::prelude::*;
use vocabulary::Sampling;

/// Steps drawn at a time, and numbers of records that they may take.
const AHEAD: usize = 16;
const MOST_NUMBERS: usize = 1 << 28;

/// What tells batches apart: the row of the coins, and the bits of the rate.
type Key = (u64, u64);

pub(super) struct Drawing {
    records: usize,
    replicas: usize,
    most_canaries: usize,
    /// Room for one batch.
    pub(super) capacity: usize,
    ahead: usize,
    batch: Buffer<i32>,
    counts: Buffer<i32>,
    hits: Buffer<u8>,
    order: Buffer<i32>,
    keys: Buffer<u32>,
    coins: Buffer<u64>,
    samplers: Vec<Sampler>,
    drawn: Vec<Key>,
    host_counts: Vec<i32>,
    host_order: Vec<i32>,
}

/// The batches of one step.
pub(super) struct Drawn<'a> {
    pub(super) key: Key,
    /// Addresses on the device.
    pub(super) batch: u64,
    pub(super) counts: u64,
    pub(super) hits: u64,
    pub(super) order: u64,
    /// Sizes of the batches in the order of the replicas.
    pub(super) sizes: &'a [i32],
    /// Replicas by the size of their batch.
    pub(super) sorted: &'a [i32],
}

impl Drawing {
    pub(super) fn new(
        device: &CudaDevice,
        recipe: &Recipe,
        records: usize,
        replicas: &[Replica],
        most_canaries: usize,
    ) -> Result<Self, TrainingError> {
        let coins = records + most_canaries;
        let rate = recipe.phases.iter().map(|phase| phase.sample_rate).fold(0.0, f64::max);
        if recipe.drawing.replacement {
            // A canary that is drawn twice would be counted once.
            return Err(TrainingError::Recipe(
                "batches are drawn with replacement on the CPU only; choose --device cpu".into(),
            ));
        }
        let mean = recipe.drawing.share(rate) * coins as f64;
        let capacity = match recipe.sampling {
            Sampling::Full => coins,
            Sampling::FixedSize | Sampling::Shuffle => coins.min(mean.round() as usize + 1),
            _ => coins.min((mean + 12.0 * mean.sqrt() + 16.0) as usize),
        };
        let keys: Vec<u32> = replicas
            .iter()
            .flat_map(|replica| {
                let stream = Stream::new(recipe.seed, Purpose::SAMPLING, replica.data_order);
                let ([a, b], [c, d]) = (stream.key(), stream.tie_key());
                [a, b, c, d]
            })
            .collect();
        let samplers = match recipe.sampling {
            Sampling::Poisson => Vec::new(),
            _ => replicas
                .iter()
                .map(|replica| {
                    let own = records + replica.canaries.len();
                    Sampler::new(recipe.seed, replica.data_order, own)
                })
                .collect(),
        };
        let mut drawing = Self {
            records,
            replicas: replicas.len(),
            most_canaries,
            capacity,
            ahead: 0,
            batch: device.zeros(0)?,
            counts: device.zeros(0)?,
            hits: device.zeros(0)?,
            order: device.zeros(0)?,
            keys: device.upload(&keys)?,
            coins: device.zeros(3 * AHEAD)?,
            samplers,
            drawn: Vec::new(),
            host_counts: Vec::new(),
            host_order: Vec::new(),
        };
        drawing.make_room(device, capacity)?;
        Ok(drawing)
    }

    fn make_room(&mut self, device: &CudaDevice, capacity: usize) -> Result<(), TrainingError> {
        self.capacity = capacity.max(1);
        let one = self.replicas * self.capacity;
        self.ahead = match self.samplers.is_empty() {
            true => (MOST_NUMBERS / one).clamp(1, AHEAD),
            false => 1,
        };
        self.batch = device.zeros(self.ahead * one)?;
        self.counts = device.zeros(self.ahead * self.replicas)?;
        self.hits = device.zeros(self.ahead * self.replicas * self.most_canaries)?;
        self.order = device.zeros(self.ahead * self.replicas)?;
        self.drawn.clear();
        Ok(())
    }

    fn key(recipe: &Recipe, step: u64) -> Key {
        let fixed = recipe.fault == Fault::RepeatedBatch || recipe.sampling == Sampling::Full;
        (if fixed { 0 } else { step }, recipe.phase(step).sample_rate.to_bits())
    }

    /// The batches of a step, drawn now if they were not before.
    pub(super) fn step(
        &mut self,
        device: &CudaDevice,
        kernels: &Kernels,
        recipe: &Recipe,
        canaries: &Canaries,
        replicas: &[Replica],
        step: u64,
    ) -> Result<Drawn<'_>, TrainingError> {
        let key = Self::key(recipe, step);
        if !self.drawn.contains(&key) {
            if self.samplers.is_empty() {
                self.draw_on_device(device, kernels, recipe, canaries, step)?;
            } else {
                self.draw_on_host(device, recipe, canaries, replicas, step)?;
            }
        }
        let place = self.drawn.iter().position(|drawn| *drawn == key).unwrap_or(0);
        let own = place * self.replicas..(place + 1) * self.replicas;
        Ok(Drawn {
            key,
            batch: self.batch.at(own.start * self.capacity),
            counts: self.counts.at(own.start),
            hits: self.hits.at(own.start * self.most_canaries),
            order: self.order.at(own.start),
            sizes: &self.host_counts[own.clone()],
            sorted: &self.host_order[own],
        })
    }

    fn draw_on_device(
        &mut self,
        device: &CudaDevice,
        kernels: &Kernels,
        recipe: &Recipe,
        canaries: &Canaries,
        step: u64,
    ) -> Result<(), TrainingError> {
        loop {
            let steps = (recipe.steps() - step).clamp(1, self.ahead as u64);
            let mut keys: Vec<Key> = (step..step + steps).map(|s| Self::key(recipe, s)).collect();
            keys.dedup();
            let coins: Vec<u64> = keys
                .iter()
                .flat_map(|(row, rate)| {
                    let (high, low) = Bernoulli::new(f64::from_bits(*rate)).threshold();
                    [*row, high, u64::from(low)]
                })
                .collect();
            device.write(&mut self.coins, &coins)?;
            device.launch(
                kernels,
                "draw",
                (self.replicas, keys.len()),
                256,
                &mut [
                    Address(self.batch.address()),
                    Address(self.counts.address()),
                    Address(self.hits.address()),
                    Address(self.keys.address()),
                    Address(self.coins.address()),
                    Int(self.records as i32),
                    Int(i32::from(recipe.rest == Rest::Natural)),
                    Int(self.capacity as i32),
                    Int(self.most_canaries as i32),
                    Address(canaries.start.address()),
                    Address(canaries.kind.address()),
                    Address(canaries.without_start.address()),
                    Address(canaries.without.address()),
                ],
            )?;
            let counts = device.read(&self.counts, keys.len() * self.replicas)?;
            let most = counts.iter().copied().max().unwrap_or(0) as usize;
            if most <= self.capacity {
                self.drawn = keys;
                self.host_counts = counts;
                return self.sort(device);
            }
            // Once in 10^30 years; but no record is ever left out.
            self.make_room(device, most)?;
        }
    }

    fn draw_on_host(
        &mut self,
        device: &CudaDevice,
        recipe: &Recipe,
        canaries: &Canaries,
        replicas: &[Replica],
        step: u64,
    ) -> Result<(), TrainingError> {
        let most = self.most_canaries;
        let mut hits = vec![0_u8; self.replicas * most.max(1)];
        let records = self.records as u32;
        let rows: Vec<Vec<i32>> = self
            .samplers
            .par_iter_mut()
            .zip(replicas)
            .zip(&canaries.host_kind)
            .zip(hits.par_chunks_mut(most.max(1)))
            .map(|(((sampler, replica), kinds), hits)| {
                let mut drawn = Batch::default();
                sampler.draw(recipe, step, &mut drawn);
                let mut rows = Vec::with_capacity(drawn.records.len());
                for record in drawn.records {
                    if record >= records {
                        let canary = (record - records) as usize;
                        match kinds[canary] {
                            -1 => {}
                            -2 => hits[canary] = 1,
                            row => rows.push(row),
                        }
                    } else if recipe.rest == Rest::Natural
                        && replica.without.binary_search(&record).is_err()
                    {
                        rows.push(record as i32);
                    }
                }
                rows
            })
            .collect();
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
        if longest > self.capacity {
            // Rare; but no record is ever left out.
            self.make_room(device, longest)?;
        }
        let mut batch = vec![0_i32; self.replicas * self.capacity];
        for (out, rows) in batch.chunks_mut(self.capacity).zip(&rows) {
            out[..rows.len()].copy_from_slice(rows);
        }
        let counts: Vec<i32> = rows.iter().map(|rows| rows.len() as i32).collect();
        device.write(&mut self.batch, &batch)?;
        device.write(&mut self.counts, &counts)?;
        if most > 0 {
            device.write(&mut self.hits, &hits)?;
        }
        self.drawn = vec![Self::key(recipe, step)];
        self.host_counts = counts;
        self.sort(device)
    }

    /// The replicas of each step drawn, by the size of their batch.
    fn sort(&mut self, device: &CudaDevice) -> Result<(), TrainingError> {
        self.host_order.clear();
        for counts in self.host_counts.chunks(self.replicas) {
            let from = self.host_order.len();
            self.host_order.extend(0..self.replicas as i32);
            self.host_order[from..].sort_by_key(|replica| counts[*replica as usize]);
        }
        let order = std::mem::take(&mut self.host_order);
        let written = device.write(&mut self.order, &order);
        self.host_order = order;
        written
    }
}
