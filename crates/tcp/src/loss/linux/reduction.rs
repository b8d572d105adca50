//! The beginning and the end of a window reduction in Linux's engine.

use ackclock_cc::{EcnUse, Signal, Window};
use ackclock_units::Time;

use crate::loss::Loss;
use crate::send::Sender;
use crate::{CaState, Prr};

impl Loss {
    /// `tcp_enter_cwr`, once the window comes down: congestion is proven, and nothing can be
    /// undone.
    pub(crate) fn enter_cwr(&mut self, now: Time) {
        self.recovery.undo.rule_out();
        self.enter(now, CaState::Cwr);
    }
}

impl Sender {
    /// `tcp_enter_recovery`.
    pub(super) fn begin_recovery(&mut self, now: Time, ece: bool) {
        self.loss.forget_retransmissions();
        self.loss.start_undo(&self.sequence);
        if self.config.transfer.loss.undo_by_threshold {
            self.remember_threshold();
        }
        self.loss.recovery.undo.set_restores_window(false);
        // A sender that is marked all the time has not halved its window for that.
        let marked = self.loss.recovery.state() == CaState::Cwr && self.observer.needs.ecn != EcnUse::Data;
        if !self.loss.recovery.in_reduction() || marked {
            self.loss.recovery.undo.set_restores_window(!ece);
            self.start_reduction(now, Signal::Loss);
        }
        if self.config.transfer.loss.recovery_moves_point {
            self.loss.recovery.point = self.sequence.nxt();
        }
        self.loss.enter(now, CaState::Recovery);
        self.stats.fast_recoveries += 1;
    }

    /// `tcp_init_cwnd_reduction` for a signal.
    pub(in crate::loss) fn start_reduction(&mut self, now: Time, signal: Signal) {
        self.tell_losses(now);
        let cwnd = self.cwnd();
        let mut flight = self.flight_size(now);
        if let Some(segments) = self.loss.detector.outstanding_before() {
            flight.in_flight = segments * u64::from(self.negotiated.mss());
        }
        self.note_unvalidated(now);
        self.cc.on_signal(&flight, signal);
        self.bound_by_use();
        self.shape_window(cwnd);
    }

    /// The window is to come down from `cwnd` to the controller's threshold.
    pub(super) fn shape_window(&mut self, cwnd: u64) {
        let ssthresh = self.cc.window().ssthresh;
        self.loss.recovery.point = self.sequence.nxt();
        self.loss.recovery.probe.forget();
        self.loss.recovery.reduction.begin(cwnd, ssthresh, cwnd / u64::from(self.negotiated.mss()));
        self.ecn.window_reduced();
    }

    /// `tcp_end_cwnd_reduction`; with rate halving `tcp_complete_cwr`, which does not open a
    /// window that came down further than to the threshold.
    pub(in crate::loss) fn finish_reduction(&mut self, now: Time) {
        let flight = self.flight(now);
        self.cc.on_signal(&flight, Signal::RecoveryEnd);
        let Window { cwnd, ssthresh } = self.cc.window();
        let mut reached = self.loss.recovery.reduction.cwnd();
        if self.config.transfer.loss.ends_at_threshold {
            reached = reached.min(ssthresh);
        }
        if self.config.prr == Prr::RateHalving && !self.loss.recovery.whole_control {
            if reached < cwnd {
                self.cc.take_over(Window { cwnd: reached, ssthresh });
            }
            if self.config.transfer.loss.half_steps_carry_over && self.observer.needs.reno_halving {
                self.cc.on_signal(&flight, Signal::CountedAcks(self.loss.recovery.reduction.half_steps()));
            }
        }
        self.end_validation(now);
        self.loss.enter(now, CaState::Open);
    }

    /// One ACK of a reduction, which delivered so many segments (`tcp_cwnd_reduction`).
    pub(super) fn reduce_window_linux(&mut self, delivered: u64, safe: bool) {
        let rule = self.config.prr;
        let mss = u64::from(self.negotiated.mss());
        if rule == Prr::RateHalving {
            let least = self.least_of_reduction();
            self.loss.recovery.reduction.halve_rate(self.window_used(), mss, least);
            return;
        }
        if delivered == 0 || rule == Prr::Off {
            return;
        }
        let in_flight = self.loss.segments_in_flight(&self.negotiated);
        let bonus = safe || rule != Prr::Rfc9937;
        self.loss.recovery.reduction.on_delivered_segments(delivered, in_flight, mss, bonus);
    }

    /// `tcp_current_ssthresh`: where the window is not coming down, three quarters of it at least.
    fn current_threshold(&self) -> u64 {
        let mss = u64::from(self.negotiated.mss());
        let segments = self.cwnd() / mss;
        let most = match self.loss.recovery.in_reduction() {
            true => 0,
            false => (segments / 2 + segments / 4) * mss,
        };
        self.cc.window().ssthresh.max(most)
    }

    /// `prior_ssthresh`.
    pub(super) fn remember_threshold(&mut self) {
        self.loss.recovery.undo.prior_ssthresh = self.current_threshold();
    }

    /// `tcp_cwnd_min`.
    fn least_of_reduction(&mut self) -> u64 {
        let ssthresh = self.loss.recovery.reduction.ssthresh();
        let whole = self.config.transfer.loss.controller_bounds_halving && !self.observer.needs.reno_halving;
        if whole { ssthresh } else { ssthresh / 2 }
    }
}
