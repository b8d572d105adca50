//! Settings of what the sender does with its congestion window: pacing, and validation.

use ackclock_units::named;
use ackclock_units::parameter::{Choice, Configurable, Domain, Visitor};

/// The treatment of a congestion window that is not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CwndValidation {
    /// The window grows all the same.
    Off,
    /// The window grows all the same while the peer's window is no smaller (FreeBSD 9
    /// `cc_ack_received`). With [`crate::LossDetector::FreeBsd9`] alone; others treat it as
    /// [`CwndValidation::Off`].
    Peer,
    /// The window does not grow (RFC 2861, draft-ietf-ccwg-ratelimited-increase; Linux's
    /// `tcp_is_cwnd_limited`).
    #[default]
    Growth,
    /// The window does not grow, and falls half of the way to its used part each retransmission
    /// timeout, down to the initial window (RFC 2861, Linux).
    Rfc2861,
    /// The window stays for five minutes (RFC 7661), and after an idle time as well.
    Rfc7661,
}

named! {
    CwndValidation: Off = "off", Peer = "peer", Growth = "growth", Rfc2861 = "rfc2861", Rfc7661 = "rfc7661"
}

defaults! {
/// When a host paces, and by which rate of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Default: when the controller asks for it.
    pub when: PacingWhen = PacingWhen::Auto;
    /// The rate in the first half of slow start, in percent of a window each round trip:
    /// `net.ipv4.tcp_pacing_ss_ratio`. Default 200.
    pub ss_ratio: u32 = 200;
    /// The rate otherwise: `net.ipv4.tcp_pacing_ca_ratio`. Default 120.
    pub ca_ratio: u32 = 120;
}
}

impl Choice for Pacing {
    type Kind = PacingWhen;
    const WHAT: &'static str = "pacing";

    fn kind(&self) -> PacingWhen {
        self.when
    }

    fn of_kind(&self, when: PacingWhen) -> Pacing {
        Pacing { when, ..*self }
    }
}

impl Configurable for Pacing {
    fn parameters(&mut self, v: &mut impl Visitor) {
        if self.when == PacingWhen::On {
            let meaning = "pacing rate in slow start relative to the window per round trip, percent";
            let percent = Domain::Whole(1, 1000, "");
            v.setting("ss_ratio", meaning, percent, "tcp_pacing_ss_ratio", &mut self.ss_ratio);
            let meaning = "the same in congestion avoidance, percent";
            v.setting("ca_ratio", meaning, percent, "tcp_pacing_ca_ratio", &mut self.ca_ratio);
        }
    }
}

/// The conditions for pacing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacingWhen {
    /// Segments are paced if the controller has a rate, or the application sets one.
    #[default]
    Auto,
    /// Always: by the controller's rate, or the window's.
    On,
    /// Never.
    Off,
}

named! { PacingWhen: Auto = "auto", On = "on", Off = "off" }
