//! Segments that end a connection, and those that try to: RST, a SYN on an open connection, data
//! that nobody will read (RFC 9293 sections 3.5.2 and 3.10.7.4, RFC 5961).

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Time};

use crate::{Acknowledgment, Endpoint, Error, State};

impl Endpoint {
    /// RFC 5961 section 3: only the exact next number resets; another one within the window is
    /// challenged.
    #[cold]
    pub(crate) fn input_reset(&mut self, now: Time, left: u64) {
        if self.state == State::SynReceived && self.opening.is_early() && self.is_reset_in_window(left) {
            self.opening.reset_early(now);
            self.reset_by_peer();
            return;
        }
        let closed = matches!(self.state, State::CloseWait | State::LastAck | State::Closing);
        let is_fin = self.config.states.reset_before_fin && closed && self.receiver.is_next(left + 1);
        let exact = self.receiver.is_next(left) || is_fin;
        if !exact {
            if self.is_reset_in_window(left) {
                if self.config.states.insecure_rst {
                    self.reset_by_peer();
                } else {
                    if self.state == State::Established && self.sender.counters.data_segments_in == 0 {
                        self.opening.suspect_reset();
                    }
                    self.answers.challenge(now, &self.config.states);
                }
            }
            return;
        }
        self.reset_by_peer();
    }

    fn reset_by_peer(&mut self) {
        let rules = &self.config.states;
        let error = match self.state {
            State::SynReceived if !rules.reset_in_syn_received => Some(Error::Refused),
            State::CloseWait if rules.broken_pipe_in_close_wait => Some(Error::BrokenPipe),
            // Both sides have closed; what matters is whether our data arrived.
            State::LastAck | State::Closing if self.sender.acked_bytes() == self.sender.sequence.written() => {
                let report = rules.report_late_reset;
                self.close_now(None);
                if report {
                    self.socket.report(Error::Reset);
                }
                return;
            }
            _ => Some(Error::Reset),
        };
        self.close_now(error);
    }

    /// A SYN on a connection that has seen one.
    pub(crate) fn input_syn_again(&mut self, now: Time, segment: &Segment, left: u64, ecn: Ecn) -> Acknowledgment {
        let flags = segment.flags;
        if self.state == State::SynReceived {
            if left == 0 && flags.contains(Flags::ACK) {
                // Simultaneous open: the other side's SYN with ACK (RFC 9293 figure 8).
                self.receiver.acknowledge_now();
                if self.config.transfer.exact_duplicates {
                    self.receiver.receive(now, 0, 1, 0);
                }
                return self
                    .input_ack(now, segment, left)
                    .map(|acked| self.sender.acknowledgment(acked))
                    .unwrap_or_default();
            }
            if left == 0 {
                // The peer did not get our SYN with ACK: it is sent again.
                self.repeat_syn();
                self.sender.agree_to_ecn_again(segment, ecn);
                return Acknowledgment::default();
            }
            if self.opening.is_early() {
                // tcp_check_req: a bad SYN is reset, and does not end the connection.
                self.answers.refuse(segment);
                return Acknowledgment::default();
            }
            if self.socket.is_passive() && self.is_reset_in_window(left) {
                // RFC 9293 section 3.10.7.4, fourth check: back to LISTEN, which is the listener's
                // part.
                self.close_now(None);
                return Acknowledgment::default();
            }
        } else if self.config.states.insecure_syn && self.is_reset_in_window(left) {
            self.reset_peer();
            self.close_now(Some(Error::Reset));
            return Acknowledgment::default();
        }
        // RFC 5961 section 4: challenged wherever it lies.
        self.answers.challenge(now, &self.config.states);
        self.sender.reflect_again(segment, ecn, self.answers.has_challenge());
        Acknowledgment::default()
    }

    /// Returns `true` if the segment brings data that nobody will read any more.
    pub(crate) fn is_unwanted(&self, segment: &Segment, right: u64) -> bool {
        let shut = || self.socket.is_orphan() || self.socket.is_read_shut() && self.config.states.reset_after_shutdown;
        matches!(self.state, State::FinWait1 | State::FinWait2)
            && shut()
            && segment.payload.len > 0
            && right - u64::from(segment.flags.contains(Flags::FIN)) > self.receiver.next()
    }
}
