//! The timers of Linux's engine: the retransmission timeout, and the detector's.

use ackclock_cc::Signal;
use ackclock_units::Time;

use crate::CaState;
use crate::loss::detector::View;
use crate::loss::recovery::Resend;
use crate::send::Sender;
use crate::send::retransmission_timer::Pending;

impl Sender {
    /// `tcp_enter_loss`.
    pub(in crate::loss) fn on_timeout_linux(&mut self, now: Time) {
        if self.loss.tests_timeouts(&self.negotiated) {
            self.begin_test(now);
            return;
        }
        let view = self.view(now);
        let began = view.state < CaState::Recovery;
        let repeats = self.rtt.timeouts() > 0;
        // One reduction per window of data.
        let reduces = view.state <= CaState::Disorder
            || self.sequence.una() >= self.loss.recovery.point
            || (view.state == CaState::Loss && !repeats && !self.config.transfer.loss.keeps_threshold_in_loss);
        let flight = self.flight_size(now);
        self.loss.detector.timed_out(&mut self.loss.board, &view);
        if reduces && self.config.transfer.loss.undo_by_threshold {
            self.remember_threshold();
        }
        self.loss.recovery.emulated_sacks = 0;
        let kept = self.loss.segments_in_flight(&self.negotiated) * u64::from(self.negotiated.mss());
        self.tell_losses(now);
        self.cc.on_signal(&flight, Signal::Timeout { repeated: !reduces, kept });
        self.forget_validation(now);
        if reduces {
            self.loss.start_undo(&self.sequence);
            self.loss.recovery.undo.set_restores_window(true);
        }
        self.rtt.back_off();
        self.loss.enter(now, CaState::Loss);
        let recovery = &mut self.loss.recovery;
        recovery.point = self.sequence.nxt();
        recovery.probe.forget();
        recovery.frto = self.config.frto && (began || repeats);
        recovery.resend = Resend::Lost;
        recovery.force = true;
        self.ecn.window_reduced();
        self.set_timer(now, Pending::Rto, self.rto());
    }

    /// The detector's timer expired: what has waited long enough is lost (`tcp_rack_reo_timeout`,
    /// `tcp_resume_early_retransmit`).
    pub(crate) fn on_detector_timer(&mut self, now: Time) {
        let losses = self.loss.board.losses();
        let marks_on_entry = self.loss.detector.rules().marks_on_entry;
        if marks_on_entry {
            if self.loss.recovery.state() > CaState::Disorder || self.loss.board.is_empty() {
                self.rearm_rto(now);
                return;
            }
            self.begin_recovery(now, false);
        }
        let view = View { begins: marks_on_entry, ..self.view(now) };
        let marked = self.loss.detector.timer(&mut self.loss.board, &view);
        self.tell_losses(now);
        let lost = self.loss.board.losses() - losses;
        if lost > 0 {
            if self.loss.recovery.state() != CaState::Recovery {
                self.begin_recovery(now, false);
                self.reduce_window_linux(1, false);
            }
            self.loss.recovery.resend = Resend::Lost;
        }
        if marks_on_entry {
            // The first retransmission goes out whatever the window.
            self.loss.recovery.force = self.loss.board.lost_segments() > 0;
        }
        match marked.again {
            Some(wait) => self.set_timer(now, Pending::Reorder, wait.min(self.rto())),
            None => self.rearm_rto(now),
        }
    }
}
