//! Scalable TCP: the window grows by a hundredth of what is acknowledged and is reduced by an
//! eighth, so that the time to recover from a loss does not depend on the rate.
//!
//! It measures only acknowledged bytes (or ACKs). Below a window of 100 segments it grows as Reno
//! does, by one segment per round trip.
//!
//! # Source
//! T. Kelly: Scalable TCP: Improving Performance in Highspeed Wide Area Networks, ACM CCR 33(2),
//! 2003. Linux 5.7 `net/ipv4/tcp_scalable.c`; for hosts that count ACKs, the same file of 2.6.24.
//!
//! # Departures
//! - Linux 4.0 to 5.6 count ACKs here, and segments elsewhere: `linux-4.0` has the rule of 5.7. At
//!   one ACK for two segments both grow by the same amount.
//! - The paper keeps Reno's rules below a window of 16 segments (`lwnd`), reductions included; the
//!   kernel has no such bound and divides by at most the window.
//! - `halve_flight`, `timeout_flight` and `beta_ecn` of the host's NewReno apply, with an eighth in
//!   place of a half.

use ackclock_units::configuration;
use ackclock_units::parameter::Domain;

use crate::algorithm::{Algorithm, Stack};
use crate::reactions::{used_at_loss, used_at_timeout, whole_segments};
use crate::{Ack, CongestionControl, Flight, Needs, NewReno, NewRenoConfig, Signal, SlowStartRules, Verdict, Window};

configuration! {
/// Parameters of Scalable TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalableConfig {
    /// The window grows by one segment for so many segments (or ACKs) acknowledged, or for a window
    /// of them if that is less (`TCP_SCALABLE_AI_CNT`). Default 100; 50 on hosts that count ACKs.
    pub ai_cnt: u32 = 100 => (Domain::Whole(1, 10_000, "segments"), "Linux `TCP_SCALABLE_AI_CNT`");
    /// A reduction takes the window divided by 2 to this power (`TCP_SCALABLE_MD_SCALE`). Default 3.
    pub md_scale: u32 = 3 => (Domain::Whole(1, 31, ""), "Linux `TCP_SCALABLE_MD_SCALE`");
    /// Slow start, timeouts and idle time are NewReno's, with these settings.
    pub reno: NewRenoConfig = NewRenoConfig::linux() => (..);
}
}

impl Algorithm for ScalableConfig {
    fn on(host: &Stack) -> ScalableConfig {
        let ai_cnt = if host.newreno.abc { 100 } else { 50 };
        ScalableConfig { ai_cnt, reno: host.newreno, ..ScalableConfig::default() }
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        Some(&mut self.reno.slow_start)
    }
}

/// Scalable TCP (Linux).
#[derive(Clone, Debug)]
pub struct Scalable {
    config: ScalableConfig,
    reno: NewReno,
}

impl Scalable {
    /// A controller of a connection that is not established yet.
    pub fn new(config: ScalableConfig) -> Scalable {
        Scalable { config, reno: NewReno::new(config.reno) }
    }

    /// `tcp_scalable_ssthresh`, of a window of `used` bytes.
    fn reduced(&self, used: u64, f: &Flight) -> u64 {
        let segments = used / f.segment();
        let part = segments.checked_shr(self.config.md_scale).unwrap_or(0);
        whole_segments((segments - part).saturating_mul(f.segment()), f)
    }
}

impl CongestionControl for Scalable {
    fn name(&self) -> &'static str {
        "scalable"
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn needs(&self) -> Needs {
        // `.min_cwnd` is `tcp_reno_min_cwnd`.
        Needs { reno_halving: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        self.reno.on_established(f);
    }

    fn take_over(&mut self, window: Window) {
        self.reno.take_over(window);
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        let acked = self.reno.slow_start(f, ack);
        if acked > 0 {
            let per_segment = u64::from(self.config.ai_cnt).saturating_mul(f.segment());
            self.reno.avoid_by(per_segment.min(self.window().cwnd), f, acked);
        }
        Verdict::Continue
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        let before = self.window();
        self.reno.on_signal(f, signal);
        let ssthresh = match signal {
            // RFC 8511 has a factor of its own.
            Signal::Ecn if self.config.reno.beta_ecn.is_some() => return,
            Signal::Loss | Signal::Ecn => self.reduced(used_at_loss(&before, f, &self.config.reno), f),
            Signal::Timeout { repeated: false, .. } => self.reduced(used_at_timeout(&before, f, &self.config.reno), f),
            _ => return,
        };
        let cwnd = match signal {
            Signal::Timeout { .. } => self.window().cwnd,
            _ => before.cwnd.min(ssthresh),
        };
        self.reno.set_window(Window { cwnd, ssthresh });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{MSS, acks, cwnd, flight, ssthresh};

    /// Above its threshold, with a window of `segments`.
    fn avoiding(config: ScalableConfig, segments: u64) -> Scalable {
        let mut scalable = Scalable::new(config);
        scalable.on_established(&flight(0, 0));
        scalable.take_over(Window { cwnd: segments * MSS, ssthresh: 2 * MSS });
        scalable
    }

    /// `tcp_cong_avoid_ai(tp, min(snd_cwnd, 100), acked)`: 1000 segments make 10 of a window of
    /// 1000, whether an ACK covers one or two of them.
    #[test]
    fn a_large_window_grows_by_a_hundredth_of_what_is_acknowledged() {
        for each in [1, 2] {
            let mut scalable = avoiding(ScalableConfig::default(), 1000);
            acks(&mut scalable, 100, 1000, each);
            assert_eq!(cwnd(&scalable), 1010);
        }
    }

    /// A window of 40 is less than 100: as Reno, one segment for 40, then for 41.
    #[test]
    fn a_small_window_grows_by_one_segment_per_round_trip() {
        let mut scalable = avoiding(ScalableConfig::default(), 40);
        acks(&mut scalable, 100, 40, 1);
        assert_eq!(cwnd(&scalable), 41);
        acks(&mut scalable, 200, 41, 1);
        assert_eq!(cwnd(&scalable), 42);
    }

    /// Linux 2.6.24 compares before it counts: 51 ACKs for a segment, 1020 for 20.
    #[test]
    fn hosts_that_count_acks_grow_by_one_segment_for_50() {
        let newreno = NewRenoConfig { abc: false, ..NewRenoConfig::default() };
        let config = ScalableConfig::on(&Stack { linux: true, newreno, ..Stack::default() });
        assert_eq!(config.ai_cnt, 50);
        let mut scalable = avoiding(config, 1000);
        acks(&mut scalable, 100, 2 * 1020, 2);
        assert_eq!(cwnd(&scalable), 1020);
    }

    /// `max(cwnd - (cwnd >> 3), 2)`: 100 - 12, 7 - 0, and 2 at least.
    #[test]
    fn congestion_takes_an_eighth() {
        for (before, after) in [(100, 88), (8, 7), (7, 7), (1, 2)] {
            for signal in [Signal::Loss, Signal::Ecn, Signal::Timeout { repeated: false, kept: 0 }] {
                let mut scalable = avoiding(ScalableConfig::default(), before);
                scalable.on_signal(&flight(100, before), signal);
                let left = if let Signal::Timeout { .. } = signal { 1 } else { after.min(before) };
                assert_eq!((cwnd(&scalable), ssthresh(&scalable)), (left, after), "{before}, {signal:?}");
            }
        }
    }

    /// ABE's 0.8 for a mark, an eighth for a loss.
    #[test]
    fn beta_ecn_is_for_marks() {
        let reno = NewRenoConfig { beta_ecn: Some(0.8), ..NewRenoConfig::default() };
        for (signal, left) in [(Signal::Ecn, 80), (Signal::Loss, 88)] {
            let mut scalable = avoiding(ScalableConfig { reno, ..ScalableConfig::default() }, 100);
            scalable.on_signal(&flight(100, 100), signal);
            assert_eq!(cwnd(&scalable), left);
        }
    }
}
