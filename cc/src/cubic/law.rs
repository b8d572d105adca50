//! The named behaviours of the sets of rules ([`CubicRules`]). Where nothing else is said, the
//! source is Linux `net/ipv4/tcp_cubic.c`.

use super::CubicRules;

#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    /// Windows are whole segments and the curve is of integers (`bictcp_update`).
    pub(super) in_segments: bool,
    /// ACKs are counted, whatever they acknowledge, and each stands for the mean number of segments
    /// that one covers (`delayed_ack`).
    pub(super) counts_acks: bool,
    /// The window grows by half of itself in a round trip at most (`cnt` is 2 at least).
    pub(super) bounds_growth: bool,
    /// Before the first loss it grows by a twentieth at least.
    pub(super) hurries_at_first: bool,
    /// The curve is looked at once in a jiffy (since 4.1; `tcp_friendliness` at every ACK).
    pub(super) once_a_jiffy: bool,
    /// Time in which the window is not used is no part of the curve (RFC 9438 section 4.2).
    pub(super) skips_unused: bool,
    /// Idle time is not, either (RFC 9438 section 4.2; `bictcp_cwnd_event`).
    pub(super) skips_idle: bool,
    /// A restart after idle time begins a new stage.
    pub(super) restarts_anew: bool,
    /// The values restored where a reduction is taken back.
    pub(super) undo: CubicUndo,
}

/// The values restored where a reduction is taken back.
#[derive(Clone, Copy, Debug)]
pub(super) enum CubicUndo {
    /// Everything, unless the window has overtaken it (RFC 9438 section 4.9.2).
    State,
    /// The window; the next epoch starts from it.
    Window,
    /// The window that the curve has for its maximum (`bictcp_undo_cwnd` of 2.6); the threshold is
    /// the endpoint's.
    Maximum,
}

const RFC_9438: Law = Law {
    in_segments: false,
    counts_acks: false,
    bounds_growth: true,
    hurries_at_first: true,
    once_a_jiffy: false,
    skips_unused: true,
    skips_idle: true,
    restarts_anew: true,
    undo: CubicUndo::State,
};
const LINUX_2_6_32: Law = Law { hurries_at_first: false, undo: CubicUndo::Maximum, ..LINUX_3_9 };
const LINUX_3_9: Law = Law {
    in_segments: true,
    counts_acks: true,
    bounds_growth: false,
    hurries_at_first: true,
    once_a_jiffy: false,
    skips_unused: false,
    skips_idle: false,
    restarts_anew: false,
    undo: CubicUndo::Window,
};
const LINUX_6_1: Law =
    Law { counts_acks: false, bounds_growth: true, once_a_jiffy: true, skips_idle: true, ..LINUX_3_9 };

impl CubicRules {
    #[inline]
    pub(super) fn law(self) -> Law {
        match self {
            CubicRules::Rfc9438 => RFC_9438,
            CubicRules::Linux26 => LINUX_2_6_32,
            CubicRules::Linux39 => LINUX_3_9,
            CubicRules::Linux61 => LINUX_6_1,
        }
    }
}
