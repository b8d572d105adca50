//! The books of a discipline: every packet that comes, goes or is discarded is counted once, in
//! packets and in bytes.

use crate::queued::Queued;

/// Why a discipline discarded a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was at its limit (tail drop, or head of the fattest flow).
    Limit,
    /// A random early drop with the law's probability (RED, BLUE, PIE).
    Early,
    /// The law's delay condition at the head of the queue (CoDel).
    Delay,
    /// The memory limit was exceeded.
    Memory,
    /// All bins of the flow were full (SFB).
    Bucket,
    /// A flow that does not respond exceeded the rate left to such flows (SFB).
    Penalty,
    /// Another discipline took the place of the one in which it waited (`qdisc_reset`).
    Purge,
    /// A later ACK made this one needless (CAKE).
    Ack,
    /// A packet drawn from the queue was of the same flow as the arrival: both go (CHOKe).
    Match,
}

impl DropReason {
    /// The number of reasons.
    pub const COUNT: usize = 9;
    /// All reasons, in the order of their numbers.
    pub const ALL: [DropReason; DropReason::COUNT] = [
        DropReason::Limit,
        DropReason::Early,
        DropReason::Delay,
        DropReason::Memory,
        DropReason::Bucket,
        DropReason::Penalty,
        DropReason::Purge,
        DropReason::Ack,
        DropReason::Match,
    ];

    /// The name in traces and summaries.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Limit => "limit",
            DropReason::Early => "early",
            DropReason::Delay => "delay",
            DropReason::Memory => "memory",
            DropReason::Bucket => "bucket",
            DropReason::Penalty => "penalty",
            DropReason::Purge => "purge",
            DropReason::Ack => "ack",
            DropReason::Match => "match",
        }
    }
}

/// A packet that a discipline discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<P> {
    /// The packet.
    pub packet: P,
    /// Why.
    pub reason: DropReason,
}

/// The destination of discarded packets: owned by the caller, who empties it after each call and so
/// keeps its memory.
pub type Drops<P> = Vec<Dropped<P>>;

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Packets and bytes that wait in a queue.
pub type Backlog = Tally;

/// The books of a discipline. At every instant, in packets and in bytes:
/// `offered = enqueued + dropped_on_enqueue` and
/// `enqueued = dequeued + dropped_on_dequeue + backlog`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Given to the discipline.
    pub offered: Tally,
    /// Taken in.
    pub enqueued: Tally,
    /// Given out for transmission.
    pub dequeued: Tally,
    /// Refused on arrival.
    pub dropped_on_enqueue: Tally,
    /// Discarded after having been taken in: at the head, or from inside the queue to make room.
    pub dropped_on_dequeue: Tally,
    /// Marked CE.
    pub marked: Tally,
    /// Discarded packets by reason, indexed by [`DropReason`].
    pub dropped: [u64; DropReason::COUNT],
}

impl Tally {
    /// Counts one packet of `bytes` bytes.
    #[inline]
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Counts what another tally has counted.
    pub(crate) fn absorb(&mut self, other: Tally) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }

    /// Counted since another tally of the same.
    pub(crate) fn since(self, before: Tally) -> Tally {
        Tally { packets: self.packets - before.packets, bytes: self.bytes - before.bytes }
    }

    /// Takes one packet of `bytes` bytes back.
    #[inline]
    pub fn remove(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

impl Counters {
    /// Books a packet that was offered and taken in.
    #[inline]
    pub fn admit(&mut self, bytes: u32) {
        self.offered.add(bytes);
        self.enqueued.add(bytes);
    }

    /// Books a packet that was offered, taken in and handed on at the same time.
    #[inline]
    pub fn pass(&mut self, bytes: u32) {
        self.admit(bytes);
        self.dequeued.add(bytes);
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

    /// Books all that waits as discarded: the discipline is no more.
    pub fn purge(&mut self, backlog: Backlog) {
        self.dropped_on_dequeue.absorb(backlog);
        self.dropped[DropReason::Purge as usize] += backlog.packets;
    }

    /// Adds the books of another discipline.
    pub fn absorb(&mut self, other: &Counters) {
        let Counters { offered, enqueued, dequeued, dropped_on_enqueue, dropped_on_dequeue, marked, dropped } = *other;
        self.offered.absorb(offered);
        self.enqueued.absorb(enqueued);
        self.dequeued.absorb(dequeued);
        self.dropped_on_enqueue.absorb(dropped_on_enqueue);
        self.dropped_on_dequeue.absorb(dropped_on_dequeue);
        self.marked.absorb(marked);
        self.dropped.iter_mut().zip(dropped).for_each(|(sum, packets)| *sum += packets);
    }

    /// The books since an earlier state of them.
    fn since(&self, before: &Counters) -> Counters {
        Counters {
            offered: self.offered.since(before.offered),
            enqueued: self.enqueued.since(before.enqueued),
            dequeued: self.dequeued.since(before.dequeued),
            dropped_on_enqueue: self.dropped_on_enqueue.since(before.dropped_on_enqueue),
            dropped_on_dequeue: self.dropped_on_dequeue.since(before.dropped_on_dequeue),
            marked: self.marked.since(before.marked),
            dropped: std::array::from_fn(|reason| self.dropped[reason] - before.dropped[reason]),
        }
    }

    /// Marks a packet CE and books it. `false`, and nothing done, if the packet cannot carry a
    /// mark. A packet that arrived with CE counts as marked: the law would have marked it.
    pub fn mark<P: Queued>(&mut self, packet: &mut P) -> bool {
        if !packet.ecn().is_capable() {
            return false;
        }
        packet.set_ce();
        self.marked.add(packet.wire_len());
        true
    }

    /// Returns `true` if the books balance with the backlog: the equations at [`Counters`], in
    /// packets and in bytes.
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

/// Memory of a packet beyond its bytes: Linux counts what it allocated (`truesize`), which here
/// does not exist; this is its `sk_buff` with the data that every packet has, without the rounding
/// of buffers.
pub(crate) const PACKET_OVERHEAD: u64 = 576;

/// The memory that a packet takes, for the limits that `tc` gives in memory.
#[inline]
pub(crate) fn memory_of<P: Queued>(packet: &P) -> u64 {
    u64::from(packet.wire_len()) + PACKET_OVERHEAD
}

/// Backlog and counters of one discipline, kept together wherever the packets are stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Books {
    backlog: Backlog,
    counters: Counters,
}

impl Books {
    /// Waiting packets and bytes.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Totals since the start.
    #[inline]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Records a packet that was offered and accepted.
    #[inline]
    pub fn admit(&mut self, bytes: u32) {
        self.counters.admit(bytes);
        self.backlog.add(bytes);
    }

    /// Records a packet that passes without waiting.
    #[inline]
    pub fn pass(&mut self, bytes: u32) {
        self.counters.pass(bytes);
    }

    /// Records a packet that was offered and refused.
    pub fn refuse<P: Queued>(&mut self, packet: P, reason: DropReason, drops: &mut Drops<P>) {
        self.counters.refuse(packet.wire_len(), reason);
        drops.push(Dropped { packet, reason });
    }

    /// A packet leaves the queue; next it is either released or discarded.
    #[inline]
    pub fn take(&mut self, bytes: u32) {
        self.backlog.remove(bytes);
    }

    /// A packet that left the queue is handed on.
    #[inline]
    pub fn release(&mut self, bytes: u32) {
        self.counters.dequeued.add(bytes);
    }

    /// A packet that left the queue is discarded.
    pub fn discard<P: Queued>(&mut self, packet: P, reason: DropReason, drops: &mut Drops<P>) {
        self.counters.discard(packet.wire_len(), reason);
        drops.push(Dropped { packet, reason });
    }

    /// Records what another discipline has counted between two looks at its books.
    pub(crate) fn follow(&mut self, before: &Counters, after: &Counters) {
        let since = after.since(before);
        self.counters.absorb(&since);
        let waits = |field: fn(&Tally) -> u64, waiting: u64| {
            let gone = field(&since.dequeued) + field(&since.dropped_on_dequeue);
            waiting + field(&since.enqueued) - gone
        };
        self.backlog = Tally {
            packets: waits(|tally| tally.packets, self.backlog.packets),
            bytes: waits(|tally| tally.bytes, self.backlog.bytes),
        };
    }

    /// Marks a packet CE; `false` if it cannot carry a mark.
    pub fn mark<P: Queued>(&mut self, packet: &mut P) -> bool {
        self.counters.mark(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 packets of 100 bytes were offered: 2 refused, 5 sent, 1 discarded inside, 2 wait. Any one
    /// of these off by a packet or a byte and the books do not balance.
    #[test]
    fn books_balance_in_packets_and_in_bytes() {
        let tally = |packets| Tally { packets, bytes: 100 * packets };
        let books = Counters {
            offered: tally(10),
            enqueued: tally(8),
            dequeued: tally(5),
            dropped_on_enqueue: tally(2),
            dropped_on_dequeue: tally(1),
            ..Counters::default()
        };
        assert!(books.balance(tally(2)));
        assert!(!books.balance(tally(1)));
        assert!(!books.balance(Tally { packets: 2, bytes: 201 }));
        assert!(!books.balance(Tally { packets: 3, bytes: 200 }));
        let fields: [fn(&mut Counters) -> &mut Tally; 5] = [
            |books| &mut books.offered,
            |books| &mut books.enqueued,
            |books| &mut books.dequeued,
            |books| &mut books.dropped_on_enqueue,
            |books| &mut books.dropped_on_dequeue,
        ];
        for (packets, bytes) in [(1, 0), (0, 1)] {
            for field in fields {
                let mut wrong = books;
                field(&mut wrong).packets += packets;
                field(&mut wrong).bytes += bytes;
                assert!(!wrong.balance(tally(2)), "{wrong:?}");
            }
        }
    }
}
