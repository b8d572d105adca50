//! What to send next.

use ackclock_packet::Segment;
use ackclock_units::{Ecn, Time};

use crate::send::Sender;
use crate::{CaState, Endpoint, SentAs, State};

use super::burst::straight::Straight;
use super::segment::Piece;

impl Sender {
    /// Chooses what to send: a retransmission, new data, a FIN, or a probe.
    #[inline(always)]
    fn next_piece(&mut self, now: Time, reports: bool) -> Option<Piece> {
        self.window_use.begin();
        if self.persist.rules() {
            self.pacer.let_go();
            return self.next_probe_again(now);
        }
        let mut resends = true;
        if self.loss.linux_episodes() {
            if self.loss.recovery.probe_mut().take_due() {
                return self.next_loss_probe(now, reports);
            }
            if self.pacer.on && !self.is_in_unit(now) && self.waits_for_release(now) {
                return None;
            }
            if self.loss.recovery.tests_timeout() {
                let new = self.next_of_frto(now, reports);
                if new.is_some() || self.loss.recovery.tests_timeout() {
                    return new;
                }
            }
            resends = self.loss.recovery.resends_lost();
        } else if self.pacer.on && !self.is_in_unit(now) && self.waits_for_release(now) {
            return None;
        }
        if let Some(lost) = self.loss.board.next_lost().filter(|_| resends) {
            // RFC 6675 NextSeg rule 1.
            let used = self.window_used();
            let full =
                used + self.loss.window_taken(&self.negotiated, lost.len.min(self.negotiated.mss() + 1)) > self.cwnd();
            let mut lost = lost;
            if full && !self.loss.recovery.forces_retransmission() {
                let Some(part) = self.part_of_hole(lost, used) else {
                    self.window_use.stop();
                    return None;
                };
                lost = part;
            }
            self.sent_as = if lost.by_timeout() { SentAs::Timeout } else { SentAs::FastRetransmit };
            return Some(self.piece_again(now, lost));
        }
        let in_disorder = self.loss.recovery.state() == CaState::Disorder;
        self.sent_as = if in_disorder { SentAs::LimitedTransmit } else { SentAs::New };
        if let Some(piece) = self.next_new(now, reports) {
            return Some(piece);
        }
        if self.loss.recovery.state() == CaState::Recovery
            && resends
            && self.negotiated.sack()
            && !self.window_use.is_stopped()
        {
            self.sent_as = SentAs::Speculative;
            return self.next_speculative(now);
        }
        None
    }
}

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
                if self.is_open_early()
                    && let Some(piece) = self.sender.next_early(now, reports)
                {
                    return Some(self.write_data(now, out, piece));
                }
                self.ask_for_window();
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
                    self.ask_for_window();
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

    /// A probe of the window has no data: it is an answer.
    #[inline]
    fn ask_for_window(&mut self) {
        if self.sender.persist.take_empty() {
            self.answers.probe();
        }
    }
}
