//! The state of a closed window (RFC 9293 section 3.8.6.1).

use ackclock_units::Time;

/// The state of a closed window, and the timer of its probes.
#[derive(Debug)]
pub(crate) struct Persist {
    /// When the next probe is due; [`Time::NEVER`] while the window is not waited for.
    pub(super) due_at: Time,
    /// Probes since the window was last open: each doubles the interval.
    pub(super) backoff: u32,
    /// Probes since the peer last answered.
    pub(super) unanswered: u32,
    /// The first probe since the window was last open.
    pub(super) since: Option<Time>,
    /// The timer has expired: a probe is to be sent.
    pub(super) expired: bool,
    /// A probe with data is all that is in flight: its loss says nothing about congestion.
    pub(super) in_flight: bool,
    /// The window opened and the probe was not taken: it is sent again as data.
    pub(super) refill: bool,
    /// A probe without data is to be sent.
    pub(super) empty: bool,
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
}
