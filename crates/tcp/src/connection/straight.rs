//! The straight way out: where new data in full segments, or an acknowledgment, is all that may be
//! due. [`crate::send::burst::straight`] has the sender's part.

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Time};

use crate::{Endpoint, State};

/// The outcome of the straight path.
pub(super) enum Straight {
    /// A segment is written.
    Sent(Ecn),
    /// Nothing is to be sent, and that is noted.
    Nothing,
    /// The straight path does not apply.
    No,
}

impl Endpoint {
    /// Returns `true` if new data and acknowledgments are all that may be due.
    #[inline]
    fn is_plain(&self) -> bool {
        self.state == State::Established
            && self.sender.is_plain()
            && !self.answers.is_due()
            && !self.handshake.owes_bare_ack()
    }

    /// Determines the next segment by the straight path, where it applies.
    #[inline(always)]
    pub(super) fn go_straight(&mut self, now: Time, out: &mut Segment) -> Straight {
        let unsent = (self.sender.sequence.written() + 1).wrapping_sub(self.sender.sequence.nxt());
        if self.sender.burst.idles() && unsent == 0 {
            return self.acknowledge_straight(now, out);
        }
        if self.sender.burst.goes_on(now) {
            return Straight::Sent(self.sender.write_full(self.ports, out));
        }
        self.send_straight(now, out, unsent)
    }

    #[inline]
    fn send_straight(&mut self, now: Time, out: &mut Segment, unsent: u64) -> Straight {
        if self.sender.burst.is_over(now) {
            self.sender.stop_at_cwnd(now, self.state);
            return Straight::Nothing;
        }
        self.sender.burst.end();
        if !self.is_plain() {
            return Straight::No;
        }
        if unsent == 0 && self.sender.loss.board.is_empty() {
            if self.receiver.acknowledges_now() {
                return self.acknowledge_straight(now, out);
            }
            self.sender.rest(now, self.state);
            return Straight::Nothing;
        }
        if self.receiver.acknowledges_now() {
            return Straight::No;
        }
        match self.sender.room_for_burst(unsent) {
            None => Straight::No,
            Some((0, _)) => {
                self.sender.stop_at_cwnd(now, self.state);
                Straight::Nothing
            }
            Some((left, fills)) => {
                // Full segments leave now; then the congestion window is full if they fill it.
                let window = self.receiver.announce_window();
                let flags = Flags::ACK | self.sender.echo_flags(false);
                self.sender.begin_burst(now, left, fills, (self.receiver.ack_number(), window, flags));
                self.receiver.data_sent(now);
                Straight::Sent(self.sender.write_full(self.ports, out))
            }
        }
    }

    /// Nothing is unsent or in flight: an acknowledgment is all that may be due.
    #[inline(always)]
    fn acknowledge_straight(&mut self, now: Time, out: &mut Segment) -> Straight {
        if !self.receiver.acknowledges_now() {
            debug_assert!(self.is_plain() && self.sender.loss.board.is_empty() && !self.sender.queue.is_short());
            self.sender.counters.sending = false;
            return Straight::Nothing;
        }
        self.sender.counters.window_stopped = false;
        self.write_ack(now, out);
        self.sender.note_segment();
        Straight::Sent(self.sender.ecn.control())
    }
}
