//! Choosing a batch size: the largest one that meets a target, and a table of several with the
//! noise that each needs.
//!
//! At a fixed number of epochs a smaller batch means more steps. While the noise multiplier is
//! large, epsilon depends on the noise of the whole training, sigma / (b sqrt(T)) on the mean
//! update, and not on how it is cut into steps. Below a certain batch size sigma can hardly fall
//! any further, and that noise grows. The recommended size is the smallest one that does not pay
//! for being small: smaller ones buy steps with noise, larger ones leave fewer steps for nothing.

use super::search::{Measured, largest_safe_count};
use super::{Calibration, Solution, Target, Unknown, calibrate};
use crate::account::ClaimMaker;
use crate::lenses::Lens;
use crate::schemes::{self, Rates};
use crate::{AccountingError, domain};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::{AtMost, Direction, LensName, NotCertified, Quantity, Run};

type Result<T> = std::result::Result<T, AccountingError>;

/// The largest batch size up to `most` that meets the target; `run` describes the training with a
/// batch size, and the defaults behind it.
///
/// # Errors
/// As [`calibrate`].
pub fn calibrate_batch_size(
    run: &dyn Fn(u64) -> Result<(Run, Vec<String>)>,
    most: u64,
    target: &Target,
    lens: LensName,
) -> Result<Calibration> {
    target.check()?;
    let lens = Lens::named(lens);
    let allowed = target.allowed_mu()?;
    let mut evaluations = 0;
    let sizes = Sizes::new(run, most)?;
    let mut measure = |index: u64| -> Result<Measured> {
        evaluations += 1;
        let described = run(sizes.at(index))?.0;
        super::not_filtered(&described, "there is nothing to solve for")?;
        let view = lens.look(&described).map_err(|error| error.of(lens.name))?;
        match target.measure(&view, allowed, Direction::Both) {
            Err(AccountingError::NotCertified(_)) => Ok(Measured { residual: 30.0, met: false }),
            measured => measured,
        }
    };
    let count = sizes.count();
    let size = sizes.at(largest_safe_count(&mut measure, count, (0.01 * count as f64).max(1.0))?);
    if size == 0 {
        return Err(AccountingError::outside_domain(format!(
            "not even batches of one record meet {} {} under the lens `{}`; loosen the target, \
             raise the noise or train for fewer steps",
            target.quantity().as_str(),
            target.value(),
            lens.name
        )));
    }
    let (run, notes) = run(size)?;
    let interval = target.achieved(&lens.look(&run)?)?;
    let achieved = ClaimMaker::new(lens, &(&run).into(), &notes).claim(
        target.quantity(),
        target.at(),
        Direction::Both,
        interval,
    );
    let slack = target.slack(&interval);
    if slack < 0.0 {
        return Err(NotCertified::BatchSize { size }.into());
    }
    let solution = Solution::BatchSize(size);
    let everything = (size == most).then(|| "every batch size meets the target".into());
    Ok(Calibration {
        schema: Calibration::SCHEMA.into(),
        solution,
        solution_shown: solution.shown(),
        run,
        target: *target,
        achieved,
        slack,
        evaluations: evaluations + 1,
        warnings: everything.into_iter().collect(),
    })
}

/// Batch sizes to choose from, rising: all up to the data set's, or the parts of it where batches are whole parts.
enum Sizes {
    UpTo(u64),
    Parts(Vec<u64>),
}

impl Sizes {
    fn new(run: &dyn Fn(u64) -> Result<(Run, Vec<String>)>, most: u64) -> Result<Self> {
        if schemes::rates(&run(most)?.0) == Rates::Any {
            return Ok(Self::UpTo(most));
        }
        let mut parts = Vec::new();
        for part in (1..=most.isqrt()).filter(|part| most.is_multiple_of(*part)) {
            parts.extend([part, most / part]);
        }
        parts.sort_unstable();
        parts.dedup();
        let held = |part: &u64| run(*part).is_ok_and(|(run, _)| schemes::supports(&run).is_ok());
        let kept: Vec<u64> = parts.iter().copied().filter(held).collect();
        // Where no size is held, the largest says why.
        Ok(Self::Parts(if kept.is_empty() { vec![most] } else { kept }))
    }

    fn count(&self) -> u64 {
        match self {
            Self::UpTo(most) => *most,
            Self::Parts(parts) => parts.len() as u64,
        }
    }

    /// The size of a number from 1 on; of 0, none.
    fn at(&self, index: u64) -> u64 {
        match self {
            Self::UpTo(_) => index,
            Self::Parts(parts) => index.checked_sub(1).map_or(0, |at| parts[at as usize]),
        }
    }
}

/// One batch size with the noise that meets the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdviceRow {
    pub batch_size: u64,
    pub steps: u64,
    /// Absent where no noise meets the target; then there is a reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// The noise as text, rounded up, so that it still meets the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_shown: Option<String>,
    /// Noise on the mean of a batch, in units of the clip norm: noise multiplier / batch size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_per_record: Option<f64>,
    /// The same on the mean of all updates: divided by the root of the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_of_training: Option<f64>,
    /// The target's quantity, as text, under the target's lens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proven: Option<String>,
    /// The same under the last-iterate lens, which is a heuristic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heuristic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl AdviceRow {
    /// Noise per record in a step, and on the mean of all updates, that is enough.
    pub fn noises_at_most(&self) -> [Option<AtMost>; 2] {
        [self.noise_per_record, self.noise_of_training].map(|noise| noise.map(AtMost::new))
    }
}

/// Several batch sizes and the one to begin with: the `dosimeter.advice/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    pub schema: String,
    pub target: Target,
    pub lens: LensName,
    pub dataset_size: u64,
    pub rows: Vec<AdviceRow>,
    /// The batch size to begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommended: Option<u64>,
    /// Why.
    pub reason: String,
    pub warnings: Vec<String>,
}

impl Advice {
    pub const SCHEMA: &'static str = "dosimeter.advice/1";
}

/// How much more noise of the whole training a recommended size may have than the best one.
const TOLERATED: f64 = 1.1;

/// The noise for each batch size, and which size to begin with.
///
/// # Errors
/// `InvalidInput` for malformed questions; a row that cannot be answered says why instead.
pub fn advice(
    run: &dyn Fn(u64) -> Result<(Run, Vec<String>)>,
    sizes: &[u64],
    dataset_size: u64,
    target: &Target,
    lens: LensName,
) -> Result<Advice> {
    target.check()?;
    let mut rows = Vec::new();
    for size in sizes {
        let (described, notes) = run(*size)?;
        domain::check_run(&described)?;
        let mut row = AdviceRow {
            batch_size: *size,
            steps: described.steps(),
            noise_multiplier: None,
            noise_shown: None,
            noise_per_record: None,
            noise_of_training: None,
            proven: None,
            heuristic: None,
            reason: None,
        };
        match calibrate(&described, Unknown::NoiseMultiplier, target, lens, &notes) {
            Ok(found) => {
                let noise = found.run.phases()[0].noise_multiplier;
                let per_record = noise / *size as f64;
                row.noise_multiplier = Some(noise);
                row.noise_shown = Some(found.solution_shown);
                row.noise_per_record = Some(per_record);
                row.noise_of_training = Some(per_record / (row.steps as f64).sqrt());
                row.proven = Some(found.achieved.shown());
                row.heuristic = beside(&found.run, target);
            }
            Err(error) => row.reason = Some(error.to_string()),
        }
        rows.push(row);
    }
    let (recommended, reason) = recommend(&rows);
    let smallest = sizes.iter().min().copied().unwrap_or_default();
    let warnings = if recommended == Some(smallest) && sizes.len() > 1 {
        vec![format!("the smallest size, {smallest}, is the recommended one: try smaller ones too")]
    } else {
        Vec::new()
    };
    let schema = Advice::SCHEMA.into();
    Ok(Advice { schema, target: *target, lens, dataset_size, rows, recommended, reason, warnings })
}

/// The target's quantity under the heuristic, where it holds.
fn beside(run: &Run, target: &Target) -> Option<String> {
    let view = Lens::named(LensName::BESIDE).look(run).ok()?;
    let interval = target.achieved(&view).ok()?;
    Some(match target.quantity() {
        Quantity::BayesSecurity => interval.at_least().shown(),
        _ => interval.at_most().shown(),
    })
}

fn recommend(rows: &[AdviceRow]) -> (Option<u64>, String) {
    let noises = || rows.iter().filter_map(|row| Some((row, row.noise_of_training?)));
    let least = noises().map(|(_, noise)| noise).fold(f64::INFINITY, f64::min);
    let chosen = noises().filter(|(_, noise)| *noise <= TOLERATED * least);
    let Some((row, noise)) = chosen.min_by_key(|(row, _)| row.batch_size) else {
        return (None, "no noise of the domain meets the target at any of these sizes".into());
    };
    let more = |noise: f64| AtMost::new(100.0 * (noise / least - 1.0).max(0.0)).digits(2);
    let mut reason = format!(
        "batch size {} is the smallest whose noise over the whole training is within 10 % of the \
         least ({} % above it)",
        row.batch_size,
        more(noise)
    );
    let smaller = noises().filter(|(other, _)| other.batch_size < row.batch_size);
    if let Some((other, noise)) = smaller.max_by_key(|(other, _)| other.batch_size) {
        reason.push_str(&format!(
            "; size {} would have {} % more noise than the least",
            other.batch_size,
            more(noise)
        ));
    }
    reason.push_str(
        ". Larger batches have about as much noise in all and fewer steps to learn in; accuracy \
         decides in the end",
    );
    (Some(row.batch_size), reason)
}
