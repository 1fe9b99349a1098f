//! Bayes security against attribute inference, from the sensitivity of one record's gradient to
//! its secret attribute (Cherubin et al. 2024, Theorem 6 and its corollary, repaired).
//!
//! R_t is the largest distance of a record's clipped gradients over the candidate values at step
//! t. Three numbers come out of a file of them (or of what a training run recorded):
//! - the paper's: 1 - erf(p |R|_2 / (2 sqrt2 sigma C)), an **estimate on the unsafe side** (the
//!   mixture is more than its mean shift);
//! - corrected: mu^2 = sum p^2 K_t with K_t from lengths and inner products, or the worst K_t that R_t
//!   allows ([`worst_kernel`]): an **estimate** (central limit);
//! - certified for this trajectory: Le Cam with the affinity prod (1 - p^2 K_t/(8(1-p))), or step by
//!   step coupling, or the Gaussian where every record is in every batch. **Never above** the Bayes
//!   security of steps with these sensitivities.
//!
//! What none of them is: a guarantee for the run. The sensitivities were measured along one
//! trajectory, which itself depends on the secret; a guarantee would need their maximum over all
//! trajectories. So every claim is an estimate, or heuristic with that assumption named.
//!
//! Modes: `batch` (the paper: R_t is the maximum over the sampled batch; a record that was not
//! sampled may be more sensitive, and p already accounts for the sampling), `dataset` (maximum over
//! all records), `record` (each record on its own, the worst is reported; tighter than `dataset`).
//!
//! Publishing the number reveals nothing about the attribute's value, which R_t does not depend
//! on, but it is computed from records and can reveal who is among them.

mod claims;
mod diameter;
mod kernel;

pub(crate) use claims::about_attribute;
pub use claims::{claims, look};
pub use diameter::Candidates;
pub use kernel::{GradientPair, worst_kernel};
use numerics::elementary::{exp, ln_1p, powi};

use super::security_of_mu;
use crate::AccountingError;
use numerics::special::normal_sf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::{NotCovered, Phase, Run};

/// Over which records a sensitivity is the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The records of the sampled batch, as in the paper.
    Batch,
    /// All records.
    #[default]
    Dataset,
    /// One record each.
    Record,
}

impl Mode {
    /// The names users write.
    pub const ALL: &'static [(&'static str, Self)] =
        &[("batch", Self::Batch), ("dataset", Self::Dataset), ("record", Self::Record)];
}

/// One candidate pair at one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// From 1.
    pub step: u64,
    /// R_t, or an upper bound on it, in the units of the clip norm.
    pub sensitivity: f64,
    /// The pair's lengths and inner product, where they were recorded.
    pub pair: Option<GradientPair>,
}

/// Sensitivities of a whole run; of each record in the mode `record`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivities {
    mode: Mode,
    records: Vec<(String, Vec<Row>)>,
    steps: u64,
}

/// What an attribute's sensitivities say; see the module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttributeSecurity {
    /// The paper's form: an estimate, on the unsafe side.
    pub closed_form: f64,
    /// The corrected form: an estimate.
    pub central_limit: f64,
    /// A lower bound for steps with these sensitivities.
    pub certified: f64,
}

impl Sensitivities {
    /// Rows by record (one entry, of any name, unless the mode is `record`).
    ///
    /// # Errors
    /// `InvalidInput` if there is nothing, or a record lacks a step.
    pub fn new(mode: Mode, records: Vec<(String, Vec<Row>)>) -> Result<Self, AccountingError> {
        let steps = records.iter().flat_map(|(_, rows)| rows).map(|row| row.step).max();
        let Some(steps) = steps else {
            return Err(AccountingError::invalid("there is no sensitivity at all"));
        };
        let mut records = records;
        for (name, rows) in &mut records {
            rows.sort_by_key(|row| row.step);
            let mut next = 1;
            for row in rows.iter() {
                if row.step > next {
                    break;
                }
                next = row.step + 1;
            }
            if next <= steps {
                let whose = if mode == Mode::Record {
                    format!("record `{}` has", shortened(name))
                } else {
                    "there is".to_owned()
                };
                return Err(AccountingError::invalid(format!(
                    "{whose} no sensitivity for step {next}, although steps go up to {steps}"
                )));
            }
        }
        Ok(Self { mode, records, steps })
    }

    /// One distance a step: R_1, R_2, ….
    ///
    /// # Errors
    /// As [`Sensitivities::new`].
    pub fn of_distances(mode: Mode, distances: &[f64]) -> Result<Self, AccountingError> {
        let row = |(index, distance): (usize, &f64)| Row {
            step: index as u64 + 1,
            sensitivity: *distance,
            pair: None,
        };
        Self::new(mode, vec![(String::new(), distances.iter().enumerate().map(row).collect())])
    }

    /// The first steps of the training (all of them, if there are fewer).
    #[must_use]
    pub fn first(&self, steps: u64) -> Self {
        let kept = |rows: &[Row]| rows.iter().filter(|row| row.step <= steps).copied().collect();
        Self {
            mode: self.mode,
            records: self.records.iter().map(|(name, rows)| (name.clone(), kept(rows))).collect(),
            steps: self.steps.min(steps),
        }
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How many records have sensitivities of their own (1 unless the mode is `record`).
    pub fn records(&self) -> usize {
        self.records.len()
    }

    /// Steps for which there are sensitivities.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Bayes security of the attribute under a run; of the worst record in the mode `record`.
    ///
    /// # Errors
    /// `InvalidInput` unless there is a sensitivity for each of the run's steps; `Unsupported` for
    /// shuffled and fixed-size batches and for groups.
    pub fn security(&self, run: &Run) -> Result<AttributeSecurity, AccountingError> {
        let each = self.security_of_records(run)?;
        let least = |value: fn(&AttributeSecurity) -> f64| {
            each.iter().map(|(_, security)| value(security)).fold(1.0, f64::min)
        };
        Ok(AttributeSecurity {
            closed_form: least(|security| security.closed_form),
            central_limit: least(|security| security.central_limit),
            certified: least(|security| security.certified),
        })
    }

    /// The same for each record by name (one entry unless the mode is `record`).
    ///
    /// # Errors
    /// As [`Sensitivities::security`].
    pub fn security_of_records(
        &self,
        run: &Run,
    ) -> Result<Vec<(&str, AttributeSecurity)>, AccountingError> {
        crate::schemes::only_plain(run)?;
        if run.group_size() != 1 {
            let (what, found) = ("the attribute bound holds", run.group_size());
            return Err(NotCovered::Group { what, found }.into());
        }
        if run.steps() != self.steps {
            return Err(AccountingError::invalid(format!(
                "there are sensitivities for {} steps, but the run has {}; record every step",
                self.steps,
                run.steps()
            )));
        }
        Ok(self.records.iter().map(|(name, rows)| (name.as_str(), of_rows(rows, run))).collect())
    }
}

/// One record's steps, worst row of each.
fn of_rows(rows: &[Row], run: &Run) -> AttributeSecurity {
    let mut sums = Sums::default();
    let mut phases = run.phases().iter().flat_map(|phase| {
        std::iter::repeat_n(phase, usize::try_from(phase.steps).unwrap_or(usize::MAX))
    });
    for step in rows.chunk_by(|a, b| a.step == b.step) {
        let Some(phase) = phases.next() else { break };
        let distance = step.iter().map(|row| row.sensitivity).fold(0.0, f64::max);
        let scale = phase.noise_multiplier * run.clip_norm();
        let kernel = step
            .iter()
            .map(|row| match row.pair {
                Some(pair) => pair.kernel(scale),
                None => worst_kernel(row.sensitivity, phase.noise_multiplier, run.clip_norm()),
            })
            .fold(0.0, f64::max);
        sums.add(phase, distance / scale, kernel);
    }
    sums.security()
}

#[derive(Default)]
struct Sums {
    shift: f64,
    kernel: f64,
    log_affinity: f64,
    log_same: f64,
    sampled: bool,
}

impl Sums {
    /// `distance` in units of the noise.
    fn add(&mut self, phase: &Phase, distance: f64, kernel: f64) {
        let p = phase.sample_rate;
        self.shift += powi(p * distance, 2);
        if p < 1.0 {
            self.sampled = true;
            self.kernel += p * p * kernel;
            let lost = p * p * kernel / (8.0 * (1.0 - p)) * (1.0 + 1e-13);
            self.log_affinity += if lost < 1.0 { ln_1p(-lost) } else { f64::NEG_INFINITY };
        } else {
            // Always in the batch: two Gaussians, whose affinity is e^{-d^2/8}.
            self.kernel += distance * distance;
            self.log_affinity -= 0.125 * distance * distance;
        }
        let apart = p * (1.0 - 2.0 * normal_sf(0.5 * distance)) * (1.0 + 1e-13);
        self.log_same += ln_1p(-apart.min(1.0));
    }

    fn security(&self) -> AttributeSecurity {
        let closed_form = security_of_mu(self.shift.sqrt());
        let square = exp(2.0 * self.log_affinity);
        let le_cam = square / (1.0 + (1.0 - square).max(0.0).sqrt());
        let mut certified = le_cam.max(exp(self.log_same));
        if !self.sampled {
            certified = certified.max(closed_form);
        }
        AttributeSecurity {
            closed_form,
            central_limit: security_of_mu(self.kernel.sqrt()),
            // Sums over up to 1e9 steps round by less than this.
            certified: (certified * (1.0 - 1e-9)).clamp(0.0, 1.0),
        }
    }
}

fn shortened(name: &str) -> String {
    name.chars().filter(|character| !character.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes_security::{central_limit_mu, certified_lower_bound, closed_form_mu};
    use vocabulary::Adjacency;

    fn run(sigma: f64, rate: f64, steps: u64) -> Run {
        Run::builder()
            .phase(sigma, rate, steps)
            .adjacency(Adjacency::Substitute)
            .clip_norm(2.0)
            .build()
            .unwrap()
    }

    /// With opposite gradients of full length the attribute is the membership of replacement.
    #[test]
    fn the_worst_attribute_is_membership() {
        let run = run(1.0, 1e-3, 2000);
        let worst = Sensitivities::of_distances(Mode::Dataset, &[4.0; 2000]).unwrap();
        let found = worst.security(&run).unwrap();
        assert!((found.closed_form - security_of_mu(closed_form_mu(&run).unwrap())).abs() < 1e-12);
        let limit = security_of_mu(central_limit_mu(&run).unwrap());
        assert!((found.central_limit - limit).abs() < 1e-12, "{found:?} {limit}");
        assert!(found.certified <= certified_lower_bound(&run).unwrap() + 1e-6);
        assert!(found.certified < found.central_limit);
    }

    fn rows(sensitivities: &[f64]) -> Vec<Row> {
        let row =
            |(step, sensitivity): (u64, &f64)| Row { step, sensitivity: *sensitivity, pair: None };
        (1..).zip(sensitivities).map(row).collect()
    }

    fn of_records(
        mode: Mode,
        records: Vec<(&str, Vec<Row>)>,
    ) -> Result<Sensitivities, AccountingError> {
        let named = records.into_iter().map(|(name, rows)| (name.to_owned(), rows));
        Sensitivities::new(mode, named.collect())
    }

    #[test]
    fn the_worst_record_is_no_worse_than_the_data_set() {
        let run = run(1.0, 0.01, 3);
        let (a, b) = ([1.0, 0.1, 0.1], [0.1, 1.0, 0.1]);
        let record = of_records(Mode::Record, vec![("a", rows(&a)), ("b", rows(&b))]).unwrap();
        let all = [rows(&a), rows(&b)].concat();
        let dataset = of_records(Mode::Dataset, vec![("", all)]).unwrap();
        let (record, dataset) = (record.security(&run).unwrap(), dataset.security(&run).unwrap());
        assert!(record.closed_form > dataset.closed_form);
        assert!(record.certified > dataset.certified);
    }

    #[test]
    fn missing_steps_are_named() {
        let uneven = vec![("a", rows(&[1.0, 0.1])), ("b", rows(&[0.1]))];
        let error = of_records(Mode::Record, uneven).unwrap_err().to_string();
        assert!(error.contains("`b`") && error.contains("step 2"), "{error}");
        let short = Sensitivities::of_distances(Mode::Batch, &[1.0]).unwrap();
        let error = short.security(&run(1.0, 0.1, 2)).unwrap_err().to_string();
        assert!(error.contains("1 steps") && error.contains("has 2"), "{error}");
    }
}
