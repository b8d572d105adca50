//! A checked scenario.

use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ackclock_run::batch::{self, Options};
use ackclock_scenario::{LoadError, Override};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::lines::Lines;
use crate::own::{Classes, PyOwn};

/// A scenario that has been read and checked, with overrides applied.
#[pyclass(name = "Scenario", frozen, module = "ackclock._core")]
#[derive(Debug)]
pub(crate) struct PyScenario(pub(crate) Arc<ackclock_scenario::Scenario>, SourceText);

/// The algorithms that the parser gets from the classes.
pub(crate) fn algorithms(own: Option<&Py<PyOwn>>) -> ackclock_scenario::Own {
    own.map_or_else(ackclock::built_in, |own| own.get().0.clone())
}

/// Files and their contents.
type Packed<'py> = Vec<(String, Bound<'py, PyBytes>)>;

/// The contents of a pickle: `Scenario.unpack` and its arguments.
type Reduced<'py> =
    (Bound<'py, PyAny>, (String, String, Bound<'py, PyBytes>, Vec<(String, String)>, Packed<'py>, Option<Py<PyOwn>>));

/// The text of a scenario and its origin.
#[derive(Debug)]
struct SourceText {
    name: String,
    folder: PathBuf,
    text: Vec<u8>,
    overrides: Vec<(String, String)>,
    own: Option<Py<PyOwn>>,
}

#[pymethods]
impl PyScenario {
    /// Reads the file `name`, or `text`, which errors call `name`; `overrides` are pairs of what
    /// errors call them and `KEY=VALUE`; `own` has classes that it may name.
    #[new]
    #[pyo3(signature = (name, text, overrides, own = None))]
    fn new(
        py: Python<'_>,
        name: &str,
        text: Option<&str>,
        overrides: Vec<(String, String)>,
        own: Option<Py<PyOwn>>,
    ) -> PyResult<PyScenario> {
        let classes = algorithms(own.as_ref());
        read(py, || {
            let (folder, text) = match text {
                Some(text) => (Path::new(""), text.as_bytes().to_vec()),
                None => {
                    let path = Path::new(name);
                    (path.parent().unwrap_or(Path::new("")), ackclock_scenario::Scenario::read_text(path)?)
                }
            };
            let parsed = ackclock_scenario::Scenario::parse_in(folder, name, &text, &given(&overrides), &classes)?;
            let source = SourceText { name: name.to_owned(), folder: folder.to_owned(), text, overrides, own };
            Ok(PyScenario(Arc::new(parsed), source))
        })
    }

    /// All that `unpack` needs on another machine: the name, the folder, the text, the overrides,
    /// and the files that the scenario names.
    fn pack<'py>(&self, py: Python<'py>) -> (String, String, Bound<'py, PyBytes>, Vec<(String, String)>, Packed<'py>) {
        let files = py.detach(|| self.0.files());
        let files = files.into_iter().map(|(name, contents)| (name, PyBytes::new(py, &contents))).collect();
        let SourceText { name, folder, text, overrides, .. } = &self.1;
        let folder = folder.to_string_lossy().into_owned();
        (name.clone(), folder, PyBytes::new(py, text), overrides.clone(), files)
    }

    /// The classes that it may name, as `Own` takes them; `None` if it was given none.
    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> Option<Classes<'py>> {
        self.1.own.as_ref().map(|own| own.get().made_of(py))
    }

    /// The scenario of which these are the parts.
    #[staticmethod]
    #[pyo3(signature = (name, folder, text, overrides, files, own = None))]
    fn unpack(
        py: Python<'_>,
        name: String,
        folder: PathBuf,
        text: Vec<u8>,
        overrides: Vec<(String, String)>,
        files: Vec<(String, Vec<u8>)>,
        own: Option<Py<PyOwn>>,
    ) -> PyResult<PyScenario> {
        let classes = algorithms(own.as_ref());
        read(py, || {
            let files = files.into_iter().collect();
            let parsed =
                ackclock_scenario::Scenario::parse_sent(&folder, &name, &text, &given(&overrides), &classes, files)?;
            let source = SourceText { name, folder, text, overrides, own };
            Ok(PyScenario(Arc::new(parsed), source))
        })
    }

    /// The number of places for pieces of its runs, and the number of places that stay together.
    #[pyo3(signature = (only = None, shard = None))]
    fn places(&self, only: Option<String>, shard: Option<String>) -> PyResult<(usize, usize)> {
        let options = Options { only, shard, ..Options::default() };
        let places = batch::places(&self.0, &options).map_err(|error| errors::batch(&error))?;
        Ok((places.0, places.1.get()))
    }

    /// The numbers of the runs at some places.
    #[pyo3(signature = (start, stop, *, only = None, shard = None))]
    fn runs_at(&self, start: usize, stop: usize, only: Option<String>, shard: Option<String>) -> PyResult<Vec<usize>> {
        let options = Options { only, shard, places: Some(start..stop), ..Options::default() };
        batch::runs(&self.0, &options).map_err(|error| errors::batch(&error))
    }

    /// The number of concurrent runs, up to `most`, for so many bytes of memory; and a note if they
    /// may not fit.
    #[pyo3(signature = (most, memory = None))]
    fn plan(&self, py: Python<'_>, most: usize, memory: Option<u64>) -> PyResult<(usize, Option<String>)> {
        let planned = py.detach(|| batch::plan(&self.0, None, memory)).map_err(|error| errors::batch(&error))?;
        Ok((planned.0.clamp(1, most.max(1)), planned.1))
    }

    /// Returns `true` if runs are fed with captures, by paths from the working directory.
    #[getter]
    fn is_replay(&self) -> bool {
        self.0.is_replay()
    }

    /// The line of a run that failed, for this reason.
    fn failure(&self, run: usize, why: String) -> PyResult<Lines> {
        let line = batch::failure(&self.0, run, why).map_err(|error| errors::batch(&error))?;
        Ok(Lines(Arc::new(vec![line])))
    }

    /// The number of expectations.
    #[getter]
    fn expectations(&self) -> usize {
        self.0.expectations()
    }

    /// The title.
    #[getter]
    fn title(&self) -> &str {
        self.0.title()
    }

    /// The number of runs, at most if the sweep is adaptive.
    #[getter]
    fn runs(&self) -> usize {
        self.0.runs()
    }

    /// The most repetitions of each point.
    #[getter]
    fn repeat(&self) -> usize {
        self.0.repeat()
    }

    /// Returns `true` if there is a `[sweep]`.
    #[getter]
    fn is_sweep(&self) -> bool {
        self.0.is_sweep()
    }

    /// Returns `true` if repetitions end when the results are accurate enough.
    #[getter]
    fn is_adaptive(&self) -> bool {
        self.0.is_adaptive()
    }

    /// Returns `true` if runs need the machine's clock.
    #[getter]
    fn is_live(&self) -> bool {
        self.0.is_live()
    }

    /// The paths of the sweep's axes.
    #[getter]
    fn axes(&self) -> Vec<String> {
        self.0.axes().map(str::to_owned).collect()
    }

    /// The parts of the file that the clock ignores, in sentences.
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

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let own = self.1.own.as_ref().map(|own| own.clone_ref(py));
        let (name, folder, text, overrides, files) = self.pack(py);
        let unpack = py.get_type::<PyScenario>().getattr("unpack")?;
        Ok((unpack, (name, folder, text, overrides, files, own)))
    }

    fn __repr__(&self) -> String {
        format!("<ackclock.Scenario {:?}: {} runs>", self.0.title(), self.0.runs())
    }
}

fn given(overrides: &[(String, String)]) -> Vec<Override> {
    overrides.iter().map(|(flag, text)| Override { flag: flag.clone(), text: text.clone() }).collect()
}

/// Reads without Python's lock; what is wrong becomes an exception.
fn read(py: Python<'_>, read: impl FnOnce() -> Result<PyScenario, LoadError> + Send) -> PyResult<PyScenario> {
    match py.detach(|| panic::catch_unwind(AssertUnwindSafe(read))) {
        Ok(read) => read.map_err(|error| errors::load(&error)),
        Err(panic) => Err(errors::run(&format!("a defect of ackclock: {}", errors::said(&*panic)))),
    }
}
