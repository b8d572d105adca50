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

use ackclock_aqm::Entry;
use ackclock_packet::Packet;
use ackclock_units::Time;

use super::{Framed, Link, LinkEventKind, LinkSink, Transmitter};

/// The ring of a device.
#[derive(Debug)]
pub(super) struct Device {
    /// Descriptors.
    most: usize,
    /// The packets in the driver's ring, with the end of their transmission. The first one is being
    /// sent. They are without framing.
    ring: VecDeque<(Time, Packet)>,
    /// The end of the last packet's transmission.
    done: Time,
    /// The queue gives nothing before this.
    held: Time,
}

impl Device {
    fn has_room(&self) -> bool {
        self.ring.len() < self.most
    }

    /// The end of the present transmission.
    fn next_end(&self) -> Time {
        self.ring.front().map_or(Time::NEVER, |&(end, _)| end)
    }
}

impl Link {
    /// The same link with a device of so many descriptors below its queue.
    ///
    /// # Panics
    /// If it has a bucket, slots or no rate, changes, or has been used.
    pub fn with_device(mut self, descriptors: NonZeroU32) -> Link {
        assert!(self.is_plain && self.serializer.is_some(), "a device is below a constant rate without a bucket");
        assert_eq!(self.queue.counters().offered.packets, 0, "a link gets its device before the first packet");
        let most = descriptors.get() as usize;
        let ring = VecDeque::with_capacity(most.min(4096));
        self.device = Some(Box::new(Device { most, ring, done: Time::ZERO, held: Time::NEVER }));
        self.is_plain = false;
        self
    }

    /// [`Link::advance_by_some`] with a device.
    pub(super) fn advance_device(&mut self, now: Time, events: &mut impl LinkSink) {
        let Some(mut device) = self.device.take() else { return };
        while self.until <= now && self.until < Time::NEVER {
            let at = self.until;
            let stopped = !device.has_room();
            let sent = device.next_end() <= at;
            if sent {
                device.ring.pop_front();
                self.end_transmission(at, events);
                self.begin_first(&device);
            }
            // An end of transmission is the driver's business, unless it had stopped the queue.
            if stopped || !sent || device.held <= at {
                self.fill(&mut device, at, events);
            }
            self.until = device.next_end().min(device.held);
        }
        self.device = Some(device);
    }

    /// The driver takes what the queue gives while there is room.
    fn fill(&mut self, device: &mut Device, now: Time, events: &mut impl LinkSink) {
        device.held = Time::NEVER;
        while self.waiting > 0 && device.has_room() {
            let mut dequeued = self.queue.dequeue(now, &mut self.drops);
            let Some(&Entry { packet: Framed(packet), enqueued_at }) = self.taken(now, &mut dequeued, events) else {
                if self.state == Transmitter::HeldBack {
                    device.held = self.until;
                    return;
                }
                break;
            };
            let start = device.done.max(now);
            let end = self.serializer.as_mut().map_or(start, |serializer| serializer.transmit(start, packet.wire_len));
            let (sojourn, busy) = (now.since(enqueued_at), end.since(start));
            self.report(now, LinkEventKind::Sent { sojourn, busy }, events);
            device.done = end;
            device.ring.push_back((end, Packet { wire_len: packet.wire_len - self.overhead, ..packet }));
            if device.ring.len() == 1 {
                self.begin_first(device);
            }
        }
        self.state = if device.has_room() { Transmitter::Idle } else { Transmitter::Sends };
        if device.has_room() {
            self.queue.idle(now);
        }
    }

    /// The first packet of the ring is being sent.
    fn begin_first(&mut self, device: &Device) {
        if let Some((end, packet)) = device.ring.front() {
            self.wire.begin(*end, self.delay, packet, 0);
        }
    }
}
