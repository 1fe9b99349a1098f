//! The command line inside the interpreter: as `main`, and as a function that gives back what
//! would have been printed.

use crate::errors::from_failure;
use crate::interruptible::{self, AtInterrupt};
use dosimeter_cli::{Console, Listener, command_with_console, main_with_args};
use experiments::Event;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs the command line as the program `dosimeter` does, on the process's own streams, and
/// gives the exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let code = py.detach(|| main_with_args(arguments));
    // The interpreter ends the process without the end of a Rust `main`.
    let _ = std::io::stdout().flush();
    code
}

/// Runs one command and gives `(exit code, stdout, stderr)`.
///
/// `progress(kind, done, of)` hears the chunks of an experiment; what it raises stops the work
/// as Ctrl-C does. With `patient`, Ctrl-C lets the chunks in hand finish first.
#[pyfunction]
#[pyo3(signature = (arguments, progress, patient))]
pub(crate) fn command(
    py: Python<'_>,
    arguments: Vec<OsString>,
    progress: Option<Py<PyAny>>,
    patient: bool,
) -> PyResult<(u8, String, String)> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let (stdout, stderr) = (Buffer::default(), Buffer::default());
    let mut console = Console::to(Box::new(stdout.clone()), Box::new(stderr.clone()))
        .stopped_by(Arc::clone(&stop));
    if let Some(progress) = progress {
        console = console.heard_by(listener(progress, Arc::clone(&stop), Arc::clone(&raised)));
    }
    let ask = || stop.store(true, Ordering::Relaxed);
    let at_interrupt = if patient { AtInterrupt::Ask(&ask) } else { AtInterrupt::Abandon };
    let work = move || command_with_console(arguments, &mut console);
    let outcome = interruptible::run(py, &at_interrupt, work)?;
    if let Some(error) = raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    match outcome {
        Ok(code) => Ok((code, stdout.text(), stderr.text())),
        Err(failure) => Err(from_failure(py, &failure)),
    }
}

pub(crate) fn listener(
    progress: Py<PyAny>,
    stop: Arc<AtomicBool>,
    raised: Arc<Mutex<Option<PyErr>>>,
) -> Listener {
    let counts = Mutex::new((0_u64, 0_u64));
    Arc::new(move |event: &Event| {
        let (kind, done, of) = {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
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
                stop.store(true, Ordering::Relaxed);
                raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        });
    })
}

/// A stream that is kept.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
