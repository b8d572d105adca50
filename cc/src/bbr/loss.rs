//! The effects of losses: the bounds derived from them, the episodes of their repair, and how these
//! effects are undone.

use ackclock_units::Time;

use super::model::UNBOUNDED;
use super::{Bbr, Sample, State};
use crate::{Flight, Lost, Window};

/// The last round trip's deliveries and losses.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// `bw_latest`: bytes per second.
    pub(super) bw_latest: f64,
    /// `inflight_latest`: bytes.
    pub(super) inflight_latest: u64,
    /// `loss_round_delivered`: the round trip ends with what is sent after this much was delivered.
    loss_round_delivered: u64,
    /// `loss_round_start`: the ACK in hand ended it.
    pub(super) loss_round_start: bool,
    /// `is_loss_in_round`.
    loss_in_round: bool,
    /// `C.has_selective_acks`, as far as losses have told it.
    pub(super) has_selective_acks: bool,
    /// Discontiguous ranges lost in the round trip, and in the one that the ACK in hand ended.
    ranges: u32,
    pub(super) ranges_ended: u32,
    /// Where the last range ends.
    range_end: u64,
    /// When a lost segment was last told of.
    told_at: Option<Time>,
}

impl Signals {
    /// `ResetCongestionSignals`.
    pub(super) fn reset(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0;
    }
}

/// The repair of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Recovery {
    /// No.
    #[default]
    None,
    /// Fast recovery.
    Fast,
    /// After a timeout.
    Timeout,
}

/// An episode of repair and what it may have to give back.
#[derive(Clone, Debug, Default)]
pub(super) struct Episode {
    pub(super) recovery: Recovery,
    /// `prior_cwnd`: the last window that neither repair nor ProbeRTT had a part in.
    prior_cwnd: u64,
    undo: Option<LossUndo>,
}

/// The state before an episode.
#[derive(Clone, Debug)]
struct LossUndo {
    at: Time,
    cwnd: u64,
    /// `undo_state`: what the episode put an end to.
    state: Option<State>,
    bw_shortterm: f64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
}

impl Episode {
    /// The episode has put an end to this state.
    pub(super) fn undo_state(&mut self, state: State) {
        if let Some(undo) = &mut self.undo {
            undo.state = Some(state);
        }
    }
}

impl Bbr {
    /// `UpdateLatestDeliverySignals`.
    pub(super) fn update_latest_delivery_signals(&mut self, rs: &Sample) {
        let signals = &mut self.signals;
        signals.bw_latest = signals.bw_latest.max(rs.delivery_rate);
        signals.inflight_latest = signals.inflight_latest.max(rs.delivered);
        signals.loss_round_start = rs.prior_delivered.is_some_and(|prior| prior >= signals.loss_round_delivered);
        if signals.loss_round_start {
            signals.loss_round_delivered = self.delivered;
            signals.ranges_ended = std::mem::take(&mut signals.ranges);
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance_latest_delivery_signals(&mut self, rs: &Sample) {
        if self.signals.loss_round_start {
            self.signals.bw_latest = rs.delivery_rate;
            self.signals.inflight_latest = rs.delivered;
        }
    }

    /// `UpdateCongestionSignals`.
    pub(super) fn update_congestion_signals(&mut self, rs: &Sample) {
        self.update_max_bw(rs);
        if self.signals.loss_round_start {
            let lost = std::mem::take(&mut self.signals.loss_in_round);
            if lost && !self.state.is_probing() {
                self.adapt_lower_bounds();
            }
        }
    }

    /// `AdaptLowerBoundsFromCongestion`: towards what the last round trip delivered.
    pub(super) fn adapt_lower_bounds(&mut self) {
        let (model, signals, beta) = (&mut self.model, &self.signals, self.config.beta);
        if model.bw_shortterm == f64::INFINITY {
            model.bw_shortterm = model.max_bw();
        }
        if model.inflight_shortterm == UNBOUNDED {
            model.inflight_shortterm = self.window.cwnd;
        }
        model.bw_shortterm = signals.bw_latest.max(beta * model.bw_shortterm);
        let cut = (beta * model.inflight_shortterm as f64) as u64;
        model.inflight_shortterm = signals.inflight_latest.max(cut);
    }

    /// `IsInflightTooHigh`: `lost` of `tx_in_flight` bytes.
    pub(super) fn is_inflight_too_high(&self, lost: u64, tx_in_flight: u64) -> bool {
        self.is_loss_rate_too_high(lost, tx_in_flight) || (lost > 0 && !self.signals.has_selective_acks)
    }

    fn is_loss_rate_too_high(&self, lost: u64, tx_in_flight: u64) -> bool {
        lost as f64 > tx_in_flight as f64 * self.config.loss_thresh
    }

    /// `HandleInflightTooHigh`, once for a probe.
    fn handle_inflight_too_high(&mut self, now: Time, tx_in_flight: u64, is_app_limited: bool) {
        self.cycle.prev_probe_too_high = true;
        self.cycle.is_bw_probe_sample = false;
        if !is_app_limited {
            let cut = (self.target_inflight() as f64 * self.config.beta) as u64;
            self.model.inflight_longterm = tx_in_flight.max(cut);
        }
        if self.state == State::ProbeBwUp {
            self.episode.undo_state(State::ProbeBwUp);
            self.start_probe_bw_down(now);
        }
    }

    /// `NoteLoss`.
    fn note_loss(&mut self) {
        if !self.signals.loss_in_round {
            self.signals.loss_round_delivered = self.delivered;
            self.signals.ranges = 0;
        }
        self.signals.loss_in_round = true;
    }

    /// `HandleLostPacket`.
    pub(super) fn handle_lost_packet(&mut self, now: Time, lost: &Lost) {
        self.signals.has_selective_acks = lost.selective_acks;
        self.signals.told_at = Some(now);
        self.enter_fast_recovery(now);
        self.note_loss();
        if self.signals.ranges == 0 || lost.seq != self.signals.range_end {
            self.signals.ranges = self.signals.ranges.saturating_add(1);
        }
        self.signals.range_end = lost.seq.saturating_add(lost.bytes.into());
        if !self.cycle.is_bw_probe_sample {
            return;
        }
        let since_sent = lost.total_lost.saturating_sub(lost.prior_lost);
        if self.is_inflight_too_high(since_sent, lost.in_flight_when_sent) {
            let tx_in_flight = self.inflight_at_loss(lost, since_sent);
            let app_limited = lost.app_limited || self.probe_rtt.marks(lost.prior_delivered);
            self.handle_inflight_too_high(now, tx_in_flight, app_limited);
        }
    }

    /// Fast recovery begins. No segment was told lost if a tail loss probe has repaired it; it
    /// counts as one all the same (Linux, `bbr_run_loss_probe_recovery`).
    pub(super) fn handle_loss_signal(&mut self, f: &Flight) {
        self.enter_fast_recovery(f.now);
        if self.signals.told_at == Some(f.now) {
            return;
        }
        self.note_loss();
        let tx_in_flight = self.signals.inflight_latest.saturating_add(self.mss);
        if self.cycle.is_bw_probe_sample && self.is_loss_rate_too_high(self.mss, tx_in_flight) {
            self.handle_inflight_too_high(f.now, tx_in_flight, f.app_limited);
        }
    }

    /// `InflightAtLoss`: how much of what was in flight with this packet would have kept below the
    /// threshold. The prefix of the packet is the x of
    /// `(lost_prev + x) / (inflight_prev + x) = LossThresh`.
    fn inflight_at_loss(&self, lost: &Lost, since_sent: u64) -> u64 {
        let size = u64::from(lost.bytes);
        let inflight_prev = lost.in_flight_when_sent.saturating_sub(size);
        let lost_prev = since_sent.saturating_sub(size) as f64;
        let thresh = self.config.loss_thresh;
        let prefix = (thresh * inflight_prev as f64 - lost_prev) / (1.0 - thresh);
        inflight_prev.saturating_add(prefix.max(0.0) as u64)
    }

    /// A congestion echo: the queue is too long for the one who marks, and a loss before it was no
    /// illusion.
    pub(super) fn handle_ecn(&mut self, f: &Flight) {
        self.episode.undo = None;
        self.note_loss();
        if self.state == State::Startup {
            self.exit_startup_on_congestion();
        } else if self.cycle.is_bw_probe_sample {
            self.handle_inflight_too_high(f.now, f.in_flight, false);
        }
    }

    /// `SaveCwnd`.
    pub(super) fn save_cwnd(&mut self) {
        let cwnd = self.window.cwnd;
        let modulated = self.episode.recovery != Recovery::None || self.state == State::ProbeRtt;
        self.episode.prior_cwnd = if modulated { self.episode.prior_cwnd.max(cwnd) } else { cwnd };
    }

    /// `RestoreCwnd`.
    pub(super) fn restore_cwnd(&mut self) {
        self.window.cwnd = self.window.cwnd.max(self.episode.prior_cwnd).min(Window::MAX);
    }

    /// `SaveStateUponLoss`.
    fn save_state_upon_loss(&mut self, at: Time) {
        self.save_cwnd();
        self.episode.undo = Some(LossUndo {
            at,
            cwnd: self.window.cwnd,
            state: None,
            bw_shortterm: self.model.bw_shortterm,
            inflight_shortterm: self.model.inflight_shortterm,
            inflight_longterm: self.model.inflight_longterm,
        });
    }

    /// `OnEnterFastRecovery`. A loss may be told before the episode that it opens.
    pub(super) fn enter_fast_recovery(&mut self, now: Time) {
        if self.episode.recovery == Recovery::None || self.episode.undo.is_none() {
            self.save_state_upon_loss(now);
        }
        if self.episode.recovery == Recovery::None {
            self.episode.recovery = Recovery::Fast;
        }
        self.save_cwnd_again();
    }

    fn save_cwnd_again(&mut self) {
        if let Some(undo) = &mut self.episode.undo {
            undo.cwnd = undo.cwnd.max(self.window.cwnd);
        }
    }

    /// Fast recovery is over. A reduction for ECN, of which this tells as well, has changed no
    /// window.
    pub(super) fn exit_fast_recovery(&mut self) {
        if self.episode.recovery == Recovery::Fast {
            self.restore_cwnd();
            self.episode.recovery = Recovery::None;
        }
    }

    /// `OnEnterRTO`, without the window. Losses that the timeout declares may have been told
    /// before.
    pub(super) fn enter_timeout_recovery(&mut self, now: Time, repeated: bool) {
        let saved = self.episode.undo.as_ref().map(|undo| undo.at);
        if saved.is_none_or(|at| !repeated && at != now) {
            self.save_state_upon_loss(now);
        }
        if !repeated {
            self.save_cwnd_again();
        }
        self.episode.recovery = Recovery::Timeout;
        self.full_bw.reset(0.0);
        if !self.state.is_probing() && self.model.inflight_shortterm == UNBOUNDED {
            self.model.inflight_shortterm = self.window.cwnd.max(self.episode.prior_cwnd);
        }
    }

    /// Ends recovery once the data outstanding at the timeout is acknowledged.
    pub(super) fn exit_timeout_recovery(&mut self) {
        if self.episode.recovery == Recovery::Timeout {
            self.restore_cwnd();
            self.episode.recovery = Recovery::None;
        }
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn handle_spurious_loss_detection(&mut self) {
        let Some(undo) = self.episode.undo.take() else { return };
        self.restore_cwnd();
        self.window.cwnd = self.window.cwnd.max(undo.cwnd);
        self.episode.recovery = Recovery::None;
        self.signals.loss_in_round = false;
        self.full_bw.reset(0.0);
        let model = &mut self.model;
        model.bw_shortterm = model.bw_shortterm.max(undo.bw_shortterm);
        model.inflight_shortterm = model.inflight_shortterm.max(undo.inflight_shortterm);
        model.inflight_longterm = model.inflight_longterm.max(undo.inflight_longterm);
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw.reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(State::ProbeBwUp) if !matches!(self.state, State::ProbeBwUp | State::ProbeRtt) => {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
    }
}
