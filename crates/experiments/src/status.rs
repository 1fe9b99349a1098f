//! What is done, what is missing, what failed, and how long the rest may take.

use crate::store::read_if_there;
use crate::{ExperimentError, Folder, Plan};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The state of one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkState {
    Done,
    Missing,
    /// Tried, with the reason it gave.
    Failed(String),
    /// A file is there that is not this chunk; the message says what to do.
    Unusable(String),
}

/// An experiment folder at one moment.
#[derive(Clone, Debug)]
pub struct WorkStatus {
    pub plan: Plan,
    /// By chunk number.
    pub chunks: Vec<ChunkState>,
    /// The output file is there, whole and of this plan.
    pub merged: bool,
    /// From the times at which chunks were finished; `None` when there are fewer than two.
    pub time_left: Option<Duration>,
}

impl WorkStatus {
    pub fn count(&self, wanted: impl Fn(&ChunkState) -> bool) -> u64 {
        self.chunks.iter().filter(|state| wanted(state)).count() as u64
    }
}

/// Looks at an experiment, given its output file or its work folder. Writes nothing.
///
/// # Errors
/// `NoExperiment` when there is none, `CorruptPlan` when its plan cannot be read.
pub fn status(path: &Path) -> Result<WorkStatus, ExperimentError> {
    let own = Folder::at(path);
    let (folder, output) = if own.plan_path().exists() {
        let output = path
            .as_os_str()
            .to_str()
            .and_then(|text| text.trim_end_matches('/').strip_suffix(".work").map(Path::new));
        (own.clone(), output)
    } else {
        (Folder::beside(path), Some(path))
    };
    let plan = folder.plan()?.ok_or_else(|| ExperimentError::NoExperiment(path.to_owned()))?;
    let mut chunks = Vec::new();
    let mut times = Vec::new();
    for index in 0..plan.chunks() {
        chunks.push(match folder.chunk(&plan, index) {
            Ok(Some(_)) => {
                times.extend(modified(&folder.chunk_path(index)));
                ChunkState::Done
            }
            Ok(None) => match read_if_there(&folder.failure_path(index))? {
                Some(reason) => ChunkState::Failed(String::from_utf8_lossy(&reason).into_owned()),
                None => ChunkState::Missing,
            },
            Err(error) => ChunkState::Unusable(error.to_string()),
        });
    }
    let left = chunks.iter().filter(|state| **state != ChunkState::Done).count();
    let merged = match output {
        Some(output) => crate::merge::is_finished(&plan, &folder, output)?,
        None => false,
    };
    Ok(WorkStatus { time_left: time_left(&mut times, left), plan, chunks, merged })
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// The median gap between finished chunks does not mind pauses between runs.
fn time_left(times: &mut [SystemTime], left: usize) -> Option<Duration> {
    if times.len() < 2 {
        return None;
    }
    times.sort();
    let mut gaps: Vec<Duration> =
        times.windows(2).filter_map(|pair| pair[1].duration_since(pair[0]).ok()).collect();
    gaps.sort();
    let median = gaps.get(gaps.len() / 2)?;
    Some(median.saturating_mul(u32::try_from(left).unwrap_or(u32::MAX)))
}
