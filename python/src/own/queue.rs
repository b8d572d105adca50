//! The class from which queue disciplines are derived: drop-tail, whose hooks a subclass replaces.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ackclock_aqm::DropReason;
use ackclock_units::Random;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::packet::PyPacket;
use super::stream::{self, Stream};

/// The hooks that a subclass may override, by their numbers in [`hook`].
pub(crate) const HOOKS: [&str; 6] = ["enqueue", "dequeue", "idle", "on_change", "peek", "probe"];

/// The numbers of hooks.
pub(crate) mod hook {
    pub(crate) const ENQUEUE: usize = 0;
    pub(crate) const DEQUEUE: usize = 1;
    pub(crate) const IDLE: usize = 2;
    pub(crate) const CHANGE: usize = 3;
    pub(crate) const PEEK: usize = 4;
    pub(crate) const PROBE: usize = 5;
}

/// The most packets that the base class takes in unless `limit` says otherwise.
const LIMIT: u64 = 1000;

#[derive(Debug)]
struct State {
    fifo: VecDeque<Py<PyPacket>>,
    bytes: u64,
    /// Packets dropped in the present call of a hook.
    dropped: Vec<(Py<PyPacket>, DropReason)>,
    stream: Stream,
}

/// The base class.
#[pyclass(name = "QueueDisc", subclass, frozen, module = "ackclock")]
#[derive(Debug)]
pub(crate) struct PyQueueDisc(Mutex<State>);

impl PyQueueDisc {
    /// The state is whole between any two steps, and no step calls Python.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seed(&self, random: Random) {
        self.state().stream = Stream::seeded(random);
    }

    /// Takes the packets dropped since the last call.
    pub(crate) fn take_dropped(&self) -> Vec<(Py<PyPacket>, DropReason)> {
        std::mem::take(&mut self.state().dropped)
    }
}

fn reason_of(name: &str) -> PyResult<DropReason> {
    DropReason::ALL.into_iter().find(|reason| reason.name() == name).ok_or_else(|| {
        let known: Vec<&str> = DropReason::ALL.into_iter().map(DropReason::name).collect();
        PyValueError::new_err(format!("reason: expected one of {}, found {name:?}", known.join(", ")))
    })
}

#[pymethods]
impl PyQueueDisc {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyQueueDisc {
        let (fifo, dropped) = Default::default();
        PyQueueDisc(Mutex::new(State { fifo, bytes: 0, dropped, stream: Stream::unseeded() }))
    }

    #[classattr]
    fn limit() -> u64 {
        LIMIT
    }

    #[getter]
    fn random(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (made, seed) = {
            let state = self.state();
            (state.stream.made(py), state.stream.seed())
        };
        if let Some(made) = made {
            return Ok(made);
        }
        let made = stream::random(py, seed)?;
        self.state().stream.keep(made.clone_ref(py));
        Ok(made)
    }

    /// Packets in the base class's own queue.
    fn __len__(&self) -> usize {
        self.state().fifo.len()
    }

    /// A queue is true also when it is empty.
    fn __bool__(&self) -> bool {
        true
    }

    /// Bytes in the base class's own queue.
    #[getter]
    fn bytes(&self) -> u64 {
        self.state().bytes
    }

    #[pyo3(signature = (packet, reason = "early"))]
    fn drop(&self, packet: Py<PyPacket>, reason: &str) -> PyResult<()> {
        let reason = reason_of(reason)?;
        self.state().dropped.push((packet, reason));
        Ok(())
    }

    fn enqueue(slf: &Bound<'_, PyQueueDisc>, _now: u64, packet: Py<PyPacket>) -> PyResult<()> {
        let limit: f64 = slf.getattr("limit")?.extract()?;
        let mut state = slf.get().state();
        if state.fifo.len() as f64 >= limit {
            state.dropped.push((packet, DropReason::Limit));
        } else {
            state.bytes += u64::from(packet.get().described().bytes);
            state.fifo.push_back(packet);
        }
        Ok(())
    }

    fn dequeue(&self, _now: u64) -> Option<Py<PyPacket>> {
        self.take()
    }

    /// The oldest packet in the base class's own queue.
    fn first(&self, py: Python<'_>) -> Option<Py<PyPacket>> {
        self.state().fifo.front().map(|packet| packet.clone_ref(py))
    }

    /// Takes the oldest packet out of the base class's own queue.
    fn take(&self) -> Option<Py<PyPacket>> {
        let mut state = self.state();
        let packet = state.fifo.pop_front()?;
        state.bytes -= u64::from(packet.get().described().bytes);
        Some(packet)
    }

    fn idle(&self, _now: u64) {}

    fn on_change(&self, _now: u64) {}

    fn peek(&self, py: Python<'_>) -> Option<Py<PyPacket>> {
        self.first(py)
    }

    fn probe<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        PyDict::new(py)
    }
}
