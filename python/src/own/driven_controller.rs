//! A controller of a run whose hooks are those of an instance of Python.
//!
//! Hooks that its class does not override never leave Rust: they are those of the base class. Once
//! an instance has failed, all are.

use std::sync::Arc;

use ackclock_cc::{
    Ack, Arrival, CongestionControl, Coupled, EcnFeedback, Flight, Inspection, Lost, Needs, NewReno, NewRenoConfig,
    Sent, Signal, Subflow, Verdict, Window,
};
use ackclock_units::outside::interned;
use ackclock_units::{Random, Rate, Span, Time};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::calls::{Bindings, Fuse};
use super::class::OwnClass;
use super::controller::{self, HOOKS, hook};
use super::objects;

/// An instance in a run.
#[derive(Debug)]
pub(crate) struct DrivenController {
    class: Arc<OwnClass>,
    name: &'static str,
    /// The instance, as its base class; `None` if it could not be made.
    base: Option<Py<controller::PyCongestionControl>>,
    hooks: Bindings<{ HOOKS.len() }>,
    /// The controller that reacts without an instance.
    reno: NewReno,
    /// The window after the last hook.
    window: Window,
    /// When the last hook was called that knows the time.
    now: Time,
    fuse: Fuse,
}

impl DrivenController {
    pub(crate) fn build(class: &Arc<OwnClass>, values: &[f64], random: Random) -> Box<dyn CongestionControl> {
        let mut made = DrivenController {
            class: Arc::clone(class),
            name: interned(&class.name),
            base: None,
            hooks: Bindings::none(),
            reno: NewReno::new(NewRenoConfig::default()),
            window: NewReno::new(NewRenoConfig::default()).window(),
            now: Time::ZERO,
            fuse: Fuse::default(),
        };
        Python::attach(|py| {
            if let Err(error) = made.make(py, values, random) {
                made.fuse.raised(py, Time::ZERO, &made.of(), "__init__", error);
            }
        });
        made.reload();
        Box::new(made)
    }

    fn make(&mut self, py: Python<'_>, values: &[f64], random: Random) -> PyResult<()> {
        let instance = self.class.instance(py, values, |made| {
            made.cast::<controller::PyCongestionControl>()?.get().seed(random);
            Ok(())
        })?;
        self.hooks = Bindings::of(&instance, &HOOKS, |name| self.class.has(name))?;
        self.base = Some(instance.cast_into::<controller::PyCongestionControl>()?.unbind());
        Ok(())
    }

    fn of(&self) -> String {
        format!("the congestion controller `{}`", self.name)
    }

    /// The method that overrides a hook, unless the instance has failed.
    #[inline]
    fn overridden(&self, hook: usize) -> bool {
        self.hooks.get(hook).is_some() && !self.fuse.is_blown()
    }

    /// Calls the built-in controller, for a hook that no method overrides.
    fn native<T>(&mut self, f: impl FnOnce(&mut NewReno) -> T) -> T {
        let (given, window) = match &self.base {
            Some(base) => base.get().with(|reno| (f(reno), reno.window())),
            None => (f(&mut self.reno), self.reno.window()),
        };
        self.window = window;
        given
    }

    fn reload(&mut self) {
        self.native(|_| ());
    }

    /// Calls a method; what it gives is read by `read`.
    fn call<A, T>(
        &self,
        number: usize,
        args: impl FnOnce(Python<'_>) -> PyResult<A>,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T>
    where
        A: for<'py> PyCallArgs<'py>,
    {
        Python::attach(|py| {
            let method = self.hooks.get(number)?.bind(py);
            let called = args(py).and_then(|args| method.call1(args)).and_then(|given| read(&given));
            match called {
                Ok(given) => Some(given),
                Err(error) => {
                    self.fuse.raised(py, self.now, &self.of(), HOOKS[number], error);
                    None
                }
            }
        })
    }

    /// Calls a method that may change the window.
    fn react<A, T>(
        &mut self,
        number: usize,
        f: &Flight,
        args: impl FnOnce(Python<'_>) -> PyResult<A>,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T>
    where
        A: for<'py> PyCallArgs<'py>,
    {
        self.now = f.now;
        let before = self.window;
        let given = self.call(number, args, read);
        self.reload();
        if self.window != before && self.window.cwnd < f.segment() && !self.fuse.is_blown() {
            let (cwnd, segment) = (self.window.cwnd, f.segment());
            let name = HOOKS[number];
            let what =
                format!("{}: {name} has set a window of {cwnd} bytes, less than a segment of {segment}", self.of());
            self.fuse.blow(f.now, what);
        }
        given
    }
}

/// Whatever a method gives that is asked for nothing.
#[inline]
fn nothing(_: &Bound<'_, PyAny>) -> PyResult<()> {
    Ok(())
}

fn verdict(given: &Bound<'_, PyAny>) -> PyResult<Verdict> {
    if given.is_none() {
        return Ok(Verdict::Continue);
    }
    match given.cast::<objects::Verdict>() {
        Ok(verdict) => Ok((*verdict.get()).into()),
        Err(_) => Err(PyTypeError::new_err(format!("on_ack: expected None or a Verdict, found {}", given.repr()?))),
    }
}

fn rate(given: &Bound<'_, PyAny>) -> PyResult<Option<Rate>> {
    if given.is_none() {
        return Ok(None);
    }
    let expected = || format!("pacing_rate: expected None or whole bit/s above zero, found {given:?}");
    let bps = given.extract::<u64>().map_err(|_| PyTypeError::new_err(expected()))?;
    Rate::from_bps(bps).map(Some).ok_or_else(|| PyValueError::new_err(expected()))
}

impl CongestionControl for DrivenController {
    fn name(&self) -> &'static str {
        self.name
    }

    fn window(&self) -> Window {
        self.window
    }

    fn needs(&self) -> Needs {
        self.class.needs
    }

    fn pacing_rate(&self, f: &Flight) -> Option<Rate> {
        if !self.overridden(hook::PACING_RATE) {
            return None;
        }
        self.call(hook::PACING_RATE, |py| Ok((Py::new(py, objects::Flight(*f))?,)), rate).flatten()
    }

    fn on_established(&mut self, f: &Flight) {
        if !self.overridden(hook::ESTABLISHED) {
            return self.native(|reno| reno.on_established(f));
        }
        self.react(hook::ESTABLISHED, f, |py| Ok((Py::new(py, objects::Flight(*f))?,)), nothing);
    }

    fn take_over(&mut self, window: Window) {
        if !self.overridden(hook::TAKE_OVER) {
            return self.native(|reno| reno.take_over(window));
        }
        self.call(hook::TAKE_OVER, |_| Ok((window.cwnd, window.ssthresh)), nothing);
        self.reload();
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        if !self.overridden(hook::ACK) {
            return self.native(|reno| reno.on_ack(f, ack));
        }
        // A class without the hook takes the sample from the ACK, and so does what it contains.
        let ack = Ack { sampled: ack.sampled && self.overridden(hook::SAMPLE), ..*ack };
        let args = |py: Python<'_>| Ok((Py::new(py, objects::Flight(*f))?, Py::new(py, objects::Ack(ack))?));
        self.react(hook::ACK, f, args, verdict).unwrap_or(Verdict::Continue)
    }

    fn on_sample(&mut self, f: &Flight, rtt: Span, cwnd: u64) {
        if self.overridden(hook::SAMPLE) {
            let args = |py: Python<'_>| Ok((Py::new(py, objects::Flight(*f))?, rtt.as_nanos(), cwnd));
            self.react(hook::SAMPLE, f, args, nothing);
        } else {
            self.native(|reno| reno.on_sample(f, rtt, cwnd));
        }
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        let hook = match signal {
            Signal::RecoveryEnd => hook::RECOVERY_END,
            Signal::IdleRestart => hook::IDLE_RESTART,
            _ => hook::SIGNAL,
        };
        if !self.overridden(hook) {
            return self.native(|reno| reno.on_signal(f, signal));
        }
        if hook == hook::SIGNAL {
            let args =
                |py: Python<'_>| Ok((Py::new(py, objects::Flight(*f))?, Py::new(py, objects::PySignal(signal))?));
            self.react(hook, f, args, nothing);
        } else {
            self.react(hook, f, |py| Ok((Py::new(py, objects::Flight(*f))?,)), nothing);
        }
    }

    fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
        if self.overridden(hook::ARRIVAL) {
            let args =
                |py: Python<'_>| Ok((Py::new(py, objects::Flight(*f))?, Py::new(py, objects::Arrival(*arrival))?));
            self.react(hook::ARRIVAL, f, args, nothing);
        } else {
            self.native(|reno| reno.on_arrival(f, arrival));
        }
        if let Some(round) = arrival.round
            && self.overridden(hook::ROUND)
        {
            self.react(hook::ROUND, f, |py| Ok((Py::new(py, objects::Flight(*f))?, round)), nothing);
        }
        if arrival.rtt.is_some() && self.overridden(hook::RTT_SAMPLE) {
            self.react(hook::RTT_SAMPLE, f, |py| Ok((Py::new(py, objects::Flight(*f))?,)), nothing);
        }
    }

    fn on_ecn(&mut self, feedback: EcnFeedback) {
        if !self.overridden(hook::ECN) {
            return self.native(|reno| reno.on_ecn(feedback));
        }
        self.call(hook::ECN, |_| Ok((objects::feedback(feedback),)), nothing);
        self.reload();
    }

    fn on_lost(&mut self, f: &Flight, lost: &Lost) {
        if !self.overridden(hook::LOST) {
            return self.native(|reno| reno.on_lost(f, lost));
        }
        let args = |py: Python<'_>| Ok((Py::new(py, objects::Flight(*f))?, Py::new(py, objects::Lost(*lost))?));
        self.react(hook::LOST, f, args, nothing);
    }

    fn on_sent(&mut self, f: &Flight, sent: &Sent) {
        if !self.overridden(hook::SENT) {
            return self.native(|reno| reno.on_sent(f, sent));
        }
        let args = |py: Python<'_>| Ok((Py::new(py, objects::Flight(*f))?, Py::new(py, objects::Sent(*sent))?));
        self.react(hook::SENT, f, args, nothing);
    }

    fn inspect(&self) -> Inspection<'_> {
        Inspection { failure: self.fuse.failure(), ..Inspection::default() }
    }

    fn coupled(&mut self) -> Option<&mut dyn Coupled> {
        Some(self)
    }
}

impl Coupled for DrivenController {
    fn couple(&mut self, own: usize, subflows: &[Subflow]) {
        if !self.overridden(hook::COUPLE) {
            return;
        }
        let args = |py: Python<'_>| {
            let of = |subflow: &Subflow| Py::new(py, objects::Subflow(*subflow));
            let listed = subflows.iter().map(of).collect::<PyResult<Vec<_>>>()?;
            Ok((own, PyList::new(py, listed)?.unbind()))
        };
        self.call(hook::COUPLE, args, nothing);
        self.reload();
    }
}
