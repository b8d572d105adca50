//! The books of a discipline: every packet that comes, goes or is discarded is counted once, in packets and in bytes.

use crate::{Backlog, Counters, DropReason, Dropped, Drops, Queued, Tally};

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

    /// Marks a packet CE and books it. `false`, and nothing done, if the packet cannot carry a mark. A packet that arrived
    /// with CE counts as marked: the law would have marked it.
    pub fn mark<P: Queued>(&mut self, packet: &mut P) -> bool {
        if !packet.ecn().is_capable() {
            return false;
        }
        packet.set_ce();
        self.marked.add(packet.wire_len());
        true
    }

    /// Whether the books balance with what waits: the equations at [`Counters`], in packets and in bytes.
    pub fn balance(&self, backlog: Backlog) -> bool {
        let holds = |field: fn(&Tally) -> u64| {
            let [offered, enqueued, dequeued, refused, discarded, waiting] = [
                &self.offered,
                &self.enqueued,
                &self.dequeued,
                &self.dropped_on_enqueue,
                &self.dropped_on_dequeue,
                &backlog,
            ]
            .map(field);
            offered == enqueued + refused && enqueued == dequeued + discarded + waiting
        };
        holds(|tally| tally.packets) && holds(|tally| tally.bytes)
    }
}

/// Memory of a packet beyond its bytes: Linux counts what it allocated (`truesize`), which here does not exist; this is its
/// `sk_buff` with the data that every packet has, without the rounding of buffers.
const PACKET_OVERHEAD: u64 = 576;

/// The memory that a packet takes, for the limits that `tc` gives in memory.
pub(crate) fn memory_of<P: Queued>(packet: &P) -> u64 {
    u64::from(packet.wire_len()) + PACKET_OVERHEAD
}

/// Backlog and counters of one discipline, kept together wherever the packets are stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Books {
    backlog: Backlog,
    counters: Counters,
}

impl Books {
    /// What waits.
    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Totals since the start.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A packet was offered and is taken in.
    pub(crate) fn admit(&mut self, bytes: u32) {
        self.counters.admit(bytes);
        self.backlog.add(bytes);
    }

    /// A packet was offered and is turned away.
    pub(crate) fn refuse<P: Queued>(&mut self, packet: P, reason: DropReason, drops: &mut Drops<P>) {
        self.counters.refuse(packet.wire_len(), reason);
        drops.push(Dropped { packet, reason });
    }

    /// A packet leaves the queue; next it is either released or discarded.
    pub(crate) fn take(&mut self, bytes: u32) {
        self.backlog.remove(bytes);
    }

    /// A packet that left the queue is handed on.
    pub(crate) fn release(&mut self, bytes: u32) {
        self.counters.dequeued.add(bytes);
    }

    /// A packet that left the queue is discarded.
    pub(crate) fn discard<P: Queued>(&mut self, packet: P, reason: DropReason, drops: &mut Drops<P>) {
        self.counters.discard(packet.wire_len(), reason);
        drops.push(Dropped { packet, reason });
    }

    /// Marks a packet CE; `false` if it cannot carry a mark.
    pub(crate) fn mark<P: Queued>(&mut self, packet: &mut P) -> bool {
        self.counters.mark(packet)
    }
}
