//! The timers of the beginning and the end of a connection.

use ackclock_units::Time;

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
    #[inline]
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

    /// A handshake is given up, or a SYN/ACK repeated, `at` this time.
    pub(crate) fn bound_handshake(&mut self, at: Time) {
        self.handshake_at = at;
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
