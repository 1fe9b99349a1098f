//! Computes what is missing and merges when nothing is.

use crate::error::MOST_CHUNKS;
use crate::store::{read_if_there, remove_if_there};
use crate::{Event, Experiment, ExperimentError, Folder, Plan, Reporter, Shard, chunk, merge};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// How to run; nothing here changes a byte of the result.
pub struct Settings<'a> {
    pub threads: usize,
    pub shard: Shard,
    /// Replace what another plan left under the same name.
    pub force: bool,
    pub reporter: &'a dyn Reporter,
    /// Set from a signal handler: the chunks in hand are finished, then the run returns.
    pub stop: &'a AtomicBool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The output is there; `computed` chunks were missing before.
    Complete { computed: u64 },
    /// This shard is done, other chunks are missing.
    Incomplete { computed: u64, missing: u64 },
    /// Stopped on request.
    Interrupted { computed: u64, missing: u64 },
}

/// Brings the output of an experiment about, as far as this shard can.
///
/// # Errors
/// Files that cannot be written, that are damaged or that belong to another plan; the first chunk
/// that fails. Chunks finished before the error stay.
pub fn run(
    experiment: &dyn Experiment,
    output: &Path,
    settings: &Settings<'_>,
) -> Result<Outcome, ExperimentError> {
    let plan = experiment.plan();
    if plan.chunks() > MOST_CHUNKS {
        return Err(ExperimentError::TooManyTrials { trials: plan.trials, chunks: plan.chunks() });
    }
    if output.is_dir() {
        return Err(ExperimentError::OutputIsFolder(output.to_owned()));
    }
    let folder = Folder::beside(output);
    if settings.force && !merge::belongs(plan, &folder, output)? {
        folder.clear()?;
        merge::remove(output)?;
    }
    if merge::is_finished(plan, &folder, output)? {
        return Ok(Outcome::Complete { computed: 0 });
    }
    merge::check_output(plan, &folder, output)?;
    folder.open(plan)?;

    let mut todo = Vec::new();
    let mut elsewhere = 0;
    let mut in_shard = 0;
    for index in 0..plan.chunks() {
        let missing = folder.chunk(plan, index)?.is_none();
        if settings.shard.has(index) {
            in_shard += 1;
            if missing {
                todo.push(index);
            }
        } else {
            elsewhere += u64::from(missing);
        }
    }
    let done = in_shard - todo.len() as u64;
    settings.reporter.event(&Event::Planned { chunks: in_shard, done, trials: plan.trials });
    let computed = compute(experiment, &folder, &todo, settings)?;
    let left = todo.len() as u64 - computed;
    if settings.stop.load(Ordering::Relaxed) && left + elsewhere > 0 {
        return Ok(Outcome::Interrupted { computed, missing: left + elsewhere });
    }
    // Another process may have finished its part meanwhile.
    let missing =
        (0..plan.chunks()).filter(|index| !is_there(&folder, plan, *index)).count() as u64;
    if missing > 0 {
        return Ok(Outcome::Incomplete { computed, missing });
    }
    settings.reporter.event(&Event::Merging);
    merge::merge(plan, &folder, output)?;
    folder.sweep()?;
    Ok(Outcome::Complete { computed })
}

fn is_there(folder: &Folder, plan: &Plan, index: u64) -> bool {
    matches!(folder.chunk(plan, index), Ok(Some(_)) | Err(_))
}

/// Computes chunks on several threads; returns how many were stored.
fn compute(
    experiment: &dyn Experiment,
    folder: &Folder,
    todo: &[u64],
    settings: &Settings<'_>,
) -> Result<u64, ExperimentError> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let outcome = Mutex::new((0u64, None::<ExperimentError>));
    let work = || {
        while !settings.stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
            let Some(&index) = todo.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            let result = compute_chunk(experiment, folder, index, settings.reporter);
            let mut outcome = outcome.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match result {
                Ok(stored) => outcome.0 += u64::from(stored),
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    outcome.1.get_or_insert(error);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..settings.threads.clamp(1, todo.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let (computed, error) = outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    error.map_or(Ok(computed), Err)
}

/// False when another process has the chunk in hand or has finished it.
fn compute_chunk(
    experiment: &dyn Experiment,
    folder: &Folder,
    index: u64,
    reporter: &dyn Reporter,
) -> Result<bool, ExperimentError> {
    let plan = experiment.plan();
    let Some(claimed) = folder.claim(index)? else { return Ok(false) };
    if folder.chunk(plan, index)?.is_some() {
        return Ok(false);
    }
    let start = Instant::now();
    let range = plan.chunk_range(index);
    let mut rows = String::new();
    let failure = folder.failure_path(index);
    if let Err(reason) = experiment.rows(range.clone(), &mut rows) {
        formats::files::write(&failure, &reason).map_err(ExperimentError::io("write", &failure))?;
        return Err(ExperimentError::ChunkFailed { index, reason });
    }
    claimed.store(chunk::encode(plan, index, &rows).as_bytes())?;
    if read_if_there(&failure)?.is_some() {
        remove_if_there(&failure)?;
    }
    let trials = range.end - range.start;
    reporter.event(&Event::ChunkDone { index, trials, took: start.elapsed() });
    Ok(true)
}
