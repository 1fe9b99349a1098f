//! The command line inside the interpreter: as `main`, and as a function that gives back what
//! would have been printed.

use crate::errors::refused;
use crate::interruptible::{self, AtInterrupt};
use dosimeter_cli::{Console, command_with_console, main_with_args};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::io::Write;
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

/// Runs one command and gives `(exit code, stdout, stderr)`: the door of the command line, for the test that compares
/// all doors.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<(u8, String, String)> {
    let (stdout, stderr) = (Buffer::default(), Buffer::default());
    let mut console = Console::to(Box::new(stdout.clone()), Box::new(stderr.clone()));
    let work = move || command_with_console(arguments, &mut console);
    match interruptible::run(py, &AtInterrupt::Abandon, work)? {
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
