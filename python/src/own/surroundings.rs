//! Surroundings of runs with Python classes: their threads hold the interpreter for a whole run, so
//! that a hook is a plain call. Other Python threads get their turn whenever a hook runs, as
//! between any two of their instructions, and occasionally in between.

use std::ffi::c_long;
use std::fmt::Debug;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ackclock_run::batch::{self, BatchControl};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::ffi;
use pyo3::prelude::*;

/// The longest time for which the interpreter's end waits for runs.
const PATIENCE: Duration = Duration::from_secs(10);

/// The batches whose runs may call Python.
static ALL: Mutex<Vec<Weak<PySurroundings>>> = Mutex::new(Vec::new());

/// The runs of a batch.
#[derive(Debug)]
pub(crate) struct PySurroundings {
    control: Arc<BatchControl>,
    /// The threads that are in a run, as Python calls them.
    threads: Mutex<Vec<u64>>,
    left: Condvar,
}

impl PySurroundings {
    pub(crate) fn new(control: Arc<BatchControl>) -> Arc<PySurroundings> {
        let new = Arc::new(PySurroundings { control, threads: Mutex::default(), left: Condvar::new() });
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&new));
        new
    }

    fn threads(&self) -> MutexGuard<'_, Vec<u64>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the hooks that go on: they raise KeyboardInterrupt.
    pub(crate) fn interrupt(&self, py: Python<'_>) {
        for &thread in &*self.threads() {
            let exception = py.get_type::<PyKeyboardInterrupt>();
            // SAFETY: the thread is attached to this interpreter, and the exception is a class. It
            // takes a reference of its own.
            #[expect(unsafe_code, reason = "PyO3 has no safe call for it")]
            unsafe {
                ffi::PyThreadState_SetAsyncExc(thread as c_long, exception.as_ptr())
            };
        }
    }

    /// Waits until no run is left.
    fn wait(&self) {
        let left = self.left.wait_timeout_while(self.threads(), PATIENCE, |threads| !threads.is_empty());
        drop(left);
    }
}

impl batch::Surroundings for PySurroundings {
    fn around(&self, run: &mut dyn FnMut()) {
        let attached = Python::try_attach(|py| {
            let ident = py.import("threading").and_then(|module| module.call_method0("get_ident")?.extract::<u64>());
            let Ok(ident) = ident else { return run() };
            self.threads().push(ident);
            let _leaving = Leaving { of: self, ident };
            run();
        });
        if attached.is_none() {
            // The interpreter ends: nobody waits for the run.
            self.control.stop();
            run();
        }
    }

    fn breathe(&self) {
        if let Some(()) = Python::try_attach(|py| py.detach(|| ())) {}
    }
}

/// Takes the thread off the list, also when the run panics.
struct Leaving<'a> {
    of: &'a PySurroundings,
    ident: u64,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.of.threads().retain(|&thread| thread != self.ident);
        self.of.left.notify_all();
    }
}

/// Ends all runs that may call Python, and waits for them: for `atexit`.
#[pyfunction]
pub(crate) fn shut_down(py: Python<'_>) {
    let all: Vec<_> = ALL.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
    for of in &all {
        of.control.stop();
        of.interrupt(py);
    }
    py.detach(|| all.iter().for_each(|of| of.wait()));
}
