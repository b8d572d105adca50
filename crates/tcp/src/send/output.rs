//! The choice of the next data to send.

use ackclock_units::Time;

use super::segment::Piece;
use crate::send::Sender;
use crate::{CaState, SentAs};

impl Sender {
    /// Chooses what to send: a retransmission, new data, a FIN, or a probe.
    #[inline(always)]
    pub(crate) fn next_piece(&mut self, now: Time, reports: bool) -> Option<Piece> {
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
