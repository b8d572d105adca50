//! Queue disciplines from outside: any [`QueueDisc`] of [`Described`] packets.
//!
//! [`OutsideQueue`] stands between such a discipline and its link. It holds the packets themselves
//! and keeps the books: whatever the discipline does, each packet offered ends exactly once,
//! dequeued or dropped. A discipline that breaks this rule, or another one of [`QueueDisc`], has
//! failed ([`QueueDisc::failure`]): it is not called any more, and its packets leave in order of
//! arrival.

use std::any::Any;
use std::fmt;
use std::ops::RangeInclusive;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use ackclock_units::outside::{Failure, OwnParameter, interned};
use ackclock_units::parameter::{Configurable, Domain, Visitor};
use ackclock_units::{Ecn, Random, Time};

use crate::books::Books;
use crate::change::parameters;
use crate::discipline::Discipline;
use crate::held::Held;
use crate::{ChangeError, Dequeue, DropReason, Dropped, Drops, Entry, Headers, Probe, QueueDisc, Queued, Variable};

/// Makes an empty queue.
type Build = dyn Fn(&[f64], Random) -> Box<dyn QueueDisc<Described>> + Send + Sync;

/// The description of a packet that a discipline from outside gets instead of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// The packet's number in this queue, in order of arrival, from 0.
    pub number: u64,
    /// Bytes that it occupies in the queue.
    pub bytes: u32,
    /// Its codepoint when it arrived.
    pub ecn: Ecn,
    /// A hash of its flow.
    pub flow: u64,
    /// Hashes of the sending and of the receiving host.
    pub hosts: [u64; 2],
    /// Its differentiated services codepoint; 0 once the discipline has washed it.
    pub dscp: u8,
    /// It is a TCP segment that acknowledges and carries neither payload nor SYN, FIN or RST.
    pub is_pure_ack: bool,
    /// The discipline has marked it.
    pub marked: bool,
    /// Its place in the store; places of packets that have left are reused.
    pub(crate) slot: u32,
}

impl Described {
    pub(crate) fn of(packet: &impl Queued, number: u64, slot: u32) -> Described {
        Described {
            number,
            bytes: packet.wire_len(),
            ecn: packet.ecn(),
            flow: packet.flow_hash(),
            hosts: packet.host_hashes(),
            dscp: packet.dscp(),
            is_pure_ack: packet.is_pure_ack(),
            marked: false,
            slot,
        }
    }

    /// A number that no other packet in the queue has at the same time, below the largest number of
    /// packets that have waited together.
    pub fn slot(&self) -> usize {
        self.slot as usize
    }
}

impl Queued for Described {
    fn wire_len(&self) -> u32 {
        self.bytes
    }

    fn ecn(&self) -> Ecn {
        if self.marked { Ecn::Ce } else { self.ecn }
    }

    fn set_ce(&mut self) {
        self.marked = true;
    }

    fn flow_hash(&self) -> u64 {
        self.flow
    }

    fn host_hashes(&self) -> [u64; 2] {
        self.hosts
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn wash(&mut self) {
        self.dscp = 0;
    }

    fn is_pure_ack(&self) -> bool {
        self.is_pure_ack
    }
}

/// A queue discipline that is not of ackclock's own, under a name of its own in scenarios.
#[derive(Clone)]
pub struct OwnQueue {
    name: &'static str,
    parameters: Vec<OwnParameter>,
    changes: bool,
    build: Arc<Build>,
}

// A specification outlives a run that panics; what `build` has made for it does not.
impl UnwindSafe for OwnQueue {}
impl RefUnwindSafe for OwnQueue {}

impl OwnQueue {
    /// A discipline called `name`, which is not the name of another one. `build` makes an empty
    /// queue, from the values of its parameters in their order, and a stream for what it decides by
    /// chance.
    pub fn new(
        name: &str,
        build: impl Fn(&[f64], Random) -> Box<dyn QueueDisc<Described>> + Send + Sync + 'static,
    ) -> OwnQueue {
        OwnQueue { name: interned(name), parameters: Vec::new(), changes: false, build: Arc::new(build) }
    }

    /// One more number that a scenario may set, as a key beside `kind`: its default, and the values
    /// that it may have. One called `limit` is taken for a number of packets when the memory of a
    /// run is estimated.
    #[must_use]
    pub fn parameter(mut self, name: &str, default: f64, range: RangeInclusive<f64>) -> OwnQueue {
        self.parameters.push(OwnParameter::new(name, default, range));
        self
    }

    /// Its parameters may change at run time: it implements [`QueueDisc::change`], whose
    /// configuration is an [`OwnQueueConfig`], and accepts all values in range.
    #[must_use]
    pub fn changes(mut self) -> OwnQueue {
        self.changes = true;
        self
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[OwnParameter] {
        &self.parameters
    }
}

impl PartialEq for OwnQueue {
    /// Names are unique.
    fn eq(&self, other: &OwnQueue) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for OwnQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OwnQueue { name, parameters, changes, build: _ } = self;
        let mut shown = f.debug_struct("OwnQueue");
        shown.field("name", name).field("parameters", parameters).field("changes", changes).finish()
    }
}

/// A discipline from outside with a value for each of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnQueueConfig {
    queue: Arc<OwnQueue>,
    values: Vec<f64>,
}

impl OwnQueueConfig {
    /// The discipline out of the box.
    pub fn new(queue: Arc<OwnQueue>) -> OwnQueueConfig {
        let values = queue.parameters.iter().map(|of| of.default).collect();
        OwnQueueConfig { queue, values }
    }

    /// The values of the parameters, in their order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    pub(crate) fn name(&self) -> &'static str {
        self.queue.name
    }

    /// Why its parameters cannot change at run time, if they cannot.
    pub fn fixed(&self) -> Option<ChangeError> {
        (!self.queue.changes).then_some(ChangeError::OwnIsFixed)
    }

    pub(crate) fn build<P: Queued + Send + 'static>(&self, random: Random) -> OutsideQueue<P> {
        OutsideQueue::new(self.queue.name, (self.queue.build)(&self.values, random))
    }
}

impl Configurable for OwnQueueConfig {
    fn parameters(&mut self, v: &mut impl Visitor) {
        for (of, value) in self.queue.parameters.iter().zip(&mut self.values) {
            v.parameter(of.name, Domain::Number(of.min, of.max, ""), self.queue.name, value);
        }
    }
}

impl Discipline for OwnQueueConfig {
    /// Nobody knows of one from outside.
    fn marks(&self) -> bool {
        true
    }
}

/// Holds the packets of a discipline from outside, keeps its books, and holds it to the rules.
#[derive(Debug)]
pub(crate) struct OutsideQueue<P> {
    name: &'static str,
    inner: Box<dyn QueueDisc<Described>>,
    held: Held<P>,
    books: Books,
    /// Packets that the discipline dropped in its last call; empty between calls.
    dropped: Drops<Described>,
    /// The hosts of the packet that comes next, if they are known.
    hosts: Option<[u64; 2]>,
    failure: Option<Failure>,
}

/// The most consecutive `NotBefore`s of a discipline while its packets are counted.
const PATIENCE: usize = 10_000;

impl<P: Queued> OutsideQueue<P> {
    fn new(name: &'static str, inner: Box<dyn QueueDisc<Described>>) -> OutsideQueue<P> {
        let (held, books) = (Held::new(), Books::default());
        OutsideQueue { name, inner, held, books, dropped: Drops::new(), hosts: None, failure: None }
    }

    #[cold]
    fn fail(&mut self, now: Time, what: &str) {
        let what = format!("the queue discipline `{}` {what}", self.name);
        self.failure.get_or_insert_with(|| Failure::new(now, what));
    }

    /// Books what the discipline has dropped. Tells why it refused the packet with the number
    /// `new`, if it did.
    fn settle(&mut self, now: Time, new: Option<u64>, drops: &mut Drops<P>) -> Option<(Entry<P>, DropReason)> {
        let mut refused = None;
        for index in 0..self.dropped.len() {
            let (packet, reason) = (self.dropped[index].packet, self.dropped[index].reason);
            match self.held.take(packet.slot, packet.number) {
                Some(entry) if new == Some(packet.number) => refused = Some((entry, reason)),
                Some(entry) => {
                    self.books.take(entry.packet.wire_len());
                    self.books.discard(entry.packet, reason, drops);
                }
                None => self.fail(now, &format!("drops packet {}, which it no longer has", packet.number)),
            }
        }
        self.dropped.clear();
        refused
    }

    /// Looks for what no call shows by itself.
    fn check(&mut self, now: Time) {
        if self.failure.is_some() {
            return;
        }
        if let Some(failure) = self.inner.failure() {
            self.failure = Some(failure.clone());
        } else if self.inner.backlog().packets != self.held.len() {
            let (says, has) = (self.inner.backlog().packets, self.held.len());
            self.fail(
                now,
                &format!("says that {says} packets wait, of {has} that it has neither given out nor dropped"),
            );
        }
    }

    /// The oldest packet, whatever the discipline has done with it.
    fn oldest(&mut self) -> Dequeue<P> {
        let Some(entry) = self.held.take_oldest() else { return Dequeue::Empty };
        let bytes = entry.packet.wire_len();
        self.books.take(bytes);
        self.books.release(bytes);
        Dequeue::Packet(entry)
    }

    /// The packet itself that the discipline gives out.
    fn given_out(&mut self, now: Time, packet: Described) -> Dequeue<P> {
        let Some(mut entry) = self.held.take(packet.slot, packet.number) else {
            self.fail(now, &format!("gives out packet {}, which it no longer has", packet.number));
            return self.oldest();
        };
        if packet.marked && !self.books.mark(&mut entry.packet) {
            self.fail(
                now,
                &format!("marks packet {}, which cannot carry a mark: it is not ECN-capable", packet.number),
            );
        }
        if packet.dscp != entry.packet.dscp() {
            entry.packet.wash();
        }
        let bytes = entry.packet.wire_len();
        self.books.take(bytes);
        self.books.release(bytes);
        Dequeue::Packet(entry)
    }

    fn lost(&mut self, now: Time) {
        let waiting = self.held.len();
        let Some((number, entry)) = self.held.oldest() else { return };
        let since = entry.enqueued_at.since(Time::ZERO).as_secs_f64();
        let what = format!(
            "says that nothing waits, of {waiting} packets that it has neither given out nor dropped; the oldest is \
             packet {number}, which arrived at {since:.9} s"
        );
        self.fail(now, &what);
    }
}

impl<P: Queued + Send> QueueDisc<P> for OutsideQueue<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let bytes = packet.wire_len();
        let (number, slot) = self.held.next();
        let mut described = Described::of(&packet, number, slot);
        described.hosts = self.hosts.take().unwrap_or(described.hosts);
        self.held.put(Entry { packet, enqueued_at: now });
        if self.failure.is_some() {
            self.books.admit(bytes);
            return;
        }
        self.inner.enqueue(now, described, &mut self.dropped);
        let mut refused = None;
        if self.dropped.is_empty() {
            self.books.admit(bytes);
        } else {
            // It counts as taken in unless it is among those.
            if !self.dropped.iter().any(|drop| drop.packet.number == number) {
                self.books.admit(bytes);
            }
            refused = self.settle(now, Some(number), drops);
        }
        if let Some((entry, reason)) = refused {
            self.books.refuse(entry.packet, reason, drops);
        }
        self.check(now);
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Dequeue<P> {
        if self.failure.is_some() {
            return self.oldest();
        }
        let dequeued = self.inner.dequeue(now, &mut self.dropped);
        if !self.dropped.is_empty() {
            self.settle(now, None, drops);
        }
        let given = match dequeued {
            Dequeue::Packet(entry) => self.given_out(now, entry.packet),
            Dequeue::Empty => {
                if let Some(failure) = self.inner.failure() {
                    self.failure.get_or_insert_with(|| failure.clone());
                }
                self.lost(now);
                self.oldest()
            }
            Dequeue::NotBefore(time) if time > now && self.held.len() > 0 => Dequeue::NotBefore(time),
            Dequeue::NotBefore(_) => {
                self.fail(now, "holds packets back until a time that is not later than now, or has none");
                self.oldest()
            }
        };
        self.check(now);
        given
    }

    fn looks(&self) -> bool {
        true
    }

    fn look(&mut self, headers: Headers<'_>) {
        self.hosts = Some(headers.hosts);
        if self.inner.looks() && self.failure.is_none() {
            self.inner.look(headers);
        }
    }

    fn idle(&mut self, now: Time) {
        if self.failure.is_none() {
            self.inner.idle(now);
            self.check(now);
        }
    }

    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<OwnQueueConfig>(config)?;
        if config.queue.name != self.name {
            return Err(ChangeError::OtherDiscipline);
        }
        if let Some(why) = config.fixed() {
            return Err(why);
        }
        if self.failure.is_some() {
            return Ok(());
        }
        let changed = self.inner.change(now, config, &mut self.dropped);
        self.settle(now, None, drops);
        self.check(now);
        changed
    }

    fn peek(&self) -> Option<&Entry<P>> {
        let first = self.inner.peek().filter(|_| self.failure.is_none());
        let first = first.and_then(|entry| self.held.get(entry.packet.slot, entry.packet.number));
        first.or_else(|| self.held.oldest().map(|(_, entry)| entry))
    }

    fn books(&self) -> &Books {
        &self.books
    }

    fn probe(&self) -> Probe {
        if self.failure.is_some() { Probe::default() } else { self.inner.probe() }
    }

    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        if self.failure.is_none() {
            self.inner.variables(see);
        }
    }

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    fn purge(&mut self, now: Time, drops: &mut Drops<P>) {
        self.audit(now);
        let purged = self.held.take_all().into_iter();
        drops.extend(purged.map(|entry| Dropped { packet: entry.packet, reason: DropReason::Purge }));
    }

    /// Takes everything out of the discipline, so that what it has lost is found although other
    /// packets have always waited. The packets themselves and the books stay.
    fn audit(&mut self, now: Time) {
        let (mut at, mut out, mut patience) = (now, 0, PATIENCE);
        let waiting = self.held.len();
        let mut seen = vec![false; self.held.slots()];
        while self.failure.is_none() {
            let dequeued = self.inner.dequeue(at, &mut self.dropped);
            let given = dequeued.packet().map(|entry| entry.packet);
            for packet in self.dropped.drain(..).map(|drop| drop.packet).chain(given) {
                let known = self.held.get(packet.slot, packet.number).is_some();
                if !known || std::mem::replace(&mut seen[packet.slot()], true) {
                    let what = format!("the queue discipline `{}` gives out packet {} twice", self.name, packet.number);
                    self.failure.get_or_insert_with(|| Failure::new(now, what));
                }
                out += 1;
            }
            match dequeued {
                Dequeue::Packet(_) => {}
                Dequeue::NotBefore(time) if time > at && patience > 0 => (at, patience) = (time, patience - 1),
                // It may hold them back for ever.
                Dequeue::NotBefore(_) => return,
                Dequeue::Empty => break,
            }
        }
        if let Some(failure) = self.inner.failure() {
            self.failure.get_or_insert_with(|| failure.clone());
        } else if out < waiting {
            let lost = self.held.all().find(|&(slot, ..)| !seen[slot]);
            let number = lost.map_or(0, |(_, number)| number);
            self.fail(
                now,
                &format!(
                    "has lost {} packets, first packet {number}: they were neither given out nor dropped",
                    waiting - out
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests;
