//! The wire behind the transmitter: the propagation delay, and impairments if there are any.

use std::collections::VecDeque;

use ackclock_packet::Packet;
use ackclock_units::{Random, Span, Time};

use self::impaired::Impaired;
use self::line::Line;
use crate::LinkEventKind;
use crate::impairments::{Impairments, WireFates};

mod impaired;
mod line;

/// The wire of a link.
#[derive(Debug)]
pub(super) enum Wire {
    /// Every packet arrives, in the order of transmission. A packet is on it from the start of its
    /// transmission.
    Plain(Line),
    /// A packet's fate is known at the end of its transmission.
    Impaired(Box<Impaired>),
}

impl Wire {
    pub(super) fn new(impairments: Impairments, random: Random) -> Wire {
        let fate = WireFates::new(impairments, random);
        if fate.is_plain() { Wire::Plain(Line::new()) } else { Wire::Impaired(Box::new(Impaired::new(fate))) }
    }

    /// Every packet arrives, in the order of transmission.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Wire::Plain(_))
    }

    /// The wire of a link that changes: a packet's arrival is known at the end of its transmission.
    pub(super) fn changing(impairments: Impairments, random: Random) -> Wire {
        Wire::Impaired(Box::new(Impaired::new(WireFates::new(impairments, random).changing())))
    }

    /// The link changes from now on. `sends` is whether a packet is in transmission; `random` is
    /// the stream of impairments.
    pub(super) fn begin_to_change(&mut self, sends: bool, random: &Random) {
        match self {
            Wire::Impaired(impaired) => impaired.begin_to_change(),
            Wire::Plain(line) => {
                // It is on the line already.
                let sending = if sends { line.pop_last() } else { None };
                let mut behind = VecDeque::new();
                while let Some(packet) = line.pop() {
                    behind.push_back(packet);
                }
                let fate = WireFates::new(Impairments::default(), random.clone());
                let sending = sending.map(|(_, packet)| packet);
                *self = Wire::Impaired(Box::new(Impaired::taking_over(fate, sending, behind)));
            }
        }
    }

    /// The least delay of a packet, for the propagation delay `delay` and the larger of `jitter`
    /// and the present jitter.
    pub(super) fn least_delay(&self, delay: Span, jitter: Span) -> Span {
        match self {
            Wire::Plain(_) => delay,
            Wire::Impaired(impaired) => impaired.least_delay(delay, jitter),
        }
    }

    /// Packets have this jitter from now on, on a link that changes.
    pub(super) fn set_jitter(&mut self, jitter: Span) {
        if let Wire::Impaired(impaired) = self {
            impaired.set_jitter(jitter);
        }
    }

    /// Packets are lost independently with this probability from now on, on a link that changes.
    pub(super) fn set_loss(&mut self, probability: f64) {
        if let Wire::Impaired(impaired) = self {
            impaired.set_loss(probability);
        }
    }

    /// The transmission ends, and nothing of the packet arrives.
    pub(super) fn lose(&mut self, report: impl FnMut(LinkEventKind)) {
        if let Wire::Impaired(impaired) = self {
            impaired.lose(report);
        }
    }

    /// The transmission of a packet begins, which ends at `end`; its framing ends with it.
    #[inline(always)]
    pub(super) fn begin(&mut self, end: Time, delay: Span, packet: &Packet, framing: u32) {
        match self {
            // A transmission with end `NEVER` does not end.
            Wire::Plain(_) if end == Time::NEVER => {}
            Wire::Plain(line) => line.push(end + delay, packet, framing),
            Wire::Impaired(impaired) => impaired.begin(packet, framing),
        }
    }

    /// The transmission ends now, at `end`: `report` is told what happens on the wire.
    #[inline(always)]
    pub(super) fn end(&mut self, end: Time, delay: Span, report: impl FnMut(LinkEventKind)) {
        if let Wire::Impaired(impaired) = self {
            impaired.end(end, delay, report);
        }
    }

    /// The time of the next arrival of a packet whose transmission has ended; on a plain wire, of
    /// one whose transmission has begun.
    #[inline(always)]
    pub(super) fn next_at(&self) -> Time {
        match self {
            Wire::Plain(line) => line.next_at(),
            Wire::Impaired(impaired) => impaired.next_at(),
        }
    }

    /// The packet that arrives after the next two, if it is known.
    #[inline(always)]
    pub(super) fn third(&self) -> Option<&Packet> {
        match self {
            Wire::Plain(line) => line.get(2),
            Wire::Impaired(_) => None,
        }
    }

    /// The next packet that arrives until `now`. Every transmission that ends until then has ended.
    #[inline(always)]
    pub(super) fn arrival(&mut self, now: Time) -> Option<(Time, Packet)> {
        match self {
            Wire::Plain(line) if line.next_at() > now => None,
            Wire::Plain(line) => line.pop(),
            Wire::Impaired(impaired) => impaired.arrival(now),
        }
    }
}
