//! "Same heuristic epsilon, what standard epsilon?": for each batch size the noise at which the
//! last-iterate heuristic has a given epsilon, and what is proven at that noise (the question
//! of Steinke et al. 2025, Tables 1 and 2).

use crate::lenses::Lens;
use crate::{AccountingError, Target, Unknown, calibrate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::{AtMost, Direction, LensName, PhaseDescription, RunDescription};

type Result<T> = std::result::Result<T, AccountingError>;

/// One batch size; epsilons are upper ends at the document's delta.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchSizeRow {
    pub batch_size: u64,
    pub sample_rate: f64,
    pub steps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heuristic_epsilon: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_epsilon: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_batch_epsilon: Option<f64>,
    /// Why a number is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl BatchSizeRow {
    /// Noise that is enough.
    pub fn noise_at_most(&self) -> Option<AtMost> {
        self.noise_multiplier.map(AtMost::new)
    }

    /// Epsilon of the last iterate, of all iterates, and of full batches.
    pub fn epsilons_at_most(&self) -> [Option<AtMost>; 3] {
        [self.heuristic_epsilon, self.standard_epsilon, self.full_batch_epsilon]
            .map(|end| end.map(AtMost::new))
    }
}

/// The `dosimeter.batch-sizes/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchSizes {
    pub schema: String,
    pub dataset_size: u64,
    pub epochs: f64,
    pub delta: f64,
    pub heuristic_epsilon: f64,
    pub rows: Vec<BatchSizeRow>,
}

impl BatchSizes {
    pub const SCHEMA: &'static str = "dosimeter.batch-sizes/1";
}

/// Answers the question for each batch size.
///
/// # Errors
/// `InvalidInput` for malformed sizes; a row that cannot be answered says why instead.
pub fn batch_sizes(
    sizes: &[u64],
    dataset_size: u64,
    epochs: f64,
    heuristic_epsilon: f64,
    delta: f64,
) -> Result<BatchSizes> {
    let target = Target::Epsilon { epsilon: heuristic_epsilon, delta };
    target.check()?;
    let mut rows = Vec::new();
    for size in sizes {
        let described = RunDescription {
            whole: PhaseDescription {
                noise_multiplier: Some(1.0),
                batch_size: Some(*size),
                epochs: Some(epochs),
                ..PhaseDescription::default()
            },
            dataset_size: Some(dataset_size),
            ..RunDescription::default()
        };
        let run = described.resolve().map_err(AccountingError::invalid)?.run;
        let mut row = BatchSizeRow {
            batch_size: *size,
            sample_rate: run.phases()[0].sample_rate,
            steps: run.steps(),
            noise_multiplier: None,
            heuristic_epsilon: None,
            standard_epsilon: None,
            full_batch_epsilon: None,
            reason: None,
        };
        let answered: Result<()> = (|| {
            let noise = Unknown::NoiseMultiplier;
            let solved = calibrate(&run, noise, &target, LensName::BESIDE, &[])?;
            let epsilon = |lens: LensName| -> Result<f64> {
                Ok(Lens::named(lens).look(&solved.run)?.epsilon(delta, Direction::Both)?.upper)
            };
            row.noise_multiplier = Some(solved.run.phases()[0].noise_multiplier);
            row.heuristic_epsilon = Some(solved.achieved.interval.upper);
            row.full_batch_epsilon = Some(epsilon(LensName::UNSAMPLED)?);
            row.standard_epsilon = Some(epsilon(LensName::SIGNED)?);
            Ok(())
        })();
        if let Err(error) = answered {
            row.reason = Some(error.to_string());
        }
        rows.push(row);
    }
    Ok(BatchSizes {
        schema: BatchSizes::SCHEMA.into(),
        dataset_size,
        epochs,
        delta,
        heuristic_epsilon,
        rows,
    })
}
