//! Runs that go on in a thread of their own, so that the caller's remains free for signals.

use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ackclock_run::batch::{self, BatchControl, BatchError, Line, Options};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::errors;
use crate::lines::Lines;
use crate::own::surroundings::PySurroundings;
use crate::scenario::PyScenario;

/// The longest that is waited at a time.
const LONGEST: f64 = 3600.0;

/// Runs of a scenario that go on in the background.
#[pyclass(frozen, module = "ackclock._core")]
#[derive(Debug)]
pub(crate) struct Batch(Arc<BatchState>, Option<Arc<PySurroundings>>);

#[derive(Debug)]
struct BatchState {
    control: Arc<BatchControl>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<Line>,
    /// Nobody waits for lines any more.
    stopped: bool,
    ended: Option<Result<Vec<String>, Broken>>,
}

#[derive(Debug)]
enum Broken {
    Batch(BatchError),
    Panic(String),
}

impl BatchState {
    /// The state is whole between any two steps.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line, when there are fewer than so many.
    fn push(&self, line: Line, most: usize) {
        let full = |state: &mut State| state.lines.len() >= most && !state.stopped;
        let state = self.changed.wait_while(self.state(), full);
        state.unwrap_or_else(PoisonError::into_inner).lines.push(line);
    }

    fn stop(&self) {
        self.control.stop();
        self.state().stopped = true;
        self.changed.notify_all();
    }
}

#[pymethods]
impl Batch {
    /// Begins runs of a scenario.
    ///
    /// `places` are those of them in their order that are done. With `most` the runs wait while so
    /// many lines have not been taken.
    #[staticmethod]
    #[pyo3(signature = (scenario, *, only = None, shard = None, places = None, threads = None, records = false, most = None))]
    fn start(
        scenario: &PyScenario,
        only: Option<String>,
        shard: Option<String>,
        places: Option<(usize, usize)>,
        threads: Option<usize>,
        records: bool,
        most: Option<usize>,
    ) -> PyResult<Batch> {
        if threads == Some(0) {
            return Err(PyValueError::new_err("threads: expected at least 1, or None for as many as there are cores"));
        }
        let control = Arc::new(BatchControl::new());
        let own = !scenario.0.own().is_empty();
        // Hooks take turns, so that more threads would wait for each other.
        let threads = threads.or(own.then_some(1));
        let own = own.then(|| PySurroundings::new(Arc::clone(&control)));
        let surroundings = own.clone().map(|own| own as Arc<dyn batch::Surroundings>);
        let shared = Arc::new(BatchState { control, state: Mutex::default(), changed: Condvar::new() });
        let places = places.map(|(from, to)| from..to);
        let (scenario, options) = (scenario.0.clone(), Options { only, shard, places, threads, records, surroundings });
        let theirs = shared.clone();
        let work = move || {
            let sink = |line| {
                theirs.push(line, most.unwrap_or(usize::MAX));
                ControlFlow::Continue(())
            };
            let lines = || batch::lines(&scenario, &options, &theirs.control, sink);
            let ended = panic::catch_unwind(AssertUnwindSafe(lines));
            let ended = match ended {
                Ok(ended) => ended.map_err(Broken::Batch),
                Err(panic) => Err(Broken::Panic(errors::said(&*panic))),
            };
            theirs.state().ended = Some(ended);
            theirs.changed.notify_all();
        };
        let spawned = thread::Builder::new().name("ackclock".to_owned()).spawn(work);
        spawned.map_err(|error| PyRuntimeError::new_err(format!("no thread for the runs: {error}")))?;
        Ok(Batch(shared, own))
    }

    /// Waits until the runs are over, at most so many seconds. Tells whether they are.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let span = Duration::from_secs_f64(if seconds > 0.0 { seconds.min(LONGEST) } else { 0.0 });
        py.detach(|| {
            let going = |state: &mut State| state.ended.is_none();
            let waited = self.0.changed.wait_timeout_while(self.0.state(), span, going);
            waited.unwrap_or_else(PoisonError::into_inner).0.ended.is_some()
        })
    }

    /// The number of completed runs, parts included, and the number of all runs.
    fn reached(&self) -> (f64, f64) {
        self.0.control.reached()
    }

    /// Ends the runs soon.
    fn stop(&self, py: Python<'_>) {
        self.0.stop();
        if let Some(own) = &self.1 {
            own.interrupt(py);
        }
    }

    /// The number of lines that have not been taken.
    fn waiting(&self) -> usize {
        self.0.state().lines.len()
    }

    /// Takes the lines of the runs that are over, in their order; `finish` gives the others.
    fn take(&self) -> Lines {
        let lines = std::mem::take(&mut self.0.state().lines);
        self.0.changed.notify_all();
        Lines(Arc::new(lines))
    }

    /// The lines of runs that are over, and notes about them. May be called once.
    fn finish(&self) -> PyResult<(Lines, Vec<String>)> {
        let mut state = self.0.state();
        match state.ended.take() {
            None => Err(PyRuntimeError::new_err("the runs are not over, or their results have been taken")),
            Some(Ok(notes)) => Ok((Lines(Arc::new(std::mem::take(&mut state.lines))), notes)),
            Some(Err(Broken::Batch(error))) => Err(errors::batch(&error)),
            Some(Err(Broken::Panic(what))) => Err(errors::run(&format!("a defect of ackclock: {what}"))),
        }
    }
}

impl Drop for Batch {
    /// Nobody is left to take the results.
    fn drop(&mut self) {
        self.0.stop();
    }
}
