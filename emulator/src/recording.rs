//! Records of every decision of a link's queue.
//!
//! A recording link stores what its queue did in each call, at the time of the call and with the
//! algorithm's variables right after it: later they would have changed, since a link catches up
//! lazily. A discipline needs no support for this: decisions are derived from its counters, its
//! drops and the packets it releases.

use ackclock_aqm::{Backlog, Counters, Dequeue, DropReason, Drops, Overhead, Probe, QueueDisc};
use ackclock_packet::Packet;
use ackclock_units::{Span, Time};

use crate::framed::Framed;

/// One decision of a queue about one packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// When.
    pub at: Time,
    /// The packet, with the contents' slot and without the link's framing.
    pub packet: Packet,
    /// The number of the packet: the n-th offered to this link, from 1. A duplicate is a separate
    /// packet.
    pub number: u64,
    /// Bytes for which it counts in the queue's books, including framing.
    pub bytes: u32,
    /// The decision.
    pub action: Action,
    /// Time the packet has been in the queue; `None` for decisions on its arrival.
    pub sojourn: Option<Span>,
    /// The backlog after the decision.
    pub backlog: Backlog,
    /// The algorithm's variables after the call in which it was decided.
    pub probe: Probe,
}

/// A queue's decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The packet is accepted.
    Enqueue,
    /// The packet goes to the transmitter.
    Dequeue,
    /// The packet is marked CE, or would be if it had not arrived with CE: the queue counts both as
    /// marked. The packet's `Enqueue`, `Dequeue` or `Drop` of the same call follows.
    Mark,
    /// The packet is discarded: refused on arrival (without a sojourn time), or dropped later.
    Drop(DropReason),
}

/// State of a recording link. Its methods are `cold`, out of the way of links that do not record.
/// While a packet is in the queue, its handle's slot, which no discipline sees, is the number of
/// its ticket, so that two handles to the same contents can be distinguished.
#[derive(Debug)]
pub(crate) struct Recording {
    overhead: Overhead,
    /// Decisions are stored; without them it only knows the packets' own lengths.
    keeps: bool,
    tickets: Vec<Ticket>,
    free: Vec<u32>,
    /// Packets offered.
    offered: u64,
    /// The books according to the decisions so far.
    enqueued: u64,
    marked: u64,
    backlog: Backlog,
    decisions: Vec<Decision>,
}

#[derive(Clone, Copy, Debug)]
struct Ticket {
    slot: u32,
    /// Without framing.
    bytes: u32,
    number: u64,
    arrived: Time,
}

/// The common properties of the decisions of one call.
#[derive(Clone, Copy)]
struct CallContext {
    at: Time,
    probe: Probe,
}

impl Recording {
    /// The tickets of a link whose packets have this framing.
    pub(crate) fn new(overhead: Overhead) -> Recording {
        Recording {
            overhead,
            keeps: false,
            tickets: Vec::new(),
            free: Vec::new(),
            offered: 0,
            enqueued: 0,
            marked: 0,
            backlog: Backlog::default(),
            decisions: Vec::new(),
        }
    }

    /// Decisions are stored from now on.
    pub(crate) fn keep(&mut self) {
        self.keeps = true;
    }

    /// Gives a packet that is about to be enqueued a ticket and its framing.
    #[cold]
    pub(crate) fn offer(&mut self, now: Time, packet: &mut Packet) {
        self.offered += 1;
        let Packet { slot, wire_len: bytes, .. } = *packet;
        let ticket = Ticket { slot, bytes, number: self.offered, arrived: now };
        packet.wire_len = self.overhead.of(bytes);
        packet.slot = match self.free.pop() {
            Some(free) => {
                self.tickets[free as usize] = ticket;
                free
            }
            None => {
                self.tickets.push(ticket);
                self.tickets.len() as u32 - 1
            }
        };
    }

    /// After `offered` was given to the queue.
    #[cold]
    pub(crate) fn enqueued(
        &mut self,
        now: Time,
        offered: Packet,
        queue: &dyn QueueDisc<Framed>,
        drops: &mut Drops<Framed>,
    ) {
        let call = CallContext { at: now, probe: queue.probe() };
        let taken_in = queue.counters().enqueued.packets > self.enqueued;
        let ticket = self.tickets[offered.slot as usize];
        for _ in 0..self.new_marks(queue.counters()) {
            self.push(call, ticket, offered, Action::Mark, None);
        }
        if taken_in {
            self.enqueued += 1;
            self.backlog.add(offered.wire_len);
            self.push(call, ticket, offered, Action::Enqueue, None);
        }
        for dropped in drops {
            let Framed(packet) = &mut dropped.packet;
            let refused = packet.slot == offered.slot && !taken_in;
            self.discard(call, packet, dropped.reason, refused);
        }
        self.check(queue);
    }

    /// After the queue was asked for a packet and gave `dequeued`. Returns the framing bytes of that
    /// packet.
    #[cold]
    pub(crate) fn dequeued(
        &mut self,
        now: Time,
        dequeued: &mut Dequeue<Framed>,
        queue: &dyn QueueDisc<Framed>,
        drops: &mut Drops<Framed>,
    ) -> Option<u32> {
        let call = CallContext { at: now, probe: queue.probe() };
        for dropped in drops {
            let Framed(packet) = &mut dropped.packet;
            self.discard(call, packet, dropped.reason, false);
        }
        let marks = self.new_marks(queue.counters());
        let mut framing = None;
        if let Dequeue::Packet(entry) = dequeued {
            let Framed(packet) = &mut entry.packet;
            let ticket = self.redeem(packet);
            let sojourn = Some(now.since(ticket.arrived));
            for _ in 0..marks {
                self.push(call, ticket, *packet, Action::Mark, sojourn);
            }
            self.backlog.remove(packet.wire_len);
            self.push(call, ticket, *packet, Action::Dequeue, sojourn);
            framing = Some(packet.wire_len - ticket.bytes);
        }
        self.check(queue);
        framing
    }

    /// The queue is a new one, which has counted nothing.
    #[cold]
    pub(crate) fn replaced(&mut self) {
        (self.enqueued, self.marked) = (0, 0);
    }

    /// The decisions since the last time, in their order.
    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, Decision> {
        self.decisions.drain(..)
    }

    fn discard(&mut self, call: CallContext, packet: &mut Packet, reason: DropReason, refused: bool) {
        let ticket = self.redeem(packet);
        if !refused {
            self.backlog.remove(packet.wire_len);
        }
        let sojourn = (!refused).then(|| call.at.since(ticket.arrived));
        self.push(call, ticket, *packet, Action::Drop(reason), sojourn);
        packet.wire_len = ticket.bytes;
    }

    /// Gives a packet that has left the queue its slot back.
    fn redeem(&mut self, packet: &mut Packet) -> Ticket {
        let ticket = self.tickets[packet.slot as usize];
        self.free.push(packet.slot);
        packet.slot = ticket.slot;
        ticket
    }

    fn new_marks(&mut self, counters: &Counters) -> u64 {
        let marks = counters.marked.packets - self.marked;
        self.marked = counters.marked.packets;
        marks
    }

    fn push(&mut self, call: CallContext, ticket: Ticket, packet: Packet, action: Action, sojourn: Option<Span>) {
        if !self.keeps {
            return;
        }
        let CallContext { at, probe } = call;
        let bytes = packet.wire_len;
        let packet = Packet { slot: ticket.slot, wire_len: ticket.bytes, ..packet };
        let backlog = self.backlog;
        self.decisions.push(Decision { at, packet, number: ticket.number, bytes, action, sojourn, backlog, probe });
    }

    /// The recorded decisions are what the queue did.
    fn check(&self, queue: &dyn QueueDisc<Framed>) {
        assert_eq!(self.backlog, queue.backlog(), "decisions and books of a queue differ");
    }
}

#[cfg(test)]
mod tests;
