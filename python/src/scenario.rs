//! A checked scenario.

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;

use ackclock_scenario::{LoadError, Override};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::own::Own;
use crate::{errors, running};

/// A scenario that has been read and checked, with overrides applied.
#[pyclass(frozen, module = "ackclock._core")]
#[derive(Debug)]
pub(crate) struct Scenario(pub(crate) Arc<ackclock_scenario::Scenario>);

#[pymethods]
impl Scenario {
    /// Reads the file `name`, or `text`, which errors call `name`; `overrides` are pairs of what
    /// errors call them and `KEY=VALUE`; `own` has classes that it may name.
    #[new]
    #[pyo3(signature = (name, text, overrides, own = None))]
    fn new(
        py: Python<'_>,
        name: &str,
        text: Option<&str>,
        overrides: Vec<(String, String)>,
        own: Option<PyRef<'_, Own>>,
    ) -> PyResult<Scenario> {
        let own = own.map_or_else(ackclock::Own::new, |own| own.0.clone());
        let overrides: Vec<Override> = overrides.into_iter().map(|(flag, text)| Override { flag, text }).collect();
        let read = || match text {
            Some(text) => {
                Ok(ackclock_scenario::Scenario::parse_in(Path::new(""), name, text.as_bytes(), &overrides, &own)?)
            }
            None => ackclock_scenario::Scenario::load_with(Path::new(name), &overrides, &own),
        };
        let read: Result<Result<_, LoadError>, _> = py.detach(|| panic::catch_unwind(AssertUnwindSafe(read)));
        match read {
            Ok(Ok(scenario)) => Ok(Scenario(Arc::new(scenario))),
            Ok(Err(error)) => Err(errors::load(&error)),
            Err(panic) => Err(errors::run(&format!("a defect of ackclock: {}", running::said(&*panic)))),
        }
    }

    /// The title.
    #[getter]
    fn title(&self) -> &str {
        self.0.title()
    }

    /// How many runs there are, at most if the sweep is adaptive.
    #[getter]
    fn runs(&self) -> usize {
        self.0.runs()
    }

    /// How often each point is run, at most.
    #[getter]
    fn repeat(&self) -> usize {
        self.0.repeat()
    }

    /// Whether there is a `[sweep]`.
    #[getter]
    fn is_sweep(&self) -> bool {
        self.0.is_sweep()
    }

    /// Whether repetitions end when enough is known.
    #[getter]
    fn is_adaptive(&self) -> bool {
        self.0.is_adaptive()
    }

    /// Whether runs need the machine's clock.
    #[getter]
    fn is_live(&self) -> bool {
        self.0.is_live()
    }

    /// The paths of the sweep's axes.
    #[getter]
    fn axes(&self) -> Vec<String> {
        self.0.axes().map(str::to_owned).collect()
    }

    /// What the clock leaves out of what the file says, in sentences.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes()
    }

    /// The parameters of a run as JSON.
    fn params(&self, run: usize) -> PyResult<String> {
        if run >= self.0.runs() {
            return Err(PyIndexError::new_err(format!("run {run} of {}", self.0.runs())));
        }
        Ok(serde_json::Value::Object(self.0.params(run)).to_string())
    }

    /// As TOML, with overrides applied and defaults filled in, as `--show-config` prints it.
    fn resolved(&self) -> String {
        self.0.resolved()
    }

    fn __repr__(&self) -> String {
        format!("<ackclock.Scenario {:?}: {} runs>", self.0.title(), self.0.runs())
    }
}
