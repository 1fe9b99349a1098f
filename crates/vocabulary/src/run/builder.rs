//! The parts of a run, and whether they fit together.

use super::{Adjacency, Details, Phase, Run, RunError, Stopped};
use crate::batches::{Drawing, FurtherRelease, Matrix, Permutation, Sampling};

/// Collects the parts of a [`Run`].
#[derive(Clone, Debug, Default)]
pub struct RunBuilder {
    pub(super) phases: Vec<Phase>,
    pub(super) sampling: Sampling,
    pub(super) adjacency: Adjacency,
    pub(super) clip_norm: Option<f64>,
    pub(super) dataset_size: Option<u64>,
    pub(super) group_size: Option<u32>,
    pub(super) details: Details,
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
