//! The transmit ring of a device below the queue: packets that the driver has taken are beyond the
//! queue's reach.
//!
//! A driver takes packets off the queue while its ring has room, the one in transmission included;
//! a ring of one is a transmitter by itself. Whenever it finds the queue empty with room left, the
//! queue is told that the link is idle, as it looks from there: after each arrival that went
//! straight through, and when a ring that was full has room again.
//!
//! A packet occupies the ring until the device reports its transmission: at its end, or together
//! with all that ended before by an interrupt that comes a while after the first of them.
//!
//! # Source
//! Linux 2.4 `net/sched/sch_generic.c` (`qdisc_restart`), `include/net/pkt_sched.h` (`qdisc_run`):
//! packets are handed down until the queue has none (`dequeue` returns NULL, by which BLUE and RED
//! know an idle link) or the driver stops it (`netif_stop_queue`); a driver that had stopped it
//! starts it again when a descriptor is free (`netif_wake_queue`). Interrupts: `ethtool -C`,
//! `tx-usecs`. Byte queue limits: `dql.rs`.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use ackclock_packet::Packet;
use ackclock_units::{Span, Time};

use super::dql::{BqlConfig, Dql};

/// The transmit ring of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// The packets that it takes.
    pub limit: DeviceLimit,
    /// Time from the end of a transmission to the interrupt that reports it, with those that ended
    /// meanwhile; zero reports each at its end.
    pub completion: Span,
}

/// The packets that a transmit ring takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceLimit {
    /// So many descriptors.
    Packets(NonZeroU32),
    /// Packets until it holds so many bytes; the last one may exceed them.
    Bytes(NonZeroU32),
    /// Byte queue limits.
    Bql(BqlConfig),
}

/// The limit of a ring, with what it counts.
#[derive(Debug)]
enum Limit {
    Packets(u64),
    Bytes(u64),
    Bql(Dql),
}

/// The ring of a device.
#[derive(Debug)]
pub(super) struct Device {
    limit: Limit,
    /// Packets and bytes that the driver has taken, ...
    packets: u64,
    bytes: u64,
    /// ... and those of them that have been sent and not reported.
    sent_packets: u64,
    sent_bytes: u64,
    completion: Span,
    /// The next interrupt.
    interrupt: Time,
    /// The packets to be sent, with the end of their transmission and their bytes in the queue's
    /// books. The first one is being sent. They are without framing.
    ring: VecDeque<(Time, u32, Packet)>,
    /// The end of the last packet's transmission.
    pub(super) done: Time,
    /// The queue gives nothing before this.
    pub(super) held: Time,
}

impl Device {
    /// A device that has nothing to send.
    pub(super) fn new(config: DeviceConfig) -> Device {
        let limit = match config.limit {
            DeviceLimit::Packets(packets) => Limit::Packets(packets.get().into()),
            DeviceLimit::Bytes(bytes) => Limit::Bytes(bytes.get().into()),
            DeviceLimit::Bql(bql) => Limit::Bql(Dql::new(bql)),
        };
        Device {
            limit,
            packets: 0,
            bytes: 0,
            sent_packets: 0,
            sent_bytes: 0,
            completion: config.completion,
            interrupt: Time::NEVER,
            ring: VecDeque::new(),
            done: Time::ZERO,
            held: Time::NEVER,
        }
    }

    /// Returns `true` unless the driver has stopped the queue.
    pub(super) fn has_room(&self) -> bool {
        match &self.limit {
            Limit::Packets(most) => self.packets < *most,
            Limit::Bytes(most) => self.bytes < *most,
            Limit::Bql(dql) => dql.has_room(),
        }
    }

    /// The driver takes a packet of so many bytes in the queue's books, the transmission of which
    /// ends at `end`. Returns `true` if that begins at once.
    pub(super) fn take(&mut self, end: Time, bytes: u32, packet: Packet) -> bool {
        self.done = end;
        self.packets += 1;
        self.bytes += u64::from(bytes);
        if let Limit::Bql(dql) = &mut self.limit {
            dql.queued(bytes);
        }
        self.ring.push_back((end, bytes, packet));
        self.ring.len() == 1
    }

    /// The packet that is being sent, with the end of its transmission.
    pub(super) fn first(&self) -> Option<(Time, &Packet)> {
        self.ring.front().map(|(end, _, packet)| (*end, packet))
    }

    /// The end of the present transmission.
    pub(super) fn next_end(&self) -> Time {
        self.ring.front().map_or(Time::NEVER, |&(end, ..)| end)
    }

    /// The present transmission ends at `now`.
    pub(super) fn end(&mut self, now: Time) {
        let Some((_, bytes, _)) = self.ring.pop_front() else { return };
        self.sent_packets += 1;
        self.sent_bytes += u64::from(bytes);
        self.interrupt = self.interrupt.min(now + self.completion);
    }

    /// The interrupt, if it is due at `now`. Returns `true` if it was.
    pub(super) fn complete(&mut self, now: Time) -> bool {
        if self.interrupt > now {
            return false;
        }
        self.packets -= self.sent_packets;
        self.bytes -= self.sent_bytes;
        if let Limit::Bql(dql) = &mut self.limit {
            dql.completed(now, self.sent_bytes);
        }
        (self.sent_packets, self.sent_bytes, self.interrupt) = (0, 0, Time::NEVER);
        true
    }

    /// The time at which it is to be asked again.
    pub(super) fn next_due(&self) -> Time {
        self.next_end().min(self.interrupt).min(self.held)
    }

    /// The present byte queue limit.
    #[cfg(test)]
    pub(super) fn bql_limit(&self) -> Option<u64> {
        if let Limit::Bql(dql) = &self.limit { Some(dql.limit()) } else { None }
    }
}
