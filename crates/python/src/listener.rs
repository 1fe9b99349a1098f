//! Long work that a callable of Python listens to.

use answers::Work;
use experiments::{Event, Reporter};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Calls `progress(kind, done, of)`; what it raises stops the work as Ctrl-C does.
#[derive(Clone)]
pub(crate) struct Listener(Arc<Inner>);

struct Inner {
    progress: Option<Py<PyAny>>,
    stop: Arc<AtomicBool>,
    raised: Mutex<Option<PyErr>>,
    counts: Mutex<(u64, u64)>,
}

impl Listener {
    pub(crate) fn new(progress: Option<Py<PyAny>>) -> Self {
        let (stop, raised, counts) = (Arc::default(), Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { progress, stop, raised, counts }))
    }

    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0.stop)
    }

    /// Keeps the first exception and stops the work.
    pub(crate) fn raise(&self, error: PyErr) {
        self.0.stop.store(true, Ordering::Relaxed);
        self.0.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// What was raised.
    pub(crate) fn raised(&self) -> PyResult<()> {
        match self.0.raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Reporter for Listener {
    fn event(&self, event: &Event) {
        let Some(progress) = &self.0.progress else { return };
        let (kind, done, of) = {
            let mut counts = self.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let kind = match event {
                Event::Planned { chunks, done, .. } => {
                    *counts = (*done, *chunks);
                    "planned"
                }
                Event::ChunkDone { .. } => {
                    counts.0 += 1;
                    "chunk"
                }
                Event::Merging => "merging",
            };
            (kind, counts.0, counts.1)
        };
        Python::attach(|py| {
            if let Err(error) = progress.call1(py, (kind, done, of)) {
                self.raise(error);
            }
        });
    }
}

impl Work for Listener {
    fn stop(&self) -> Arc<AtomicBool> {
        self.stop_flag()
    }
}
