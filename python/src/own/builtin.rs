//! A built-in controller as an object with the hooks of a class, for classes that contain one.

use std::sync::{Mutex, PoisonError};

use ackclock_cc::{self as cc, CongestionControl, Window};
use ackclock_sim::spec::HostSpec;
use ackclock_units::Random;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::controller::{bytes, hooks};
use super::objects::{self, Ack, Arrival, Flight, Lost, PySignal, Sent, Subflow, Verdict};
use crate::scenario::PyScenario;

/// A controller of ackclock's own.
#[pyclass(name = "Controller", frozen, module = "ackclock")]
#[derive(Debug)]
pub(crate) struct PyController(Mutex<Box<dyn CongestionControl>>);

impl PyController {
    fn with<T>(&self, f: impl FnOnce(&mut dyn CongestionControl) -> T) -> T {
        f(&mut **self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

hooks! {
impl PyController {
    /// The controller of the first flow of a scenario, with a stream of random numbers from `seed`.
    #[staticmethod]
    fn of_scenario(scenario: &PyScenario, seed: u64) -> PyResult<PyController> {
        let spec = scenario.0.spec(0);
        match spec.flows.first().map(|flow| &flow.sender) {
            Some(HostSpec::Endpoint(endpoint)) => {
                Ok(PyController(Mutex::new(endpoint.cc.build(Random::for_component(seed, 0, "cc")))))
            }
            _ => Err(PyValueError::new_err("the scenario has no flow with a controller")),
        }
    }

    #[getter]
    fn name(&self) -> &'static str {
        self.with(|cc| cc.name())
    }

    fn __repr__(&self) -> String {
        let Window { cwnd, ssthresh } = self.with(|cc| cc.window());
        format!("<ackclock controller {}: cwnd {cwnd}, ssthresh {ssthresh}>", self.name())
    }
}
}
