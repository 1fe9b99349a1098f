//! One phase: rate and steps from whichever of their names were written.

use super::{PHASE_KEYS, PhaseDescription};
use crate::node::{Node, unknown_key};
use crate::{Phase, RunError, Sampling, batches_per_pass};

/// What a phase is resolved in.
pub(super) struct Surroundings {
    pub(super) dataset_size: Option<u64>,
    pub(super) sampling: Sampling,
    pub(super) cycle_length: u64,
}

impl PhaseDescription {
    pub(super) fn from_entries(entries: Vec<(String, Node)>) -> Result<Self, RunError> {
        let mut phase = Self::default();
        for (key, node) in entries {
            if !phase.take(&key, &node)? {
                return Err(unknown_key(&key, "[[run.phase]]", PHASE_KEYS));
            }
        }
        Ok(phase)
    }

    pub(super) fn take(&mut self, key: &str, node: &Node) -> Result<bool, RunError> {
        match key {
            "noise_multiplier" => self.noise_multiplier = Some(node.number(key)?),
            "sample_rate" => self.sample_rate = Some(node.number(key)?),
            "batch_size" => self.batch_size = Some(node.integer(key)?),
            "steps" => self.steps = Some(node.integer(key)?),
            "epochs" => self.epochs = Some(node.number(key)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn filled_from(&self, whole: &Self) -> Self {
        let mut filled = self.clone();
        filled.noise_multiplier = filled.noise_multiplier.or(whole.noise_multiplier);
        if filled.sample_rate.is_none() && filled.batch_size.is_none() {
            (filled.sample_rate, filled.batch_size) = (whole.sample_rate, whole.batch_size);
        }
        if filled.steps.is_none() && filled.epochs.is_none() {
            (filled.steps, filled.epochs) = (whole.steps, whole.epochs);
        }
        filled
    }

    pub(super) fn resolve(
        &self,
        place: &Surroundings,
        notes: &mut Vec<String>,
    ) -> Result<Phase, RunError> {
        let noise_multiplier = self
            .noise_multiplier
            .ok_or(RunError::Missing("the noise multiplier", "--noise-multiplier"))?;
        let sample_rate = self.rate(place, notes)?;
        // A record of a group is looked at once per cycle only.
        let per_step = sample_rate / place.cycle_length.max(1) as f64;
        let steps = self.count(per_step, place.sampling, notes)?;
        Ok(Phase { noise_multiplier, sample_rate, steps })
    }

    fn rate(&self, place: &Surroundings, notes: &mut Vec<String>) -> Result<f64, RunError> {
        match (self.sample_rate, self.batch_size, place.dataset_size) {
            (Some(rate), Some(batch), _) => Err(RunError::Contradiction(format!(
                "sample rate {rate} and batch size {batch} were both given; drop one of them"
            ))),
            (Some(rate), None, _) => Ok(rate),
            (None, Some(batch), None) => Err(RunError::Contradiction(format!(
                "batch size {batch} was given without the data set's size; add --dataset-size, or \
                 give --sample-rate instead"
            ))),
            (None, Some(0), Some(_)) => Err(RunError::BatchSize(0)),
            (None, Some(_), Some(0)) => Err(RunError::DatasetSize(0)),
            (None, Some(batch), Some(size)) if batch > size => {
                Err(RunError::Contradiction(format!(
                    "batch size {batch} is larger than the data set's {size} records; exchange or \
                     correct them"
                )))
            }
            (None, Some(batch), Some(size)) if place.cycle_length > 1 => {
                let groups = place.cycle_length;
                let rate = groups as f64 * batch as f64 / size as f64;
                if rate > 1.0 {
                    return Err(RunError::Contradiction(format!(
                        "each of {groups} groups has {size} / {groups} records, fewer than the batch size {batch}; \
                         lower --batch-size or --cycle-length"
                    )));
                }
                notes.push(format!("sample rate {rate} = {groups} groups x {batch} / {size}"));
                Ok(rate)
            }
            (None, Some(batch), Some(size)) => {
                let rate = batch as f64 / size as f64;
                notes.push(format!("sample rate {rate} = {batch} / {size}"));
                Ok(rate)
            }
            (None, None, _) if place.sampling == Sampling::Full => Ok(1.0),
            (None, None, Some(_)) => {
                Err(RunError::Missing("the batch size", "--batch-size (or --sample-rate)"))
            }
            (None, None, None) => Err(RunError::Missing(
                "the sample rate",
                "--sample-rate (or --dataset-size with --batch-size)",
            )),
        }
    }

    /// Steps; epochs are rounded up to whole steps, the safe side. Whole passes over a data set that is cut into batches are so
    /// many full batches: the short one at the end of a pass, dropped or kept, uses no record twice.
    fn count(
        &self,
        sample_rate: f64,
        sampling: Sampling,
        notes: &mut Vec<String>,
    ) -> Result<u64, RunError> {
        match (self.steps, self.epochs) {
            (Some(steps), Some(epochs)) => Err(RunError::Contradiction(format!(
                "steps {steps} and epochs {epochs} were both given; drop one of them"
            ))),
            (Some(steps), None) => Ok(steps),
            (None, Some(epochs)) => {
                if !(epochs > 0.0 && epochs.is_finite()) {
                    return Err(RunError::Epochs(epochs));
                }
                if !(sample_rate > 0.0 && sample_rate <= 1.0) {
                    return Err(RunError::SampleRate(sample_rate));
                }
                let exact = epochs / sample_rate;
                // 60 / 0.1 must be 600 although 0.1 is not exact.
                let near = exact.round();
                let even = (exact - near).abs() <= 1e-9 * near;
                let batches = batches_per_pass(sample_rate, false);
                let short = batches_per_pass(sample_rate, true) > batches;
                let (steps, how) = if sampling.cuts_the_data() && short && epochs.fract() == 0.0 {
                    let how = format!(
                        "{epochs} epochs of {batches} full batches; a short batch at the end of each, \
                         dropped or kept, uses no record twice"
                    );
                    (epochs * batches as f64, how)
                } else {
                    let steps = if even { near } else { exact.ceil() };
                    (steps, format!("{epochs} epochs / sample rate, rounded up"))
                };
                if steps > 9_007_199_254_740_992.0 {
                    return Err(RunError::Epochs(epochs));
                }
                notes.push(format!("steps {steps} = {how}"));
                Ok(steps as u64)
            }
            (None, None) => Err(RunError::Missing("the number of steps", "--steps (or --epochs)")),
        }
    }
}
