//! Which records are in a batch: a pure function of (recipe, data order, step).
//!
//! * **Poisson**: record i is in batch t when Bernoulli(sample_rate) number i of row t of the
//!   stream (seed, SAMPLING, data order) is 1, so batches have any size, zero included.
//! * **Full**: everything.
//! * **Fixed size**: the B records with the smallest 64-bit words of row t.
//! * **Shuffle**: each epoch sorts the records by the words of row `epoch` and cuts them into
//!   batches of B; a last part that is shorter than B is dropped.
//!
//! With a secure key the same, from the words of ChaCha20 in place of the stream's.

use crate::recipe::{Fault, Recipe};
use random::{Bernoulli, Purpose, SecureKey, SecureStream, Stream};
use vocabulary::{Drawing, Run, Sampling};

/// The records of one batch, and room for the coins that chose them.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// In increasing order.
    pub records: Vec<u32>,
    coins: Vec<bool>,
}

/// Draws the batches of one replica.
#[derive(Clone, Debug)]
pub struct Sampler {
    stream: Stream,
    records: usize,
    order: Vec<u32>,
    epoch: Option<u64>,
}

impl Sampler {
    /// For `records` records (canaries included, at the end).
    pub fn new(seed: u64, data_order: u64, records: usize) -> Self {
        Self {
            stream: Stream::new(seed, Purpose::SAMPLING, data_order),
            records,
            order: Vec::new(),
            epoch: None,
        }
    }

    /// Draws the batch of a step.
    pub fn draw(&mut self, recipe: &Recipe, step: u64, batch: &mut Batch) {
        let row = if recipe.fault == Fault::RepeatedBatch { 0 } else { step };
        let rate = recipe.phase(step).sample_rate;
        self.draw_row(recipe.sampling, rate, row, recipe.secure.as_ref(), batch);
    }

    /// Draws the batch of a row of the stream, for trainings that are not a [`Recipe`]'s.
    pub fn draw_row(
        &mut self,
        sampling: Sampling,
        rate: f64,
        row: u64,
        secure: Option<&SecureKey>,
        batch: &mut Batch,
    ) {
        let Batch { records: batch, coins } = batch;
        batch.clear();
        let size = ((rate * self.records as f64).round() as usize).clamp(1, self.records);
        match sampling {
            Sampling::Full => batch.extend(0..self.records as u32),
            Sampling::Poisson if secure.is_some() => {
                let mut stream = secure_stream(secure, row);
                batch.extend((0..self.records as u32).filter(|_| stream.coin(rate)));
            }
            Sampling::Poisson => {
                coins.resize(self.records, false);
                Bernoulli::new(rate).fill(&self.stream, row, 0, coins);
                for (group, coins) in coins.chunks(64).enumerate() {
                    // Most groups hold nobody at small rates.
                    if coins.iter().fold(false, |any, coin| any | coin) {
                        let first = (group * 64) as u32;
                        let hits = (first..).zip(coins).filter(|(_, coin)| **coin);
                        batch.extend(hits.map(|(record, _)| record));
                    }
                }
            }
            Sampling::FixedSize => {
                self.sort_by(secure, row);
                batch.extend_from_slice(&self.order[..size]);
                batch.sort_unstable();
            }
            Sampling::Shuffle => {
                let batches = (self.records / size).max(1) as u64;
                let epoch = row / batches;
                if self.epoch != Some(epoch) {
                    self.sort_by(secure, epoch);
                    self.epoch = Some(epoch);
                }
                let first = (row % batches) as usize * size;
                batch.extend_from_slice(&self.order[first..first + size]);
                batch.sort_unstable();
            }
            other => unreachable!("{} is refused before training", other.as_str()),
        }
    }

    fn sort_by(&mut self, secure: Option<&SecureKey>, row: u64) {
        let all = 0..self.records as u32;
        let mut keys: Vec<(u64, u32)> = if secure.is_some() {
            let mut stream = secure_stream(secure, row);
            all.map(|i| (stream.word(), i)).collect()
        } else {
            all.map(|i| (self.stream.word(row, i.into()), i)).collect()
        };
        keys.sort_unstable();
        self.order.clear();
        self.order.extend(keys.into_iter().map(|(_, record)| record));
    }
}

/// Whether training draws a run's batches the way it says.
pub(crate) fn drawn(run: &Run) -> Result<(), String> {
    let drawing = run.drawing();
    let plain = matches!(
        run.sampling(),
        Sampling::Poisson | Sampling::Full | Sampling::Shuffle | Sampling::FixedSize
    );
    if !plain || *drawing != Drawing::default() {
        return Err(format!(
            "training draws poisson, full, shuffle (a new order for every epoch) and fixed-size \
             batches (without replacement), not this kind of {}",
            run.sampling().words()
        ));
    }
    if !run.releases().is_empty() || run.matrix().is_some() {
        return Err("training releases one noisy sum per step, with independent noise; further \
                    releases and correlated noise can be accounted for, but not trained with"
            .into());
    }
    Ok(())
}

fn secure_stream(secure: Option<&SecureKey>, row: u64) -> SecureStream {
    let key = secure.expect("only asked for with a key");
    key.stream(Purpose::SAMPLING, row)
}
