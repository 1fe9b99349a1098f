//! Failures of the core as the exceptions of `dosimeter.errors`.

use answers::{Kind, Refusal};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use vocabulary::BadField;

/// An exception of the package, by name, with its sentence, hint, exit code and field.
fn exception(
    py: Python<'_>,
    name: &str,
    message: &str,
    hint: Option<&str>,
    code: Option<u8>,
    field: Option<&BadField>,
) -> PyErr {
    let field = field.map(answers::text);
    let raised = py
        .import("dosimeter.errors")
        .and_then(|module| module.getattr("_make"))
        .and_then(|make| make.call1((name, message, hint, code, field)));
    match raised {
        Ok(error) => PyErr::from_value(error),
        // Only when the package around this module is broken.
        Err(_) => PyRuntimeError::new_err(message.to_owned()),
    }
}

/// What a refusal means to a Python program.
pub(crate) fn refused(py: Python<'_>, refusal: &Refusal) -> PyErr {
    let name = match refusal.kind {
        Kind::BadInput => "InvalidInput",
        Kind::Unsupported => "Unsupported",
        Kind::NotCertified => "NotCertified",
        Kind::Incomplete => "Incomplete",
        Kind::Interrupted => return PyKeyboardInterrupt::new_err(refusal.message.clone()),
        Kind::Bug => "DosimeterError",
    };
    let code = Some(refusal.kind.exit_code());
    exception(py, name, &refusal.message, refusal.hint.as_deref(), code, refusal.field.as_deref())
}

pub(crate) fn invalid(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "InvalidInput", message, None, None, None)
}
