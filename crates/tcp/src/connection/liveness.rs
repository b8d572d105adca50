//! Detection of a peer that is no longer there.

use ackclock_units::Time;

/// When the peer was last heard, and the timer that asks whether it is still there.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// When the last acceptable segment arrived.
    pub(crate) heard_at: Time,
    /// The next look at how long the peer has been silent; [`Time::NEVER`] without keep-alives.
    pub(super) due_at: Time,
    /// Probes since the peer was last heard.
    pub(super) probes: u32,
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

    /// Returns `true` if nothing acceptable has arrived after `at`.
    pub(crate) fn silent_since(&self, at: Time) -> bool {
        at >= self.heard_at
    }

    /// There are no more keep-alives.
    pub(crate) fn stop(&mut self) {
        (self.due_at, self.probes) = (Time::NEVER, 0);
    }
}
