//! Tail loss probes as they are sent (RFC 8985 section 7.3); when, is in `loss/tail_probe.rs`.

use ackclock_units::Time;

use super::segment::Piece;
use crate::SentAs;
use crate::send::Sender;

impl Sender {
    /// RFC 8985 section 7.3: new data if the receiver's window allows it, whatever the congestion
    /// window; else the last segment again.
    #[cold]
    pub(crate) fn next_loss_probe(&mut self, now: Time, reports: bool) -> Option<Piece> {
        self.sent_as = SentAs::TailLossProbe;
        let right = self.sequence.window_end();
        let unsent = !self.sequence.is_fin_sent()
            && self.sequence.written() + 1 > self.sequence.nxt()
            && right > self.sequence.nxt();
        if unsent && self.pacer.on && self.waits_for_release(now) {
            // The data that waits for its time will do.
            return None;
        }
        if unsent {
            self.loss.recovery.probe_mut().set_unbounded(true);
            let piece = self.next_new(now, reports);
            self.loss.recovery.probe_mut().set_unbounded(false);
            self.probe_is_out(now, false);
            return piece;
        }
        let last = self.loss.board.last_unreported()?;
        let last = if last.payload() > self.negotiated.mss() {
            self.loss.board.cut(last, self.negotiated.mss())
        } else {
            last
        };
        let payload = last.payload();
        self.path.probing.size = 0;
        self.departs(now, last.seq, payload);
        self.loss.board.resend_as_probe(self.stamp(now), last.seq);
        self.stats.resent(payload);
        self.probe_is_out(now, true);
        Some(Piece { seq: last.seq, payload, fin: last.fin(), plain: true, push: last.push() })
    }
}
