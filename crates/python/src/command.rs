//! The command line inside the interpreter: as `main`, and as a function that gives back what
//! would have been printed.

use crate::errors::refused;
use crate::interruptible::{self, AtInterrupt};
use crate::listener::Listener;
use dosimeter_cli::{Console, command_with_console, main_with_args};
use experiments::{Event, Reporter};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::io::Write;
use std::sync::atomic::Ordering;
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
/// `progress(kind, done, of)` is called for the chunks of an experiment; what it raises stops the work
/// as Ctrl-C does. With `patient`, Ctrl-C lets the chunks in hand finish first.
#[pyfunction]
#[pyo3(signature = (arguments, progress, patient))]
pub(crate) fn command(
    py: Python<'_>,
    arguments: Vec<OsString>,
    progress: Option<Py<PyAny>>,
    patient: bool,
) -> PyResult<(u8, String, String)> {
    let is_told = progress.is_some();
    let listener = Listener::new(progress);
    let stop = listener.stop_flag();
    let (stdout, stderr) = (Buffer::default(), Buffer::default());
    let mut console = Console::to(Box::new(stdout.clone()), Box::new(stderr.clone()))
        .stopped_by(Arc::clone(&stop));
    if is_told {
        let reports = listener.clone();
        console = console.reporting_to(Arc::new(move |event: &Event| reports.event(event)));
    }
    let ask = || stop.store(true, Ordering::Relaxed);
    let at_interrupt = if patient { AtInterrupt::Ask(&ask) } else { AtInterrupt::Abandon };
    let work = move || command_with_console(arguments, &mut console);
    let outcome = interruptible::run(py, &at_interrupt, work)?;
    listener.raised()?;
    match outcome {
        Ok(code) => Ok((code, stdout.text(), stderr.text())),
        Err(failure) => Err(refused(py, &failure)),
    }
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
