//! How a link sends with another transmitter than a constant one: slots, a device, changes.

use ackclock_aqm::{ChangeError, Entry};
use ackclock_packet::Packet;
use ackclock_units::{Span, Time};

use super::device::{Device, DeviceConfig};
use super::slots::Slot;
use super::varying::pace::{OF_A_BYTE, RatePace};
use super::varying::{Usage, Varying};
use super::{Link, LinkEvent, LinkEventKind, LinkSink, Transmitter, TransmitterState};
use crate::course::Up;
use crate::framed::Framed;

impl Link {
    /// As `advance_by_some`, with slots.
    #[cold]
    #[inline(never)]
    pub(super) fn advance_slots(&mut self, slot: &mut Slot, now: Time, events: &mut impl LinkSink) {
        while self.until <= now && self.until < Time::NEVER {
            let at = self.until;
            match self.state {
                TransmitterState::Sends => self.end_transmission(at, events),
                TransmitterState::Idle if slot.begins < at => slot.draw(at),
                TransmitterState::Idle | TransmitterState::Refills | TransmitterState::HeldBack => {}
            }
            self.start_in(slot, at, events);
        }
    }

    /// The transmitter is free: it takes a packet if the slot has begun.
    fn start_in(&mut self, slot: &mut Slot, at: Time, events: &mut impl LinkSink) {
        if self.waiting > 0 && slot.begins > at {
            (self.state, self.until) = (TransmitterState::Refills, slot.begins);
            return;
        }
        if self.waiting > 0 {
            let mut dequeued = self.queue.dequeue(at, &mut self.drops);
            if let Some(Entry { packet: Framed(packet), enqueued_at }) = self.taken(at, &mut dequeued, events) {
                let end = self.serializer.as_mut().map_or(at, |serializer| serializer.transmit(at, packet.wire_len));
                let (sojourn, busy) = (at.since(*enqueued_at), end.since(at));
                self.report(at, LinkEventKind::Sent { sojourn, busy }, events);
                self.wire.begin(end, self.delay, packet, self.overhead);
                slot.take(at, packet.wire_len);
                (self.state, self.until) = (TransmitterState::Sends, end);
                return;
            }
            if self.waiting > 0 {
                return;
            }
        }
        (self.state, self.until) = (TransmitterState::Idle, Time::NEVER);
        self.queue.idle(at);
    }

    /// The same link with a device below its queue.
    ///
    /// # Panics
    /// If it has a bucket, slots or no rate, changes, or has been used.
    pub fn with_device(mut self, config: DeviceConfig) -> Link {
        assert!(
            self.transmitter.is_constant() && self.serializer.is_some(),
            "a device is below a constant rate without a bucket"
        );
        assert_eq!(self.queue().counters().offered.packets, 0, "a link gets its device before the first packet");
        self.transmitter = Transmitter::Device(Box::new(Device::new(config)));
        self.drop_tail = None;
        self
    }

    /// [`Link::advance_by_some`] with a device.
    pub(super) fn advance_device(&mut self, device: &mut Device, now: Time, events: &mut impl LinkSink) {
        while self.until <= now && self.until < Time::NEVER {
            let at = self.until;
            let stopped = !device.has_room();
            let sent = device.next_end() <= at;
            if sent {
                device.end(at);
                self.end_transmission(at, events);
                self.begin_first(device);
            }
            let completed = device.complete(at);
            // The end of a transmission and its report are the driver's business, unless it had
            // stopped the queue.
            if stopped || !(sent || completed) || device.held <= at {
                self.fill(device, at, events);
            }
            self.until = device.next_due();
        }
    }

    /// The driver takes what the queue gives while there is room.
    fn fill(&mut self, device: &mut Device, now: Time, events: &mut impl LinkSink) {
        device.held = Time::NEVER;
        while self.waiting > 0 && device.has_room() {
            let mut dequeued = self.queue.dequeue(now, &mut self.drops);
            let Some(&Entry { packet: Framed(packet), enqueued_at }) = self.taken(now, &mut dequeued, events) else {
                if self.state == TransmitterState::HeldBack {
                    device.held = self.until;
                    return;
                }
                break;
            };
            let start = device.done.max(now);
            let end = self.serializer.as_mut().map_or(start, |serializer| serializer.transmit(start, packet.wire_len));
            let (sojourn, busy) = (now.since(enqueued_at), end.since(start));
            self.report(now, LinkEventKind::Sent { sojourn, busy }, events);
            if device.take(end, packet.wire_len, Packet { wire_len: packet.wire_len - self.overhead, ..packet }) {
                self.begin_first(device);
            }
        }
        self.state = if device.has_room() { TransmitterState::Idle } else { TransmitterState::Sends };
        if device.has_room() {
            self.queue.idle(now);
        }
    }

    /// The first packet of the ring is being sent.
    fn begin_first(&mut self, device: &Device) {
        if let Some((end, packet)) = device.first() {
            self.wire.begin(end, self.delay, packet, 0);
        }
    }

    /// The capacity and use of the link until the last [`Link::catch_up`]; `None` if the link does
    /// not change.
    pub fn usage(&self) -> Option<Usage> {
        match &self.transmitter {
            Transmitter::Varying(varying) => Some(varying.usage()),
            _ => None,
        }
    }

    /// Schedules the call for the first change.
    pub(super) fn scheduled(mut self) -> Link {
        if let Transmitter::Varying(varying) = &mut self.transmitter {
            varying.idle_until = varying.next_of_queue();
            self.until = varying.idle_until;
        }
        self
    }

    /// As `advance_by_some`, on a link that changes.
    #[cold]
    #[inline(never)]
    pub(super) fn advance_varying(&mut self, varying: &mut Varying, now: Time, events: &mut impl LinkSink) {
        while self.until <= now && self.until < Time::NEVER {
            self.step(varying, self.until, events);
        }
    }

    /// Makes every change until `now` and counts what was possible until then. The transmitter has
    /// done what was due.
    #[cold]
    pub(super) fn settle(&mut self, now: Time, events: &mut impl LinkSink) {
        let mut transmitter = self.transmitter.take();
        if let Transmitter::Varying(varying) = &mut transmitter {
            self.make_changes(varying, now, events);
            varying.count(now);
        }
        self.transmitter = transmitter;
    }

    /// Does what happens at `at`: what the transmitter is through with, then changes, then what
    /// starts.
    fn step(&mut self, varying: &mut Varying, at: Time, events: &mut impl LinkSink) {
        let only_a_change = self.state == TransmitterState::Idle && at == varying.idle_until;
        if varying.due == at {
            self.make_changes_before(varying, at, events);
            varying.count(at);
            match varying.opportunity() {
                Some(work) => self.use_opportunities(varying, work, at, events),
                None => self.end_varying(varying, at, events),
            }
        }
        self.make_changes(varying, at, events);
        varying.count(at);
        if varying.opportunity().is_some() {
            self.await_opportunity(varying);
        } else if !varying.sending {
            self.start_varying(varying, at, events);
        }
        if self.state == TransmitterState::Idle && !only_a_change {
            self.queue.idle(at);
        }
        varying.due = varying.next_due(at, self.state);
        varying.idle_until = varying.next_of_queue();
        let change = match self.state {
            TransmitterState::Idle => varying.idle_until,
            _ => varying.next_change(),
        };
        let again = if self.state == TransmitterState::HeldBack { self.until } else { Time::NEVER };
        self.until = again.min(varying.due).min(change);
    }

    /// Makes the changes that come before `at`.
    fn make_changes_before(&mut self, varying: &mut Varying, at: Time, events: &mut impl LinkSink) {
        if at > Time::ZERO {
            self.make_changes(varying, Time::from_nanos(at.as_nanos() - 1), events);
        }
    }

    /// Makes all changes until `now`, each at its time.
    fn make_changes(&mut self, varying: &mut Varying, now: Time, events: &mut impl LinkSink) {
        while varying.next_change() <= now && varying.next_change() < Time::NEVER {
            let at = varying.next_change();
            let Some(change) = varying.change(at) else { continue };
            if let Some(probability) = change.loss {
                self.wire.set_loss(probability);
            }
            if let Some(jitter) = change.jitter {
                self.wire.set_jitter(jitter);
            }
            match change.queue.map(|queue| (self.set_queue(at, queue.config(), events), queue)) {
                None | Some((Ok(()), _)) => {}
                Some((Err(ChangeError::OtherDiscipline), queue)) => self.replace_queue(at, &queue, events),
                Some((Err(error), _)) => panic!("a queue keeps its parameters: {error}"),
            }
        }
    }

    /// The transmitter is free: it takes a packet unless there is an outage.
    fn start_varying(&mut self, varying: &mut Varying, at: Time, events: &mut impl LinkSink) {
        if varying.up == Up::Holds {
            self.state = if self.waiting > 0 { TransmitterState::Refills } else { TransmitterState::Idle };
            return;
        }
        if self.waiting > 0 {
            if self.begin_varying(varying, at, events) {
                self.state = TransmitterState::Sends;
                return;
            }
            if self.waiting > 0 {
                // Held back by its queue.
                return;
            }
        }
        self.state = TransmitterState::Idle;
    }

    /// The transmission of the next packet begins, if the queue gives one.
    fn begin_varying(&mut self, varying: &mut Varying, at: Time, events: &mut impl LinkSink) -> bool {
        let mut dequeued = self.queue.dequeue(at, &mut self.drops);
        let Some(entry) = self.taken(at, &mut dequeued, events) else { return false };
        let Framed(packet) = &entry.packet;
        let sojourn = at.since(entry.enqueued_at);
        self.report(at, LinkEventKind::Sent { sojourn, busy: Span::ZERO }, events);
        self.wire.begin(at, self.delay, packet, self.overhead);
        // The last packet's rest of a nanosecond is done first, if this one follows immediately.
        let carried = if varying.ended == at { varying.left } else { 0 };
        varying.left = carried + u128::from(packet.wire_len) * OF_A_BYTE;
        varying.sending = true;
        true
    }

    /// The last bit of the packet was sent at `end`.
    fn end_varying(&mut self, varying: &mut Varying, end: Time, events: &mut impl LinkSink) {
        let backlog = self.waiting as u32;
        let report = |kind| events.event(LinkEvent { at: end, backlog, kind });
        (varying.sending, varying.ended) = (false, end);
        if varying.pace == RatePace::Unlimited {
            varying.left = 0;
        }
        match varying.up {
            Up::Loses => self.wire.lose(report),
            Up::Passes | Up::Holds => self.wire.end(end, Span::from_nanos(varying.delay.at(end)), report),
        }
    }

    /// Sends what the opportunities at `at` have room for.
    fn use_opportunities(&mut self, varying: &mut Varying, work: u128, at: Time, events: &mut impl LinkSink) {
        let opportunities = varying.course.trace.as_ref().map_or(0, |trace| trace.opportunities_at(at));
        let mut room = u128::from(opportunities) * work;
        while room > 0 {
            if !varying.sending {
                varying.left = 0;
                if self.waiting == 0 || !self.begin_varying(varying, at, events) {
                    break;
                }
            }
            let sent = varying.left.min(room);
            (varying.left, room, varying.sent) = (varying.left - sent, room - sent, varying.sent + sent);
            if varying.left == 0 {
                self.end_varying(varying, at, events);
            }
        }
    }

    /// Makes waiting packets wait for an opportunity.
    fn await_opportunity(&mut self, varying: &Varying) {
        let waits = varying.sending || self.waiting > 0;
        self.state = if waits { TransmitterState::Refills } else { TransmitterState::Idle };
    }
}
