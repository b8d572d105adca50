//! Queues in series: each feeds the next, and the last one the link.
//!
//! A packet that a queue gives out arrives at the next one at that time. All but the last hold
//! packets back to a rate of their own, or nothing would ever wait behind them: a shaper before the
//! buffer of a modem, for example.
//!
//! # Departures
//! - Linux has no such discipline: what is beyond a qdisc belongs to another device.
//! - The headers of a packet are shown to the first queue alone: a later `cake` takes each flow for a
//!   host of its own, and finds no ACKs to filter.
//! - What a later queue refuses counts as discarded after it was taken in, and is reported when the
//!   link asks next.
//! - At run time the parameters of queues change, not their kinds.

use std::any::Any;
use std::sync::Arc;

use ackclock_units::{Ecn, Random, Time, configuration};

use crate::change::{fixed, parameters, valid};
use crate::discipline::Discipline;
use crate::tree::LeafSpec;
use crate::{
    Books, ChangeError, ClassState, Counters, Dequeue, DropReason, Dropped, Drops, Entry, Headers, Probe, QueueDisc,
    Queued, Variable,
};

/// The most queues.
const MAX_QUEUES: usize = 16;

/// A queue of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage<Q> {
    /// Its name.
    pub name: Arc<str>,
    /// Its discipline.
    pub queue: Q,
}

configuration! {
/// Queues in series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesConfig<Q: LeafSpec> {
    /// The queues in their order. Default: one, a `pfifo`.
    pub stages: Vec<Stage<Q>> = vec![Stage { name: "queue".into(), queue: Q::plain() }];
} problem
}

impl<Q: LeafSpec> Discipline for SeriesConfig<Q> {
    fn marks(&self) -> bool {
        self.stages.iter().any(|stage| stage.queue.marks())
    }
}

impl<Q: LeafSpec> SeriesConfig<Q> {
    /// The problem with these queues, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        let Some((_, first)) = self.stages.split_last() else { return Some("a series has at least one queue") };
        let is_known =
            |(number, stage): (usize, &Stage<Q>)| self.stages[..number].iter().any(|of| of.name == stage.name);
        if self.stages.len() > MAX_QUEUES {
            Some("a series has at most 16 queues")
        } else if self.stages.iter().enumerate().any(is_known) {
            Some("two queues of a series have the same name")
        } else if self.stages.iter().any(|stage| stage.queue.is_series()) {
            Some("a queue of a series is no series")
        } else if let Some(problem) = self.stages.iter().find_map(|stage| stage.queue.problem()) {
            Some(problem)
        } else if first.iter().any(|stage| !stage.queue.holds_back()) {
            Some("nothing waits behind a queue that has no rate of its own: only the last may be no shaper")
        } else {
            None
        }
    }
}

/// A packet as the queues of a series see it; it waits in a slot of the series.
#[derive(Clone, Copy, Debug)]
struct Carried {
    slot: u32,
    wire_len: u32,
    ecn: Ecn,
    dscp: u8,
    is_pure_ack: bool,
    flow_hash: u64,
    host_hashes: [u64; 2],
}

impl Queued for Carried {
    fn wire_len(&self) -> u32 {
        self.wire_len
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }

    fn flow_hash(&self) -> u64 {
        self.flow_hash
    }

    fn host_hashes(&self) -> [u64; 2] {
        self.host_hashes
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

/// Where packets are while they are in the queues.
#[derive(Debug)]
struct Slots<P> {
    entries: Vec<Option<Entry<P>>>,
    free: Vec<u32>,
}

impl<P: Queued> Slots<P> {
    fn put(&mut self, entry: Entry<P>) -> Carried {
        let packet = &entry.packet;
        let mut carried = Carried {
            slot: 0,
            wire_len: packet.wire_len(),
            ecn: packet.ecn(),
            dscp: packet.dscp(),
            is_pure_ack: packet.is_pure_ack(),
            flow_hash: packet.flow_hash(),
            host_hashes: packet.host_hashes(),
        };
        carried.slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = Some(entry);
                slot
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() as u32 - 1
            }
        };
        carried
    }

    fn peek(&self, carried: &Carried) -> Option<&Entry<P>> {
        self.entries.get(carried.slot as usize)?.as_ref()
    }

    /// Takes a packet out, as the queues have left it.
    fn take(&mut self, carried: &Carried) -> Option<Entry<P>> {
        let mut entry = self.entries.get_mut(carried.slot as usize)?.take()?;
        self.free.push(carried.slot);
        if carried.ecn == Ecn::Ce && entry.packet.ecn() != Ecn::Ce {
            entry.packet.set_ce();
        }
        if carried.dscp != entry.packet.dscp() {
            entry.packet.wash();
        }
        Some(entry)
    }
}

/// A queue at work.
#[derive(Debug)]
struct Working {
    queue: Box<dyn QueueDisc<Carried>>,
    /// The time at which it is to be asked; not that of the last one, which the link asks.
    due: Time,
}

/// Queues in series.
#[derive(Debug)]
pub struct Series<P, Q: LeafSpec> {
    config: SeriesConfig<Q>,
    stages: Vec<Working>,
    slots: Slots<P>,
    /// What the queues have just discarded.
    dropped: Drops<Carried>,
    books: Books,
}

impl<P: Queued, Q: LeafSpec> Series<P, Q> {
    /// Empty queues, which draw from streams of `random`.
    ///
    /// # Panics
    /// If the configuration has a [`SeriesConfig::problem`].
    pub fn new(config: SeriesConfig<Q>, random: Random) -> Series<P, Q> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        let seed = random.clone().bits();
        let working = |(number, stage): (usize, &Stage<Q>)| Working {
            queue: stage.queue.build(Random::for_component(seed, number as u64, "stage")),
            due: Time::NEVER,
        };
        Series {
            stages: config.stages.iter().enumerate().map(working).collect(),
            config,
            slots: Slots { entries: Vec::new(), free: Vec::new() },
            dropped: Drops::new(),
            books: Books::default(),
        }
    }

    fn last(&self) -> usize {
        self.stages.len() - 1
    }

    /// Calls a queue, and books what it marks and discards. `arriving` is a packet that comes to the
    /// series with the call.
    fn call<T>(
        &mut self,
        number: usize,
        arriving: Option<Carried>,
        drops: &mut Drops<P>,
        call: impl FnOnce(&mut dyn QueueDisc<Carried>, &mut Drops<Carried>) -> T,
    ) -> T {
        let queue = &mut self.stages[number].queue;
        let before = *queue.counters();
        let result = call(&mut **queue, &mut self.dropped);
        let after = *queue.counters();
        let refused = arriving.filter(|_| after.dropped_on_enqueue != before.dropped_on_enqueue);
        if let (Some(packet), None) = (arriving, refused) {
            self.books.admit(packet.wire_len);
        }
        if after.marked != before.marked {
            let marked = after.marked.since(before.marked);
            self.books.follow(&Counters::default(), &Counters { marked, ..Counters::default() });
        }
        for Dropped { packet, reason } in self.dropped.drain(..) {
            let Some(entry) = self.slots.take(&packet) else { continue };
            if refused.is_some_and(|refused| refused.slot == packet.slot) {
                self.books.refuse(entry.packet, reason, drops);
            } else {
                self.books.take(packet.wire_len);
                self.books.discard(entry.packet, reason, drops);
            }
        }
        result
    }

    /// Every queue but the last gives out what is due until `now`, each packet at its time.
    fn advance(&mut self, now: Time, drops: &mut Drops<P>) {
        loop {
            // Of several at a time the last comes first, and makes room for the one before it.
            let waiting = self.stages[..self.last()].iter().enumerate().rev();
            let Some((number, at)) = waiting.map(|(number, stage)| (number, stage.due)).min_by_key(|&(_, at)| at)
            else {
                return;
            };
            if at > now || at == Time::NEVER {
                return;
            }
            match self.call(number, None, drops, |queue, dropped| queue.dequeue(at, dropped)) {
                Dequeue::Packet(Entry { packet, .. }) => {
                    self.call(number + 1, None, drops, |queue, dropped| queue.enqueue(at, packet, dropped));
                    if number + 1 < self.last() {
                        self.stages[number + 1].due = at;
                    }
                }
                Dequeue::NotBefore(later) => self.stages[number].due = later,
                Dequeue::Empty => {
                    self.stages[number].due = Time::NEVER;
                    self.stages[number].queue.idle(at);
                }
            }
        }
    }

    /// The next time at which a queue gives a packet to another.
    fn next_due(&self) -> Time {
        self.stages[..self.last()].iter().map(|stage| stage.due).min().unwrap_or(Time::NEVER)
    }
}

impl<P: Queued + Send, Q: LeafSpec + Send> QueueDisc<P> for Series<P, Q> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        self.advance(now, drops);
        let packet = self.slots.put(Entry { packet, enqueued_at: now });
        self.call(0, Some(packet), drops, |queue, dropped| queue.enqueue(now, packet, dropped));
        self.stages[0].due = now;
    }

    fn looks(&self) -> bool {
        self.stages[0].queue.looks()
    }

    fn look(&mut self, headers: Headers<'_>) {
        self.stages[0].queue.look(headers);
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Dequeue<P> {
        self.advance(now, drops);
        let last = self.last();
        match self.call(last, None, drops, |queue, dropped| queue.dequeue(now, dropped)) {
            Dequeue::Packet(Entry { packet, .. }) => {
                self.books.take(packet.wire_len);
                self.books.release(packet.wire_len);
                self.slots.take(&packet).map_or(Dequeue::Empty, Dequeue::Packet)
            }
            Dequeue::NotBefore(later) => Dequeue::NotBefore(later.min(self.next_due())),
            Dequeue::Empty if self.books.backlog().packets == 0 => Dequeue::Empty,
            Dequeue::Empty => {
                self.stages[last].queue.idle(now);
                Dequeue::NotBefore(self.next_due())
            }
        }
    }

    fn idle(&mut self, now: Time) {
        let last = self.last();
        self.stages[last].queue.idle(now);
    }

    /// Other parameters of the queues at run time, each as the queue itself changes.
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<SeriesConfig<Q>>(config)?.clone();
        let same =
            |(one, other): (&Stage<Q>, &Stage<Q>)| one.name == other.name && one.queue.name() == other.queue.name();
        let old = &self.config.stages;
        let is_other = config.stages.len() != old.len() || !config.stages.iter().zip(old).all(same);
        fixed("the queues of a series", is_other)?;
        valid(config.problem())?;
        self.advance(now, drops);
        for number in 0..self.stages.len() {
            let (new, old) = (&config.stages[number].queue, &self.config.stages[number].queue);
            if new == old {
                continue;
            }
            let changed = self.call(number, None, drops, |queue, dropped| queue.change(now, new.config(), dropped));
            if let Err(error) = changed {
                // Those before it are as they were.
                for earlier in 0..number {
                    let old = self.config.stages[earlier].queue.clone();
                    let back =
                        self.call(earlier, None, drops, |queue, dropped| queue.change(now, old.config(), dropped));
                    debug_assert!(back.is_ok(), "a queue takes the parameters that it had: {back:?}");
                }
                return Err(error);
            }
            self.stages[number].due = if number < self.last() { now } else { Time::NEVER };
        }
        self.config = config;
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        let first = self.stages.iter().rev().find_map(|stage| stage.queue.peek())?;
        self.slots.peek(&first.packet)
    }

    fn books(&self) -> &Books {
        &self.books
    }

    /// That of the last queue.
    fn probe(&self) -> Probe {
        self.stages[self.last()].queue.probe()
    }

    /// Those of the last queue.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        self.stages[self.last()].queue.variables(see);
    }

    fn classes(&self, see: &mut dyn FnMut(ClassState<'_>)) {
        for (Stage { name, .. }, Working { queue, .. }) in self.config.stages.iter().zip(&self.stages) {
            let probability = queue.probe().probability;
            see(ClassState { name, rate: None, counters: queue.counters(), backlog: queue.backlog(), probability });
        }
    }

    fn purge(&mut self, _now: Time, drops: &mut Drops<P>) {
        let waiting = self.slots.entries.iter_mut().filter_map(Option::take);
        drops.extend(waiting.map(|entry| Dropped { packet: entry.packet, reason: DropReason::Purge }));
    }
}

#[cfg(test)]
mod tests;
