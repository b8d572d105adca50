//! Segmentation offload: how many segments a host hands down at one go, and what it waits for.

/// Units of several segments that a host hands down at one go, to be cut by its network card; the
/// law is in `send/offload.rs`, the rows of systems are in [`crate::profile`]. The default is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffloadRule {
    /// Segments are handed down in units; else one by one, and nothing else here counts.
    pub on: bool,
    /// The rate from which the size follows is twice that of the window in every state
    /// (`tcp_update_pacing_rate`, until 4.3); else [`crate::Pacing`] says.
    pub twice_the_window: bool,
    /// Units are larger on short paths (`tcp_tso_autosize`, `tcp_tso_rtt_log`).
    pub larger_on_short_paths: bool,
    /// A unit that could become larger waits for two clock ticks at most, in the state Open alone
    /// (`tcp_tso_should_defer` of 4.0); else for an ACK that is due within a millisecond and half a
    /// round trip (6.18, and later stable releases of 6.1).
    pub waits_by_clock: bool,
    /// Units reach over the ends of socket buffers (`tcp_grow_skb`).
    pub over_buffers: bool,
    /// A FIN without data takes none of the congestion window (`tcp_cwnd_test`, until 6.9).
    pub free_fin: bool,
    /// Retransmissions leave in units as well (`tcp_retransmit_skb`).
    pub resends: bool,
    /// The last segment of a unit has no PSH for that (`tcp_transmit_skb`, until 5.4).
    pub ends_without_push: bool,
    /// The first unit after an idle time still has the window of before (`tcp_event_data_sent`,
    /// until 4.1).
    pub restarts_late: bool,
    /// The send buffer does not grow while all that is unacknowledged fills the window
    /// (`tcp_should_expand_sndbuf`); else what is in flight.
    pub fills_by_unacknowledged: bool,
}

impl OffloadRule {
    /// Returns `true` if segments are handed down in units.
    #[inline]
    pub fn is_on(self) -> bool {
        self.on
    }
}
