//! The endpoint's deadlines.

use ackclock_units::{Span, Time};

use crate::{Endpoint, State};

/// When each timer is due; [`Time::NEVER`] where it is not armed. The delayed-acknowledgment timer
/// is the receiver's, the retransmission timer the sender's.
#[derive(Debug)]
pub(crate) struct Timers {
    /// End of TIME-WAIT.
    time_wait_at: Time,
    /// The handshake has taken too long; of a child that was opened by its SYN, the SYN/ACK is due
    /// again.
    handshake_at: Time,
    /// A closed connection has waited in FIN-WAIT-2 for long enough.
    fin_wait_2_at: Time,
}

impl Timers {
    pub(crate) fn new() -> Timers {
        Timers { time_wait_at: Time::NEVER, handshake_at: Time::NEVER, fin_wait_2_at: Time::NEVER }
    }

    /// When the first of them expires.
    pub(crate) fn next_rare(&self) -> Time {
        self.time_wait_at.min(self.handshake_at).min(self.fin_wait_2_at)
    }

    /// Returns `true` if TIME-WAIT, or FIN-WAIT-2, is over.
    #[inline]
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.time_wait_at.min(self.fin_wait_2_at) <= now
    }

    /// Returns `true` if a handshake is to be given up, or a SYN/ACK repeated.
    #[inline]
    pub(crate) fn is_handshake_due(&self, now: Time) -> bool {
        self.handshake_at <= now
    }

    /// The handshake is over, or its SYN/ACK dealt with.
    pub(crate) fn handshake_over(&mut self) {
        self.handshake_at = Time::NEVER;
    }

    /// TIME-WAIT ends `at`.
    pub(crate) fn wait_out(&mut self, at: Time) {
        self.time_wait_at = at;
    }

    /// FIN-WAIT-2 ends `at` if the peer does not close.
    pub(crate) fn bound_fin_wait_2(&mut self, at: Time) {
        self.fin_wait_2_at = at;
    }

    /// When a handshake is given up, or a SYN/ACK repeated.
    #[cfg(test)]
    pub(crate) fn handshake(&self) -> Time {
        self.handshake_at
    }
}

impl Endpoint {
    /// A SYN or its answer was sent at `now`; `again` if not for the first time.
    pub(crate) fn arm_syn_timers(&mut self, now: Time, again: bool) {
        // The slop of FreeBSD is added when the timeout is computed, which is for the second SYN.
        let repeats = self.sender.rtt.timeouts();
        let doublings = match self.state {
            State::SynSent => repeats.saturating_sub(self.config.states.linear_syn_timeouts),
            _ => repeats,
        };
        let doubled = self.config.initial_rto.as_nanos().saturating_mul(1 << doublings.min(40));
        let slop = if repeats > 0 { self.config.rto_slop } else { Span::ZERO };
        let wait = (Span::from_nanos(doubled) + slop).min(self.config.max_rto);
        if self.opening.is_early() {
            self.timers.handshake_at = now + wait;
            return;
        }
        let at = self.config.transfer.ticks.expiry(now, self.sender.patience(now, wait));
        self.sender.timer.retransmit(at);
        if !again && let Some(timeout) = self.config.states.handshake_timeout.filter(|_| !self.socket.is_passive()) {
            self.timers.handshake_at = now + timeout;
        }
    }
}
