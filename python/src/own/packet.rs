//! A packet as a queue discipline of Python sees it.

use std::sync::atomic::{AtomicBool, Ordering};

use ackclock_aqm::{Described, Queued};
use ackclock_units::{Ecn, Time};
use pyo3::prelude::*;

use super::objects::nanos;

/// A packet that a queue is offered.
#[pyclass(name = "Packet", frozen, module = "ackclock")]
#[derive(Debug)]
pub(crate) struct PyPacket {
    of: Described,
    arrived: Time,
    marked: AtomicBool,
}

impl PyPacket {
    pub(crate) fn new(of: Described, arrived: Time) -> PyPacket {
        PyPacket { of, arrived, marked: AtomicBool::new(of.marked) }
    }

    /// The link's description of it, marked if it has been.
    pub(crate) fn described(&self) -> Described {
        let mut of = self.of;
        if self.marked.load(Ordering::Relaxed) {
            of.set_ce();
        }
        of
    }

    pub(crate) fn arrived(&self) -> Time {
        self.arrived
    }
}

#[pymethods]
impl PyPacket {
    #[getter]
    fn number(&self) -> u64 {
        self.of.number
    }

    #[getter]
    fn bytes(&self) -> u32 {
        self.of.bytes
    }

    /// `not-ect`, `ect0`, `ect1` or `ce`.
    #[getter]
    fn ecn(&self) -> &'static str {
        match self.described().ecn() {
            Ecn::NotEct => "not-ect",
            Ecn::Ect0 => "ect0",
            Ecn::Ect1 => "ect1",
            Ecn::Ce => "ce",
        }
    }

    #[getter]
    fn flow(&self) -> u64 {
        self.of.flow
    }

    #[getter]
    fn hosts(&self) -> (u64, u64) {
        (self.of.hosts[0], self.of.hosts[1])
    }

    #[getter]
    fn dscp(&self) -> u8 {
        self.of.dscp
    }

    #[getter]
    fn is_pure_ack(&self) -> bool {
        self.of.is_pure_ack
    }

    #[getter]
    fn arrived_at(&self) -> u64 {
        nanos(self.arrived)
    }

    /// Marks it; False if it cannot carry a mark.
    fn mark(&self) -> bool {
        let capable = self.of.ecn.is_capable();
        if capable {
            self.marked.store(true, Ordering::Relaxed);
        }
        capable
    }

    fn __repr__(&self) -> String {
        format!("Packet(number={}, bytes={}, ecn={:?})", self.of.number, self.of.bytes, self.ecn())
    }
}

/// Packets wait, but none may leave before this time.
#[pyclass(frozen, module = "ackclock")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotBefore(pub(crate) u64);

#[pymethods]
impl NotBefore {
    #[new]
    fn new(at: u64) -> NotBefore {
        NotBefore(at)
    }

    #[getter]
    fn at(&self) -> u64 {
        self.0
    }

    fn __repr__(&self) -> String {
        format!("NotBefore({})", self.0)
    }
}
