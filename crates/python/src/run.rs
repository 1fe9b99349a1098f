//! A run, checked once and kept in its native form.

use crate::errors::{from_failure, from_run, invalid};
use dosimeter_cli::args::{Loaded, compose, load_file};
use pyo3::prelude::*;
use std::path::PathBuf;
use vocabulary::{Document, PhaseDescription, Resolved, RunDescription, Sampling};

/// A phase as written: noise multiplier, sample rate, batch size, steps, epochs.
type Written = (Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>);

/// A checked run with the notes on what was assumed.
#[pyclass(frozen, module = "dosimeter._core")]
pub(crate) struct Run {
    pub(crate) resolved: Resolved,
}

#[pymethods]
impl Run {
    /// Checks a description and fills its defaults.
    #[new]
    #[pyo3(signature = (whole, dataset_size, clip_norm, sampling, adjacency, group_size, phases))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of the Python class")]
    fn new(
        py: Python<'_>,
        whole: Written,
        dataset_size: Option<f64>,
        clip_norm: Option<f64>,
        sampling: Option<&str>,
        adjacency: Option<&str>,
        group_size: Option<f64>,
        phases: Vec<Written>,
    ) -> PyResult<Self> {
        let group_size = whole_number(py, "group_size", group_size)?;
        let description = RunDescription {
            whole: phase(py, whole)?,
            dataset_size: whole_number(py, "dataset_size", dataset_size)?,
            clip_norm,
            sampling: choice(py, "sampling", sampling, Sampling::ALL)?,
            adjacency: choice(py, "adjacency", adjacency, vocabulary::Adjacency::ALL)?,
            group_size: group_size.map(|size| u32::try_from(size).unwrap_or(u32::MAX)),
            phases: phases.into_iter().map(|one| phase(py, one)).collect::<PyResult<_>>()?,
            ..RunDescription::default()
        };
        let resolved = description.resolve().map_err(|error| from_run(py, &error))?;
        Ok(Self { resolved })
    }

    /// A run from the text of a TOML or JSON document.
    #[staticmethod]
    #[pyo3(signature = (text, json, notes))]
    fn from_text(
        py: Python<'_>,
        text: &str,
        json: bool,
        notes: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let parsed =
            if json { Document::from_json_str(text) } else { Document::from_toml_str(text) };
        let mut resolved = parsed
            .and_then(|document| document.run.resolve())
            .map_err(|error| from_run(py, &error))?;
        // A run that comes back from a document remembers what was assumed when it was written.
        resolved.notes = notes.unwrap_or(resolved.notes);
        Ok(Self { resolved })
    }

    /// A run from files, composed in order as `account` does.
    #[staticmethod]
    fn from_files(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Self> {
        let mut all = Vec::new();
        for path in &paths {
            let document = load_file(path).map_err(|failure| from_failure(py, &failure))?;
            let resolved = document.run.resolve().map_err(|error| from_run(py, &error))?;
            all.push(Loaded { resolved, policy: None });
        }
        let loaded = match all.len() {
            0 => return Err(invalid(py, "no file was given")),
            1 => all.remove(0),
            _ => compose(all).map_err(|failure| from_failure(py, &failure))?,
        };
        Ok(Self { resolved: loaded.resolved })
    }

    /// The run's document.
    fn json(&self) -> String {
        serde_json::to_string(&self.resolved.run).expect("a run is plain data")
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.resolved.notes.clone()
    }

    #[getter]
    fn phases(&self) -> Vec<(f64, f64, u64)> {
        let triple =
            |phase: &vocabulary::Phase| (phase.noise_multiplier, phase.sample_rate, phase.steps);
        self.resolved.run.phases().iter().map(triple).collect()
    }

    #[getter]
    fn sampling(&self) -> &'static str {
        self.resolved.run.sampling().as_str()
    }

    #[getter]
    fn adjacency(&self) -> &'static str {
        self.resolved.run.adjacency().as_str()
    }

    #[getter]
    fn clip_norm(&self) -> f64 {
        self.resolved.run.clip_norm()
    }

    #[getter]
    fn dataset_size(&self) -> Option<u64> {
        self.resolved.run.dataset_size()
    }

    #[getter]
    fn group_size(&self) -> u32 {
        self.resolved.run.group_size()
    }
}

fn phase(py: Python<'_>, written: Written) -> PyResult<PhaseDescription> {
    let (noise_multiplier, sample_rate, batch_size, steps, epochs) = written;
    Ok(PhaseDescription {
        noise_multiplier,
        sample_rate,
        batch_size: whole_number(py, "batch_size", batch_size)?,
        steps: whole_number(py, "steps", steps)?,
        epochs,
    })
}

/// Counts may be written `1e6`; beyond 2^53 a number is no count any more.
fn whole_number(py: Python<'_>, key: &str, value: Option<f64>) -> PyResult<Option<u64>> {
    match value {
        None => Ok(None),
        Some(number)
            if (0.0..=9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0 =>
        {
            Ok(Some(number as u64))
        }
        Some(number) => Err(invalid(
            py,
            &format!(
                "`{key}` must be a whole number from 0 to 2^53 (1e6 is allowed), but is {number}"
            ),
        )),
    }
}

pub(crate) fn choice<T: Copy>(
    py: Python<'_>,
    key: &str,
    name: Option<&str>,
    all: &[(&str, T)],
) -> PyResult<Option<T>> {
    let Some(name) = name else { return Ok(None) };
    match all.iter().find(|(known, _)| *known == name) {
        Some((_, value)) => Ok(Some(*value)),
        None => {
            let names: Vec<&str> = all.iter().map(|(known, _)| *known).collect();
            Err(invalid(
                py,
                &format!("`{key}` is `{name}`, which is none of: {}", names.join(", ")),
            ))
        }
    }
}
