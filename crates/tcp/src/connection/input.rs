//! What an arriving segment does (RFC 9293 section 3.10.7).

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
            None => {
                self.sender.burst.end();
                let acknowledgment = self.input_unpredicted(now, segment, ecn);
                self.review_deadlines();
                acknowledgment
            }
        }
    }

    #[inline(never)]
    fn input_unpredicted(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        self.sender.counters.arrived(now, segment, ecn);
        self.sender.writing.set_more(false);
        if segment.flags.contains(Flags::SYN | Flags::FIN) && self.drops_syn_fin() {
            return Acknowledgment::default();
        }
        match self.state {
            State::Closed => {
                self.refuse(segment);
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

    #[cold]
    fn drops_syn_fin(&self) -> bool {
        self.config.states.syn_fin == SynFin::Drop && self.state != State::Closed
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
        if !self.is_in_window(segment, left, right) {
            return self.note_duplicate(now, segment, left, right);
        }
        if !segment.flags.contains(Flags::ACK) {
            return Acknowledgment::default();
        }
        self.liveness.heard(now);
        self.count_mark(segment, ecn);
        if self.is_unwanted(segment, right) {
            // RFC 9293 section 3.6.1: nobody will read it.
            self.refuse(segment);
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
}
