//! Calls of hooks, and what becomes of their exceptions.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};

use ackclock_units::Time;
use ackclock_units::outside::Failure;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// An exception of a hook, as the cause of a failure.
#[derive(Debug)]
pub(crate) struct Raised(PyErr);

impl Raised {
    /// The exception.
    pub(crate) fn exception(&self, py: Python<'_>) -> PyErr {
        self.0.clone_ref(py)
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Raised {}

/// Informs a run that an instance has failed; the first failure counts.
#[derive(Debug, Default)]
pub(crate) struct Fuse(OnceLock<Failure>);

impl Fuse {
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.0.get()
    }

    pub(crate) fn is_blown(&self) -> bool {
        self.0.get().is_some()
    }

    #[cold]
    pub(crate) fn blow(&self, at: Time, what: String) {
        self.0.get_or_init(|| Failure::new(at, what));
    }

    /// `of` is what the hook is of: "the congestion controller `mine`".
    #[cold]
    pub(crate) fn raised(&self, py: Python<'_>, at: Time, of: &str, hook: &str, error: PyErr) {
        let what = if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            "interrupted".to_owned()
        } else {
            format!("{of}: {hook} raised {error}{}", place(py, &error).unwrap_or_default())
        };
        self.0.get_or_init(|| Failure { at, what, source: Some(Arc::new(Raised(error))) });
    }
}

/// The innermost line of the traceback.
fn place(py: Python<'_>, error: &PyErr) -> Option<String> {
    let mut last = error.traceback(py)?.into_any();
    while let Ok(next) = last.getattr("tb_next")
        && !next.is_none()
    {
        last = next;
    }
    let line: u64 = last.getattr("tb_lineno").ok()?.extract().ok()?;
    let code = last.getattr("tb_frame").ok()?.getattr("f_code").ok()?;
    let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
    Some(format!(" ({file}, line {line})"))
}

/// The methods of an instance that override hooks, bound once.
#[derive(Debug)]
pub(crate) struct Bindings<const N: usize>([Option<Py<PyAny>>; N]);

impl<const N: usize> Bindings<N> {
    pub(crate) fn none() -> Bindings<N> {
        Bindings([const { None }; N])
    }

    pub(crate) fn of(
        instance: &Bound<'_, PyAny>,
        names: &[&'static str; N],
        has: impl Fn(&str) -> bool,
    ) -> PyResult<Bindings<N>> {
        let mut bindings = Bindings::none();
        for (place, name) in bindings.0.iter_mut().zip(names) {
            if has(name) {
                *place = Some(instance.getattr(*name)?.unbind());
            }
        }
        Ok(bindings)
    }

    /// The method for the hook with this number.
    pub(crate) fn get(&self, hook: usize) -> Option<&Py<PyAny>> {
        self.0[hook].as_ref()
    }
}
