//! A long training that survives interruption: replicas that save their state every few seconds
//! while they advance, and begin where a saved state ends.
//!
//! The file: a line with the plan's name, then in little-endian order the steps done, and for each
//! replica the parameters and the optimiser's moments.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use training::data::Dataset;
use training::{OptimizerState, ReplicaState, Replicas, TrainingError};

/// Steps between looks at the clock.
const STEPS: u64 = 8;

/// Replicas with a file. Whoever reads iterates between steps must not be given these: the first
/// call of `advance` may find steps done already.
pub(super) struct Checkpointed {
    pub(super) inner: Box<dyn Replicas>,
    pub(super) path: PathBuf,
    /// Names what the state belongs to.
    pub(super) plan: String,
    pub(super) every: Duration,
    /// Lengths of a replica's parameters, and how many vectors of that length it has in all.
    pub(super) shape: (usize, usize),
}

impl Checkpointed {
    fn restore_saved(&mut self, last: u64) -> Result<(), TrainingError> {
        let Ok(bytes) = std::fs::read(&self.path) else { return Ok(()) };
        if let Some((done, states)) = self.decode(&bytes)
            && done <= last
        {
            self.inner.restore(done, states)?;
        }
        Ok(())
    }

    /// Nothing where the bytes are another plan's, or not whole.
    fn decode(&self, bytes: &[u8]) -> Option<(u64, Vec<ReplicaState>)> {
        let bytes = bytes.strip_prefix(self.plan.as_bytes())?.strip_prefix(b"\n")?;
        let (done, bytes) = bytes.split_first_chunk::<8>()?;
        let (length, vectors) = self.shape;
        if bytes.len() != 4 * length * vectors * self.inner.len() {
            return None;
        }
        let numbers: Vec<f32> = bytes
            .chunks_exact(4)
            .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
            .collect();
        let states = numbers.chunks_exact(length * vectors).map(|own| {
            let mut vectors = own.chunks_exact(length).map(<[f32]>::to_vec);
            let parameters = vectors.next().unwrap_or_default();
            ReplicaState { parameters, optimizer: OptimizerState { moments: vectors.collect() } }
        });
        Some((u64::from_le_bytes(*done), states.collect()))
    }

    fn save(&mut self) -> Result<(), TrainingError> {
        let mut bytes = self.plan.clone().into_bytes();
        bytes.push(b'\n');
        bytes.extend(self.inner.steps_done().to_le_bytes());
        for state in self.inner.states()? {
            for vector in std::iter::once(&state.parameters).chain(&state.optimizer.moments) {
                bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
            }
        }
        training::files::write(&self.path, bytes)
    }
}

impl Replicas for Checkpointed {
    fn len(&self) -> usize {
        self.inner.len()
    }

    fn steps_done(&self) -> u64 {
        self.inner.steps_done()
    }

    fn advance(&mut self, steps: u64) -> Result<(), TrainingError> {
        let last = self.inner.steps_done().saturating_add(steps);
        self.restore_saved(last)?;
        let mut saved = Instant::now();
        while self.inner.steps_done() < last {
            let before = self.inner.steps_done();
            self.inner.advance(STEPS.min(last - before))?;
            if self.inner.steps_done() == before {
                break;
            }
            if saved.elapsed() >= self.every {
                self.save()?;
                saved = Instant::now();
            }
        }
        Ok(())
    }

    fn all_parameters(&mut self, out: &mut Vec<f32>) -> Result<(), TrainingError> {
        self.inner.all_parameters(out)
    }

    fn losses(&mut self, data: &Dataset, out: &mut Vec<f32>) -> Result<(), TrainingError> {
        self.inner.losses(data, out)
    }

    fn accuracies(&mut self, data: &Dataset) -> Result<Vec<f64>, TrainingError> {
        self.inner.accuracies(data)
    }

    fn states(&mut self) -> Result<Vec<ReplicaState>, TrainingError> {
        self.inner.states()
    }

    fn restore(&mut self, done: u64, states: Vec<ReplicaState>) -> Result<(), TrainingError> {
        self.inner.restore(done, states)
    }
}
