//! Settings of what the sender does with its congestion window: pacing, and validation.

/// What becomes of a congestion window that is not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CwndValidation {
    /// It grows all the same.
    Off,
    /// It grows all the same while the peer's window is no smaller (FreeBSD 9 `cc_ack_received`).
    /// With [`crate::LossDetector::FreeBsd9`] alone; with others as [`CwndValidation::Off`].
    Peer,
    /// It does not grow (RFC 2861, draft-ietf-ccwg-ratelimited-increase; Linux's
    /// `tcp_is_cwnd_limited`).
    #[default]
    Growth,
    /// That, and it falls half of the way to what was used each retransmission timeout, down to the
    /// initial window (RFC 2861, Linux).
    Rfc2861,
    /// It stays for five minutes (RFC 7661), and after an idle time as well.
    Rfc7661,
}

impl CwndValidation {
    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            CwndValidation::Off => "off",
            CwndValidation::Peer => "peer",
            CwndValidation::Growth => "growth",
            CwndValidation::Rfc2861 => "rfc2861",
            CwndValidation::Rfc7661 => "rfc7661",
        }
    }
}

/// When a host paces, and by which rate of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Default: when the controller asks for it.
    pub when: PacingWhen,
    /// The rate in the first half of slow start, in percent of a window each round trip:
    /// `net.ipv4.tcp_pacing_ss_ratio`. Default 200.
    pub ss_ratio: u32,
    /// The rate otherwise: `net.ipv4.tcp_pacing_ca_ratio`. Default 120.
    pub ca_ratio: u32,
}

impl Default for Pacing {
    fn default() -> Pacing {
        Pacing { when: PacingWhen::Auto, ss_ratio: 200, ca_ratio: 120 }
    }
}

/// Whether segments are paced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacingWhen {
    /// If the controller has a rate for it, or the application sets one.
    #[default]
    Auto,
    /// Always: by the controller's rate, or the window's.
    On,
    /// Never.
    Off,
}

impl PacingWhen {
    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            PacingWhen::Auto => "auto",
            PacingWhen::On => "on",
            PacingWhen::Off => "off",
        }
    }
}
