//! Parameters of CUBIC.

use ackclock_units::parameter::Domain;
use ackclock_units::{Span, Time, configuration, named};

use crate::NewRenoConfig;
use crate::domains::TIME;

/// The rules by which the cubic curve becomes growth per ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CubicRules {
    /// RFC 9438: a fraction of a segment for every segment acknowledged.
    Rfc9438,
    /// Linux 2.6.32: as 3.9, but growth does not begin faster before the first loss; and what is
    /// taken back is the window that the curve has for its maximum.
    Linux26,
    /// Linux 3.9: one segment after so many ACKs, corrected by the mean number of segments that an
    /// ACK covers.
    Linux39,
    /// Linux 6.1: one segment after so many segments acknowledged, at least 2; idle time is taken
    /// out of the curve.
    Linux61,
}

named! { CubicRules: Rfc9438 = "rfc9438", Linux26 = "linux-2.6.32", Linux39 = "linux-3.9", Linux61 = "linux-6.1" }

const RULES: Domain = Domain::named::<CubicRules>("set of rules");

configuration! {
/// Parameters of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicConfig {
    /// Multiplicative decrease factor. Default 0.7 (RFC 9438 section 4.6).
    pub beta: f64 = 0.7 => (Domain::Number(0.1, 0.99, ""), "RFC 9438 s4.6");
    /// C, in segments per second cubed. Default 0.4 (RFC 9438 section 5.1).
    pub c: f64 = 0.4 => (Domain::Number(0.001, 1000.0, "segments/s^3"), "RFC 9438 s5.1");
    /// Fast convergence (RFC 9438 section 4.7). Default true.
    pub fast_convergence: bool = true => (Domain::Flag, "RFC 9438 s4.7");
    /// The Reno-friendly region (RFC 9438 section 4.3). Default true.
    pub reno_friendly: bool = true => (Domain::Flag, "RFC 9438 s4.3");
    /// The rules by which the curve becomes growth. Default RFC 9438.
    pub rules: CubicRules = CubicRules::Rfc9438 => (RULES, "RFC 9438; Linux `tcp_cubic.c`");
    /// The clock ticks so often: a jiffy, 1 / `HZ`, of Linux. Default 0: it is exact.
    pub tick: Span = Span::ZERO => (TIME, "Linux `HZ`");
    /// Slow start, the window after recovery and after idle are Reno's (RFC 9438 section 4.10),
    /// with these settings; so is the factor for ECN.
    pub reno: NewRenoConfig = NewRenoConfig::default() => (..);
}
}

impl CubicConfig {
    /// A time in ticks; nanoseconds if the clock is exact.
    pub(super) fn ticks(&self, at: Time) -> u64 {
        at.as_nanos() / self.tick.as_nanos().max(1)
    }
}
