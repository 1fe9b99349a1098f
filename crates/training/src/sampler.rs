//! Which records are in a batch: a pure function of (recipe, data order, step).
//!
//! * **Poisson**: record i is in batch t when Bernoulli(sample_rate) number i of row t of the
//!   stream (seed, SAMPLING, data order) is 1, so batches have any size, zero included.
//! * **Full**: everything.
//! * **Fixed size**: the B records with the smallest 64-bit words of row t; with replacement, B times
//!   the record that a word of row t points at.
//! * **Shuffle**: each epoch sorts the records by the words of its row (of row 0 where one order is
//!   kept) and cuts them into batches of B; a last part that is shorter than B is dropped.
//! * **Balls and bins**: of the S batches of an epoch, record i is in the one that word i of the epoch's row
//!   points at; with several uses per epoch, in the ones that as many words point at, without
//!   repetition (Floyd's algorithm).
//! * **Truncated Poisson**: the Poisson batch; of a larger one, the records with the smallest words of
//!   row t + 2^62.
//! * **Cyclic Poisson**: the Poisson batch, of those records i with i = t modulo the number of groups.
//! * **In order**: records 0 to B - 1, then B to 2B - 1, and so on; the last batch of a pass may be shorter.
//!
//! Epochs are counted from the first step f of a phase, as they are accounted for: number e of them has row
//! f + e, which no other epoch has. B is rate times records, rounded down: no record is drawn more often
//! than the rate says.
//!
//! With a secure key the same, from the words of ChaCha20 in place of the stream's.

use crate::recipe::{Fault, Recipe};
use random::{Bernoulli, Purpose, SecureKey, SecureStream, Stream};
use vocabulary::{Drawing, Permutation, Phase, Run, Sampling};

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
        let (sampling, drawing) = (recipe.sampling, recipe.drawing);
        let (phase, first) = phase_at(&recipe.phases, step);
        let mut way = Way { sampling, drawing, rate: phase.sample_rate, first };
        let mut row = step;
        if recipe.fault == Fault::RepeatedBatch {
            (way.first, row) = (0, 0);
        }
        self.draw_row(&way, row, recipe.secure.as_ref(), batch);
    }

    /// Draws the batch of a row of the stream, for trainings that are not a [`Recipe`]'s. The row is the
    /// step, counted from the start of the run.
    pub fn draw_row(&mut self, way: &Way, row: u64, secure: Option<&SecureKey>, batch: &mut Batch) {
        let rate = way.rate;
        let size = batch_size(rate, self.records);
        // Steps since the phase began.
        let here = row.saturating_sub(way.first);
        batch.records.clear();
        match way.sampling {
            Sampling::Full => batch.records.extend(0..self.records as u32),
            Sampling::Poisson => self.coins(rate, row, secure, batch),
            Sampling::CyclicPoisson => {
                let groups = way.drawing.cycle_length.unwrap_or(1).max(1);
                self.coins(rate, row, secure, batch);
                batch.records.retain(|record| u64::from(*record) % groups == row % groups);
            }
            Sampling::TruncatedPoisson => {
                self.coins(rate, row, secure, batch);
                let most = way.drawing.max_batch_size.unwrap_or(u64::MAX);
                if batch.records.len() as u64 > most {
                    self.sort_by(secure, row + SECOND_ROWS);
                    let drawn = std::mem::take(&mut batch.records);
                    let kept = self.order.iter().filter(|one| drawn.binary_search(one).is_ok());
                    batch.records.extend(kept.take(most as usize));
                    batch.records.sort_unstable();
                }
            }
            Sampling::FixedSize if way.drawing.replacement => {
                let mut words = Words::new(&self.stream, secure, row);
                let drawn = (0..size).map(|_| words.below(self.records as u64) as u32);
                batch.records.extend(drawn);
                batch.records.sort_unstable();
            }
            Sampling::FixedSize => {
                self.sort_by(secure, row);
                batch.records.extend_from_slice(&self.order[..size]);
                batch.records.sort_unstable();
            }
            Sampling::Shuffle => {
                let batches = (self.records / size).max(1) as u64;
                let epoch = match way.drawing.permutation {
                    Permutation::Fresh => way.first + here / batches,
                    Permutation::Kept => 0,
                };
                if self.epoch != Some(epoch) {
                    self.sort_by(secure, epoch);
                    self.epoch = Some(epoch);
                }
                let first = (here % batches) as usize * size;
                batch.records.extend_from_slice(&self.order[first..first + size]);
                batch.records.sort_unstable();
            }
            Sampling::InOrder => {
                let batches = self.records.div_ceil(size) as u64;
                let first = (here % batches) as usize * size;
                batch.records.extend(first as u32..(first + size).min(self.records) as u32);
            }
            Sampling::BallsAndBins => {
                let batches = (1.0 / rate).round().max(1.0) as u64;
                let uses = way.drawing.uses_per_epoch.unwrap_or(1);
                let mut words = Words::new(&self.stream, secure, way.first + here / batches);
                let all = 0..self.records as u32;
                batch.records.extend(all.filter(|_| words.subset(batches, uses, here % batches)));
            }
        }
    }

    /// Every record by its own coin.
    fn coins(&self, rate: f64, row: u64, secure: Option<&SecureKey>, batch: &mut Batch) {
        let Batch { records: batch, coins } = batch;
        if secure.is_some() {
            let mut stream = secure_stream(secure, row);
            batch.extend((0..self.records as u32).filter(|_| stream.coin(rate)));
            return;
        }
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

/// Rows of the stream for a second draw of the same step.
const SECOND_ROWS: u64 = 1 << 62;

/// A way to draw batches, at one sample rate.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub sampling: Sampling,
    pub drawing: Drawing,
    pub rate: f64,
    /// The first step of the phase: epochs are counted from it.
    pub first: u64,
}

impl Way {
    /// That of a step of a run (counted from 0).
    pub fn of(run: &Run, step: u64) -> Self {
        let (phase, first) = phase_at(run.phases(), step);
        let (sampling, drawing) = (run.sampling(), *run.drawing());
        Self { sampling, drawing, rate: phase.sample_rate, first }
    }
}

/// The phase that a step (counted from 0) belongs to, and its first step.
pub(crate) fn phase_at(phases: &[Phase], step: u64) -> (Phase, u64) {
    let mut first = 0;
    for phase in phases {
        if step < first + phase.steps {
            return (*phase, first);
        }
        first += phase.steps;
    }
    let last = *phases.last().expect("a run has phases");
    (last, first - last.steps)
}

/// Records in a batch of fixed size: the rate of all of them, rounded down (whole up to rounding).
fn batch_size(rate: f64, records: usize) -> usize {
    let exact = rate * records as f64;
    let near = exact.round();
    let whole = if (exact - near).abs() <= 1e-9 * near { near } else { exact.floor() };
    (whole as usize).clamp(1, records)
}

/// The words of a row one after the other.
enum Words<'a> {
    Fast { stream: &'a Stream, row: u64, next: u64 },
    Secure(Box<SecureStream>),
}

impl<'a> Words<'a> {
    fn new(stream: &'a Stream, secure: Option<&SecureKey>, row: u64) -> Self {
        match secure {
            Some(_) => Self::Secure(Box::new(secure_stream(secure, row))),
            None => Self::Fast { stream, row, next: 0 },
        }
    }

    /// A number below `count`: uniform up to count / 2^64.
    fn below(&mut self, count: u64) -> u64 {
        let word = match self {
            Self::Secure(stream) => stream.word(),
            Self::Fast { stream, row, next } => {
                *next += 1;
                stream.word(*row, *next - 1)
            }
        };
        ((u128::from(word) * u128::from(count)) >> 64) as u64
    }

    /// Whether `which` is among `uses` different numbers below `count`, by Floyd's algorithm. Takes
    /// as many words in any case.
    fn subset(&mut self, count: u64, uses: u64, which: u64) -> bool {
        if uses <= 1 {
            return self.below(count) == which;
        }
        let mut chosen: Vec<u64> = Vec::with_capacity(uses as usize);
        for last in count - uses.min(count)..count {
            let one = self.below(last + 1);
            chosen.push(if chosen.contains(&one) { last } else { one });
        }
        chosen.contains(&which)
    }
}

/// Whether training draws a run's batches from this many records the way it says.
///
/// # Errors
/// What it does not draw, and what to do about it.
pub fn drawn(run: &Run, records: usize) -> Result<(), String> {
    for phase in run.phases() {
        let sized =
            matches!(run.sampling(), Sampling::FixedSize | Sampling::Shuffle | Sampling::InOrder);
        let mean = phase.sample_rate * records as f64;
        if sized && mean < 1.0 - 1e-9 {
            return Err(format!(
                "sample rate {} of {records} records is a batch of {mean:.3}, and a batch of fixed \
                 size has at least one record; give a rate of at least {:e}",
                phase.sample_rate,
                1.0 / records as f64
            ));
        }
        let counted = run.sampling() == Sampling::FixedSize
            && (run.drawing().replacement || run.group_size() > 1);
        if counted && (mean - mean.round()).abs() > 1e-9 * mean {
            return Err(format!(
                "groups and draws with replacement need batches of a whole size to be accounted for, and sample rate {} of \
                 {records} records is {mean:.3}; give batch_size = {} in place of the rate",
                phase.sample_rate,
                mean.floor()
            ));
        }
        let batches = 1.0 / phase.sample_rate;
        let whole = (batches - batches.round()).abs() <= 1e-9 * batches;
        if run.sampling() == Sampling::BallsAndBins && !whole {
            return Err(format!(
                "balls and bins needs a whole number of batches per epoch, and 1/sample rate is \
                 {batches}; give sample_rate = {} ({} batches) in place of the batch size",
                1.0 / batches.round(),
                batches.round()
            ));
        }
        let most = run.drawing().uses_per_epoch.unwrap_or(1);
        if run.sampling() == Sampling::BallsAndBins && most as f64 > batches.round() {
            return Err(format!("{most} uses per epoch do not fit into {batches} batches"));
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use vocabulary::Adjacency;

    const RECORDS: usize = 600;

    fn batches(sampling: Sampling, drawing: Drawing, rate: f64, steps: u64) -> Vec<Vec<u32>> {
        let way = Way { sampling, drawing, rate, first: 0 };
        let mut sampler = Sampler::new(7, 0, RECORDS);
        let mut batch = Batch::default();
        let drawn = |step| {
            sampler.draw_row(&way, step, None, &mut batch);
            batch.records.clone()
        };
        (0..steps).map(drawn).collect()
    }

    /// How often each record is drawn.
    fn counts(batches: &[Vec<u32>]) -> Vec<u32> {
        let mut counts = vec![0; RECORDS];
        for record in batches.iter().flatten() {
            counts[*record as usize] += 1;
        }
        counts
    }

    #[test]
    fn balls_and_bins_hold_every_record_in_as_many_batches_as_said() {
        for uses in [1, 3] {
            let drawing = Drawing { uses_per_epoch: Some(uses), ..Drawing::default() };
            let drawn = batches(Sampling::BallsAndBins, drawing, 0.1, 20);
            for epoch in drawn.chunks(10) {
                assert!(counts(epoch).iter().all(|count| u64::from(*count) == uses));
            }
            // The two epochs are independent, and sizes are binomial: about 60 or 180 in a batch.
            assert_ne!(drawn[0], drawn[10]);
            let mean = 60.0 * uses as f64;
            let (low, high) = (mean - 6.0 * mean.sqrt(), mean + 6.0 * mean.sqrt());
            assert!(drawn.iter().all(|batch| (low..high).contains(&(batch.len() as f64))));
            assert!(drawn.iter().any(|batch| batch.len() != drawn[0].len()));
        }
        assert_eq!(Drawing { uses_per_epoch: Some(3), ..Drawing::default() }.share(0.1), 3.0 * 0.1);
    }

    #[test]
    fn one_order_is_kept_and_fresh_ones_are_not() {
        let kept = Drawing { permutation: Permutation::Kept, ..Drawing::default() };
        let drawn = batches(Sampling::Shuffle, kept, 0.1, 20);
        assert_eq!(drawn[..10], drawn[10..]);
        let fresh = batches(Sampling::Shuffle, Drawing::default(), 0.1, 20);
        assert_ne!(fresh[..10], fresh[10..]);
        for epoch in drawn.chunks(10).chain(fresh.chunks(10)) {
            assert!(counts(epoch).iter().all(|count| *count == 1));
        }
    }

    #[test]
    fn batches_in_order_are_stretches_of_the_data() {
        // 600 records in batches of 90: seven per pass, the last of 60.
        let drawn = batches(Sampling::InOrder, Drawing::default(), 0.15, 14);
        assert_eq!(drawn[..7].concat(), (0..RECORDS as u32).collect::<Vec<_>>());
        assert_eq!((drawn[6].len(), &drawn[..7]), (60, &drawn[7..]));
    }

    /// What is drawn is what is accounted for: within a phase, a record is used at most once per epoch of it,
    /// whatever came before.
    #[test]
    fn epochs_begin_with_their_phase() {
        let phases = [(0.1, 10), (0.25, 8), (0.2, 15), (0.1, 3)];
        for (sampling, permutation) in [
            (Sampling::Shuffle, Permutation::Fresh),
            (Sampling::Shuffle, Permutation::Kept),
            (Sampling::BallsAndBins, Permutation::Fresh),
            (Sampling::InOrder, Permutation::Fresh),
        ] {
            let mut builder = Run::builder().sampling(sampling).adjacency(Adjacency::ZeroOut);
            for (rate, steps) in phases {
                builder = builder.phase(1.0, rate, steps);
            }
            let drawing = Drawing { permutation, ..Drawing::default() };
            let run = builder.drawing(drawing).build().unwrap();
            let mut sampler = Sampler::new(7, 0, RECORDS);
            let mut batch = Batch::default();
            let (mut step, mut orders) = (0, Vec::new());
            for (rate, steps) in phases {
                let drawn: Vec<Vec<u32>> = (step..step + steps)
                    .map(|step| {
                        sampler.draw_row(&Way::of(&run, step), step, None, &mut batch);
                        batch.records.clone()
                    })
                    .collect();
                let per_epoch = (1.0 / rate).round() as u64;
                let most = counts(&drawn).into_iter().max().unwrap();
                assert!(u64::from(most) <= steps.div_ceil(per_epoch), "{sampling:?} {rate}");
                for epoch in drawn.chunks_exact(per_epoch as usize) {
                    assert!(counts(epoch).iter().all(|count| *count == 1), "{sampling:?} {rate}");
                    orders.push((rate.to_bits(), epoch.to_vec()));
                }
                step += steps;
            }
            // No two epochs of the same rate are alike, unless one order is kept.
            let alike = orders.iter().enumerate().any(|(i, one)| orders[..i].contains(one));
            let kept = permutation == Permutation::Kept || sampling == Sampling::InOrder;
            assert_eq!(alike, kept, "{sampling:?}");
        }
    }

    /// A rate that does not make whole records is rounded down: not more records per batch, and not fewer
    /// batches per epoch, than the rate says.
    #[test]
    fn batches_of_fixed_size_are_never_larger_than_the_rate() {
        for (rate, size) in [(0.1, 60), (0.1009, 60), (59.6 / 600.0, 59), (1.0 / 3.0, 200)] {
            for sampling in [Sampling::FixedSize, Sampling::Shuffle] {
                let drawn = batches(sampling, Drawing::default(), rate, 20);
                assert!(drawn.iter().all(|batch| batch.len() == size), "{rate}");
            }
        }
        // 100.6 of 1,006 records: ten batches of 100 and not nine of 101.
        let mut sampler = Sampler::new(7, 0, 1006);
        let way =
            Way { sampling: Sampling::Shuffle, drawing: Drawing::default(), rate: 0.1, first: 0 };
        let mut uses = vec![0; 1006];
        for step in 0..20 {
            let mut batch = Batch::default();
            sampler.draw_row(&way, step, None, &mut batch);
            batch.records.iter().for_each(|record| uses[*record as usize] += 1);
        }
        assert_eq!(uses.iter().max(), Some(&2));
        let run = Run::builder()
            .phase(1.0, 1e-3, 10)
            .sampling(Sampling::Shuffle)
            .adjacency(Adjacency::ZeroOut)
            .build()
            .unwrap();
        assert!(drawn(&run, 1000).is_ok());
        assert!(drawn(&run, 999).unwrap_err().contains("at least one record"));
    }

    #[test]
    fn with_replacement_a_record_may_be_drawn_twice() {
        let drawing = Drawing { replacement: true, ..Drawing::default() };
        let drawn = batches(Sampling::FixedSize, drawing, 0.1, 400);
        assert!(drawn.iter().all(|batch| batch.len() == 60));
        let twice = drawn.iter().filter(|batch| batch.windows(2).any(|pair| pair[0] == pair[1]));
        // All different: about exp(-60 * 59 / 1200) = 5 % of the batches.
        assert!((340..=398).contains(&twice.count()));
        let counts = counts(&drawn);
        assert!(counts.iter().all(|count| (8..=80).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_truncated_batch_is_a_uniform_part_of_the_poisson_batch() {
        let drawing = Drawing { max_batch_size: Some(60), ..Drawing::default() };
        let cut = batches(Sampling::TruncatedPoisson, drawing, 0.1, 2000);
        let whole = batches(Sampling::Poisson, Drawing::default(), 0.1, 2000);
        let mut kept = [0.0, 0.0];
        let mut longer = 0;
        for (cut, whole) in cut.iter().zip(&whole) {
            assert_eq!(cut.len(), whole.len().min(60));
            assert!(cut.iter().all(|record| whole.binary_search(record).is_ok()));
            if whole.len() > 60 {
                longer += 1;
                let half = |part: &[u32]| part.iter().filter(|r| **r < 300).count() as f64;
                kept[0] += half(cut) / cut.len() as f64;
                kept[1] += half(whole) / whole.len() as f64;
            }
        }
        assert!((700..1200).contains(&longer), "{longer}");
        // The first half of the records is neither preferred nor neglected.
        assert!((kept[0] - kept[1]).abs() / f64::from(longer) < 0.01, "{kept:?}");
    }

    #[test]
    fn what_could_not_be_accounted_for_is_not_drawn() {
        let replaced = |rate: f64| {
            Run::builder()
                .phase(1.0, rate, 20)
                .sampling(Sampling::FixedSize)
                .drawing(Drawing { replacement: true, ..Drawing::default() })
                .build()
                .unwrap()
        };
        assert!(drawn(&replaced(0.1), 1000).is_ok());
        let refused = drawn(&replaced(0.1), 1001).unwrap_err();
        assert!(refused.contains("give batch_size = 100 in place of the rate"), "{refused}");
        let thrown = Run::builder().phase(1.0, 0.03, 20).sampling(Sampling::BallsAndBins);
        let refused = drawn(&thrown.build().unwrap(), 1000).unwrap_err();
        assert!(refused.contains("(33 batches)"), "{refused}");
    }

    #[test]
    fn groups_are_drawn_from_in_turn() {
        let drawing = Drawing { cycle_length: Some(4), ..Drawing::default() };
        let drawn = batches(Sampling::CyclicPoisson, drawing, 0.4, 40);
        for (step, batch) in drawn.iter().enumerate() {
            assert!(batch.iter().all(|record| *record as usize % 4 == step % 4));
        }
        let mean = drawn.iter().map(Vec::len).sum::<usize>() as f64 / 40.0;
        assert!((mean - drawing.share(0.4) * 600.0).abs() < 6.0, "{mean}");
    }
}
