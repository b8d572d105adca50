//! The operation of a link on a shared medium ([`crate::Medium`]), which determines the times.

use ackclock_aqm::{Entry, QueueDisc};
use ackclock_packet::Packet;
use ackclock_units::{Random, Rate, Span, Time};

use super::{Framed, Link, LinkConfig, LinkEventKind, LinkSink, TransmitterState};

impl Link {
    /// An empty link that transmits only when a [`crate::Medium`] lets it.
    ///
    /// # Panics
    /// If it has a bucket, or no rate.
    pub fn on_medium(config: LinkConfig, queue: Box<dyn QueueDisc<Framed>>, random: Random) -> Link {
        assert!(config.burst.is_none() && config.rate.is_some(), "a medium has a rate and no bucket");
        // It never goes on by itself.
        Link { state: TransmitterState::Refills, drop_tail: None, ..Link::new(config, queue, random) }
    }

    /// Returns `true` if its queue contains packets.
    pub fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Takes an aggregate off the queue, the transmission of which begins at `now`. Returns its
    /// end, and until when the queue gives nothing more, if it says so.
    pub(crate) fn begin_aggregate(
        &mut self,
        now: Time,
        most: u32,
        longest: Span,
        aggregate: &mut Vec<Packet>,
        events: &mut impl LinkSink,
    ) -> (Time, Time) {
        let (mut end, mut held) = (now, Time::ZERO);
        while self.waiting > 0 && aggregate.len() < most as usize {
            if !aggregate.is_empty() && !self.fits(end.since(now), longest) {
                break;
            }
            let mut dequeued = self.queue.dequeue(now, &mut self.drops);
            let Some(&Entry { packet: Framed(packet), enqueued_at }) = self.taken(now, &mut dequeued, events) else {
                if self.state == TransmitterState::HeldBack {
                    held = self.until;
                }
                (self.state, self.until) = (TransmitterState::Refills, Time::NEVER);
                break;
            };
            let start = end;
            if let Some(serializer) = &mut self.serializer {
                end = serializer.transmit(start, packet.wire_len);
            }
            let (sojourn, busy) = (now.since(enqueued_at), end.since(start));
            self.report(now, LinkEventKind::Sent { sojourn, busy }, events);
            aggregate.push(Packet { wire_len: packet.wire_len - self.overhead, ..packet });
        }
        (end, held)
    }

    /// Returns `true` if the next packet ends within the longest airtime.
    fn fits(&self, so_far: Span, longest: Span) -> bool {
        let (Some(Entry { packet: Framed(packet), .. }), Some(rate)) = (self.queue.peek(), self.rate()) else {
            return true;
        };
        so_far + airtime(packet.wire_len, rate) <= longest
    }

    /// The aggregate is over at `end`: its packets are on their way.
    pub(crate) fn end_aggregate(&mut self, end: Time, aggregate: &mut Vec<Packet>, events: &mut impl LinkSink) {
        for packet in aggregate.drain(..) {
            self.wire.begin(end, self.delay, &packet, 0);
            self.end_transmission(end, events);
        }
        if self.waiting == 0 {
            self.queue.idle(end);
        }
    }
}

/// The transmission time of so many bytes, rounded up.
fn airtime(bytes: u32, rate: Rate) -> Span {
    let nanos = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(rate.as_bps()));
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
