//! Data that is sent again: what is declared lost, what may be, and the tail as a probe.

use ackclock_units::Time;

use super::segment::Piece;
use crate::loss::scoreboard::Sent;
use crate::send::Sender;
use crate::send::retransmission_timer::Pending;

impl Sender {
    /// RFC 6675 `NextSeg` rules 3 and 4: nothing is known lost and nothing new may be sent, but
    /// there is room.
    #[cold]
    pub(crate) fn next_speculative(&mut self, now: Time) -> Option<Piece> {
        if self.loss.bsd_episodes() {
            return None;
        }
        let (holes, last) = self.loss.detector.resends_holes();
        let hole = self.loss.board.next_unsacked_hole().filter(|_| holes);
        let sent = match hole {
            Some(hole) => hole,
            None if !last => return None,
            None if !self.loss.recovery.may_rescue(self.sequence.una()) => return None,
            None => self.loss.board.last_unsacked()?,
        };
        if self.window_used() + self.loss.window_taken(&self.negotiated, sent.len) > self.cwnd() {
            return None;
        }
        if hole.is_none() {
            self.loss.recovery.rescued();
        }
        Some(self.piece_again(now, sent))
    }

    #[inline(never)]
    pub(crate) fn piece_again(&mut self, now: Time, sent: Sent) -> Piece {
        // Data that the path does not take in one piece is sent in several (__tcp_retransmit_skb),
        // and a probe of its MTU proves nothing any more.
        let sent = if sent.payload() > self.negotiated.mss() {
            self.loss.board.cut(sent, self.negotiated.mss())
        } else {
            sent
        };
        self.path.probing.size = 0;
        let ends_unit = self.config.transfer.offload.is_on() && self.note_unit_again(now, &sent);
        let is_first = sent.seq == self.sequence.una();
        let payload = sent.payload();
        self.departs(now, sent.seq, payload);
        if !sent.ever_resent() {
            self.count_resent(payload);
        }
        self.loss.board.resend(self.stamp(now), sent.seq, self.sequence.nxt());
        self.stats.resent(payload);
        self.loss.recovery.resent(now, sent.end());
        let waits_for_detector = self.timer.pending() == Pending::Reorder && self.timer.is_running();
        if is_first && !waits_for_detector || !self.timer.is_running() {
            // The timer runs for the first segment: it starts anew with its retransmission (RFC
            // 6675 section 6).
            self.restart_retransmit_timer(now);
        }
        Piece { seq: sent.seq, payload, fin: sent.fin(), plain: true, push: sent.push() || ends_unit }
    }
}
