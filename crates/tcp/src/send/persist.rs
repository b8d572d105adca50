//! A closed window and its probes (RFC 9293 section 3.8.6.1).

use ackclock_units::{Span, Time};

use super::transmit::Piece;
use crate::loss::scoreboard::Sent;
use crate::send::Sender;
use crate::send::retransmission_timer::remaining;
use crate::{Config, PersistRules, RttEstimator, SendRule, SentAs, WindowProbe};

/// The state of a closed window, and the timer of its probes.
#[derive(Debug)]
pub(crate) struct Persist {
    /// When the next probe is due; [`Time::NEVER`] while the window is not waited for.
    due_at: Time,
    /// Probes since the window was last open: each doubles the interval.
    backoff: u32,
    /// Probes since the peer last answered.
    unanswered: u32,
    /// The first probe since the window was last open.
    since: Option<Time>,
    /// The timer has expired: a probe is to be sent.
    expired: bool,
    /// A probe with data is all that is in flight: its loss says nothing about congestion.
    in_flight: bool,
    /// The window opened and the probe was not taken: it is sent again as data.
    refill: bool,
    /// A probe without data is to be sent.
    empty: bool,
}

impl Default for Persist {
    fn default() -> Persist {
        Persist {
            due_at: Time::NEVER,
            backoff: 0,
            unanswered: 0,
            since: None,
            expired: false,
            in_flight: false,
            refill: false,
            empty: false,
        }
    }
}

impl Persist {
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.due_at
    }

    /// Returns `true` if the sender does not wait for the window, and no probe is in flight.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.due_at == Time::NEVER && !self.in_flight
    }

    /// Doublings of the interval.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Probes without an answer.
    pub(crate) fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// A probe is to be sent, and whatever else may be in its place.
    #[inline]
    pub(crate) fn has_expired(&self) -> bool {
        self.expired
    }

    /// Notes that a segment sent, or an observation, is as good as a probe. Returns `true` if one
    /// was to be sent.
    #[inline]
    pub(crate) fn satisfy(&mut self) -> bool {
        std::mem::take(&mut self.expired)
    }

    /// Returns `true` if a probe without data is to be sent, once.
    #[inline]
    pub(crate) fn take_empty(&mut self) -> bool {
        std::mem::take(&mut self.empty)
    }

    /// Returns `true` if a probe with data is all that is in flight.
    #[inline]
    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    /// Returns `true` if the next segment is a probe, or one that is repeated as data.
    #[inline]
    pub(crate) fn rules(&self) -> bool {
        self.in_flight || self.refill
    }

    /// Data was acknowledged.
    #[inline]
    pub(crate) fn acknowledged(&mut self) {
        (self.backoff, self.in_flight) = (0, false);
    }

    /// New data is sent: the window is open.
    #[inline]
    pub(crate) fn window_used(&mut self) {
        (self.due_at, self.backoff) = (Time::NEVER, 0);
    }

    /// The window has opened. Returns `true` if a probe is in flight that is now sent again.
    pub(crate) fn window_opened(&mut self) -> bool {
        self.due_at = Time::NEVER;
        self.refill |= self.in_flight;
        self.in_flight
    }

    /// The timer is off, as in a new connection.
    pub(crate) fn stop(&mut self) {
        (self.due_at, self.backoff, self.unanswered, self.since) = (Time::NEVER, 0, 0, None);
    }

    /// Arms the zero-window probe: data waits, nothing is in flight whose ACK would bring the
    /// window.
    pub(crate) fn arm(&mut self, now: Time, config: &Config, rtt: &RttEstimator) {
        if self.due_at == Time::NEVER {
            let wait = self.wait(config, rtt);
            let wait = match (config.states.user_timeout, self.since) {
                // tcp_clamp_probe0_to_user_timeout
                (Some(timeout), Some(since)) => {
                    wait.min(remaining(now, since, timeout).max(config.transfer.ticks.two()))
                }
                _ => wait,
            };
            self.due_at = config.transfer.ticks.expiry(now, wait);
        }
    }

    /// The interval to the next probe.
    fn wait(&self, config: &Config, rtt: &RttEstimator) -> Span {
        if let Some(rules) = config.states.persist {
            let factor = (1 << self.backoff.min(16)).min(rules.factor);
            return (rtt.plain_rto(config) / 2 * u64::from(factor)).clamp(rules.least, rules.most);
        }
        let doubled = rtt.rto(config).as_nanos().saturating_mul(1 << self.backoff.min(32));
        Span::from_nanos(doubled).min(config.max_rto)
    }

    /// The timer has expired; the peer was last heard `heard_at`. Returns `true` if the connection
    /// is to be given up.
    pub(crate) fn expire(
        &mut self,
        now: Time,
        config: &Config,
        rtt: &RttEstimator,
        heard_at: Time,
        is_orphan: bool,
    ) -> bool {
        self.due_at = Time::NEVER;
        let since = *self.since.get_or_insert(now);
        let expired = config.states.user_timeout.is_some_and(|timeout| now.since(since) >= timeout);
        // RFC 9293 section 3.8.6.1: a connection whose probes are answered is kept, as long as
        // somebody owns it.
        let unanswered = self.unanswered;
        let is_silent = |rules: PersistRules| {
            let silent = now.since(heard_at);
            silent >= rules.silence.min(rtt.plain_rto(config) * u64::from(rules.total))
        };
        let many = unanswered >= config.retry_limit(is_orphan, self.wait(config, rtt)) && self.backoff > 0;
        if expired || many && config.states.persist.is_none_or(is_silent) {
            return true;
        }
        self.unanswered += 1;
        self.expired = true;
        false
    }

    /// An acceptable ACK arrived.
    #[inline]
    pub(crate) fn answered(&mut self, now: Time, config: &Config, rtt: &RttEstimator) {
        self.unanswered = 0;
        if self.due_at == Time::NEVER {
            if !self.in_flight {
                self.since = None;
            }
        } else if config.states.window_probe == WindowProbe::Empty {
            // Linux `tcp_ack_probe`: the wait starts anew.
            self.due_at = Time::NEVER;
            self.arm(now, config, rtt);
        }
    }

    /// A probe is sent.
    fn sent(&mut self, now: Time, config: &Config, rtt: &RttEstimator) {
        (self.expired, self.in_flight, self.due_at) = (false, true, Time::NEVER);
        self.backoff += 1;
        self.arm(now, config, rtt);
    }
}

impl Sender {
    /// The peer's window is closed or too small: when nothing is in flight a timer runs, and its
    /// expiry sends what fits, one byte at least (RFC 9293 section 3.8.6.1).
    #[cold]
    pub(crate) fn next_probe(&mut self, now: Time, available: u64, window: u64) -> Option<Piece> {
        self.counters.window_stopped = true;
        if !self.persist.expired {
            if self.loss.board.is_empty() {
                self.persist.arm(now, &self.config, &self.rtt);
            }
            return None;
        }
        if window == 0 && self.config.states.window_probe == WindowProbe::Empty {
            self.persist.expired = false;
            self.persist.empty = true;
            self.persist.backoff += 1;
            self.persist.arm(now, &self.config, &self.rtt);
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
        self.timer.stop_retransmission();
        self.persist.sent(now, &self.config, &self.rtt);
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
        self.timer.stop_retransmission();
        self.persist.sent(now, &self.config, &self.rtt);
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
}
