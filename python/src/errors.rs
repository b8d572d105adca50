//! Errors as exceptions, which are classes of the Python part.

use std::any::Any;

use std::error::Error;

use ackclock_run::batch::BatchError;
use ackclock_scenario::{LoadError, ScenarioError};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::own::calls::Raised;

const MODULE: &str = "ackclock._errors";

fn raise<'py>(py: Python<'py>, class: &str, args: Bound<'py, PyTuple>) -> PyErr {
    let made = py.import(MODULE).and_then(|module| module.getattr(class)?.call1(args));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// `RunError`.
pub(crate) fn run(text: &str) -> PyErr {
    Python::attach(|py| match (text,).into_pyobject(py) {
        Ok(args) => raise(py, "RunError", args),
        Err(error) => error,
    })
}

/// `RunError`, caused by the exception of a hook if there is one; its KeyboardInterrupt stays one.
pub(crate) fn failed(text: &str, cause: Option<&(dyn Error + Send + Sync + 'static)>) -> PyErr {
    let error = run(text);
    let Some(raised) = cause.and_then(|cause| cause.downcast_ref::<Raised>()) else { return error };
    Python::attach(|py| {
        let exception = raised.exception(py);
        if exception.is_instance_of::<PyKeyboardInterrupt>(py) {
            return PyKeyboardInterrupt::new_err(());
        }
        error.set_cause(py, Some(exception));
        error
    })
}

/// `ScenarioError`, with all places; `name` is the run at which it was found.
pub(crate) fn scenario(error: &ScenarioError, name: Option<&str>) -> PyErr {
    let text = error.render(false);
    let text = name.map_or_else(|| text.clone(), |name| format!("{name}: {text}"));
    let problems: Vec<_> = error
        .problems()
        .map(|problem| {
            let what = (problem.title.to_owned(), problem.found.to_owned());
            let place = (problem.source.to_owned(), problem.line, problem.column);
            (what.0, place.0, place.1, place.2, what.1, problem.notes.to_vec(), problem.help.map(str::to_owned))
        })
        .collect();
    Python::attach(|py| match (text, problems).into_pyobject(py) {
        Ok(args) => raise(py, "ScenarioError", args),
        Err(error) => error,
    })
}

/// Why runs came to no end.
pub(crate) fn batch(error: &BatchError) -> PyErr {
    match error {
        BatchError::Interrupted => PyKeyboardInterrupt::new_err(()),
        BatchError::Point { name, error } => scenario(error, Some(name)),
        BatchError::Refused(error) => run(&format!("{error:#}")),
        BatchError::Failed { name, why, cause } => failed(&format!("{name} failed: {why}"), cause.as_deref()),
    }
}

/// The exception for a scenario that cannot be read.
pub(crate) fn load(error: &LoadError) -> PyErr {
    match error {
        LoadError::Scenario(error) => scenario(error, None),
        LoadError::Read { path, source } => {
            let why = source.to_string();
            let why = why.split(" (os error").next().unwrap_or(&why).to_owned();
            PyOSError::new_err((source.raw_os_error().unwrap_or(0), why, path.display().to_string()))
        }
        LoadError::TooLarge { .. } => Python::attach(|py| {
            let none: Vec<String> = Vec::new();
            match (error.to_string(), none).into_pyobject(py) {
                Ok(args) => raise(py, "ScenarioError", args),
                Err(error) => error,
            }
        }),
    }
}

/// The message of a panic.
pub(crate) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no reason given").to_owned()
}
