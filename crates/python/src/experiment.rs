//! Experiments whose trainings are Python's: the engine, the files and the locks are those of
//! every game; only the rows of a chunk come from a callable.

use crate::errors::{invalid, refused};
use crate::interruptible::{self, AtInterrupt};
use crate::listener::Listener;
use experiments::{Experiment, ExperimentError, Outcome, Plan, Settings, Shard};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// What Python says about a plan.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Planned {
    kind: String,
    parameters: Value,
    seed: u64,
    header: String,
    chunk_trials: u64,
    trials: u64,
}

fn planned(py: Python<'_>, text: &str) -> PyResult<Plan> {
    let plan: Planned = serde_json::from_str(text)
        .map_err(|error| invalid(py, &format!("this is no plan: {error}")))?;
    Ok(Plan::new(
        plan.kind,
        plan.parameters,
        plan.seed,
        plan.header,
        plan.chunk_trials,
        plan.trials,
    ))
}

/// The name of a plan: its SHA-256, without the number of trials.
#[pyfunction]
pub(crate) fn plan_name(py: Python<'_>, plan: &str) -> PyResult<String> {
    Ok(planned(py, plan)?.digest())
}

/// The seed of one training of an experiment.
#[pyfunction]
pub(crate) fn training_seed(root: u64, index: u32) -> u32 {
    experiments::training_seed(root, index)
}

struct Callable {
    plan: Plan,
    rows: Py<PyAny>,
    listener: Listener,
}

impl Experiment for Callable {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rows(&self, trials: Range<u64>, table: &mut String) -> Result<(), String> {
        let text = Python::attach(|py| {
            let called = self.rows.call1(py, (trials.start, trials.end));
            called.and_then(|text| text.extract::<String>(py)).map_err(|error| {
                let reason = error.to_string();
                self.listener.raise(error);
                reason
            })
        })?;
        table.push_str(&text);
        Ok(())
    }
}

/// Computes the chunks that are missing, `threads` at a time, by calling `rows(first, last)`,
/// which gives the table's lines of these trials; merges when none is missing. Gives the state,
/// how many chunks were computed, and how many are missing.
///
/// Ctrl-C lets the chunks in hand finish; a second one abandons them.
#[pyfunction]
#[pyo3(signature = (plan, output, shard, threads, force, rows, progress))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn experiment(
    py: Python<'_>,
    plan: &str,
    output: PathBuf,
    shard: &str,
    threads: usize,
    force: bool,
    rows: Py<PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(&'static str, u64, u64)> {
    let plan = planned(py, plan)?;
    let shard: Shard = shard.parse().map_err(|error| failed(py, error))?;
    let listener = Listener::new(progress);
    let played = Callable { plan, rows, listener: listener.clone() };
    let (stop, flag, reporter) = (listener.stop_flag(), listener.stop_flag(), listener.clone());
    let ask = || stop.store(true, Ordering::Relaxed);
    let outcome = interruptible::run(py, &AtInterrupt::Ask(&ask), move || {
        let settings = Settings { threads, shard, force, reporter: &reporter, stop: &flag };
        experiments::run(&played, &output, &settings)
    })?;
    listener.raised()?;
    match outcome {
        Ok(Outcome::Complete { computed }) => Ok(("complete", computed, 0)),
        Ok(Outcome::Incomplete { computed, missing }) => Ok(("incomplete", computed, missing)),
        Ok(Outcome::Interrupted { computed, missing }) => Ok(("interrupted", computed, missing)),
        Err(error) => Err(failed(py, error)),
    }
}

fn failed(py: Python<'_>, error: ExperimentError) -> PyErr {
    refused(py, &error.into())
}
