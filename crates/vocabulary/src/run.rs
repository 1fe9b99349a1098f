//! DP-SGD as data. The meaning of a serialised run never changes; new behaviour is a new
//! variant, and a lens says whether it supports a run before it computes.

mod builder;
mod document;
mod error;

pub use builder::RunBuilder;
pub use error::RunError;

use crate::batches::{Drawing, FurtherRelease, Matrix, Sampling};
use crate::rounding::{plain, rate, with_commas};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which data sets count as neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One record is added or removed.
    #[default]
    AddRemove,
    /// One record is replaced by another.
    Substitute,
    /// The record stays, but its gradients are zero: the number of records does not change.
    ZeroOut,
}

impl Adjacency {
    /// What is done to a record, e.g. "replacing", for the middle of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::AddRemove => "adding or removing",
            Self::Substitute => "replacing",
            Self::ZeroOut => "zeroing out",
        }
    }

    /// The name in a list of choices and behind a run.
    pub fn label(self) -> &'static str {
        match self {
            Self::AddRemove => "add/remove",
            Self::Substitute => "substitution",
            Self::ZeroOut => "zero-out",
        }
    }

    /// The names users write.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("add-remove", Self::AddRemove),
        ("substitute", Self::Substitute),
        ("zero-out", Self::ZeroOut),
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::AddRemove => "add-remove",
            Self::Substitute => "substitute",
            Self::ZeroOut => "zero-out",
        }
    }
}

/// A stretch of training with constant noise and sampling rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Standard deviation of the noise on the summed gradient, in units of the clip norm.
    pub noise_multiplier: f64,
    /// Probability that a record is in a batch.
    pub sample_rate: f64,
    /// Number of noisy updates.
    pub steps: u64,
}

/// More phases than these are told by their ranges.
const PHASES_LISTED: usize = 4;

/// The smallest and the largest of some numbers in words.
fn range(numbers: impl Iterator<Item = f64> + Clone, shown: fn(f64) -> String) -> String {
    let least = numbers.clone().fold(f64::INFINITY, f64::min);
    let most = numbers.fold(f64::NEG_INFINITY, f64::max);
    if least == most { shown(least) } else { format!("{} to {}", shown(least), shown(most)) }
}

/// A checked DP-SGD run. Build it with [`Run::builder`].
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    phases: Vec<Phase>,
    sampling: Sampling,
    adjacency: Adjacency,
    clip_norm: f64,
    dataset_size: Option<u64>,
    group_size: u32,
    details: Details,
}

/// What most runs leave at its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Details {
    #[serde(flatten)]
    pub(crate) drawing: Drawing,
    /// Further releases on every batch, beside the noisy sum of gradients.
    #[serde(default, rename = "release", skip_serializing_if = "Vec::is_empty")]
    pub(crate) releases: Vec<FurtherRelease>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) matrix: Option<Matrix>,
    /// How the run ended, where it was not fixed in advance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stopped: Option<Stopped>,
    /// The steps after which the run would have ended in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_steps: Option<u64>,
    /// The order of a Rényi filter, fixed before the training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) renyi_order: Option<f64>,
    /// What the steps' Rényi divergences at that order may add up to, fixed before the training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) renyi_budget: Option<f64>,
    /// What a record is: the unit of privacy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unit: Option<String>,
}

/// How the number of steps was chosen, where it was not fixed in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// By looking at outputs: the run is accounted for as if it had its most steps.
    OnOutput,
    /// By a Rényi filter: outputs chose noise, rate and steps, within a budget.
    RenyiFilter,
}

impl Stopped {
    /// The names users write.
    pub const ALL: &'static [(&'static str, Self)] =
        &[("on-output", Self::OnOutput), ("renyi-filter", Self::RenyiFilter)];
}

/// A rule that ends a training before the sum of its steps' Rényi divergences exceeds a budget. Both were fixed
/// before the training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenyiFilter {
    pub order: f64,
    pub budget: f64,
}

impl Run {
    /// Starts the description of a run; `build` checks it.
    ///
    /// ```
    /// use vocabulary::Run;
    /// let run = Run::builder().phase(1.0, 0.01, 1000).build()?;
    /// assert_eq!(run.steps(), 1000);
    /// let refused = Run::builder().phase(1.0, 1.3, 1000).build().unwrap_err();
    /// assert!(refused.to_string().starts_with("sample rate 1.3 is outside (0, 1]"));
    /// # Ok::<(), vocabulary::RunError>(())
    /// ```
    pub fn builder() -> RunBuilder {
        RunBuilder::default()
    }

    /// The phases in order; never empty. Full-batch runs have sample rate 1.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Noise, sample rate and steps in words; many phases by their ranges.
    ///
    /// ```
    /// # use vocabulary::{Phase, Run};
    /// let phase = |noise_multiplier| Phase { noise_multiplier, sample_rate: 0.01, steps: 1200 };
    /// let run = Run::builder().phases([phase(1.5)]).build()?;
    /// assert_eq!(run.phases_in_words(), "noise multiplier 1.5, sample rate 0.01, 1,200 steps");
    /// let many = (0..50).map(|count| phase(1.0 + f64::from(count) / 100.0));
    /// let run = Run::builder().phases(many).build()?;
    /// assert_eq!(
    ///     run.phases_in_words(),
    ///     "50 phases, noise multiplier 1 to 1.49, sample rate 0.01, 60,000 steps in all"
    /// );
    /// # Ok::<(), vocabulary::RunError>(())
    /// ```
    pub fn phases_in_words(&self) -> String {
        let sampled = |words: String| match self.sampling {
            Sampling::Full => String::new(),
            _ => format!(", sample rate {words}"),
        };
        let steps = |steps: u64| match steps {
            1 => "1 step".to_owned(),
            _ => format!("{} steps", with_commas(steps)),
        };
        if self.phases.len() > PHASES_LISTED {
            return format!(
                "{} phases, noise multiplier {}{}, {} in all",
                with_commas(self.phases.len() as u64),
                range(self.phases.iter().map(|phase| phase.noise_multiplier), plain),
                sampled(range(self.phases.iter().map(|phase| phase.sample_rate), rate)),
                steps(self.steps())
            );
        }
        let phases = self.phases.iter().map(|phase| {
            format!(
                "noise multiplier {}{}, {}",
                plain(phase.noise_multiplier),
                sampled(rate(phase.sample_rate)),
                steps(phase.steps)
            )
        });
        phases.collect::<Vec<_>>().join(", then ")
    }

    pub fn sampling(&self) -> Sampling {
        self.sampling
    }

    pub fn adjacency(&self) -> Adjacency {
        self.adjacency
    }

    pub fn clip_norm(&self) -> f64 {
        self.clip_norm
    }

    pub fn dataset_size(&self) -> Option<u64> {
        self.dataset_size
    }

    /// How many records the claims are about (1: one record).
    pub fn group_size(&self) -> u32 {
        self.group_size
    }

    /// What the way to draw batches needs beyond a rate.
    pub fn drawing(&self) -> &Drawing {
        &self.details.drawing
    }

    /// Further releases on every batch, beside the noisy sum of gradients.
    pub fn releases(&self) -> &[FurtherRelease] {
        &self.details.releases
    }

    /// Noise that is correlated between steps, if it is.
    pub fn matrix(&self) -> Option<&Matrix> {
        self.details.matrix.as_ref()
    }

    /// The steps to account for when outputs decided when to stop.
    pub fn max_steps(&self) -> Option<u64> {
        self.details.stopped.and(self.details.max_steps)
    }

    /// The filter that ended the run, if one did: then outputs may have chosen noise, rate and steps.
    pub fn renyi_filter(&self) -> Option<RenyiFilter> {
        let (order, budget) = self.details.renyi_order.zip(self.details.renyi_budget)?;
        Some(RenyiFilter { order, budget })
    }

    /// What a record is, where the run says so: the unit of privacy.
    pub fn unit(&self) -> Option<&str> {
        self.details.unit.as_deref()
    }

    /// Updates over all phases.
    pub fn steps(&self) -> u64 {
        self.phases.iter().map(|phase| phase.steps).sum()
    }

    /// A copy of this run with another sampling scheme; everything else stays.
    ///
    /// # Errors
    /// [`RunError::FullBatchRate`] for full batches with a sample rate other than 1.
    pub fn with_sampling(&self, sampling: Sampling) -> Result<Self, RunError> {
        let mut changed = self.clone();
        changed.sampling = sampling;
        changed.details.drawing = Drawing::default();
        changed.with_phases(self.phases.clone())
    }

    /// A copy of this run with other phases; everything else stays.
    pub fn with_phases(&self, phases: Vec<Phase>) -> Result<Self, RunError> {
        RunBuilder { phases, ..self.to_builder() }.build()
    }

    /// All of this run, to change a part of it.
    pub fn to_builder(&self) -> RunBuilder {
        RunBuilder {
            phases: self.phases.clone(),
            sampling: self.sampling,
            adjacency: self.adjacency,
            clip_norm: Some(self.clip_norm),
            dataset_size: self.dataset_size,
            group_size: Some(self.group_size),
            details: self.details.clone(),
        }
    }
}
