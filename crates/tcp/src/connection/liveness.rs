//! Detection of a peer that is no longer there: keep-alive probes (RFC 9293 section 3.8.4).

use ackclock_units::{Span, Time};

use crate::KeepAlive;
use crate::stack::rules::StateRules;

/// Waits are no shorter than this, whatever is asked for, so that time goes on.
const SHORTEST: Span = Span::from_millis(1);

/// When the peer was last heard, and the timer that asks whether it is still there.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// When the last acceptable segment arrived.
    heard_at: Time,
    /// The next look at how long the peer has been silent; [`Time::NEVER`] without keep-alives.
    due_at: Time,
    /// Probes since the peer was last heard.
    probes: u32,
}

/// The meaning of a keep-alive timer that has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// The peer was heard, or something else asks for it.
    Short,
    /// A probe goes out.
    Probe,
    /// The peer is gone.
    Final,
}

impl Default for Liveness {
    fn default() -> Liveness {
        Liveness { heard_at: Time::ZERO, due_at: Time::NEVER, probes: 0 }
    }
}

impl Liveness {
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.due_at
    }

    /// Keep-alive probes that were not answered.
    pub(crate) fn probes(&self) -> u32 {
        self.probes
    }

    /// An acceptable segment arrived: the peer is alive.
    #[inline]
    pub(crate) fn heard(&mut self, now: Time) {
        (self.heard_at, self.probes) = (now, 0);
    }

    /// When the last acceptable segment arrived.
    pub(crate) fn heard_at(&self) -> Time {
        self.heard_at
    }

    /// (Re)starts the keep-alive timer of an `open` connection, or stops it. It is silence from now
    /// on that counts if the timer was off (Linux `tcp_set_keepalive`), and all of the silence if
    /// only its times change (`tcp_sock_set_keepidle_locked`).
    pub(crate) fn arm(&mut self, now: Time, keepalive: Option<KeepAlive>, open: bool, was_off: bool) {
        let since = if was_off { now } else { self.heard_at };
        self.due_at = match keepalive {
            Some(keepalive) if open => (since + keepalive.idle.max(SHORTEST)).max(now),
            _ => Time::NEVER,
        };
    }

    /// The keep-alive timer expired. It is not restarted for every segment that arrives: when it
    /// expires it looks how long ago the last one was (Linux `tcp_keepalive_timer`). `busy` if
    /// something is unsent or unacknowledged, so that retransmissions or window probes see to it.
    pub(crate) fn expire(&mut self, now: Time, rules: &StateRules, busy: bool) -> Silence {
        self.due_at = Time::NEVER;
        let Some(keepalive) = rules.keepalive else { return Silence::Short };
        let (idle, silent) = (keepalive.idle.max(SHORTEST), now.since(self.heard_at));
        if busy || silent < idle {
            self.due_at = if busy { now } else { self.heard_at } + idle;
            return Silence::Short;
        }
        let over = match rules.user_timeout {
            Some(timeout) => self.probes > 0 && silent >= timeout,
            None => self.probes >= keepalive.count,
        };
        if over {
            return Silence::Final;
        }
        self.probes += 1;
        self.due_at = now + keepalive.interval.max(SHORTEST);
        Silence::Probe
    }

    /// There are no more keep-alives.
    pub(crate) fn stop(&mut self) {
        (self.due_at, self.probes) = (Time::NEVER, 0);
    }
}
