//! Where packets wait, and the books about them.

use std::collections::VecDeque;

use ackclock_units::Time;

use crate::{Backlog, Counters, DropReason, Dropped, Drops, Entry, Queued, Tally};

/// A first-in first-out store that keeps the books: every way in and out of a discipline goes through it.
#[derive(Debug)]
pub struct Store<P> {
    waiting: VecDeque<Entry<P>>,
    backlog: Backlog,
    counters: Counters,
}

impl Tally {
    /// Counts one packet of `bytes` bytes.
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Takes one packet of `bytes` bytes back.
    pub fn remove(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

impl Counters {
    /// Books a packet that was offered and taken in.
    pub fn admit(&mut self, bytes: u32) {
        self.offered.add(bytes);
        self.enqueued.add(bytes);
    }

    /// Books a packet that was offered and refused.
    pub fn refuse(&mut self, bytes: u32, reason: DropReason) {
        self.offered.add(bytes);
        self.dropped_on_enqueue.add(bytes);
        self.dropped[reason as usize] += 1;
    }

    /// Books a packet that had been taken in and is discarded.
    pub fn discard(&mut self, bytes: u32, reason: DropReason) {
        self.dropped_on_dequeue.add(bytes);
        self.dropped[reason as usize] += 1;
    }

    /// Marks a packet CE and books it. `false`, and nothing done, if the packet cannot carry a mark.
    pub fn mark<P: Queued>(&mut self, packet: &mut P) -> bool {
        if !packet.ecn().is_capable() {
            return false;
        }
        packet.set_ce();
        self.marked.add(packet.wire_len());
        true
    }
}

impl<P: Queued> Store<P> {
    /// An empty store.
    pub fn new() -> Store<P> {
        Store { waiting: VecDeque::new(), backlog: Backlog::default(), counters: Counters::default() }
    }

    /// What waits.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The books.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The packet that leaves next.
    pub fn head(&self) -> Option<&Entry<P>> {
        self.waiting.front()
    }

    /// Takes a packet in at the tail.
    pub fn admit(&mut self, now: Time, packet: P) {
        let bytes = packet.wire_len();
        self.counters.admit(bytes);
        self.backlog.add(bytes);
        self.waiting.push_back(Entry { packet, enqueued_at: now });
    }

    /// Turns a packet away.
    pub fn refuse(&mut self, packet: P, reason: DropReason, drops: &mut Drops<P>) {
        self.counters.refuse(packet.wire_len(), reason);
        drops.push(Dropped { packet, reason });
    }

    /// Takes the head out of the queue; the caller says next what became of it: [`Store::release`] or
    /// [`Store::discard`].
    pub fn take(&mut self) -> Option<Entry<P>> {
        let entry = self.waiting.pop_front()?;
        self.backlog.remove(entry.packet.wire_len());
        Some(entry)
    }

    /// Books a packet taken out as dequeued, and hands it on.
    pub fn release(&mut self, entry: Entry<P>) -> Entry<P> {
        self.counters.dequeued.add(entry.packet.wire_len());
        entry
    }

    /// Books a packet taken out as discarded.
    pub fn discard(&mut self, entry: Entry<P>, reason: DropReason, drops: &mut Drops<P>) {
        self.counters.discard(entry.packet.wire_len(), reason);
        drops.push(Dropped { packet: entry.packet, reason });
    }

    /// Marks a packet CE; `false` if it cannot carry a mark.
    pub fn mark(&mut self, packet: &mut P) -> bool {
        self.counters.mark(packet)
    }
}

impl<P: Queued> Default for Store<P> {
    fn default() -> Store<P> {
        Store::new()
    }
}
