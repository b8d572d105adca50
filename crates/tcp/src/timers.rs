//! The endpoint's deadlines.

use ackclock_units::{Span, Time};

use crate::{Endpoint, Error, State};

/// When each timer is due; [`Time::NEVER`] where it is not armed. The delayed-acknowledgment timer is the receiver's.
#[derive(Debug)]
pub(crate) struct Timers {
    /// Retransmission (RFC 6298 section 5), of the SYN too.
    pub(crate) retransmit_at: Time,
    /// Zero-window probe (RFC 9293 section 3.8.6.1).
    pub(crate) persist_at: Time,
    /// Probes since the window was last open: each doubles the interval.
    pub(crate) persist_backoff: u32,
    /// End of TIME-WAIT.
    pub(crate) time_wait_at: Time,
}

impl Timers {
    pub(crate) fn new() -> Timers {
        Timers { retransmit_at: Time::NEVER, persist_at: Time::NEVER, persist_backoff: 0, time_wait_at: Time::NEVER }
    }
}

impl Endpoint {
    /// When [`Endpoint::on_deadline`] is to be called next; [`Time::NEVER`] if nothing is pending.
    pub fn next_deadline(&self) -> Time {
        self.timers.retransmit_at.min(self.receiver.ack_at).min(self.timers.persist_at).min(self.timers.time_wait_at)
    }

    /// Does what is due at `now`; then [`Endpoint::transmit`] is to be asked.
    pub fn on_deadline(&mut self, now: Time) {
        if self.receiver.ack_at <= now {
            self.receiver.ack_at = Time::NEVER;
            self.receiver.ack_now = true;
        }
        if self.timers.time_wait_at <= now {
            self.timers.time_wait_at = Time::NEVER;
            self.close_now(None);
        }
        if self.timers.retransmit_at <= now {
            self.timers.retransmit_at = Time::NEVER;
            self.retransmit_due(now);
        }
        if self.timers.persist_at <= now {
            self.timers.persist_at = Time::NEVER;
            self.send.probe_due = true;
        }
    }

    fn retransmit_due(&mut self, now: Time) {
        if self.rtt.timeouts() >= self.config.max_retries {
            self.close_now(Some(Error::TimedOut));
            return;
        }
        match self.state {
            State::SynSent | State::SynReceived => {
                self.rtt.back_off();
                self.stats.timeouts += 1;
                self.send.syn_pending = true;
                self.send.syn_resent = true;
            }
            _ if self.board.is_empty() => {}
            _ => self.on_retransmission_timeout(now),
        }
    }

    /// (Re)starts or stops the retransmission timer: running exactly while something is outstanding.
    pub(crate) fn restart_retransmit_timer(&mut self, now: Time) {
        self.timers.retransmit_at = if self.board.is_empty() { Time::NEVER } else { now + self.rtt.rto(&self.config) };
    }

    /// Arms the zero-window probe: data waits, nothing is in flight whose ACK would bring the window.
    pub(crate) fn arm_persist(&mut self, now: Time) {
        if self.timers.persist_at == Time::NEVER {
            let base = self.rtt.rto(&self.config).as_nanos();
            let wait = Span::from_nanos(base.saturating_mul(1 << self.timers.persist_backoff.min(32)));
            self.timers.persist_at = now + wait.min(self.config.max_rto);
        }
    }
}
