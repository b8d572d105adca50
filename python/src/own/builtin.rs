//! A built-in controller as an object with the hooks of a class, for classes that contain one.

use std::sync::{Mutex, PoisonError};

use ackclock_cc::{self as cc, CongestionControl, Window};
use ackclock_sim::spec::HostSpec;
use ackclock_units::Random;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::controller::bytes;
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

#[pymethods]
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

    #[getter]
    fn cwnd(&self) -> u64 {
        self.with(|cc| cc.window().cwnd)
    }

    #[getter]
    fn ssthresh(&self) -> u64 {
        self.with(|cc| cc.window().ssthresh)
    }

    fn take_over(&self, cwnd: &Bound<'_, PyAny>, ssthresh: &Bound<'_, PyAny>) -> PyResult<()> {
        let window = Window {
            cwnd: bytes("cwnd", cwnd, Window::MAX)?,
            ssthresh: bytes("ssthresh", ssthresh, Window::INFINITE)?,
        };
        self.with(|cc| cc.take_over(window));
        Ok(())
    }

    fn on_established(&self, flight: &Flight) {
        self.with(|cc| cc.on_established(&flight.0));
    }

    fn on_ack(&self, flight: &Flight, ack: &Ack) -> Verdict {
        self.with(|cc| cc.on_ack(&flight.0, &ack.0)).into()
    }

    fn on_signal(&self, flight: &Flight, signal: &PySignal) {
        self.with(|cc| cc.on_signal(&flight.0, signal.0));
    }

    fn on_recovery_end(&self, flight: &Flight) {
        self.with(|cc| cc.on_signal(&flight.0, cc::Signal::RecoveryEnd));
    }

    fn on_idle_restart(&self, flight: &Flight) {
        self.with(|cc| cc.on_signal(&flight.0, cc::Signal::IdleRestart));
    }

    fn on_arrival(&self, flight: &Flight, arrival: &Arrival) {
        self.with(|cc| cc.on_arrival(&flight.0, &arrival.0));
    }

    /// The sample is part of the arrival.
    #[expect(unused_variables, reason = "names of arguments in Python")]
    fn on_rtt_sample(&self, flight: &Flight) {}

    /// The beginning of a round trip is part of the arrival.
    #[expect(unused_variables, reason = "names of arguments in Python")]
    fn on_round(&self, flight: &Flight, round: u64) {}

    fn on_ecn(&self, feedback: &str) -> PyResult<()> {
        let Some(feedback) = objects::feedback_of(feedback) else {
            return Err(PyValueError::new_err(format!("feedback: unknown {feedback:?}")));
        };
        self.with(|cc| cc.on_ecn(feedback));
        Ok(())
    }

    fn on_lost(&self, flight: &Flight, lost: &Lost) {
        self.with(|cc| cc.on_lost(&flight.0, &lost.0));
    }

    fn on_sent(&self, flight: &Flight, sent: &Sent) {
        self.with(|cc| cc.on_sent(&flight.0, &sent.0));
    }

    fn pacing_rate(&self, flight: &Flight) -> Option<u64> {
        self.with(|cc| cc.pacing_rate(&flight.0)).map(|rate| rate.as_bps())
    }

    fn couple(&self, own: usize, subflows: Vec<PyRef<'_, Subflow>>) {
        let subflows: Vec<cc::Subflow> = subflows.iter().map(|subflow| subflow.0).collect();
        self.with(|cc| {
            if let Some(coupled) = cc.coupled() {
                coupled.couple(own, &subflows);
            }
        });
    }

    fn __repr__(&self) -> String {
        let Window { cwnd, ssthresh } = self.with(|cc| cc.window());
        format!("<ackclock controller {}: cwnd {cwnd}, ssthresh {ssthresh}>", self.name())
    }
}
