//! DP-SGD as data. The meaning of a serialised run never changes; new behaviour is a new
//! variant, and a lens says whether it supports a run before it computes.

use crate::batches::{Drawing, FurtherRelease, Matrix, Permutation, Sampling};
use crate::rounding::{plain, with_commas};
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
fn range(numbers: impl Iterator<Item = f64> + Clone) -> String {
    let least = numbers.clone().fold(f64::INFINITY, f64::min);
    let most = numbers.fold(f64::NEG_INFINITY, f64::max);
    if least == most { plain(least) } else { format!("{} to {}", plain(least), plain(most)) }
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

/// What is wrong with a run's description. The message names the value and the fix.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    #[error(
        "noise multiplier {} is not a finite number above 0; give sigma, the noise's standard deviation in units of the clip norm",
        plain(*.0)
    )]
    NoiseMultiplier(f64),
    #[error(
        "sample rate {} is outside (0, 1]; give the probability that a record is in a batch",
        plain(*.0)
    )]
    SampleRate(f64),
    #[error("steps {0} is not at least 1; give the number of noisy updates")]
    Steps(u64),
    #[error("clip norm {} is not a finite number above 0", plain(*.0))]
    ClipNorm(f64),
    #[error("group size {0} is not between 1 and 1000")]
    GroupSize(u32),
    #[error("data set size {0} is not at least 1")]
    DatasetSize(u64),
    #[error(
        "full batches mean sample rate 1, but sample rate {0} was given; drop it or choose another sampling"
    )]
    FullBatchRate(f64),
    #[error("the steps of all phases add up to more than 2^53; give the number of noisy updates")]
    TotalSteps,
    #[error("batch size {0} is not at least 1")]
    BatchSize(u64),
    #[error(
        "epochs {} is not a usable number above 0; give the passes over the data, or --steps",
        plain(*.0)
    )]
    Epochs(f64),
    #[error("{0} is missing; give {1}")]
    Missing(&'static str, &'static str),
    #[error("{0}")]
    Contradiction(String),
    #[error("`{key}` must be {expected}, but is {found}")]
    WrongType { key: String, expected: &'static str, found: String },
    #[error("`{key}` is `{value}`, which is none of: {allowed}")]
    Choice { key: String, value: String, allowed: String },
    #[error("unknown key `{key}` in {place}; {hint}")]
    UnknownKey { key: String, place: String, hint: String },
    #[error("`{0}` stands outside of the [run] table; put it below a line `[run]`")]
    Misplaced(String),
    #[error("the file has no [run] table; describe the run below a line `[run]`")]
    NoRunTable,
    #[error("the document has no `run`; give a ledger, or what `account --format json` prints")]
    NoRunKey,
    #[error(
        "schema `{0}` is not one that describes a run; give a dosimeter.run/1, dosimeter.ledger/1 or dosimeter.account/1 document"
    )]
    Schema(String),
    #[error("line {line} is not valid {format}: {message}")]
    Syntax { format: &'static str, line: usize, message: String },
    #[error("{0}; {1}")]
    Scheme(String, &'static str),
    #[error("a run needs at least one phase: give noise multiplier, sample rate and steps")]
    NoPhase,
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
        let rate = |words: String| match self.sampling {
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
                range(self.phases.iter().map(|phase| phase.noise_multiplier)),
                rate(range(self.phases.iter().map(|phase| phase.sample_rate))),
                steps(self.steps())
            );
        }
        let phases = self.phases.iter().map(|phase| {
            format!(
                "noise multiplier {}{}, {}",
                plain(phase.noise_multiplier),
                rate(plain(phase.sample_rate)),
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

/// Collects the parts of a [`Run`].
#[derive(Clone, Debug, Default)]
pub struct RunBuilder {
    phases: Vec<Phase>,
    sampling: Sampling,
    adjacency: Adjacency,
    clip_norm: Option<f64>,
    dataset_size: Option<u64>,
    group_size: Option<u32>,
    details: Details,
}

impl RunBuilder {
    pub fn phase(mut self, noise_multiplier: f64, sample_rate: f64, steps: u64) -> Self {
        self.phases.push(Phase { noise_multiplier, sample_rate, steps });
        self
    }

    pub fn phases(mut self, phases: impl IntoIterator<Item = Phase>) -> Self {
        self.phases.extend(phases);
        self
    }

    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    pub fn adjacency(mut self, adjacency: Adjacency) -> Self {
        self.adjacency = adjacency;
        self
    }

    pub fn clip_norm(mut self, clip_norm: f64) -> Self {
        self.clip_norm = Some(clip_norm);
        self
    }

    pub fn dataset_size(mut self, size: u64) -> Self {
        self.dataset_size = Some(size);
        self
    }

    pub fn group_size(mut self, size: u32) -> Self {
        self.group_size = Some(size);
        self
    }

    /// What the scheme needs beyond a rate.
    pub fn drawing(mut self, drawing: Drawing) -> Self {
        self.details.drawing = drawing;
        self
    }

    /// Further releases on every batch.
    pub fn releases(mut self, releases: impl IntoIterator<Item = FurtherRelease>) -> Self {
        self.details.releases.extend(releases);
        self
    }

    /// Noise that is correlated between steps.
    pub fn matrix(mut self, matrix: Matrix) -> Self {
        self.details.matrix = Some(matrix);
        self
    }

    /// The run was stopped by looking at outputs, after at most this many steps.
    pub fn stopped_on_output(mut self, max_steps: u64) -> Self {
        self.details.stopped = Some(Stopped::OnOutput);
        self.details.max_steps = Some(max_steps);
        self
    }

    /// Outputs chose noise, rate and steps, and a filter ended the run.
    pub fn renyi_filter(mut self, order: f64, budget: f64) -> Self {
        self.details.stopped = Some(Stopped::RenyiFilter);
        self.details.renyi_order = Some(order);
        self.details.renyi_budget = Some(budget);
        self
    }

    pub(crate) fn details(mut self, details: Details) -> Self {
        self.details = details;
        self
    }

    /// Checks every part.
    ///
    /// # Errors
    /// The first part that is out of range, by name and value.
    pub fn build(self) -> Result<Run, RunError> {
        if self.phases.is_empty() {
            return Err(RunError::NoPhase);
        }
        for phase in &self.phases {
            if !(phase.noise_multiplier > 0.0 && phase.noise_multiplier.is_finite()) {
                return Err(RunError::NoiseMultiplier(phase.noise_multiplier));
            }
            if !(phase.sample_rate > 0.0 && phase.sample_rate <= 1.0) {
                return Err(RunError::SampleRate(phase.sample_rate));
            }
            if phase.steps == 0 {
                return Err(RunError::Steps(phase.steps));
            }
            if self.sampling == Sampling::Full && phase.sample_rate != 1.0 {
                return Err(RunError::FullBatchRate(phase.sample_rate));
            }
        }
        // Beyond 2^53 a count of steps is no longer exact as a number.
        let total = self.phases.iter().try_fold(0_u64, |sum, phase| sum.checked_add(phase.steps));
        if total.is_none_or(|sum| sum > 1 << 53) {
            return Err(RunError::TotalSteps);
        }
        let clip_norm = self.clip_norm.unwrap_or(1.0);
        if !(clip_norm > 0.0 && clip_norm.is_finite()) {
            return Err(RunError::ClipNorm(clip_norm));
        }
        let group_size = self.group_size.unwrap_or(1);
        if !(1..=1000).contains(&group_size) {
            return Err(RunError::GroupSize(group_size));
        }
        if self.dataset_size == Some(0) {
            return Err(RunError::DatasetSize(0));
        }
        self.details.check(self.sampling, &self.phases, self.dataset_size)?;
        Ok(Run {
            phases: self.phases,
            sampling: self.sampling,
            adjacency: self.adjacency,
            clip_norm,
            dataset_size: self.dataset_size,
            group_size,
            details: self.details,
        })
    }
}

impl Details {
    fn check(
        &self,
        sampling: Sampling,
        phases: &[Phase],
        dataset_size: Option<u64>,
    ) -> Result<(), RunError> {
        if let Some(unit) = &self.unit
            && (unit.trim().is_empty() || unit.chars().count() > 200 || unit.contains('\n'))
        {
            return Err(RunError::Scheme(
                "`unit` is empty, longer than 200 characters or has several lines".into(),
                "say in a few words what one record is, e.g. \"one user's messages\"",
            ));
        }
        let drawing = &self.drawing;
        for (given, key) in [
            (drawing.permutation != Permutation::Fresh, "permutation"),
            (drawing.replacement, "replacement"),
            (drawing.max_batch_size.is_some(), "max_batch_size"),
            (drawing.cycle_length.is_some(), "cycle_length"),
            (drawing.uses_per_epoch.is_some(), "uses_per_epoch"),
        ] {
            if given && !sampling.keys().contains(&key) {
                let owner = Sampling::ALL.iter().find(|(_, one)| one.keys().contains(&key));
                return Err(RunError::Scheme(
                    format!(
                        "`{key}` belongs to sampling {}, but sampling is {}",
                        owner.map_or("", |(name, _)| name),
                        sampling.as_str()
                    ),
                    "drop it or choose that sampling",
                ));
            }
        }
        if sampling == Sampling::TruncatedPoisson {
            if drawing.max_batch_size.is_none() {
                return Err(RunError::Missing("the largest batch", "--max-batch-size"));
            }
            if dataset_size.is_none() {
                return Err(RunError::Missing("the number of records", "--dataset-size"));
            }
        }
        if sampling == Sampling::CyclicPoisson && drawing.cycle_length.is_none() {
            return Err(RunError::Missing("the number of groups", "--cycle-length"));
        }
        for (key, value) in [
            ("max_batch_size", drawing.max_batch_size),
            ("cycle_length", drawing.cycle_length),
            ("uses_per_epoch", drawing.uses_per_epoch),
        ] {
            if value == Some(0) {
                return Err(RunError::Scheme(format!("`{key}` is 0"), "give at least 1"));
            }
        }
        for release in &self.releases {
            let fine = |x: f64| x > 0.0 && x.is_finite();
            if !fine(release.noise) || !fine(release.sensitivity) {
                return Err(RunError::Scheme(
                    format!(
                        "a release has noise {} and sensitivity {}",
                        release.noise, release.sensitivity
                    ),
                    "both must be finite and above 0",
                ));
            }
        }
        self.check_filter()?;
        match (self.stopped, self.max_steps) {
            (Some(Stopped::OnOutput), None) => {
                return Err(RunError::Missing(
                    "the most steps that the run could have had",
                    "max_steps (beside `stopped`)",
                ));
            }
            (None | Some(Stopped::RenyiFilter), Some(_)) => {
                return Err(RunError::Scheme(
                    "`max_steps` is for a run that was stopped by looking at its outputs".into(),
                    "add stopped = \"on-output\", or drop it",
                ));
            }
            (Some(Stopped::OnOutput), Some(most)) => {
                let steps: u64 = phases.iter().map(|phase| phase.steps).sum();
                if most < steps || most > 1 << 53 {
                    return Err(RunError::Scheme(
                        format!("max_steps {most} is not between the {steps} steps taken and 2^53"),
                        "give the most steps that the run could have had",
                    ));
                }
            }
            (None | Some(Stopped::RenyiFilter), None) => {}
        }
        Ok(())
    }

    fn check_filter(&self) -> Result<(), RunError> {
        if self.stopped != Some(Stopped::RenyiFilter) {
            for (given, key) in
                [(self.renyi_order, "renyi_order"), (self.renyi_budget, "renyi_budget")]
            {
                if given.is_some() {
                    return Err(RunError::Scheme(
                        format!("`{key}` is for a run that was ended by a Rényi filter"),
                        "add stopped = \"renyi-filter\", or drop it",
                    ));
                }
            }
            return Ok(());
        }
        let order = self.renyi_order.ok_or(RunError::Missing(
            "the order of the Rényi filter",
            "renyi_order (beside `stopped`)",
        ))?;
        let budget = self.renyi_budget.ok_or(RunError::Missing(
            "the budget of the Rényi filter",
            "renyi_budget (beside `stopped`)",
        ))?;
        for (key, value, least) in [("renyi_order", order, 1.0), ("renyi_budget", budget, 0.0)] {
            if !(value > least && value.is_finite()) {
                return Err(RunError::Scheme(
                    format!("{key} {value} is not a finite number above {least}"),
                    "give what was fixed before the training",
                ));
            }
        }
        Ok(())
    }
}

/// A run as documents spell it: one phase is flat, several are a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Run")]
struct RunDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    noise_multiplier: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    phases: Vec<Phase>,
    sampling: Sampling,
    adjacency: Adjacency,
    clip_norm: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset_size: Option<u64>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    group_size: u32,
    #[serde(flatten)]
    details: Details,
}

fn one() -> u32 {
    1
}

fn is_one(size: &u32) -> bool {
    *size == 1
}

impl Serialize for Run {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let single = match self.phases.as_slice() {
            [phase] => Some(*phase),
            _ => None,
        };
        RunDocument {
            noise_multiplier: single.map(|phase| phase.noise_multiplier),
            sample_rate: single.map(|phase| phase.sample_rate),
            steps: single.map(|phase| phase.steps),
            phases: if single.is_some() { Vec::new() } else { self.phases.clone() },
            sampling: self.sampling,
            adjacency: self.adjacency,
            clip_norm: self.clip_norm,
            dataset_size: self.dataset_size,
            group_size: self.group_size,
            details: self.details.clone(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Run::from_json(&value.to_string()).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Run {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        RunDocument::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        RunDocument::json_schema(generator)
    }
}
