//! How batches are drawn and what else is released, as written.

use super::{BatchesDescription, choice};
use crate::node::{Node, unknown_key};
use crate::run::{Details, Stopped};
use crate::{FurtherRelease, Matrix, Permutation, RunError, Sampling};

impl BatchesDescription {
    pub(super) fn take(&mut self, key: &str, node: &Node) -> Result<bool, RunError> {
        match key {
            "permutation" => self.permutation = Some(choice(key, node, Permutation::ALL)?),
            "replacement" => self.replacement = Some(node.truth(key)?),
            "max_batch_size" => self.max_batch_size = Some(node.integer(key)?),
            "cycle_length" => self.cycle_length = Some(node.integer(key)?),
            "uses_per_epoch" => self.uses_per_epoch = Some(node.integer(key)?),
            "count_noise" => self.count_noise = Some(node.number(key)?),
            "stopped" => self.stopped = Some(choice(key, node, Stopped::ALL)?),
            "max_steps" => self.max_steps = Some(node.integer(key)?),
            "renyi_order" => self.renyi_order = Some(node.number(key)?),
            "renyi_budget" => self.renyi_budget = Some(node.number(key)?),
            "release" => {
                for item in node.clone().list(key)? {
                    self.releases.push(release(item.table(key)?)?);
                }
            }
            "matrix" => self.matrix = Some(matrix(node.clone().table(key)?)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Forgets what belongs to a scheme, but for these keys.
    pub(super) fn keep_only(&mut self, keys: &[&str]) {
        let gone = |key: &str| !keys.contains(&key);
        if gone("permutation") {
            self.permutation = None;
        }
        if gone("replacement") {
            self.replacement = None;
        }
        if gone("max_batch_size") {
            self.max_batch_size = None;
        }
        if gone("cycle_length") {
            self.cycle_length = None;
        }
        if gone("uses_per_epoch") {
            self.uses_per_epoch = None;
        }
    }

    pub(super) fn overridden_by(self, flags: &Self) -> Self {
        let releases =
            if flags.releases.is_empty() { self.releases } else { flags.releases.clone() };
        Self {
            permutation: flags.permutation.or(self.permutation),
            replacement: flags.replacement.or(self.replacement),
            max_batch_size: flags.max_batch_size.or(self.max_batch_size),
            cycle_length: flags.cycle_length.or(self.cycle_length),
            uses_per_epoch: flags.uses_per_epoch.or(self.uses_per_epoch),
            count_noise: flags.count_noise.or(self.count_noise),
            releases,
            matrix: match (flags.matrix.clone(), self.matrix) {
                (Some(flags), Some(known)) => Some(Matrix {
                    bands: flags.bands.or(known.bands),
                    toeplitz: if flags.toeplitz.is_empty() {
                        known.toeplitz
                    } else {
                        flags.toeplitz
                    },
                    uses: flags.uses.or(known.uses),
                    separation: flags.separation.or(known.separation),
                }),
                (flags, known) => flags.or(known),
            },
            stopped: flags.stopped.or(self.stopped),
            max_steps: flags.max_steps.or(self.max_steps),
            renyi_order: flags.renyi_order.or(self.renyi_order),
            renyi_budget: flags.renyi_budget.or(self.renyi_budget),
        }
    }

    /// What the run keeps, and the noise multiplier that the releases alone would have.
    pub(super) fn resolve(
        &self,
        sampling: Sampling,
        notes: &mut Vec<String>,
    ) -> (Details, Option<f64>) {
        let mut releases = self.releases.clone();
        if let Some(noise) = self.count_noise {
            notes.push(format!("a centred count with noise {noise} and sensitivity 1/2"));
            releases.push(FurtherRelease { noise, sensitivity: 0.5 });
        }
        if sampling == Sampling::Shuffle && self.permutation.is_none() {
            notes.push("permutation fresh (default)".into());
        }
        let square: f64 = releases.iter().map(|r| (r.sensitivity / r.noise).powi(2)).sum();
        // Less noise is the safe side of the rounding.
        let slack = 1.0 - 4.0 * f64::EPSILON * (2.0 + releases.len() as f64);
        let effective = (!releases.is_empty()).then(|| slack / square.sqrt());
        let details = Details {
            drawing: crate::Drawing {
                permutation: self.permutation.unwrap_or_default(),
                replacement: self.replacement.unwrap_or_default(),
                max_batch_size: self.max_batch_size,
                cycle_length: self.cycle_length,
                uses_per_epoch: self.uses_per_epoch,
            },
            releases,
            matrix: self.matrix.clone(),
            stopped: self.stopped,
            max_steps: self.max_steps,
            renyi_order: self.renyi_order,
            renyi_budget: self.renyi_budget,
            unit: None,
        };
        (details, effective)
    }
}

fn release(entries: Vec<(String, Node)>) -> Result<FurtherRelease, RunError> {
    let (mut noise, mut sensitivity) = (None, None);
    for (key, node) in entries {
        match key.as_str() {
            "noise" => noise = Some(node.number(&key)?),
            "sensitivity" => sensitivity = Some(node.number(&key)?),
            _ => return Err(unknown_key(&key, "[[run.release]]", &["noise", "sensitivity"])),
        }
    }
    Ok(FurtherRelease {
        noise: noise.ok_or(RunError::Missing("the noise of a release", "`noise`"))?,
        sensitivity: sensitivity
            .ok_or(RunError::Missing("the sensitivity of a release", "`sensitivity`"))?,
    })
}

fn matrix(entries: Vec<(String, Node)>) -> Result<Matrix, RunError> {
    let mut matrix = Matrix::default();
    for (key, node) in entries {
        match key.as_str() {
            "bands" => matrix.bands = Some(node.integer(&key)?),
            "uses" => matrix.uses = Some(node.integer(&key)?),
            "separation" => matrix.separation = Some(node.integer(&key)?),
            "toeplitz" => {
                for item in node.list(&key)? {
                    matrix.toeplitz.push(item.number("toeplitz")?);
                }
            }
            _ => {
                let known = &["bands", "toeplitz", "uses", "separation"];
                return Err(unknown_key(&key, "[run.matrix]", known));
            }
        }
    }
    Ok(matrix)
}
