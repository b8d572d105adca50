//! ProbeBW: the cycle of probing for bandwidth, draining the queue, cruising and refilling.

use ackclock_units::{Span, Time};

use super::model::UNBOUNDED;
use super::{Bbr, Sample, State};

/// `ack_phase`: what ACKs tell about the last probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// Nothing.
    Init,
    /// The pipe is being filled.
    Refilling,
    /// Data in flight rises, ACKs are of before.
    ProbeStarting,
    /// ACKs are of the probe.
    ProbeFeedback,
    /// The probe is over, ACKs are still of it.
    ProbeStopping,
}

/// Where the cycle stands.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// `is_bw_probe_sample`: losses are of data sent in a probe to which nothing has responded yet.
    pub(super) is_bw_probe_sample: bool,
    /// `bw_probe_up_acked`: bytes acknowledged since `inflight_longterm` rose.
    up_acked: u64,
    /// `probe_up_acked_per_inc`: bytes to be acknowledged for it to rise by a segment.
    acked_per_inc: u64,
    /// `bw_probe_up_rounds`: rounds in which it has risen in this probe.
    up_rounds: u32,
    /// `rounds_since_probe_up`.
    pub(super) rounds_since_probe_up: u32,
    /// `bw_probe_wait`.
    wait: Span,
    /// `cycle_stamp`.
    stamp: Time,
    /// `prev_probe_too_high`.
    pub(super) prev_probe_too_high: bool,
    /// `prev_probe_precautionary`.
    prev_probe_precautionary: bool,
}

impl Cycle {
    pub(super) fn new() -> Cycle {
        Cycle {
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            up_acked: 0,
            acked_per_inc: UNBOUNDED,
            up_rounds: 0,
            rounds_since_probe_up: 0,
            wait: Span::ZERO,
            stamp: Time::ZERO,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
        }
    }
}

impl Bbr {
    /// `StartProbeBW_DOWN`.
    pub(super) fn start_probe_bw_down(&mut self, now: Time) {
        self.signals.reset();
        self.cycle.acked_per_inc = UNBOUNDED;
        self.pick_probe_wait();
        self.cycle.stamp = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeBwDown;
    }

    /// `StartProbeBW_CRUISE`.
    pub(super) fn start_probe_bw_cruise(&mut self) {
        self.state = State::ProbeBwCruise;
    }

    /// `StartProbeBW_REFILL`.
    pub(super) fn start_probe_bw_refill(&mut self) {
        self.model.reset_short_term();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0;
        self.cycle.prev_probe_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeBwRefill;
    }

    /// `StartProbeBW_UP`.
    fn start_probe_bw_up(&mut self, rs: &Sample) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full_bw.reset(rs.delivery_rate);
        self.state = State::ProbeBwUp;
        self.raise_inflight_longterm_slope();
    }

    /// `PickProbeWait`.
    fn pick_probe_wait(&mut self) {
        self.cycle.rounds_since_probe_up = self.random.below(2) as u32;
        let extra = self.random.below(self.config.bw_probe_rand.as_nanos());
        self.cycle.wait = self.config.bw_probe_base + Span::from_nanos(extra);
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_probe_bw_cycle_phase(&mut self, rs: &Sample) {
        if !self.full_bw.reached || self.adapt_long_term_model(rs) {
            return;
        }
        match self.state {
            State::ProbeBwDown => {
                if !self.probes_now(rs.now) && self.is_time_to_cruise(rs) {
                    self.start_probe_bw_cruise();
                }
            }
            State::ProbeBwCruise => {
                self.probes_now(rs.now);
            }
            State::ProbeBwRefill => {
                if self.rounds.start {
                    self.cycle.is_bw_probe_sample = true;
                    self.start_probe_bw_up(rs);
                }
            }
            State::ProbeBwUp => {
                if self.is_time_to_go_down(rs) {
                    self.cycle.prev_probe_too_high = false;
                    self.start_probe_bw_down(rs.now);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// `IsTimeToProbeBW`: begins a probe if it is time, by the clock or by the rounds after which
    /// Reno would have lost a packet at this window.
    fn probes_now(&mut self, now: Time) -> bool {
        let elapsed = now > self.cycle.stamp + self.cycle.wait;
        let reno_rounds = (self.target_inflight() / self.mss).min(self.config.bw_probe_max_rounds.into());
        let due = elapsed || u64::from(self.cycle.rounds_since_probe_up) >= reno_rounds;
        if due {
            self.start_probe_bw_refill();
        }
        due
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self, rs: &Sample) -> bool {
        rs.in_flight <= self.inflight_with_headroom() && rs.in_flight <= self.inflight(self.model.max_bw(), 1.0)
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, rs: &Sample) -> bool {
        let longterm = self.model.inflight_longterm;
        if self.cycle.prev_probe_too_high && rs.in_flight >= longterm {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if rs.cwnd_limited && self.window.cwnd >= longterm {
            // The bound keeps the bandwidth from growing, not the path.
            self.full_bw.reset(rs.delivery_rate);
            return false;
        }
        self.full_bw.now
    }

    /// `RaiseInflightLongtermSlope`: 1, 2, 4, ... segments per round.
    fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = 1 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.acked_per_inc = (self.window.cwnd / growth_this_round).max(self.mss);
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_inflight_longterm_upward(&mut self, rs: &Sample) {
        if !rs.cwnd_limited || self.window.cwnd < self.model.inflight_longterm {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.up_acked = cycle.up_acked.saturating_add(rs.newly_acked);
        let delta = cycle.up_acked / cycle.acked_per_inc;
        cycle.up_acked -= delta * cycle.acked_per_inc;
        let longterm = &mut self.model.inflight_longterm;
        *longterm = longterm.saturating_add(delta.saturating_mul(self.mss));
        if self.rounds.start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// `AdaptLongTermModel`: whether it has changed the state.
    fn adapt_long_term_model(&mut self, rs: &Sample) -> bool {
        if self.cycle.ack_phase == AckPhase::ProbeStarting && self.rounds.start {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.ack_phase == AckPhase::ProbeStopping && self.rounds.start {
            self.cycle.is_bw_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !rs.is_app_limited {
                self.model.advance_max_bw_filter();
            }
            // The careful probe has done no harm: probe again, this time in earnest.
            if self.state.is_probe_bw() && self.cycle.prev_probe_precautionary && !self.cycle.prev_probe_too_high {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if self.model.inflight_longterm != UNBOUNDED && !self.is_inflight_too_high(rs.lost, rs.tx_in_flight) {
            self.model.inflight_longterm = self.model.inflight_longterm.max(rs.tx_in_flight);
            if self.state == State::ProbeBwUp {
                self.probe_inflight_longterm_upward(rs);
            }
        }
        false
    }
}
