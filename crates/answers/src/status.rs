//! An experiment folder: what is done and what is not.

use crate::Refusal;
use experiments::{ChunkState, WorkStatus};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// The `dosimeter.status/1` document.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExperimentStatus {
    pub schema: &'static str,
    pub kind: String,
    pub parameters: Value,
    pub seed: u64,
    pub trials: u64,
    pub chunks: Chunks,
    /// Whether the output is complete.
    pub merged: bool,
    pub seconds_left: Option<f64>,
    pub problems: Vec<String>,
    /// Each chunk, in order.
    #[serde(skip)]
    states: Vec<ChunkState>,
}

/// Chunks by what became of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Chunks {
    pub all: u64,
    pub done: u64,
    pub missing: u64,
    pub failed: u64,
    pub unusable: u64,
}

/// The status of an output file or of its work folder.
///
/// # Errors
/// A folder that holds no experiment, or cannot be read.
pub fn status(path: &Path) -> Result<ExperimentStatus, Refusal> {
    Ok(ExperimentStatus::of(experiments::status(path)?))
}

impl ExperimentStatus {
    pub const SCHEMA: &'static str = "dosimeter.status/1";

    fn of(status: WorkStatus) -> Self {
        let count = |wanted: fn(&ChunkState) -> bool| status.count(wanted);
        let problems = status.chunks.iter().enumerate();
        Self {
            schema: Self::SCHEMA,
            kind: status.plan.kind.clone(),
            parameters: status.plan.parameters.clone(),
            seed: status.plan.seed,
            trials: status.plan.trials,
            chunks: Chunks {
                all: status.plan.chunks(),
                done: count(|state| *state == ChunkState::Done),
                missing: count(|state| *state == ChunkState::Missing),
                failed: count(|state| matches!(state, ChunkState::Failed(_))),
                unusable: count(|state| matches!(state, ChunkState::Unusable(_))),
            },
            merged: status.merged,
            seconds_left: status.time_left.map(|left| left.as_secs_f64()),
            problems: problems
                .filter_map(|(index, state)| match state {
                    ChunkState::Failed(reason) => Some(format!("chunk {index} failed: {reason}")),
                    ChunkState::Unusable(reason) => Some(reason.clone()),
                    ChunkState::Done | ChunkState::Missing => None,
                })
                .collect(),
            states: status.chunks,
        }
    }

    /// A letter for each of the first chunks: done, missing, failed, unusable.
    pub fn letters(&self, most: usize) -> String {
        let letter = |state: &ChunkState| match state {
            ChunkState::Done => 'd',
            ChunkState::Missing => 'm',
            ChunkState::Failed(_) => 'f',
            ChunkState::Unusable(_) => 'u',
        };
        self.states.iter().take(most).map(letter).collect()
    }
}
