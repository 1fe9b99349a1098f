//! How one model is trained, shared by all replicas.

use crate::TrainingError;
use crate::data::Dataset;
use crate::model::Network;
use crate::optimizer::OptimizerDescription;
use random::SecureKey;
use serde::Deserialize;
use std::sync::Arc;
use vocabulary::{Drawing, Phase, Run, Sampling};

/// What the records other than canaries contribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// Their clipped gradients.
    #[default]
    Natural,
    /// Nothing, as if all their gradients were zero (a worst case that attacks use).
    Zero,
}

/// A mistake planted on purpose, so that audits can be shown to find it. The ledger names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    #[default]
    None,
    /// Noise with half the standard deviation.
    HalfNoise,
    /// Records are added unclipped; injected gradients four times the clip norm.
    NoClipping,
    /// Every step uses the coins of the first.
    RepeatedBatch,
}

/// DP-SGD on a network, checked.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub network: Arc<Network>,
    pub optimizer: OptimizerDescription,
    pub clip_norm: f64,
    /// In order; their steps add up to the training.
    pub phases: Vec<Phase>,
    pub sampling: Sampling,
    /// What the way to draw batches needs beyond a rate.
    pub drawing: Drawing,
    /// Root of all randomness.
    pub seed: u64,
    /// The number of records taken as public; times the sample rate it is what the noisy sum is
    /// divided by.
    pub public_size: f64,
    /// Examples that are worked on at a time. Changes rounding and memory, never sensitivity:
    /// each record is clipped on its own.
    pub micro_batch: usize,
    /// Parts of a batch that are worked on side by side. Changes rounding only.
    pub lanes: usize,
    pub rest: Rest,
    pub fault: Fault,
    /// For a model to be released: sampling and noise from a cryptographic generator under this
    /// key, and sums on a grid (see `cpu/secure.rs`). One replica, on the CPU.
    pub secure: Option<SecureKey>,
}

/// Numbers that one micro-batch may occupy before it is made smaller: tried on networks from
/// 784-128-10 to wide residual nets.
const CACHE: usize = 1 << 20;

impl Recipe {
    /// The recipe of a run. The data set's size is taken as public unless the run names one.
    ///
    /// # Errors
    /// When network and data do not fit, or a number is out of range.
    pub fn new(
        network: Arc<Network>,
        optimizer: OptimizerDescription,
        run: &Run,
        data: &Dataset,
        seed: u64,
    ) -> Result<Self, TrainingError> {
        let recipe = |message: String| Err(TrainingError::Recipe(message));
        if network.inputs() != data.shape.len() || network.classes < data.classes {
            return recipe(format!(
                "a model for {} numbers and {} classes does not fit data with {} and {}",
                network.inputs(),
                network.classes,
                data.shape.len(),
                data.classes
            ));
        }
        if let Err(message) = optimizer.check() {
            return recipe(message);
        }
        if data.is_empty() {
            return recipe("the data set has no records".into());
        }
        if let Err(message) = crate::sampler::drawn(run, data.len()) {
            return recipe(message);
        }
        Ok(Self {
            optimizer,
            clip_norm: run.clip_norm(),
            phases: run.phases().to_vec(),
            sampling: run.sampling(),
            drawing: *run.drawing(),
            seed,
            public_size: run.dataset_size().map_or(data.len() as f64, |size| size as f64),
            micro_batch: (CACHE / network.footprint()).clamp(8, 512),
            lanes: 1,
            rest: Rest::Natural,
            fault: Fault::None,
            secure: None,
            network,
        })
    }

    /// Steps of all phases.
    pub fn steps(&self) -> u64 {
        self.phases.iter().map(|phase| phase.steps).sum()
    }

    /// Lanes that suit a single model of this recipe, the same on every machine.
    pub fn suggested_lanes(&self) -> usize {
        crate::cost::lanes(&self.network, self.normaliser(0), self.micro_batch)
    }

    /// Examples in a back end's buffers at a time.
    pub(crate) fn executor_capacity(&self) -> usize {
        if self.secure.is_some() { 1 } else { self.micro_batch }
    }

    /// The phase that a step (counted from 0) belongs to.
    pub fn phase(&self, step: u64) -> Phase {
        crate::sampler::phase_at(&self.phases, step).0
    }

    /// What the noisy sum is divided by at a step: the expected batch size, a public constant.
    pub fn normaliser(&self, step: u64) -> f64 {
        self.drawing.share(self.phase(step).sample_rate) * self.public_size
    }

    /// Standard deviation of the noise on each coordinate of the sum.
    pub fn noise_deviation(&self, step: u64) -> f64 {
        let exact = self.phase(step).noise_multiplier * self.clip_norm;
        if self.fault == Fault::HalfNoise { 0.5 * exact } else { exact }
    }
}
