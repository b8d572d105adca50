//! Startup and Drain: until the bandwidth is known, and until the queue built by the search has
//! drained.

use super::loss::Recovery;
use super::{Bbr, Sample, State};
use crate::Window;

/// The rate has to grow by this factor in a round for it not to count as a plateau (draft, "Exiting
/// Acceleration Based on Bandwidth Plateau").
const GROWTH: f64 = 1.25;
/// Rounds without that growth.
const ROUNDS: u32 = 3;
/// Rounds after which Drain ends whatever is in flight.
const DRAIN_ROUNDS: u64 = 3;

/// The search for a plateau of the delivery rate.
#[derive(Clone, Debug, Default)]
pub(super) struct FullBw {
    /// `full_bw_reached`: ever.
    pub(super) reached: bool,
    /// `full_bw_now`: since the search began.
    pub(super) now: bool,
    /// `full_bw`: bytes per second.
    baseline: f64,
    /// `full_bw_count`.
    count: u32,
    /// `drain_start_round`.
    drain_start_round: u64,
}

impl FullBw {
    /// `ResetFullBW`, with the rate from which growth is counted.
    pub(super) fn reset(&mut self, baseline: f64) {
        (self.now, self.baseline, self.count) = (false, baseline, 0);
    }
}

impl Bbr {
    /// `EnterStartup`.
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
        self.window.ssthresh = Window::INFINITE;
    }

    /// `CheckFullBWReached`. An ACK whose sample has no rate tells nothing of a plateau.
    pub(super) fn check_full_bw_reached(&mut self, rs: &Sample) {
        let full_bw = &mut self.full_bw;
        if full_bw.now || !self.rounds.start || rs.is_app_limited || rs.delivery_rate <= 0.0 {
            return;
        }
        if rs.delivery_rate >= full_bw.baseline * GROWTH {
            full_bw.reset(rs.delivery_rate);
            return;
        }
        full_bw.count += 1;
        full_bw.now = full_bw.count >= ROUNDS;
        full_bw.reached |= full_bw.now;
    }

    /// `CheckStartupDone`.
    pub(super) fn check_startup_done(&mut self, rs: &Sample) {
        self.check_startup_high_loss(rs);
        if self.state == State::Startup && self.full_bw.reached {
            self.enter_drain();
        }
    }

    /// `CheckStartupHighLoss`.
    fn check_startup_high_loss(&mut self, rs: &Sample) {
        if self.full_bw.reached || self.episode.recovery != Recovery::Fast {
            return;
        }
        let signals = &self.signals;
        // The round began with its first loss, so that its end is a round trip after that at least.
        let enough = if signals.has_selective_acks {
            signals.loss_round_start && signals.ranges_ended >= self.config.startup_full_loss_cnt
        } else {
            true
        };
        if enough && self.is_inflight_too_high(rs.lost, rs.tx_in_flight) {
            self.episode.undo_state(State::Startup);
            self.exit_startup_on_congestion();
        }
    }

    /// Startup has filled more than the path holds.
    pub(super) fn exit_startup_on_congestion(&mut self) {
        self.full_bw.reached = true;
        let bdp = self.bdp_multiple(self.model.bw, 1.0);
        self.model.inflight_longterm = bdp.max(self.signals.inflight_latest);
    }

    /// `EnterDrain`.
    fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.full_bw.drain_start_round = self.rounds.count;
        // For those who look: slow start is over. The window is above it ever after, so that one
        // that is half used does not pass for a limit, as it does in slow start.
        self.window.ssthresh = 2 * self.mss;
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, rs: &Sample) {
        let late = self.rounds.count > self.full_bw.drain_start_round + DRAIN_ROUNDS;
        if self.state == State::Drain && (rs.in_flight <= self.inflight(self.model.bw, 1.0) || late) {
            // EnterProbeBW.
            self.start_probe_bw_down(rs.now);
        }
    }
}
