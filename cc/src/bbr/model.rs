//! The model of the path: round trips, bandwidth, aggregation, and what follows from them for the
//! data in flight.

use ackclock_units::Time;

use super::filter::MaxFilter;
use super::{Bbr, Sample, State};
use crate::Window;

/// "Infinity" for volumes.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// Packet-timed round trips.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// `round_count`.
    pub(super) count: u64,
    /// `round_start`: the ACK in hand began a round.
    pub(super) start: bool,
    /// `next_round_delivered`.
    next_delivered: u64,
}

/// Bandwidths in bytes per second, volumes in bytes.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// `max_bw_filter`: the previous cycle and the current one.
    max_bw: [f64; 2],
    /// `bw`.
    pub(super) bw: f64,
    /// `bw_shortterm`; infinite while there is none.
    pub(super) bw_shortterm: f64,
    /// `inflight_shortterm`; [`UNBOUNDED`] while there is none.
    pub(super) inflight_shortterm: u64,
    /// `inflight_longterm`; [`UNBOUNDED`] while there is none.
    pub(super) inflight_longterm: u64,
}

impl Model {
    pub(super) fn new() -> Model {
        Model {
            max_bw: [0.0; 2],
            bw: 0.0,
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: UNBOUNDED,
            inflight_longterm: UNBOUNDED,
        }
    }

    /// `max_bw`.
    pub(super) fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// `AdvanceMaxBwFilter`.
    pub(super) fn advance_max_bw_filter(&mut self) {
        if self.max_bw[1] > 0.0 {
            self.max_bw = [self.max_bw[1], 0.0];
        }
    }

    /// `ResetShortTermModel`.
    pub(super) fn reset_short_term(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = UNBOUNDED;
    }
}

/// The clustering of ACKs (draft, "BBR.extra_acked").
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    /// `extra_acked_interval_start`.
    interval_start: Time,
    /// `extra_acked_delivered`.
    delivered: u64,
    /// `extra_acked_filter`.
    filter: MaxFilter,
}

impl Aggregation {
    pub(super) fn new(now: Time) -> Aggregation {
        Aggregation { interval_start: now, delivered: 0, filter: MaxFilter::new() }
    }

    /// A new interval.
    pub(super) fn restart(&mut self, now: Time) {
        self.interval_start = now;
        self.delivered = 0;
    }

    /// `extra_acked`, bytes.
    pub(super) fn extra_acked(&self) -> u64 {
        self.filter.get()
    }
}

impl Bbr {
    /// `UpdateRound`.
    fn update_round(&mut self, rs: &Sample) {
        self.rounds.start = rs.prior_delivered.is_some_and(|prior| prior >= self.rounds.next_delivered);
        if self.rounds.start {
            self.start_round();
            self.rounds.count += 1;
            self.cycle.rounds_since_probe_up = self.cycle.rounds_since_probe_up.saturating_add(1);
        }
    }

    /// `StartRound`.
    pub(super) fn start_round(&mut self) {
        self.rounds.next_delivered = self.delivered;
    }

    /// `UpdateMaxBw`. A sample limited by the application counts only if it is more than was known.
    pub(super) fn update_max_bw(&mut self, rs: &Sample) {
        self.update_round(rs);
        if rs.delivery_rate > 0.0 && (rs.delivery_rate >= self.model.max_bw() || !rs.is_app_limited) {
            let current = &mut self.model.max_bw[1];
            *current = current.max(rs.delivery_rate);
        }
    }

    /// `BoundBWForModel`.
    pub(super) fn bound_bw_for_model(&mut self) {
        self.model.bw = self.model.max_bw().min(self.model.bw_shortterm);
    }

    /// `UpdateACKAggregation`.
    pub(super) fn update_ack_aggregation(&mut self, rs: &Sample) {
        let interval = rs.now.since(self.aggregation.interval_start).as_secs_f64();
        let mut expected = (self.model.bw * interval) as u64;
        if self.aggregation.delivered <= expected {
            self.aggregation.restart(rs.now);
            expected = 0;
        }
        let delivered = self.aggregation.delivered.saturating_add(rs.newly_acked);
        self.aggregation.delivered = delivered;
        let extra = (delivered - expected).min(self.window.cwnd);
        // In Startup the rate grows too fast for more than one round to say anything.
        let window = if self.full_bw.reached { self.config.extra_acked_filter_len.into() } else { 1 };
        self.aggregation.filter.update(window, self.rounds.count, extra);
    }

    /// `BDPMultiple`: bytes.
    pub(super) fn bdp_multiple(&self, bw: f64, gain: f64) -> u64 {
        match self.min_rtt.get() {
            Some(min_rtt) => (gain * bw * min_rtt.as_secs_f64()).ceil() as u64,
            None => self.initial_cwnd,
        }
    }

    /// `QuantizationBudget`: bytes.
    pub(super) fn quantization_budget(&self, inflight_cap: u64) -> u64 {
        let cap = inflight_cap.max(3 * self.pacing.send_quantum(self.mss)).max(self.min_pipe_cwnd());
        if self.state == State::ProbeBwUp { cap.saturating_add(2 * self.mss) } else { cap }
    }

    /// `Inflight`: bytes.
    pub(super) fn inflight(&self, bw: f64, gain: f64) -> u64 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    /// `UpdateMaxInflight`: bytes.
    pub(super) fn max_inflight(&self) -> u64 {
        let cap = self.bdp_multiple(self.model.bw, self.cwnd_gain());
        self.quantization_budget(cap.saturating_add(self.aggregation.extra_acked()))
    }

    /// `TargetInflight`: bytes.
    pub(super) fn target_inflight(&self) -> u64 {
        self.inflight(self.model.bw, 1.0).min(self.window.cwnd)
    }

    /// `InflightWithHeadroom`: bytes.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        let longterm = self.model.inflight_longterm;
        if longterm == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = ((self.config.headroom * longterm as f64) as u64).max(self.mss);
        longterm.saturating_sub(headroom).max(self.min_pipe_cwnd())
    }

    /// `MinPipeCwnd`: bytes.
    pub(super) fn min_pipe_cwnd(&self) -> u64 {
        (u64::from(self.config.min_pipe_cwnd).max(2) * self.mss).min(Window::MAX)
    }
}
