//! Keep-alive probes (RFC 9293 section 3.8.4), and the wait in FIN-WAIT-2 for a peer that may never
//! close.

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
        self.liveness.due_at = match self.keepalive() {
            Some(keepalive) if open => (self.liveness.heard_at + keepalive.idle).max(now),
            _ => Time::NEVER,
        };
    }

    /// SO_KEEPALIVE with its times, from now on. It is silence from now on that counts if it was
    /// off (Linux `tcp_set_keepalive`), and all of the silence if only its times change
    /// (`tcp_sock_set_keepidle_locked`).
    pub fn set_keepalive(&mut self, now: Time, keepalive: Option<KeepAlive>) {
        let was_off = self.config.states.keepalive.is_none() && self.config.transfer.acks == AckRule::Linux;
        self.configure(|config| config.states.keepalive = keepalive);
        self.arm_keepalive(now);
        if was_off
            && self.liveness.due_at != Time::NEVER
            && let Some(keepalive) = self.keepalive()
        {
            self.liveness.due_at = now + keepalive.idle;
        }
        self.review_deadlines();
    }

    fn keepalive(&self) -> Option<KeepAlive> {
        let floored = |asked: KeepAlive| KeepAlive {
            idle: asked.idle.max(SHORTEST),
            interval: asked.interval.max(SHORTEST),
            ..asked
        };
        self.config.states.keepalive.map(floored)
    }

    /// The keep-alive timer expired. It is not restarted for every segment that arrives: when it
    /// expires it looks how long ago the last one was (Linux `tcp_keepalive_timer`).
    pub(crate) fn keepalive_due(&mut self, now: Time) {
        self.liveness.due_at = Time::NEVER;
        let Some(keepalive) = self.keepalive() else { return };
        if !self.sender.loss.board.is_empty() || self.sender.unsent() > 0 {
            // Alive without probes: retransmissions or window probes see to it.
            self.liveness.due_at = now + keepalive.idle;
            return;
        }
        let silent = now.since(self.liveness.heard_at);
        if silent < keepalive.idle {
            self.liveness.due_at = self.liveness.heard_at + keepalive.idle;
            return;
        }
        let probes = self.liveness.probes;
        let over = match self.config.states.user_timeout {
            Some(timeout) => probes > 0 && silent >= timeout,
            None => probes >= keepalive.count,
        };
        if over {
            self.reset_peer();
            self.close_now(Some(self.reason_to_give_up()));
            return;
        }
        self.liveness.probes += 1;
        self.answers.probe();
        self.liveness.due_at = now + keepalive.interval;
    }
}
