//! Probes of a closed window (RFC 9293 section 3.8.6.1).

use ackclock_units::{Span, Time};

use super::segment::Piece;
use crate::loss::scoreboard::Sent;
use crate::send::Sender;
use crate::send::retransmission_timer::remaining;
use crate::{PersistRules, SendRule, SentAs, WindowProbe};

impl Sender {
    /// The peer's window is closed or too small: when nothing is in flight a timer runs, and its
    /// expiry sends what fits, one byte at least (RFC 9293 section 3.8.6.1).
    #[cold]
    pub(crate) fn next_probe(&mut self, now: Time, available: u64, window: u64) -> Option<Piece> {
        self.counters.window_stopped = true;
        if !self.persist.expired {
            if self.loss.board.is_empty() {
                self.arm_persist(now);
            }
            return None;
        }
        if window == 0 && self.config.states.window_probe == WindowProbe::Empty {
            self.persist.expired = false;
            self.persist.empty = true;
            self.persist.backoff += 1;
            self.arm_persist(now);
            return None;
        }
        self.sent_as = SentAs::WindowProbe;
        let payload = available.min(window.max(1)).min(u64::from(self.full_payload())) as u32;
        let fin = payload == 0;
        let seq = self.sequence.nxt();
        let len = payload + u32::from(fin);
        self.departs(now, seq, payload);
        self.loss.board.push(self.stamp(now), seq, len, fin);
        self.sequence.advance(len, fin);
        self.probe_sent(now);
        // RFC 3168 section 6.1.6: nobody would notice the loss of a probe.
        Some(Piece { seq, payload, fin, plain: window == 0, push: true })
    }

    /// A probe is in flight: it is repeated when its timer expires, and once the window has opened.
    #[cold]
    pub(crate) fn next_probe_again(&mut self, now: Time) -> Option<Piece> {
        self.counters.window_stopped = self.persist.in_flight;
        self.sent_as = SentAs::WindowProbe;
        let &front = self.loss.board.front()?;
        if self.persist.refill {
            (self.persist.refill, self.persist.in_flight) = (false, false);
            let front = self.fill_probe(front);
            return Some(self.piece_again(now, front));
        }
        if !self.persist.expired {
            return None;
        }
        let piece = self.piece_again(now, front);
        self.probe_sent(now);
        Some(piece)
    }

    /// A probe that was not taken becomes as large a segment as the window allows now (RFC 9293
    /// section 3.8.6.1 and SHLD-28 of section 3.8.6.2.1), not one of its octet alone.
    fn fill_probe(&mut self, mut probe: Sent) -> Sent {
        // Linux has sent nothing that could be sent again, or a segment that was cut by its rules.
        if probe.fin()
            || probe.is_sacked()
            || probe.end() != self.sequence.nxt()
            || self.config.transfer.sending == SendRule::Linux
        {
            return probe;
        }
        let available = self.sequence.written() + 1 - probe.seq;
        let payload = available.min(self.sequence.window()).min(u64::from(self.full_payload())) as u32;
        let waits = self.writing.expects_more();
        if payload <= probe.len || self.is_silly(payload, available, false) || payload < self.negotiated.mss() && waits
        {
            return probe;
        }
        self.loss.board.grow_last(payload);
        self.sequence.end_at(probe.seq + u64::from(payload));
        probe.len = payload;
        probe
    }

    fn probe_sent(&mut self, now: Time) {
        self.persist.expired = false;
        self.persist.in_flight = true;
        self.timer.stop_retransmission();
        self.persist.due_at = Time::NEVER;
        self.persist.backoff += 1;
        self.arm_persist(now);
    }

    /// Arms the zero-window probe: data waits, nothing is in flight whose ACK would bring the
    /// window.
    pub(crate) fn arm_persist(&mut self, now: Time) {
        if self.persist.due_at == Time::NEVER {
            let wait = self.persist_wait();
            let wait = match (self.config.states.user_timeout, self.persist.since) {
                // tcp_clamp_probe0_to_user_timeout
                (Some(timeout), Some(since)) => wait.min(remaining(now, since, timeout).max(self.two_ticks())),
                _ => wait,
            };
            self.persist.due_at = now + wait;
        }
    }

    /// The interval to the next probe.
    fn persist_wait(&self) -> Span {
        if let Some(rules) = self.config.states.persist {
            let factor = (1 << self.persist.backoff.min(16)).min(rules.factor);
            return (self.rtt.plain_rto(&self.config) / 2 * u64::from(factor)).clamp(rules.least, rules.most);
        }
        let doubled = self.rto().as_nanos().saturating_mul(1 << self.persist.backoff.min(32));
        Span::from_nanos(doubled).min(self.config.max_rto)
    }

    /// The timer has expired; the peer was last heard `heard_at`. Returns `true` if the connection
    /// is to be given up.
    pub(crate) fn persist_due(&mut self, now: Time, heard_at: Time, is_orphan: bool) -> bool {
        self.persist.due_at = Time::NEVER;
        let since = *self.persist.since.get_or_insert(now);
        let expired = self.config.states.user_timeout.is_some_and(|timeout| now.since(since) >= timeout);
        // RFC 9293 section 3.8.6.1: a connection whose probes are answered is kept, as long as
        // somebody owns it.
        let unanswered = self.persist.unanswered;
        let is_silent = |rules: PersistRules| {
            let silent = now.since(heard_at);
            silent >= rules.silence.min(self.rtt.plain_rto(&self.config) * u64::from(rules.total))
        };
        let many = unanswered >= self.retry_limit(is_orphan, self.persist_wait()) && self.persist.backoff > 0;
        if expired || many && self.config.states.persist.is_none_or(is_silent) {
            return true;
        }
        self.persist.unanswered += 1;
        self.persist.expired = true;
        false
    }

    /// An acceptable ACK arrived.
    #[inline]
    pub(crate) fn window_answered(&mut self, now: Time) {
        self.persist.unanswered = 0;
        if self.persist.due_at == Time::NEVER {
            if !self.persist.in_flight {
                self.persist.since = None;
            }
        } else if self.config.states.window_probe == WindowProbe::Empty {
            // Linux `tcp_ack_probe`: the wait starts anew.
            self.persist.due_at = Time::NEVER;
            self.arm_persist(now);
        }
    }
}
