//! Probes of a closed window (RFC 9293 section 3.8.6.1).

use ackclock_units::Time;

use super::output::Piece;
use crate::loss::scoreboard::Sent;
use crate::{Endpoint, SendRule, SentAs, WindowProbe};

impl Endpoint {
    /// The peer's window is closed or too small: when nothing is in flight a timer runs, and its expiry sends what fits,
    /// one byte at least (RFC 9293 section 3.8.6.1).
    #[cold]
    pub(crate) fn next_probe(&mut self, now: Time, available: u64, window: u64) -> Option<Piece> {
        self.counters.window_stopped = true;
        if !self.send.probe_due {
            if self.board.is_empty() {
                self.arm_persist(now);
            }
            return None;
        }
        if window == 0 && self.config.states.window_probe == WindowProbe::Empty {
            self.send.probe_due = false;
            self.probe_now = true;
            self.timers.persist_backoff += 1;
            self.arm_persist(now);
            return None;
        }
        self.sent_as = SentAs::WindowProbe;
        let payload = available.min(window.max(1)).min(u64::from(self.full_payload())) as u32;
        let fin = payload == 0;
        let seq = self.send.nxt;
        let len = payload + u32::from(fin);
        self.departs(now, seq, payload);
        self.board.push(self.stamp(now), seq, len, fin);
        self.send.nxt += u64::from(len);
        self.send.fin_sent = fin;
        self.probe_sent(now);
        // RFC 3168 section 6.1.6: nobody would notice the loss of a probe.
        Some(Piece { seq, payload, fin, plain: window == 0, push: true })
    }

    /// A probe is in flight: it is repeated when its timer expires, and once the window has opened.
    #[cold]
    pub(crate) fn next_probe_again(&mut self, now: Time) -> Option<Piece> {
        self.counters.window_stopped = self.send.probing;
        self.sent_as = SentAs::WindowProbe;
        let &front = self.board.front()?;
        if self.send.resend_probe {
            (self.send.resend_probe, self.send.probing) = (false, false);
            let front = self.fill_probe(front);
            return Some(self.piece_again(now, front));
        }
        if !self.send.probe_due {
            return None;
        }
        let piece = self.piece_again(now, front);
        self.probe_sent(now);
        Some(piece)
    }

    /// A probe that was not taken becomes as large a segment as the window allows now (RFC 9293 section 3.8.6.1 and SHLD-28
    /// of section 3.8.6.2.1), not one of its octet alone.
    fn fill_probe(&mut self, mut probe: Sent) -> Sent {
        // Linux has sent nothing that could be sent again, or a segment that was cut by its rules.
        if probe.fin()
            || probe.sacked
            || probe.end() != self.send.nxt
            || self.config.transfer.sending == SendRule::Linux
        {
            return probe;
        }
        let available = self.send.written + 1 - probe.seq;
        let payload = available.min(self.send.wnd).min(u64::from(self.full_payload())) as u32;
        let waits = self.wishes.cork || self.wishes.more;
        if payload <= probe.len || self.is_silly(payload, available, false) || payload < self.negotiated.mss() && waits
        {
            return probe;
        }
        self.board.grow_last(payload);
        self.send.nxt = probe.seq + u64::from(payload);
        probe.len = payload;
        probe
    }

    fn probe_sent(&mut self, now: Time) {
        self.send.probe_due = false;
        self.send.probing = true;
        self.timers.retransmit_at = Time::NEVER;
        self.timers.persist_at = Time::NEVER;
        self.timers.persist_backoff += 1;
        self.arm_persist(now);
    }
}
