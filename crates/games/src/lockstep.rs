//! Several models of one parameter trained step by step together. The same numbers as one model
//! after the other: a model's random words depend on its replica, step and coordinate only.
//! What is gained: gradients of a whole row of models are one loop that becomes vector code.

use crate::{Crafter, DpSgd, Randomness};
use random::{Bernoulli, Binomial};
use std::slice::{from_mut, from_ref};

/// Models abreast.
const WIDTH: usize = 32;
/// Steps for which random numbers are made at a time; a multiple of 4 (see [`Bernoulli::fill`]).
const DEPTH: usize = 64;

/// How many records of a group are in a batch.
enum Batch {
    /// Always as many.
    All(f64),
    /// Drawn anew for every step.
    Drawn(Binomial),
}

pub(crate) struct Lockstep<'a, C> {
    trainer: &'a DpSgd,
    crafter: &'a C,
    coin: Bernoulli,
    /// Per group of records.
    batches: Vec<Batch>,
    models: [f64; WIDTH],
    /// By step, then by model.
    noise: Vec<f64>,
    hits: Vec<bool>,
    /// By step, then by group, then by model.
    counts: Vec<f64>,
}

impl<'a, C: Crafter> Lockstep<'a, C> {
    pub(crate) const WIDTH: usize = WIDTH;

    pub(crate) fn new(trainer: &'a DpSgd, crafter: &'a C) -> Self {
        let batches: Vec<_> = crafter
            .groups()
            .iter()
            .map(|group| match group.always {
                true => Batch::All(group.records as f64),
                false => Batch::Drawn(Binomial::new(group.records, trainer.sample_rate)),
            })
            .collect();
        Self {
            trainer,
            crafter,
            coin: Bernoulli::new(trainer.sample_rate),
            models: [0.0; WIDTH],
            noise: vec![0.0; DEPTH * WIDTH],
            hits: vec![false; DEPTH * WIDTH],
            counts: vec![0.0; DEPTH * batches.len() * WIDTH],
            batches,
        }
    }

    /// The last iterates of at most [`Self::WIDTH`] trainings.
    pub(crate) fn train(&mut self, canary: bool, randomness: &[Randomness]) -> &[f64] {
        let width = randomness.len();
        self.models.fill(0.0);
        let mut first = 0;
        while first < self.trainer.steps {
            let depth = (self.trainer.steps - first).min(DEPTH as u64) as usize;
            for (lane, one) in randomness.iter().enumerate() {
                self.draw(lane, one, canary, first, depth);
            }
            for row in 0..depth {
                self.step(canary, first + row as u64, row, width);
            }
            first += depth as u64;
        }
        &self.models[..width]
    }

    /// The random numbers of one model for the next steps.
    fn draw(&mut self, lane: usize, from: &Randomness, canary: bool, first: u64, depth: usize) {
        let mut numbers = [0.0; DEPTH];
        from.noise.fill_gaussians(0, first, &mut numbers[..depth]);
        for (row, number) in numbers[..depth].iter().enumerate() {
            self.noise[row * WIDTH + lane] = *number;
        }
        if canary {
            let mut hits = [false; DEPTH];
            self.coin.fill(&from.sampling, 0, first, &mut hits[..depth]);
            for (row, hit) in hits[..depth].iter().enumerate() {
                self.hits[row * WIDTH + lane] = *hit;
            }
        }
        let groups = self.batches.len();
        for (group, batch) in self.batches.iter().enumerate() {
            match batch {
                Batch::All(records) => numbers.fill(*records),
                // The rows of one group are neighbours only when there is no other.
                Batch::Drawn(batch) if groups == 1 => {
                    batch.fill(&from.batch_size, first, &mut numbers[..depth]);
                }
                Batch::Drawn(batch) => {
                    for (step, number) in (first..).zip(&mut numbers[..depth]) {
                        let row = step * groups as u64 + group as u64;
                        *number = batch.draw(&from.batch_size, row) as f64;
                    }
                }
            }
            for (row, number) in numbers[..depth].iter().enumerate() {
                self.counts[(row * groups + group) * WIDTH + lane] = *number;
            }
        }
    }

    fn step(&mut self, canary: bool, step: u64, row: usize, width: usize) {
        let DpSgd { learning_rate, clip_norm, noise_multiplier, .. } = *self.trainer;
        let noise_scale = noise_multiplier * clip_norm;
        let mut totals = [0.0; WIDTH];
        for (total, xi) in totals.iter_mut().zip(&self.noise[row * WIDTH..]) {
            *total = noise_scale * xi;
        }
        if canary {
            let hits = &self.hits[row * WIDTH..][..width];
            for lane in (0..width).filter(|lane| hits[*lane]) {
                let mut gradient = 0.0;
                let model = from_ref(&self.models[lane]);
                self.trainer.canary_gradient(self.crafter, step, model, from_mut(&mut gradient));
                totals[lane] += gradient;
            }
        }
        for group in 0..self.batches.len() {
            let mut gradients = [0.0; WIDTH];
            self.crafter.group_abreast(group, step, &self.models[..width], &mut gradients[..width]);
            let counts = &self.counts[(row * self.batches.len() + group) * WIDTH..][..WIDTH];
            for lane in 0..WIDTH {
                self.trainer.clip(from_mut(&mut gradients[lane]));
                totals[lane] += counts[lane] * gradients[lane];
            }
        }
        for (model, total) in self.models[..width].iter_mut().zip(totals) {
            self.crafter.regularise(step, learning_rate, from_mut(model));
            *model -= learning_rate * total;
        }
    }
}
