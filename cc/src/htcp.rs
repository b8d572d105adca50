//! H-TCP: the longer the time since the last congestion, the faster the window grows; the less the
//! queue adds to the RTT, the less it is reduced.
//!
//! It measures the time since the last congestion and the least and greatest smoothed RTT. For a
//! second after congestion it behaves like NewReno, so that the two share short paths equally.
//!
//! # Source
//! FreeBSD `sys/netinet/cc/cc_htcp.c` of 9.2 and 14; D. Leith, R. Shorten: H-TCP: TCP Congestion
//! Control for High Bandwidth-Delay Product Paths, draft-leith-tcp-htcp-06, 2008. R. Shorten, D.
//! Leith: H-TCP: TCP for high-speed and long-distance networks, PFLDnet 2004.
//!
//! # Departures
//! - RTTs are exact; FreeBSD has them in 32nds of a tick. Time is in its ticks of 1 ms, and growth
//!   is truncated to whole segments.
//! - RTT scaling is by RTT / 100 ms, as in the draft and FreeBSD 9.2; FreeBSD 14 divides ticks by
//!   32nds of one, which makes it a tenth for every RTT below 320 ms.
//! - The threshold is whole segments, at least two, and what the window is after recovery: FreeBSD
//!   recomputes the latter.
//! - A timeout sets the threshold as the host's NewReno does (`timeout_flight`).

use ackclock_units::parameter::Domain;
use ackclock_units::{Span, Time, configuration};

use crate::reactions::whole_segments;
use crate::{Ack, Arrival, CongestionControl, Flight, Needs, NewReno, NewRenoConfig, Signal, Verdict, Window};

configuration! {
/// Parameters of H-TCP, named and with defaults as FreeBSD's sysctls `net.inet.tcp.cc.htcp.*`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HtcpConfig {
    /// The window comes down by the ratio of the least RTT to the greatest, between 0.5 and 0.8,
    /// and grows so much slower. Without, by half. Default false.
    pub adaptive_backoff: bool = false => (Domain::Flag, "FreeBSD `cc.htcp.adaptive_backoff`");
    /// The window grows by the same amount per unit of time on paths of 10 to 200 ms. Default
    /// false.
    pub rtt_scaling: bool = false => (Domain::Flag, "FreeBSD `cc.htcp.rtt_scaling`");
    /// Slow start, the first second after a congestion, timeouts and idle time are NewReno's, with
    /// these settings.
    pub reno: NewRenoConfig = NewRenoConfig::default() => (..);
}
}

/// Ticks per second (`hz`).
const HZ: i64 = 1000;
/// Growth is NewReno's for this long after a congestion (`HTCP_DELTA_L`), in ticks.
const DELTA_L: i64 = HZ;
/// Beyond this, in ticks, FreeBSD's arithmetic would overflow, and growth stays as it is.
const MAX_DIFF: i64 = i32::MAX as i64 / 160;
/// Fractions are in 256ths.
const SHIFT: u32 = 8;
/// 0.5 and about 0.8.
const MIN_BETA: u64 = 128;
const MAX_BETA: u64 = 204;
/// Bounds of RTT / `RTT_REF`: about 0.1, and 2.
const MIN_RATIO: u64 = 26;
const MAX_RATIO: u64 = 512;
const RTT_REF: Span = Span::from_millis(100);
/// The smoothed RTT is not trusted before it is made of this many samples.
const MIN_RTT_SAMPLES: u32 = 8;

/// H-TCP (FreeBSD).
#[derive(Clone, Debug)]
pub struct Htcp {
    config: HtcpConfig,
    reno: NewReno,
    /// Segments by which the window grows in a round trip.
    alpha: u64,
    /// The remainder of the window after a congestion, in 256ths.
    beta: u64,
    /// Least and greatest smoothed RTT; zero while there is none.
    min_rtt: Span,
    max_rtt: Span,
    samples: u32,
    /// The last congestion.
    congested_at: Time,
}

impl Htcp {
    /// A controller of a connection that is not established yet.
    pub fn new(config: HtcpConfig) -> Htcp {
        Htcp {
            config,
            reno: NewReno::new(config.reno),
            alpha: 1,
            beta: MIN_BETA,
            min_rtt: Span::ZERO,
            max_rtt: Span::ZERO,
            samples: 0,
            congested_at: Time::ZERO,
        }
    }

    /// `htcp_recalc_alpha`.
    fn update_alpha(&mut self, f: &Flight) {
        let diff = (f.now.since(self.congested_at).as_nanos() / 1_000_000) as i64 - DELTA_L;
        if diff >= MAX_DIFF {
            return;
        }
        self.alpha = 1;
        if diff <= 0 {
            return;
        }
        // 1 + 10 d + (d / 2)^2 with d in seconds, in 16ths.
        let alpha = (16 + 160 * diff / HZ + (diff / HZ) * ((diff << 4) / (4 * HZ))) >> 4;
        self.alpha = alpha.unsigned_abs();
        if self.config.adaptive_backoff {
            self.alpha = ((2 * ((1 << SHIFT) - self.beta) * self.alpha) >> SHIFT).max(1);
        }
        if self.config.rtt_scaling {
            let srtt = f.srtt.unwrap_or_default();
            self.alpha = ((ratio(srtt, RTT_REF).clamp(MIN_RATIO, MAX_RATIO) * self.alpha) >> SHIFT).max(1);
        }
    }

    /// `htcp_recalc_beta`.
    fn update_beta(&mut self) {
        let known = self.min_rtt > Span::ZERO && self.max_rtt > Span::ZERO;
        self.beta = if self.config.adaptive_backoff && known {
            ratio(self.min_rtt, self.max_rtt).clamp(MIN_BETA, MAX_BETA)
        } else {
            MIN_BETA
        };
    }

    /// A loss or an ECN echo. NewReno notes it and has halved the window, which was `before`.
    fn congested(&mut self, f: &Flight, before: Window) {
        // The greatest RTT comes down, so that it is not remembered for ever. That the least is
        // divided too is FreeBSD's way to write it; the next larger sample puts it right.
        let (least, greatest) = (u128::from(self.min_rtt.as_nanos()), u128::from(self.max_rtt.as_nanos()));
        let nanos = (least + greatest.saturating_sub(least) * 95) / 100;
        self.max_rtt = Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let mut beta = MIN_BETA;
        if before.ssthresh != Window::INFINITE {
            self.update_beta();
            beta = self.beta;
        }
        let ssthresh = whole_segments((before.cwnd * beta) >> SHIFT, f);
        self.reno.set_window(Window { cwnd: before.cwnd.min(ssthresh), ssthresh });
        self.congested_at = f.now;
    }
}

/// The ratio of two times, in 256ths.
fn ratio(part: Span, whole: Span) -> u64 {
    let ratio = (u128::from(part.as_nanos()) << SHIFT) / u128::from(whole.as_nanos().max(1));
    u64::try_from(ratio).unwrap_or(u64::MAX)
}

impl CongestionControl for Htcp {
    fn name(&self) -> &'static str {
        "htcp"
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        *self = Htcp { congested_at: f.now, ..Htcp::new(self.config) };
        self.reno.on_established(f);
    }

    fn take_over(&mut self, window: Window) {
        self.reno.take_over(window);
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        let before = self.window();
        if f.cwnd_limited {
            self.update_beta();
            self.update_alpha(f);
        }
        let verdict = self.reno.on_ack(f, ack);
        if before.cwnd > before.ssthresh || !self.config.reno.past_ssthresh && before.cwnd == before.ssthresh {
            // NewReno has added one segment per round trip.
            let mut window = self.window();
            let further = (window.cwnd - before.cwnd).saturating_mul(self.alpha - 1);
            window.grow(further);
            self.reno.set_window(window);
        }
        verdict
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        let before = self.window();
        self.reno.on_signal(f, signal);
        match signal {
            Signal::Loss | Signal::Ecn => self.congested(f, before),
            // The first may have been a false alarm.
            Signal::Timeout { repeated: true, .. } => self.congested_at = f.now,
            _ => {}
        }
    }

    /// `htcp_record_rtt`: the smoothed RTT changes with the samples alone.
    fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
        if arrival.rtt.is_none() {
            return;
        }
        self.samples = self.samples.saturating_add(1);
        let Some(srtt) = f.srtt.filter(|_| self.samples >= MIN_RTT_SAMPLES) else { return };
        if srtt < self.min_rtt || self.min_rtt == Span::ZERO {
            self.min_rtt = srtt;
        }
        self.max_rtt = self.max_rtt.max(srtt);
    }
}

#[cfg(test)]
mod tests;
