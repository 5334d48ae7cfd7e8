//! The library's errors as the exceptions of `ebp.errors`, in the same words.

use ebp::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The class in `ebp.errors` that says what kind of error it is.
fn class_of(error: &Error) -> &'static str {
    match error {
        Error::InvalidValue { .. }
        | Error::WrongLength { .. }
        | Error::EmptySet { .. }
        | Error::NonFinite { .. }
        | Error::Refused { .. }
        | Error::Occupied { .. } => "InvalidInputError",
        Error::Parse { .. } | Error::Malformed { .. } | Error::Damaged { .. } => "DataError",
        Error::Io { .. } => "FileError",
        Error::Device { .. } => "DeviceError",
        Error::Diverged { .. } | Error::NonFiniteGradient { .. } => "DivergedError",
        Error::Interrupted { .. } => "InterruptedTrainingError",
        _ => "FailedError",
    }
}

/// The exception for an error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    raise(py, class_of(error), &error.to_string(), error.help())
}

/// An exception of `ebp.errors` by name.
pub(crate) fn raise(py: Python<'_>, class: &str, message: &str, help: Option<&str>) -> PyErr {
    let made = py
        .import("ebp.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((message, help)));
    match made {
        Ok(instance) => PyErr::from_value(instance),
        Err(_) => PyRuntimeError::new_err(message.to_owned()),
    }
}

/// `?` for the library's results.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception for the error.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for ebp::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error))
    }
}
