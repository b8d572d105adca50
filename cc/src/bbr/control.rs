//! From the model to pacing rate and window.

use ackclock_units::{Rate, Span};

use super::model::UNBOUNDED;
use super::{Bbr, Sample, State};
use crate::Window;

/// The round trip before one is known (draft, "Pacing Rate").
const NOMINAL_RTT: Span = Span::from_millis(1);

/// `C.pacing_rate`.
#[derive(Clone, Debug)]
pub(super) struct PacingControl {
    bytes_per_second: f64,
    /// The rate is based on a round trip that was measured.
    has_seen_rtt: bool,
}

impl PacingControl {
    pub(super) fn new() -> PacingControl {
        PacingControl { bytes_per_second: 0.0, has_seen_rtt: false }
    }

    pub(super) fn rate(&self) -> Rate {
        let bits = ((self.bytes_per_second * 8.0) as u64).clamp(1, Rate::MAX.as_bps());
        Rate::from_bps(bits).unwrap_or(Rate::MAX)
    }

    /// `C.send_quantum`, bytes.
    pub(super) fn send_quantum(&self, mss: u64) -> u64 {
        ((self.bytes_per_second * 0.001) as u64).min(64 << 10).max(2 * mss)
    }
}

impl Bbr {
    /// `InitPacingRate`.
    pub(super) fn init_pacing_rate(&mut self, srtt: Option<Span>) {
        let srtt = srtt.filter(|srtt| *srtt > Span::ZERO);
        self.pacing.has_seen_rtt = srtt.is_some();
        let nominal_bandwidth = self.initial_cwnd as f64 / srtt.unwrap_or(NOMINAL_RTT).as_secs_f64();
        self.pacing.bytes_per_second = self.config.startup_pacing_gain * nominal_bandwidth;
    }

    /// The first round trip is known.
    pub(super) fn see_srtt(&mut self, srtt: Option<Span>) {
        if !self.pacing.has_seen_rtt && srtt.is_some_and(|srtt| srtt > Span::ZERO) {
            self.init_pacing_rate(srtt);
        }
    }

    /// `pacing_gain`.
    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.config.startup_pacing_gain,
            State::Drain => self.config.drain_pacing_gain,
            State::ProbeBwDown => self.config.probe_down_pacing_gain,
            State::ProbeBwUp => self.config.probe_up_pacing_gain,
            State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeRtt => 1.0,
        }
    }

    /// `cwnd_gain`.
    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::ProbeBwUp => self.config.probe_up_cwnd_gain,
            State::ProbeRtt => self.config.probe_rtt_cwnd_gain,
            _ => self.config.default_cwnd_gain,
        }
    }

    /// `SetPacingRate`.
    pub(super) fn set_pacing_rate(&mut self) {
        self.set_pacing_rate_with_gain(self.pacing_gain());
    }

    /// `SetPacingRateWithGain`. Until the bandwidth is found the rate does not fall.
    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = gain * self.model.bw * (100.0 - self.config.pacing_margin_percent) / 100.0;
        if self.full_bw.reached || rate > self.pacing.bytes_per_second {
            self.pacing.bytes_per_second = rate;
        }
    }

    /// `SetCwnd`.
    pub(super) fn set_cwnd(&mut self, rs: &Sample) {
        let max_inflight = self.max_inflight();
        let grown = self.window.cwnd.saturating_add(rs.newly_acked).min(Window::MAX);
        if self.full_bw.reached {
            self.window.cwnd = grown.min(max_inflight);
        } else if self.window.cwnd < max_inflight || self.delivered < self.initial_cwnd {
            self.window.cwnd = grown;
        }
        self.window.cwnd = self.window.cwnd.max(self.min_pipe_cwnd());
        if self.state == State::ProbeRtt {
            self.window.cwnd = self.window.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// `ProbeRTTCwnd`: bytes.
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp_multiple(self.model.bw, self.config.probe_rtt_cwnd_gain).max(self.min_pipe_cwnd())
    }

    /// `BoundCwndForModel`.
    fn bound_cwnd_for_model(&mut self) {
        let longterm = match self.state {
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.model.inflight_longterm,
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => UNBOUNDED,
        };
        let cap = longterm.min(self.model.inflight_shortterm).max(self.min_pipe_cwnd());
        self.window.cwnd = self.window.cwnd.min(cap);
    }
}
