//! The random numbers of an instance.

use ackclock_units::Random;
use pyo3::prelude::*;

/// The stream of an instance, as `random.Random`: made when it is asked for, since it takes 2.5 kB.
#[derive(Debug)]
pub(crate) struct Stream {
    seed: u64,
    made: Option<Py<PyAny>>,
}

impl Stream {
    /// One that nobody has seeded: an instance outside of a run.
    pub(crate) fn unseeded() -> Stream {
        Stream { seed: 0, made: None }
    }

    pub(crate) fn seeded(mut random: Random) -> Stream {
        Stream { seed: random.bits(), made: None }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn made(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.made.as_ref().map(|made| made.clone_ref(py))
    }

    pub(crate) fn keep(&mut self, made: Py<PyAny>) {
        self.made = Some(made);
    }
}

/// `random.Random(seed)`.
pub(crate) fn random(py: Python<'_>, seed: u64) -> PyResult<Py<PyAny>> {
    Ok(py.import("random")?.getattr("Random")?.call1((seed,))?.unbind())
}
