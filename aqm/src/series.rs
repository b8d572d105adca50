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

use ackclock_units::{Random, Time, configuration};

use crate::change::{fixed, parameters, valid};
use crate::discipline::Discipline;
use crate::held::Held;
use crate::own::Described;
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

/// Takes a packet out, as the queues have left it.
fn take<P: Queued>(held: &mut Held<P>, described: &Described) -> Option<Entry<P>> {
    let mut entry = held.take(described.slot, described.number)?;
    if described.marked {
        entry.packet.set_ce();
    }
    if described.dscp != entry.packet.dscp() {
        entry.packet.wash();
    }
    Some(entry)
}

/// A queue at work.
#[derive(Debug)]
struct Working {
    queue: Box<dyn QueueDisc<Described>>,
    /// The time at which it is to be asked; not that of the last one, which the link asks.
    due: Time,
}

/// Queues in series.
#[derive(Debug)]
pub struct Series<P, Q: LeafSpec> {
    config: SeriesConfig<Q>,
    stages: Vec<Working>,
    /// The packets, of which the queues have descriptions.
    held: Held<P>,
    /// What the queues have just discarded.
    dropped: Drops<Described>,
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
            held: Held::new(),
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
        arriving: Option<Described>,
        drops: &mut Drops<P>,
        call: impl FnOnce(&mut dyn QueueDisc<Described>, &mut Drops<Described>) -> T,
    ) -> T {
        let queue = &mut self.stages[number].queue;
        let before = *queue.counters();
        let result = call(&mut **queue, &mut self.dropped);
        let after = *queue.counters();
        let refused = arriving.filter(|_| after.dropped_on_enqueue != before.dropped_on_enqueue);
        if let (Some(packet), None) = (arriving, refused) {
            self.books.admit(packet.bytes);
        }
        if after.marked != before.marked {
            let marked = after.marked.since(before.marked);
            self.books.follow(&Counters::default(), &Counters { marked, ..Counters::default() });
        }
        for Dropped { packet, reason } in self.dropped.drain(..) {
            let Some(entry) = take(&mut self.held, &packet) else { continue };
            if refused.is_some_and(|refused| refused.number == packet.number) {
                self.books.refuse(entry.packet, reason, drops);
            } else {
                self.books.take(packet.bytes);
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
        let (number, slot) = self.held.next();
        let described = Described::of(&packet, number, slot);
        self.held.put(Entry { packet, enqueued_at: now });
        self.call(0, Some(described), drops, |queue, dropped| queue.enqueue(now, described, dropped));
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
                self.books.take(packet.bytes);
                self.books.release(packet.bytes);
                take(&mut self.held, &packet).map_or(Dequeue::Empty, Dequeue::Packet)
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
        self.held.get(first.packet.slot, first.packet.number)
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
        let waiting = self.held.take_all().into_iter();
        drops.extend(waiting.map(|entry| Dropped { packet: entry.packet, reason: DropReason::Purge }));
    }
}

#[cfg(test)]
mod tests;
