//! What a training really did, in a form that `account` reads. Everything under `not_private` was
//! computed from records and is covered by no guarantee.

use crate::data::Provenance;
use crate::model::ModelDescription;
use crate::optimizer::OptimizerDescription;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::Run;

/// The schema's name.
pub const LEDGER_SCHEMA: &str = "dosimeter.ledger/1";

/// `dosimeter.ledger/1`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    pub schema: String,
    /// Of the program that trained.
    pub version: String,
    /// The part of the plan that was carried out: phases, sampling, clip norm, adjacency.
    pub run: Run,
    pub planned_steps: u64,
    pub complete: bool,
    /// Names the plan: equal for trainings that must give the same model.
    pub plan: String,
    pub sampling: SamplingRecord,
    pub clipping: ClippingRecord,
    pub noise: NoiseRecord,
    pub data: DataRecord,
    pub model: ModelRecord,
    pub optimizer: OptimizerDescription,
    pub device: DeviceRecord,
    /// One for each time the program was started.
    pub sessions: Vec<SessionRecord>,
    pub warnings: Vec<String>,
    pub not_private: NotPrivate,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SamplingRecord {
    pub scheme: vocabulary::Sampling,
    pub generator: String,
    /// Absent where the generator is secure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Examples worked on at a time; each is clipped on its own.
    pub micro_batch: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClippingRecord {
    pub norm: f64,
    /// Whose gradient is clipped.
    pub unit: String,
    /// The clipped norm exceeds `norm` at most by this factor.
    pub at_most: f64,
    /// What the noisy sum is divided by in each phase: a public constant.
    pub normalisers: Vec<f64>,
    pub normalised_by: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NoiseRecord {
    pub generator: String,
    pub secure: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    pub precaution: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DataRecord {
    pub records: usize,
    pub numbers_per_record: usize,
    pub classes: usize,
    #[serde(flatten)]
    pub provenance: Provenance,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ModelRecord {
    #[serde(flatten)]
    pub description: ModelDescription,
    pub parameters: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceRecord {
    pub kind: String,
    pub instructions: String,
    pub precision: String,
    /// Parts of a batch that run side by side; changes rounding only.
    pub lanes: usize,
    /// How many clip norms a record can contribute with the device's rounding.
    pub sensitivity: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionRecord {
    /// Steps that were done when the program was started.
    pub from_step: u64,
    pub to_step: u64,
}

/// Computed from records.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NotPrivate {
    pub note: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train_accuracy: Option<f64>,
    /// Nats per token, of a language model on held-out text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_loss: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics: Option<StatisticsRecord>,
}

/// Over all steps.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatisticsRecord {
    pub batch_sizes: BatchSizes,
    pub fraction_clipped: f64,
    /// Norms before clipping; the upper end of a bin 1.1 % wide.
    pub gradient_norm_quantiles: Vec<Quantile>,
    /// Mean loss of the batches, and their accuracy before the update, at some steps.
    pub history: Vec<HistoryPoint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchSizes {
    pub smallest: u64,
    pub mean: f64,
    pub largest: u64,
    pub empty: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantile {
    pub level: f64,
    pub norm: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryPoint {
    pub step: u64,
    pub loss: f64,
    pub accuracy: f64,
}
