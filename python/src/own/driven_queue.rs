//! A queue discipline of a run whose hooks are those of an instance of Python. The packets and the
//! books are with `aqm`, which holds it to the rules.

use std::sync::Arc;

use ackclock_aqm::{
    Backlog, Books, ChangeError, Dequeue, Described, DropReason, Dropped, Drops, Entry, OwnQueueConfig, Probe,
    QueueDisc,
};
use ackclock_units::outside::Failure;
use ackclock_units::{Random, Span, Time};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyMapping;

use super::calls::{Bindings, Fuse};
use super::class::OwnClass;
use super::objects::nanos;
use super::packet::{NotBefore, PyPacket};
use super::queue::{self, HOOKS, hook};

/// An instance in a run.
#[derive(Debug)]
pub(crate) struct DrivenQueue {
    class: Arc<OwnClass>,
    /// The instance, as its base class; `None` if it could not be made.
    base: Option<Py<queue::PyQueueDisc>>,
    hooks: Bindings<{ HOOKS.len() }>,
    /// Packets by their slots, for [`QueueDisc::peek`].
    entries: Vec<Entry<Described>>,
    /// Packets that it has neither dequeued nor dropped.
    waiting: u64,
    /// Empty: the books are `aqm`'s.
    books: Books,
    now: Time,
    fuse: Fuse,
}

/// The result of `dequeue`.
enum Given {
    Packet(Described, Time),
    NotBefore(Time),
    Empty,
}

impl DrivenQueue {
    pub(crate) fn build(class: &Arc<OwnClass>, values: &[f64], random: Random) -> Box<dyn QueueDisc<Described>> {
        let mut made = DrivenQueue {
            class: Arc::clone(class),
            base: None,
            hooks: Bindings::none(),
            entries: Vec::new(),
            waiting: 0,
            books: Books::default(),
            now: Time::ZERO,
            fuse: Fuse::default(),
        };
        Python::attach(|py| {
            if let Err(error) = made.make(py, values, random) {
                made.fuse.raised(py, Time::ZERO, &made.of(), "__init__", error);
            }
        });
        Box::new(made)
    }

    fn make(&mut self, py: Python<'_>, values: &[f64], random: Random) -> PyResult<()> {
        let instance = self.class.instance(py, values, |made| {
            made.cast::<queue::PyQueueDisc>()?.get().seed(random);
            Ok(())
        })?;
        // These are called in any case, the base class's own where nothing overrides them.
        let always = |name: &str| name == "enqueue" || name == "dequeue" || self.class.has(name);
        self.hooks = Bindings::of(&instance, &HOOKS, always)?;
        self.base = Some(instance.cast_into::<queue::PyQueueDisc>()?.unbind());
        Ok(())
    }

    fn of(&self) -> String {
        format!("the queue discipline `{}`", self.class.name)
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
        if self.fuse.is_blown() {
            return None;
        }
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

    /// Hands on what the last call has dropped.
    fn settle(&mut self, drops: &mut Drops<Described>) {
        let Some(base) = &self.base else { return };
        let dropped = base.get().take_dropped();
        if dropped.is_empty() {
            return;
        }
        self.waiting = self.waiting.saturating_sub(dropped.len() as u64);
        Python::attach(|_| {
            drops.extend(dropped.into_iter().map(|(packet, reason): (Py<PyPacket>, DropReason)| Dropped {
                packet: packet.get().described(),
                reason,
            }));
        });
    }
}

fn given(given: &Bound<'_, PyAny>) -> PyResult<Given> {
    if given.is_none() {
        return Ok(Given::Empty);
    }
    if let Ok(packet) = given.cast::<PyPacket>() {
        return Ok(Given::Packet(packet.get().described(), packet.get().arrived()));
    }
    match given.cast::<NotBefore>() {
        Ok(time) => Ok(Given::NotBefore(Time::from_nanos(time.get().0))),
        Err(_) => {
            let found = given.repr()?;
            Err(PyTypeError::new_err(format!("dequeue: expected a Packet, NotBefore(...) or None, found {found}")))
        }
    }
}

fn probe(given: &Bound<'_, PyAny>) -> PyResult<Probe> {
    let mut probe = Probe::default();
    let given = given.cast::<PyMapping>().map_err(|_| PyTypeError::new_err("probe: expected a dict"))?;
    for item in given.items()?.iter() {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        if value.is_none() {
            continue;
        }
        let number = || -> PyResult<f64> {
            let number: f64 = value.extract()?;
            if number.is_finite() {
                Ok(number)
            } else {
                Err(PyValueError::new_err(format!("probe: {name} is {number}")))
            }
        };
        match &*name {
            "probability" => probe.probability = Some(number()?),
            "average" => probe.average = Some(number()?),
            "delay" => probe.delay = Some(Span::from_nanos(value.extract()?)),
            "dropping" => probe.dropping = Some(value.extract()?),
            _ => {
                let known = "probability, average, delay, dropping";
                return Err(PyValueError::new_err(format!("probe: expected {known}, found {name:?}")));
            }
        }
    }
    Ok(probe)
}

fn nothing(_: &Bound<'_, PyAny>) -> PyResult<()> {
    Ok(())
}

impl QueueDisc<Described> for DrivenQueue {
    fn enqueue(&mut self, now: Time, packet: Described, drops: &mut Drops<Described>) {
        self.now = now;
        self.waiting += 1;
        if self.hooks.get(hook::PEEK).is_some() {
            let entry = Entry { packet, enqueued_at: now };
            match self.entries.get_mut(packet.slot()) {
                Some(place) => *place = entry,
                None => self.entries.push(entry),
            }
        }
        self.call(hook::ENQUEUE, |py| Ok((nanos(now), Py::new(py, PyPacket::new(packet, now))?)), nothing);
        self.settle(drops);
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<Described>) -> Dequeue<Described> {
        self.now = now;
        let taken = self.call(hook::DEQUEUE, |_| Ok((nanos(now),)), given);
        self.settle(drops);
        match taken {
            Some(Given::Packet(packet, enqueued_at)) => {
                self.waiting = self.waiting.saturating_sub(1);
                Dequeue::Packet(Entry { packet, enqueued_at })
            }
            Some(Given::NotBefore(time)) => Dequeue::NotBefore(time),
            Some(Given::Empty) | None => Dequeue::Empty,
        }
    }

    fn idle(&mut self, now: Time) {
        if self.hooks.get(hook::IDLE).is_some() {
            self.now = now;
            self.call(hook::IDLE, |_| Ok((nanos(now),)), nothing);
        }
    }

    fn change(
        &mut self,
        now: Time,
        config: &dyn std::any::Any,
        drops: &mut Drops<Described>,
    ) -> Result<(), ChangeError> {
        let config: &OwnQueueConfig = config.downcast_ref().ok_or(ChangeError::OtherDiscipline)?;
        self.now = now;
        Python::attach(|py| {
            let Some(base) = &self.base else { return };
            if let Err(error) = self.class.set(base.bind(py).as_any(), config.values()) {
                self.fuse.raised(py, now, &self.of(), HOOKS[hook::CHANGE], error);
            }
        });
        self.call(hook::CHANGE, |_| Ok((nanos(now),)), nothing);
        self.settle(drops);
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<Described>> {
        let read = |given: &Bound<'_, PyAny>| -> PyResult<Option<Described>> {
            if given.is_none() {
                return Ok(None);
            }
            let expected = || PyTypeError::new_err("peek: expected a Packet or None");
            Ok(Some(given.cast::<PyPacket>().map_err(|_| expected())?.get().described()))
        };
        self.hooks.get(hook::PEEK)?;
        let packet = self.call(hook::PEEK, |_| Ok(()), read).flatten()?;
        self.entries.get(packet.slot()).filter(|entry| entry.packet.number == packet.number)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.waiting, bytes: 0 }
    }

    fn books(&self) -> &Books {
        &self.books
    }

    fn probe(&self) -> Probe {
        match self.hooks.get(hook::PROBE) {
            Some(_) => self.call(hook::PROBE, |_| Ok(()), probe).unwrap_or_default(),
            None => Probe::default(),
        }
    }

    fn failure(&self) -> Option<&Failure> {
        self.fuse.failure()
    }
}
