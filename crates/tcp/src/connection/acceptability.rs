//! Which segments are acceptable: timestamps (PAWS, RFC 7323 section 5) and sequence numbers (RFC
//! 9293 section 3.10.7.4, first check; RFC 5961 for resets and SYNs).

use ackclock_packet::{Flags, Segment};
use ackclock_units::Time;

use crate::{Endpoint, State, WindowRule};

impl Endpoint {
    /// Whether a segment that begins at `left` passes PAWS (RFC 7323 section 5).
    pub(crate) fn passes_paws(&self, now: Time, segment: &Segment, left: u64) -> bool {
        // An old duplicate of the SYN is for the state machine to answer.
        let slack = if self.state == State::TimeWait { 0 } else { self.config.states.paws_slack };
        left == 0 || self.sender.negotiated.passes_paws(now, segment, slack)
    }

    /// RFC 7323 section 4.3: the echo is that of the segment that last advanced the left edge.
    #[inline]
    pub(crate) fn update_ts_recent(&mut self, now: Time, segment: &Segment, left: u64) {
        if left <= self.receiver.last_ack_sent() {
            self.sender.negotiated.update_recent(now, segment);
        }
    }

    /// RFC 9293 section 3.10.7.4, first check. Data that overlaps the window is let in and cut.
    pub(crate) fn is_in_window(&self, segment: &Segment, left: u64, right: u64) -> bool {
        let next = self.receiver.next();
        // A sender may still send up to the right edge that was announced last.
        let window = self.receiver.acceptable();
        if let WindowRule::Linux { .. } = self.config.transfer.window {
            // tcp_sequence: what ends where the last ACK stood has its ACK and timestamp read.
            let fits = right >= self.receiver.last_ack_sent() && left <= next + window;
            return fits && (right <= next + window || !self.refuses_overlong(segment, right));
        }
        if right == left {
            // The right edge itself is where the ACKs of a peer that has filled the window stand.
            // Were they unacceptable, two such ends would answer each other's ACKs for ever.
            return left >= next && left <= next + window;
        }
        window > 0 && right > next && left < next + window
    }

    /// Whether a segment that ends at `right`, beyond the window, is too long. A FIN takes no room.
    #[cold]
    fn refuses_overlong(&self, segment: &Segment, right: u64) -> bool {
        let data = right - u64::from(segment.flags.contains(Flags::FIN));
        self.config.states.refuses_overlong && data > self.receiver.edge() && !self.receiver.is_drained()
    }

    /// The window as RFC 9293 section 3.10.7.4 has it for resets and SYNs: the right edge lies
    /// outside. Before a listening socket's child is open, it is what was announced; a FIN takes no
    /// room.
    pub(crate) fn is_reset_in_window(&self, left: u64) -> bool {
        let next = self.receiver.next();
        let half_open = self.state == State::SynReceived && self.socket.is_passive();
        let window = if half_open { self.receiver.offered() } else { self.receiver.acceptable() };
        left == next || left > next && left < next + window + u64::from(self.peer_finished())
    }

    pub(crate) fn is_number_of_fin(&self, left: u64) -> bool {
        let closed = matches!(self.state, State::CloseWait | State::LastAck | State::Closing);
        closed && self.receiver.is_next(left + 1)
    }
}
