//! The interface for a layer above several endpoints, each of which is a subflow of one connection
//! (RFC 8684), beyond the calls of a socket.

use ackclock_packet::{Flags, Segment};
use ackclock_units::Time;

use crate::{Endpoint, State};

impl Endpoint {
    /// An ACK goes out at once, whatever it has to say.
    pub fn acknowledge_now(&mut self) {
        self.sender.burst.end();
        self.receiver.acknowledge_now();
    }

    /// Returns `true` if a segment passes the checks of TCP (RFC 9293 section 3.10.7, RFC 5961, RFC
    /// 7323), so that options of a layer above may be acted upon: it is no SYN of an open
    /// connection, lies in the window, and acknowledges what may be acknowledged. It is taken in by
    /// [`Endpoint::input`] as before.
    pub fn would_accept(&self, now: Time, segment: &Segment) -> bool {
        match self.state {
            State::Closed => false,
            State::Listen => true,
            State::SynSent => {
                !segment.flags.contains(Flags::ACK) || self.sender().sequence().acknowledges_new(segment.ack)
            }
            _ => {
                let Some(left) = self.receiver.lift(segment.seq).filter(|&left| left > 0) else { return false };
                let right = left + u64::from(segment.sequence_len());
                segment.flags.contains(Flags::ACK)
                    && !segment.flags.contains(Flags::SYN)
                    && self.passes_paws(now, segment, left)
                    && self.receiver.accepts(segment, left, right, &self.config.states)
                    && self.sender.sequence.lift(segment.ack).is_some_and(|ack| self.sender.sequence.accepts(ack))
            }
        }
    }
}
