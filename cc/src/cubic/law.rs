//! The named behaviours of the sets of rules ([`CubicRules`]). Where nothing else is said, the
//! source is Linux `net/ipv4/tcp_cubic.c`.

use ackclock_units::maths;

use super::config::CubicRules;

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

/// `W_cubic(t) = C (t - K)^3 + W_max`, in segments and seconds (RFC 9438 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Curve {
    pub(super) c: f64,
    pub(super) k: f64,
    pub(super) w_max: f64,
}

impl Curve {
    /// The curve that starts at `cwnd`. From `w_max` or above it is convex at once (sections 4.8
    /// and 4.10).
    pub(super) fn new(c: f64, w_max: f64, cwnd: f64) -> Curve {
        if w_max <= cwnd {
            return Curve { c, k: 0.0, w_max: cwnd };
        }
        Curve { c, k: maths::cbrt((w_max - cwnd) / c), w_max }
    }

    pub(super) fn at(&self, t: f64) -> f64 {
        self.w_max + self.above(t)
    }

    /// Height of the curve above its flat part; negative before `k`.
    pub(super) fn above(&self, t: f64) -> f64 {
        let t = t - self.k;
        self.c * t * t * t
    }
}
