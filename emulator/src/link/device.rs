//! The transmit ring of a device below the queue: packets that the driver has taken are beyond the
//! queue's reach.
//!
//! A driver takes packets off the queue while its ring has room, the one in transmission included;
//! a ring of one is a transmitter by itself. Whenever it finds the queue empty with room left, the
//! queue is told that the link is idle, as it looks from there: after each arrival that went
//! straight through, and when a ring that was full has room again.
//!
//! # Source
//! Linux 2.4 `net/sched/sch_generic.c` (`qdisc_restart`), `include/net/pkt_sched.h` (`qdisc_run`):
//! packets are handed down until the queue has none (`dequeue` returns NULL, by which BLUE and RED
//! know an idle link) or the driver stops it (`netif_stop_queue`); a driver that had stopped it
//! starts it again when a descriptor is free (`netif_wake_queue`).

use std::collections::VecDeque;
use std::num::NonZeroU32;

use ackclock_packet::Packet;
use ackclock_units::Time;

/// The ring of a device.
#[derive(Debug)]
pub(super) struct Device {
    /// Descriptors.
    most: usize,
    /// The packets in the driver's ring, with the end of their transmission. The first one is being
    /// sent. They are without framing.
    pub(super) ring: VecDeque<(Time, Packet)>,
    /// The end of the last packet's transmission.
    pub(super) done: Time,
    /// The queue gives nothing before this.
    pub(super) held: Time,
}

impl Device {
    /// A device of so many descriptors that has nothing to send.
    pub(super) fn new(descriptors: NonZeroU32) -> Device {
        let most = descriptors.get() as usize;
        Device { most, ring: VecDeque::with_capacity(most.min(4096)), done: Time::ZERO, held: Time::NEVER }
    }

    pub(super) fn has_room(&self) -> bool {
        self.ring.len() < self.most
    }

    /// The end of the present transmission.
    pub(super) fn next_end(&self) -> Time {
        self.ring.front().map_or(Time::NEVER, |&(end, _)| end)
    }
}
