//! Processing of arriving segments (RFC 9293 section 3.10.7), and the tests of acceptability:
//! timestamps (PAWS, RFC 7323 section 5) and sequence numbers (first check; RFC 5961 for resets and
//! SYNs).

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Time};

use crate::{Acknowledgment, Endpoint, Error, State, SynFin};

impl Endpoint {
    /// Takes in a segment that arrived with codepoint `ecn`. Then [`Endpoint::transmit`] is to be
    /// asked.
    #[inline(always)]
    pub fn input(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        self.sender.burst.interrupt();
        match self.input_predicted(now, segment, ecn) {
            Some(acknowledgment) => acknowledgment,
            None => self.input_otherwise(now, segment, ecn),
        }
    }

    #[inline(never)]
    fn input_otherwise(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        self.sender.burst.end();
        if let Some(acknowledgment) = self.input_at_gap(now, segment, ecn) {
            return acknowledgment;
        }
        let acknowledgment = self.input_unpredicted(now, segment, ecn);
        self.review_deadlines();
        acknowledgment
    }

    #[inline(never)]
    fn input_unpredicted(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        self.sender.counters.arrived(now, segment, ecn);
        self.sender.writing.set_more(false);
        if segment.flags.contains(Flags::SYN | Flags::FIN)
            && self.config.states.syn_fin == SynFin::Drop
            && self.state != State::Closed
        {
            return Acknowledgment::default();
        }
        match self.state {
            State::Closed => {
                self.answers.refuse(segment);
                Acknowledgment::default()
            }
            State::Listen => {
                self.input_listen(now, segment, ecn);
                Acknowledgment::default()
            }
            State::SynSent => self.input_syn_sent(now, segment, ecn),
            State::TimeWait => self.input_time_wait(now, segment),
            _ => self.input_synchronized(now, segment, ecn),
        }
    }

    fn input_synchronized(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        let is_syn = segment.flags.contains(Flags::SYN);
        let left = match self.receiver.lift(segment.seq) {
            Some(left) if left > 0 || is_syn => left,
            // Unit 0 is the peer's SYN and nothing else; what lies before it was never part of the
            // stream.
            _ => {
                if !segment.flags.contains(Flags::RST) {
                    self.answer_invalid(now, segment);
                }
                return Acknowledgment::default();
            }
        };
        let right = left + u64::from(segment.sequence_len());
        if segment.flags.contains(Flags::RST) {
            self.input_reset(now, left);
            return Acknowledgment::default();
        }

        if segment.timestamps.is_none()
            && self.sender.negotiated.timestamps()
            && !self.config.transfer.lenient_timestamps
            && !self.config.states.accept_unstamped
            && !segment.flags.contains(Flags::RST)
            && !segment.flags.contains(Flags::SYN)
        {
            // A connection that agreed on timestamps silently drops segments without (RFC 7323
            // section 3.2). A SYN of another connection is left to be challenged.
            return Acknowledgment::default();
        }
        if !self.passes_paws(now, segment, left) {
            // RFC 7323 section 5.3 R1.
            self.answer_invalid(now, segment);
            let next = self.receiver.next();
            if self.config.transfer.report_refused && left < next && left < right {
                self.describe_arrival(now, segment);
                self.receiver.receive(now, left, right.min(next), segment.payload.len);
            }
            return Acknowledgment::default();
        }
        if is_syn {
            return self.input_syn_again(now, segment, left, ecn);
        }
        if !self.receiver.accepts(segment, left, right, &self.config.states) {
            return self.note_duplicate(now, segment, left, right);
        }
        if !segment.flags.contains(Flags::ACK) {
            return Acknowledgment::default();
        }
        self.liveness.heard(now);
        if self.sender.count_mark(segment, ecn, self.receiver.owes_ack()) {
            self.receiver.acknowledge_now();
        }
        if self.is_unwanted(segment, right) {
            // RFC 9293 section 3.6.1: nobody will read it.
            self.answers.refuse(segment);
            self.close_now(Some(Error::Reset));
            return Acknowledgment::default();
        }
        let Some(acked) = self.input_ack(now, segment, left) else {
            return Acknowledgment::default();
        };
        self.update_ts_recent(now, segment, left);
        if right > left {
            self.input_data(now, segment, left, right, ecn);
        }
        self.sender.acknowledgment(acked)
    }

    /// An unacceptable segment is answered with an ACK; what it repeats is reported (RFC 2883).
    fn note_duplicate(&mut self, now: Time, segment: &Segment, left: u64, right: u64) -> Acknowledgment {
        self.answer_invalid(now, segment);
        if right > left && right <= self.receiver.next() {
            self.sender.note_spurious(left);
            self.describe_arrival(now, segment);
            self.receiver.receive(now, left, right, segment.payload.len);
        }
        // An old data segment may carry a newer acknowledgment.
        if segment.flags.contains(Flags::ACK) && left <= self.receiver.next() {
            return self
                .input_ack(now, segment, left)
                .map(|acked| self.sender.acknowledgment(acked))
                .unwrap_or_default();
        }
        Acknowledgment::default()
    }

    /// Returns `true` if a segment that begins at `left` passes PAWS (RFC 7323 section 5).
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

    /// The window as RFC 9293 section 3.10.7.4 has it for resets and SYNs: the right edge lies
    /// outside. Before a listening socket's child is open, it is what was announced; a FIN takes no
    /// room.
    pub(crate) fn is_reset_in_window(&self, left: u64) -> bool {
        let next = self.receiver.next();
        let half_open = self.state == State::SynReceived && self.socket.is_passive();
        let window = if half_open { self.receiver.offered() } else { self.receiver.acceptable() };
        left == next || left > next && left < next + window + u64::from(self.receiver().is_finished())
    }
}
