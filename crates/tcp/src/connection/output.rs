//! The selection of the next segment: an answer, a SYN, data or an acknowledgment.

use ackclock_packet::Segment;
use ackclock_units::{Ecn, Time};

use super::straight::Straight;
use crate::{Endpoint, State};

impl Endpoint {
    /// Writes the next segment to be sent into `out` and returns the codepoint of its IP header;
    /// `None` when there is nothing to send now. To be asked until it gives `None`.
    #[inline(always)]
    pub fn transmit(&mut self, now: Time, out: &mut Segment) -> Option<Ecn> {
        match self.go_straight(now, out) {
            Straight::Sent(ecn) => Some(ecn),
            Straight::Nothing => None,
            Straight::No => self.transmit_any(now, out),
        }
    }

    /// The long way, which knows every case.
    #[inline(never)]
    fn transmit_any(&mut self, now: Time, out: &mut Segment) -> Option<Ecn> {
        self.sender.counters.window_stopped = false;
        self.sender.note_writes(now);
        let ecn = self.next_segment(now, out);
        if ecn.is_some() {
            self.sender.note_segment();
        } else {
            self.sender.all_sent(now, self.state);
        }
        self.review_deadlines();
        ecn
    }

    #[inline(always)]
    fn next_segment(&mut self, now: Time, out: &mut Segment) -> Option<Ecn> {
        if self.answers.is_due() {
            self.write_answer(now, out);
            return Some(self.sender.ecn.control());
        }
        match self.state {
            State::Closed | State::Listen => return None,
            State::SynSent | State::SynReceived => {
                if self.handshake.is_due() {
                    return Some(self.write_syn(now, out));
                }
                let reports = self.receiver.has_report();
                if self.opening.is_early()
                    && let Some(piece) = self.sender.next_early(now, reports)
                {
                    return Some(self.write_data(now, out, piece));
                }
                if self.sender.persist.take_empty() {
                    self.answers.probe();
                }
            }
            _ => {
                // A report of a gap or a duplicate does not ride on data: there may be no room for
                // its SACK blocks, and an ACK with data is no duplicate ACK (RFC 5681 section 2).
                let reports = self.receiver.has_report();
                let alone = reports || self.handshake.take_bare_ack();
                if !(self.receiver.acknowledges_now() && alone) {
                    if let Some(piece) = self.sender.next_piece(now, reports) {
                        return Some(self.write_data(now, out, piece));
                    }
                    self.sender.note_window_use(now);
                    // A probe of the window has no data: it is an answer.
                    if self.sender.persist.take_empty() {
                        self.answers.probe();
                    }
                    if self.answers.has_probe() {
                        self.write_bare_ack(now, out);
                        return Some(self.sender.ecn.control());
                    }
                }
            }
        }
        if self.receiver.acknowledges_now() && self.state != State::SynSent {
            self.write_ack(now, out);
            return Some(self.sender.ecn.control());
        }
        None
    }
}
