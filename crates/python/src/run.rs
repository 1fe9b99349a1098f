//! A run, checked once: the part of a question that describes it, and what it resolves to.

use crate::errors::refused;
use answers::{Described, TextFile};
use dosimeter_cli::args::read_files;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use vocabulary::Resolved;

/// A checked run with the notes on what was assumed.
#[pyclass(frozen, module = "dosimeter._core")]
pub(crate) struct Run {
    parts: Parts,
    resolved: Resolved,
}

/// The keys of a question that describe a run.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Parts {
    files: Vec<TextFile>,
    run: Value,
}

impl Parts {
    fn checked(self, py: Python<'_>) -> PyResult<Run> {
        let keys = match &self.run {
            Value::Null => Described::default(),
            keys => Described::Written(keys.clone()),
        };
        let loaded = answers::load(&self.files, &keys).map_err(|refusal| refused(py, &refusal))?;
        Ok(Run { parts: self, resolved: loaded.resolved })
    }
}

#[pymethods]
impl Run {
    /// Checks a description, `{"files": [...], "run": {...}}`, and fills its defaults.
    #[new]
    fn new(py: Python<'_>, question: &str) -> PyResult<Self> {
        let parts: Parts = answers::parse(question).map_err(|refusal| refused(py, &refusal))?;
        parts.checked(py)
    }

    /// A run from files, composed in order as `account` does.
    #[staticmethod]
    fn from_files(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Self> {
        let files = read_files(&paths).map_err(|failure| refused(py, &failure))?;
        Parts { files, run: Value::Null }.checked(py)
    }

    /// The description as it was given: the part of a question.
    fn question(&self) -> String {
        let mut keys = serde_json::Map::new();
        if !self.parts.files.is_empty() {
            keys.insert("files".into(), json!(self.parts.files));
        }
        if !self.parts.run.is_null() {
            keys.insert("run".into(), self.parts.run.clone());
        }
        Value::Object(keys).to_string()
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
    fn unit(&self) -> Option<&str> {
        self.resolved.run.unit()
    }

    #[getter]
    fn group_size(&self) -> u32 {
        self.resolved.run.group_size()
    }
}
