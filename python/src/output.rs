//! The output directory of a sweep while it is written: that of `--out`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ackclock_run::batch::{self, Line, Options};
use ackclock_run::output::{self, InUse, MANIFEST};
use pyo3::exceptions::{PyBlockingIOError, PyFileExistsError, PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::judge::PyJudge;
use crate::lines::Lines;
use crate::scenario::PyScenario;

/// Numbers of errors, as Python's exceptions have them.
const EEXIST: i32 = 17;
const EAGAIN: i32 = 11;

/// A directory that is written.
#[pyclass(name = "Output", frozen, module = "ackclock._core")]
#[derive(Debug)]
pub(crate) struct PyOutput(Mutex<Option<Open>>);

#[derive(Debug)]
struct Open {
    dir: PathBuf,
    scenario: Arc<ackclock_scenario::Scenario>,
    output: output::Output,
    /// The last run so far: with it come the expectations.
    last: Option<Line>,
    failed: usize,
}

#[pymethods]
impl PyOutput {
    /// Prepares a directory for runs of a scenario. Gives also the first place that is to be done,
    /// and a note on results of a killed run, if there were any. `judge` takes in what runs before
    /// that place have measured.
    #[staticmethod]
    #[pyo3(signature = (scenario, directory, judge, *, only = None, shard = None, resume = true, overwrite = false))]
    #[expect(clippy::too_many_arguments, reason = "by name")]
    fn open(
        py: Python<'_>,
        scenario: &PyScenario,
        directory: PathBuf,
        judge: &PyJudge,
        only: Option<String>,
        shard: Option<String>,
        resume: bool,
        overwrite: bool,
    ) -> PyResult<(PyOutput, usize, Option<String>)> {
        let (scenario, dir) = (scenario.0.clone(), directory);
        py.detach(|| {
            let exists = |why: String| PyFileExistsError::new_err((EEXIST, why, dir.display().to_string()));
            if let Some(manifest) = output::manifest(&dir).filter(|_| !overwrite) {
                if !resume {
                    let why = "The directory holds results: resume=True continues, overwrite=True drops them";
                    return Err(exists(why.to_owned()));
                }
                if !scenario.is_sweep() {
                    // There is nothing to go on with.
                    let is_same = manifest["scenario"] == scenario.resolved() && manifest["partial"] != true;
                    return if is_same {
                        Ok((PyOutput(Mutex::new(None)), 1, None))
                    } else {
                        Err(exists("The directory holds other results: overwrite=True drops them".to_owned()))
                    };
                }
            }
            let options = Options { only, shard, ..Options::default() };
            let mut failed = 0;
            let opened = batch::open(&dir, &scenario, &options, resume && !overwrite, overwrite, |line| {
                failed += usize::from(judge.see(line)?);
                Ok(())
            });
            let (output, place) = opened.map_err(|error| raised(&error, &dir))?;
            let kept = output.kept().map(str::to_owned);
            Ok((PyOutput(Mutex::new(Some(Open { dir, scenario, output, last: None, failed }))), place, kept))
        })
    }

    /// Takes in the lines of the next runs, with their records.
    fn add(&self, py: Python<'_>, lines: &Lines) -> PyResult<()> {
        py.detach(|| {
            let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let open = open.as_mut().ok_or_else(closed)?;
            for line in lines.0.iter() {
                open.failed += usize::from(line.failed);
                if let Some(before) = open.last.replace(line.clone()) {
                    open.write(before)?;
                }
            }
            Ok(())
        })
    }

    /// The JSON of the last run that was added, if any.
    #[getter]
    fn last(&self) -> Option<String> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.as_ref()?.last.as_ref().map(|line| line.json.clone())
    }

    /// Completes the directory, with `last` as the line of the last run; `partial` if runs are
    /// missing.
    #[pyo3(signature = (last = None, partial = false))]
    fn finish(&self, py: Python<'_>, last: Option<String>, partial: bool) -> PyResult<()> {
        py.detach(|| {
            let Some(mut open) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
            if let Some(line) = open.last.take() {
                let json = last.unwrap_or_else(|| line.json.clone());
                open.write(Line { json, ..line })?;
            }
            let Open { dir, scenario, output, failed, .. } = open;
            output.finish(&scenario, partial, failed, &[]).map_err(|error| raised(&error, &dir))
        })
    }

    /// Leaves a directory that is not complete: the runs of a sweep stay for somebody who goes on.
    fn leave(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}

impl Open {
    fn write(&mut self, line: Line) -> PyResult<()> {
        let Open { dir, output, .. } = self;
        let Line { run, json, records, .. } = line;
        let records = records.iter().map(|(name, contents)| output.record(run, name, contents));
        let written = records
            .collect::<Result<Vec<_>, _>>()
            .and_then(|records| output.add_line(&json, records).map_err(anyhow::Error::from));
        written.map_err(|error| raised(&error, dir))
    }
}

/// The manifest of a complete directory as JSON.
#[pyfunction]
pub(crate) fn manifest(directory: PathBuf) -> PyResult<String> {
    let manifest = output::required_manifest(&directory);
    manifest.map(|manifest| manifest.to_string()).map_err(|error| {
        let is_broken_off = output::is_broken_off(&directory);
        match is_broken_off {
            true => crate::errors::run(&format!(
                "{} is not complete: its sweep was broken off; ackclock.sweep(..., out=...) continues",
                directory.display()
            )),
            false => PyValueError::new_err(format!("{error:#}")),
        }
    })
}

fn closed() -> PyErr {
    PyValueError::new_err(format!("the directory is complete: it has its {MANIFEST}"))
}

fn raised(error: &anyhow::Error, dir: &Path) -> PyErr {
    let dir = dir.display().to_string();
    if error.is::<InUse>() {
        return PyBlockingIOError::new_err((
            EAGAIN,
            format!("Another process writes into the directory: {error}"),
            dir,
        ));
    }
    match error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()) {
        Some(source) => PyOSError::new_err((source.raw_os_error().unwrap_or(0), format!("{error:#}"), dir)),
        None => PyFileExistsError::new_err((EEXIST, format!("{error:#}"), dir)),
    }
}
