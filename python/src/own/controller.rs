//! The class from which controllers are derived: NewReno, whose hooks a subclass replaces.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ackclock_cc::{self as cc, CongestionControl as _, NewReno, NewRenoConfig, Window};
use ackclock_units::Random;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::objects::{self, Ack, Arrival, Flight, Lost, PySignal, Sent, Subflow, Verdict};
use super::stream::{self, Stream};

/// The hooks that a subclass may override, by their numbers in [`hook`].
pub(crate) const HOOKS: [&str; 15] = [
    "on_established",
    "take_over",
    "on_ack",
    "on_signal",
    "on_recovery_end",
    "on_idle_restart",
    "on_arrival",
    "on_rtt_sample",
    "on_round",
    "on_ecn",
    "on_lost",
    "on_sent",
    "pacing_rate",
    "couple",
    "on_sample",
];

/// The numbers of hooks.
pub(crate) mod hook {
    pub(crate) const ESTABLISHED: usize = 0;
    pub(crate) const TAKE_OVER: usize = 1;
    pub(crate) const ACK: usize = 2;
    pub(crate) const SIGNAL: usize = 3;
    pub(crate) const RECOVERY_END: usize = 4;
    pub(crate) const IDLE_RESTART: usize = 5;
    pub(crate) const ARRIVAL: usize = 6;
    pub(crate) const RTT_SAMPLE: usize = 7;
    pub(crate) const ROUND: usize = 8;
    pub(crate) const ECN: usize = 9;
    pub(crate) const LOST: usize = 10;
    pub(crate) const SENT: usize = 11;
    pub(crate) const PACING_RATE: usize = 12;
    pub(crate) const COUPLE: usize = 13;
    pub(crate) const SAMPLE: usize = 14;
}

/// A window of whole bytes, from 1 to `most`.
pub(crate) fn bytes(name: &str, value: &Bound<'_, PyAny>, most: u64) -> PyResult<u64> {
    let index = value.call_method0("__index__");
    let whole = index.map_err(|_| {
        let found = value.repr().map_or_else(|_| "a value".to_owned(), |text| text.to_string());
        PyTypeError::new_err(format!("{name}: expected whole bytes, found {found}; round it, as int(...) does"))
    })?;
    match whole.extract::<u64>() {
        Ok(bytes) if (1..=most).contains(&bytes) => Ok(bytes),
        _ => Err(PyValueError::new_err(format!("{name}: expected 1 to {most} bytes, found {whole}"))),
    }
}

/// Implements a class of controllers: methods of its own, and the window and the hooks of the
/// controller that its `with` lends.
macro_rules! hooks {
    (impl $class:ident { $($own:tt)* }) => {
        #[pymethods]
        impl $class {
            $($own)*

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

            fn on_sample(&self, flight: &Flight, rtt: u64, cwnd: u64) {
                self.with(|cc| cc.on_sample(&flight.0, ackclock_units::Span::from_nanos(rtt), cwnd));
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
        }
    };
}

pub(super) use hooks;

#[derive(Debug)]
struct State {
    reno: NewReno,
    stream: Stream,
}

/// The base class.
#[pyclass(name = "CongestionControl", subclass, frozen, module = "ackclock")]
#[derive(Debug)]
pub(crate) struct PyCongestionControl(Mutex<State>);

impl PyCongestionControl {
    /// The state is whole between any two steps, and no step calls Python.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// NewReno, which reacts unless a subclass does.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut NewReno) -> T) -> T {
        f(&mut self.state().reno)
    }

    pub(crate) fn seed(&self, random: Random) {
        self.state().stream = Stream::seeded(random);
    }

    fn set(&self, change: impl FnOnce(&mut Window)) {
        self.with(|reno| {
            let mut window = reno.window();
            change(&mut window);
            reno.set_window(window);
        });
    }
}

hooks! {
impl PyCongestionControl {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyCongestionControl {
        let reno = NewReno::new(NewRenoConfig::default());
        PyCongestionControl(Mutex::new(State { reno, stream: Stream::unseeded() }))
    }

    #[classattr]
    fn delivery_rate() -> bool {
        false
    }

    #[classattr]
    fn whole_control() -> bool {
        false
    }

    #[classattr]
    fn ecn() -> &'static str {
        "data"
    }

    #[setter]
    fn set_cwnd(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let cwnd = bytes("cwnd", value, Window::MAX)?;
        self.set(|window| window.cwnd = cwnd);
        Ok(())
    }

    #[setter]
    fn set_ssthresh(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let ssthresh = bytes("ssthresh", value, Window::INFINITE)?;
        self.set(|window| window.ssthresh = ssthresh);
        Ok(())
    }

    #[getter]
    fn in_slow_start(&self) -> bool {
        self.with(|reno| reno.window().in_slow_start())
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
}
}
