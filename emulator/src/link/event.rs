//! The events that a link reports.

use ackclock_aqm::DropReason;
use ackclock_packet::Packet;
use ackclock_units::{Span, Time};

/// An event on a link, with its time and the queue length after it. Events are in chronological
/// order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkEvent {
    /// When.
    pub at: Time,
    /// Packets that wait in the queue after it.
    pub backlog: u32,
    /// The kind of event.
    pub kind: LinkEventKind,
}

/// Receives the events of a link as they happen. A vector keeps them.
pub trait LinkSink {
    /// The next event.
    fn event(&mut self, event: LinkEvent);
}

impl LinkSink for Vec<LinkEvent> {
    fn event(&mut self, event: LinkEvent) {
        self.push(event);
    }
}

/// Kinds of [`LinkEvent`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkEventKind {
    /// A packet was offered to the queue; if the queue discarded it or others, their events come
    /// before this one.
    Offered,
    /// A packet left the queue for the transmitter.
    Sent {
        /// Waiting time in the queue.
        sojourn: Span,
        /// Transmission time; with a bucket, at the bucket's rate, after everything sent before.
        /// Zero on a link that changes ([`crate::Link::usage`]).
        busy: Span,
    },
    /// The queue discarded a packet.
    Dropped {
        /// The packet.
        packet: Packet,
        /// Why.
        reason: DropReason,
        /// The algorithm's drop probability right after it, if it has one.
        probability: Option<f64>,
    },
    /// A packet was lost on the wire.
    Lost {
        /// The packet.
        packet: Packet,
        /// The probability of the loss, if it was random.
        probability: Option<f64>,
    },
    /// A packet, or a copy of it, has a bit error and goes on with it ([`Class::is_corrupted`]).
    ///
    /// [`Class::is_corrupted`]: ackclock_packet::Class::is_corrupted
    Corrupted {
        /// The packet.
        packet: Packet,
    },
    /// A packet will arrive twice: a second handle to the same contents is in transit.
    Duplicated {
        /// The packet.
        packet: Packet,
    },
}
