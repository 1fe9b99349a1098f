//! DP-SGD (P4, Algorithm 1): each step samples a batch by independent coins, clips each gradient,
//! adds Gaussian noise to the sum, and moves the model; the regulariser is added without noise.
//!
//! ```text
//! m <- m - rate * (sum over the batch of clip(g_i(m)) + sigma C xi + grad r(m))
//! ```
//!
//! The learning rate multiplies the sum (the expected batch size is absorbed in it). Records that
//! are identical are counted, not listed: a batch of 10^9 zeros is one binomial number.
//! Cost: one Gaussian per step and coordinate, a gradient per group and step, one per canary hit.

use crate::lockstep::Lockstep;
use crate::{Crafter, StepView};
use random::{Bernoulli, Binomial, Purpose, Stream};

/// The randomness of one training.
#[derive(Clone, Copy, Debug)]
pub struct Randomness {
    pub(crate) noise: Stream,
    pub(crate) sampling: Stream,
    pub(crate) batch_size: Stream,
}

impl Randomness {
    /// Of a replica of the experiment with this seed.
    pub fn new(seed: u64, replica: u64) -> Self {
        Self {
            noise: Stream::new(seed, Purpose::NOISE, replica),
            sampling: Stream::new(seed, Purpose::SAMPLING, replica),
            batch_size: Stream::new(seed, Purpose::BATCH_SIZE, replica),
        }
    }
}

/// What a training leaves behind; reused from one to the next.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The last iterate.
    pub model: Vec<f64>,
    /// What an attacker who sees every iterate makes of each step; empty unless asked for.
    pub steps: Vec<StepView>,
    noise: Vec<f64>,
    hits: Vec<bool>,
    sum: Vec<f64>,
    gradient: Vec<f64>,
}

/// Trains a model on what a crafter chose.
pub trait Trainer: Sync {
    /// Trains once, with or without the canary. `watch` asks for [`Record::steps`].
    fn train<C: Crafter>(
        &self,
        crafter: &C,
        canary: bool,
        watch: bool,
        randomness: &Randomness,
        record: &mut Record,
    );

    /// Trains once with each randomness and shows the records in that order. A trainer that can
    /// train several models at once says so by writing its own; the numbers stay the same.
    fn train_each<C: Crafter>(
        &self,
        crafter: &C,
        canary: bool,
        watch: bool,
        randomness: &[Randomness],
        record: &mut Record,
        each: &mut dyn FnMut(&Record),
    ) {
        for one in randomness {
            self.train(crafter, canary, watch, one, record);
            each(record);
        }
    }
}

/// DP-SGD with Poisson sampling.
#[derive(Clone, Debug)]
pub struct DpSgd {
    pub noise_multiplier: f64,
    pub sample_rate: f64,
    pub steps: u64,
    pub clip_norm: f64,
    pub learning_rate: f64,
}

impl DpSgd {
    /// Clip norm and learning rate 1.
    pub fn new(noise_multiplier: f64, sample_rate: f64, steps: u64) -> Self {
        Self { noise_multiplier, sample_rate, steps, clip_norm: 1.0, learning_rate: 1.0 }
    }

    #[inline(always)]
    pub(crate) fn clip(&self, gradient: &mut [f64]) {
        if let [only] = gradient {
            // The square root of a rounded square is the number itself: no need to take it.
            let norm = only.abs();
            if norm > self.clip_norm {
                *only *= self.clip_norm / norm;
            }
            return;
        }
        let norm = gradient.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm > self.clip_norm {
            let factor = self.clip_norm / norm;
            gradient.iter_mut().for_each(|x| *x *= factor);
        }
    }

    /// The same as the general loop, number for number, for one parameter and no other records:
    /// the parameter stays in a register.
    fn train_scalar<C: Crafter>(
        &self,
        crafter: &C,
        hits: Option<&[bool]>,
        stream: &Stream,
        noise: &mut [f64],
    ) -> f64 {
        let noise_scale = self.noise_multiplier * self.clip_norm;
        let mut model = [0.0];
        let mut first = 0;
        while first < self.steps {
            let count = (self.steps - first).min(noise.len() as u64) as usize;
            let noise = &mut noise[..count];
            stream.fill_gaussians(0, first, noise);
            let hits = hits.map(|hits| &hits[first as usize..first as usize + count]);
            for (i, xi) in noise.iter().enumerate() {
                let step = first + i as u64;
                let mut total = noise_scale * xi;
                if hits.is_some_and(|hits| hits[i]) {
                    let mut gradient = [0.0];
                    self.canary_gradient(crafter, step, &model, &mut gradient);
                    total += gradient[0];
                }
                crafter.regularise(step, self.learning_rate, &mut model);
                model[0] -= self.learning_rate * total;
            }
            first += count as u64;
        }
        model[0]
    }

    /// The canary's clipped gradient at this model.
    pub(crate) fn canary_gradient<C: Crafter>(
        &self,
        crafter: &C,
        step: u64,
        model: &[f64],
        out: &mut [f64],
    ) {
        out.fill(0.0);
        crafter.canary(step, model, out);
        self.clip(out);
    }
}

/// Gaussians made at a time.
const BUFFER: usize = 4096;

impl Trainer for DpSgd {
    fn train<C: Crafter>(
        &self,
        crafter: &C,
        canary: bool,
        watch: bool,
        randomness: &Randomness,
        record: &mut Record,
    ) {
        let dimension = crafter.dimension();
        let coin = Bernoulli::new(self.sample_rate);
        let batches: Vec<Option<Binomial>> = crafter
            .groups()
            .iter()
            .map(|group| (!group.always).then(|| Binomial::new(group.records, self.sample_rate)))
            .collect();
        let noise_scale = self.noise_multiplier * self.clip_norm;
        let Record { model, steps, noise, hits, sum, gradient } = record;
        model.clear();
        model.resize(dimension, 0.0);
        sum.resize(dimension, 0.0);
        gradient.resize(dimension, 0.0);
        steps.clear();
        hits.resize(self.steps as usize, false);
        if canary {
            coin.fill(&randomness.sampling, 0, 0, hits);
        }
        if dimension == 1 && batches.is_empty() && !watch && crafter.scale().is_none() {
            noise.resize(self.steps.min(BUFFER as u64) as usize, 0.0);
            let hits = canary.then_some(hits.as_slice());
            model[0] = self.train_scalar(crafter, hits, &randomness.noise, noise);
            return;
        }
        let steps_per_fill = (BUFFER / dimension).max(1) as u64;
        let mut first = 0;
        while first < self.steps {
            let last = (first + steps_per_fill).min(self.steps);
            noise.resize((last - first) as usize * dimension, 0.0);
            randomness.noise.fill_gaussians(0, first * dimension as u64, noise);
            for (step, noise) in (first..last).zip(noise.chunks_exact(dimension)) {
                let hit = canary && hits[step as usize];
                let model = model.as_mut_slice();
                for (total, xi) in sum.iter_mut().zip(noise) {
                    *total = noise_scale * xi;
                }
                if hit {
                    self.canary_gradient(crafter, step, model, gradient);
                    sum.iter_mut().zip(gradient.iter()).for_each(|(total, g)| *total += g);
                }
                let mut expected_others = 0.0;
                for (index, group) in crafter.groups().iter().enumerate() {
                    gradient.fill(0.0);
                    crafter.group(index, step, model, gradient);
                    self.clip(gradient);
                    let count = match &batches[index] {
                        None => group.records as f64,
                        Some(size) => {
                            let row = step * batches.len() as u64 + index as u64;
                            size.draw(&randomness.batch_size, row) as f64
                        }
                    };
                    sum.iter_mut().zip(gradient.iter()).for_each(|(total, g)| *total += count * g);
                    if watch {
                        let share = if group.always { 1.0 } else { self.sample_rate };
                        let others = share * group.records as f64;
                        let mut mine = vec![0.0; dimension];
                        self.canary_gradient(crafter, step, model, &mut mine);
                        expected_others += others * dot(&mine, gradient);
                    }
                }
                if watch {
                    self.canary_gradient(crafter, step, model, gradient);
                    steps.push(StepView {
                        projection: dot(sum, gradient) - expected_others,
                        squared_norm: dot(gradient, gradient),
                    });
                }
                crafter.regularise(step, self.learning_rate, model);
                match crafter.scale() {
                    None => {
                        for (m, total) in model.iter_mut().zip(sum.iter()) {
                            *m -= self.learning_rate * total;
                        }
                    }
                    Some(scale) => {
                        for ((m, total), factor) in model.iter_mut().zip(sum.iter()).zip(scale) {
                            *m -= self.learning_rate * (total * factor);
                        }
                    }
                }
            }
            first = last;
        }
    }

    /// Models of one parameter with other records are trained abreast, because there the
    /// gradients are the work; alone they are already at the pace of the noise.
    fn train_each<C: Crafter>(
        &self,
        crafter: &C,
        canary: bool,
        watch: bool,
        randomness: &[Randomness],
        record: &mut Record,
        each: &mut dyn FnMut(&Record),
    ) {
        let alone = crafter.dimension() != 1 || crafter.groups().is_empty();
        if alone || watch || crafter.scale().is_some() {
            for one in randomness {
                self.train(crafter, canary, watch, one, record);
                each(record);
            }
            return;
        }
        let mut lockstep = Lockstep::new(self, crafter);
        record.steps.clear();
        for some in randomness.chunks(Lockstep::<C>::WIDTH) {
            for model in lockstep.train(canary, some) {
                record.model.clear();
                record.model.push(*model);
                each(record);
            }
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Linear, Quadratic, Zeroing};

    /// Another record with gradient zero forces the general loop; the result is the same bits.
    struct Crowd<C>(C);

    impl<C: Crafter> Crafter for Crowd<C> {
        fn dimension(&self) -> usize {
            1
        }
        fn canary(&self, step: u64, model: &[f64], gradient: &mut [f64]) {
            self.0.canary(step, model, gradient);
        }
        fn groups(&self) -> &[crate::Group] {
            &[crate::Group { records: 5, always: true }]
        }
        fn regularise(&self, step: u64, learning_rate: f64, model: &mut [f64]) {
            self.0.regularise(step, learning_rate, model);
        }
    }

    /// Two groups, one always there, one sampled, whose gradients depend on step and model.
    struct Pull;

    impl Crafter for Pull {
        fn dimension(&self) -> usize {
            1
        }
        fn canary(&self, step: u64, model: &[f64], gradient: &mut [f64]) {
            gradient[0] = -1.0 - 0.1 * model[0] / (1.0 + step as f64);
        }
        fn groups(&self) -> &[crate::Group] {
            &[
                crate::Group { records: 3, always: true },
                crate::Group { records: 40_000, always: false },
            ]
        }
        fn group(&self, group: usize, step: u64, model: &[f64], gradient: &mut [f64]) {
            gradient[0] = match group {
                0 => 0.02 * model[0] * (step % 3) as f64,
                _ => 1e-6 * model[0],
            };
        }
        fn regularise(&self, _step: u64, learning_rate: f64, model: &mut [f64]) {
            model[0] -= learning_rate * 0.01 * model[0];
        }
    }

    /// More models than one block of the lockstep holds, more steps than one of its fills.
    #[test]
    fn models_trained_abreast_are_the_same() {
        let mut trainer = DpSgd::new(0.8, 0.1, 701);
        trainer.clip_norm = 0.5;
        trainer.learning_rate = 0.3;
        let many: Vec<Randomness> = (0..77).map(|replica| Randomness::new(3, replica)).collect();
        for canary in [false, true] {
            let (mut record, mut abreast) = (Record::default(), Vec::new());
            trainer.train_each(&Pull, canary, false, &many, &mut record, &mut |record| {
                abreast.push(record.model[0]);
            });
            for (randomness, found) in many.iter().zip(abreast) {
                trainer.train(&Pull, canary, false, randomness, &mut record);
                assert_eq!(record.model[0], found);
            }
        }
    }

    fn same<C: Crafter + Copy>(crafter: C) {
        let mut trainer = DpSgd::new(0.8, 0.1, 9001);
        trainer.clip_norm = 0.5;
        trainer.learning_rate = 0.1;
        for canary in [false, true] {
            let randomness = Randomness::new(1, u64::from(canary));
            let (mut fast, mut slow) = (Record::default(), Record::default());
            trainer.train(&crafter, canary, false, &randomness, &mut fast);
            trainer.train(&Crowd(crafter), canary, false, &randomness, &mut slow);
            assert_eq!(fast.model, slow.model);
        }
    }

    #[test]
    fn both_loops_are_the_same() {
        same(Linear);
        same(Zeroing);
        same(Quadratic { alpha: 0.25 });
    }
}
