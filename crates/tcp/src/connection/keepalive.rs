//! Keep-alive probes (RFC 9293 section 3.8.4), and the wait in FIN-WAIT-2 for a peer that may never close.

use ackclock_units::{Span, Time};

use crate::{AckRule, Endpoint, KeepAlive, State};

/// Waits are no shorter than this, whatever is asked for, so that time goes on.
const SHORTEST: Span = Span::from_millis(1);

impl Endpoint {
    /// (Re)starts the keep-alive timer of an open connection, or stops it.
    pub(crate) fn arm_keepalive(&mut self, now: Time) {
        let open = !matches!(
            self.state,
            State::Closed | State::Listen | State::SynSent | State::SynReceived | State::TimeWait
        );
        self.timers.keepalive_at = match self.keepalive() {
            Some(keepalive) if open => (self.limits.heard_at + keepalive.idle).max(now),
            _ => Time::NEVER,
        };
    }

    /// SO_KEEPALIVE with its times, from now on. It is silence from now on that counts if it was off (Linux
    /// `tcp_set_keepalive`), and all of the silence if only its times change (`tcp_sock_set_keepidle_locked`).
    pub fn set_keepalive(&mut self, now: Time, keepalive: Option<KeepAlive>) {
        let was_off = self.config.states.keepalive.is_none() && self.config.transfer.acks == AckRule::Linux;
        self.config.states.keepalive = keepalive;
        self.arm_keepalive(now);
        if was_off
            && self.timers.keepalive_at != Time::NEVER
            && let Some(keepalive) = self.keepalive()
        {
            self.timers.keepalive_at = now + keepalive.idle;
        }
    }

    fn keepalive(&self) -> Option<KeepAlive> {
        let floored = |asked: KeepAlive| KeepAlive {
            idle: asked.idle.max(SHORTEST),
            interval: asked.interval.max(SHORTEST),
            ..asked
        };
        self.config.states.keepalive.map(floored)
    }

    /// The keep-alive timer expired. It is not restarted for every segment that arrives: when it expires it looks how long
    /// ago the last one was (Linux `tcp_keepalive_timer`).
    pub(crate) fn keepalive_due(&mut self, now: Time) {
        let Some(keepalive) = self.keepalive() else { return };
        if !self.board.is_empty() || self.unsent() > 0 {
            // Alive without probes: retransmissions or window probes see to it.
            self.timers.keepalive_at = now + keepalive.idle;
            return;
        }
        let silent = now.since(self.limits.heard_at);
        if silent < keepalive.idle {
            self.timers.keepalive_at = self.limits.heard_at + keepalive.idle;
            return;
        }
        let probes = self.timers.keepalive_probes;
        let over = match self.config.states.user_timeout {
            Some(timeout) => probes > 0 && silent >= timeout,
            None => probes >= keepalive.count,
        };
        if over {
            self.reset_peer();
            self.close_now(Some(self.reason_to_give_up()));
            return;
        }
        self.timers.keepalive_probes += 1;
        self.probe_now = true;
        self.timers.keepalive_at = now + keepalive.interval;
    }

    /// The application is gone and the peer has acknowledged our FIN: it has this long to send its own.
    pub(crate) fn arm_fin_wait_2(&mut self, now: Time) {
        if self.state == State::FinWait2
            && self.socket.orphan
            && let Some(timeout) = self.config.states.fin_wait_2_timeout
        {
            // Linux `tcp_fin_time`: no less than three and a half retransmission timeouts.
            self.timers.fin_wait_2_at = now + timeout.max(self.rto() * 7 / 2);
        }
    }
}
