//! The states of `tcp_fastretrans_alert`: what each does with an ACK that is not ordinary progress,
//! and what ends it.
//!
//! Before a loss is proven - in Open, Disorder and CWR - every such ACK ends in the same search for
//! losses ([`Sender::look_for_loss`]), which enters Recovery when it finds one. Recovery and Loss
//! last until everything sent before them is acknowledged, or until they turn out needless.

use ackclock_cc::Signal;
use ackclock_units::{Span, Time};

use super::Reaction;
use crate::CaState;
use crate::loss::AckContext;
use crate::loss::detector::{Marked, StartRecovery, View};
use crate::loss::recovery::Resend;
use crate::loss::scoreboard::Progress;
use crate::send::Sender;

impl Sender {
    /// The state's reaction to a dubious ACK; `delivered` grows by the segments that a duplicate
    /// ACK stands for.
    pub(super) fn alert(&mut self, context: &AckContext, view: &View, delivered: &mut u64) -> Reaction {
        if view.ece {
            self.loss.recovery.undo.set_restores_window(false);
        }
        match self.loss.recovery.state() {
            CaState::Open => self.alert_in_open(view, delivered),
            CaState::Disorder => {
                if self.config.transfer.loss.disorder_until_dsacked {
                    self.end_disorder();
                }
                self.look_for_loss(view, delivered, None)
            }
            CaState::Cwr => self.alert_in_cwr(view, delivered),
            CaState::Recovery => self.alert_in_recovery(&context.progress, view, delivered),
            CaState::Loss => self.alert_in_loss(&context.progress, view, delivered),
        }
    }

    /// Open: everything was in order until now, and what was retransmitted before is settled. Ends
    /// with this ACK if it reports something out of order, echoes a mark, or proves a loss.
    fn alert_in_open(&mut self, view: &View, delivered: &mut u64) -> Reaction {
        self.loss.recovery.undo.forget_retransmissions();
        self.look_for_loss(view, delivered, None)
    }

    /// CWR: the window comes down for a mark. Ends when something above the point is acknowledged,
    /// so that the receiver has had the CWR flag; or with a loss.
    fn alert_in_cwr(&mut self, view: &View, delivered: &mut u64) -> Reaction {
        if self.sequence.una() > self.loss.recovery.point {
            self.finish_reduction(view.now);
        }
        self.look_for_loss(view, delivered, None)
    }

    /// Recovery: what is lost is resent while the window comes down. Ends when everything sent
    /// before it is acknowledged; earlier if it turns out needless. A loss found with the ACK that
    /// ends it begins the next.
    fn alert_in_recovery(&mut self, progress: &Progress, view: &View, delivered: &mut u64) -> Reaction {
        let now = view.now;
        if self.sequence.una() >= self.loss.recovery.point {
            if !self.negotiated.sack() {
                self.loss.recovery.emulated_sacks = 0;
            }
            if self.undo_at_end(progress) {
                return Reaction::HOLD;
            }
            self.finish_reduction(now);
            return self.look_for_loss(view, delivered, None);
        }
        if self.config.transfer.loss.recovery_outlasts_undo {
            return self.go_on_in_recovery(progress, view, delivered);
        }
        let marker = self.loss.recovery.undo.marker;
        if !view.advanced {
            *delivered += self.loss.add_emulated_sack(&self.negotiated, view.duplicate);
        } else if self.undo_partially(progress, view) {
            return Reaction::HOLD;
        }
        let partial = view.advanced && self.loss.recovery.undo.marker == marker;
        if self.undo_by_dsack() {
            self.try_to_open(now, view.ece);
            if self.loss.detector.rules().undo_ends_ack {
                return Reaction::HOLD;
            }
        }
        let again = self.judge(view).again;
        if self.loss.recovery.state() != CaState::Recovery {
            if self.loss.board.lost_segments() == 0 && self.starts_recovery(view) != StartRecovery::Now {
                return Reaction { resend: Resend::Hold, again };
            }
            self.begin_recovery(now, view.ece);
        }
        self.mark_last(view, partial);
        Reaction { resend: Resend::Lost, again }
    }

    /// Disorder ends with what was sent when it began; without SACK when that is acknowledged, else
    /// with more, so that DSACKs are waited for.
    fn end_disorder(&mut self) {
        let (una, point) = (self.sequence.una(), self.loss.recovery.point);
        if una < point {
            return;
        }
        self.undo_by_dsack();
        if !self.loss.recovery.undo.is_possible() || !self.negotiated.sack() || una != point {
            self.loss.recovery.undo.marker = 0;
            self.loss.enter(self.now, CaState::Open);
        }
    }

    /// Recovery up to its end, where it outlasts what is undone.
    fn go_on_in_recovery(&mut self, progress: &Progress, view: &View, delivered: &mut u64) -> Reaction {
        let resend = Reaction { resend: Resend::Lost, again: None };
        if !view.advanced {
            *delivered += self.loss.add_emulated_sack(&self.negotiated, view.duplicate);
        } else if self.loss.may_undo(&self.negotiated, &self.sequence, progress) {
            self.undo_and_go_on(progress, view);
            return resend;
        }
        self.judge(view);
        resend
    }

    /// `tcp_try_undo_partial`: a delayed original filled the hole. The threshold of the controller
    /// stays, and the episode goes on.
    fn undo_and_go_on(&mut self, progress: &Progress, view: &View) {
        if self.loss.board.resent_segments() == 0 {
            self.loss.recovery.undo.forget_retransmissions();
        }
        let high = self.loss.board.highest_sacked().unwrap_or(self.sequence.una());
        let reach = view.reach + progress.acked_segments;
        self.loss.detector.reordered(self.sequence.una() - progress.acked, high, reach, 0, self.negotiated.mss());
        if self.loss.recovery.whole_control {
            return;
        }
        let mss = u64::from(self.negotiated.mss());
        let most = (self.loss.segments_in_flight(&self.negotiated)
            + self.loss.max_burst().unwrap_or(u64::from(u32::MAX)))
            * mss;
        self.loss.recovery.reduction.restore(mss, self.loss.recovery.undo.restores_window, most);
        self.stats.undos += 1;
    }

    /// Loss: everything that a timeout declared lost is resent in slow start. Ends when everything
    /// sent before it is acknowledged, or when the timeout turns out spurious; and with RACK in
    /// Recovery, if a retransmission is lost.
    fn alert_in_loss(&mut self, progress: &Progress, view: &View, delivered: &mut u64) -> Reaction {
        let resend = self.repair_timeout(progress, view, delivered);
        let mut marked = Marked::default();
        if !self.loss.detector.rules().marks_on_entry {
            marked = self.judge(view);
        }
        if self.loss.recovery.state() != CaState::Open && !marked.retransmission {
            return Reaction { resend, again: marked.again };
        }
        self.look_for_loss(view, delivered, marked.again)
    }

    /// No loss is being repaired: the detector judges, and recovery begins if it finds a loss. Else
    /// the state is Open, Disorder or CWR, as reports and marks have it. `again` is when the
    /// detector wants to look again anyway.
    fn look_for_loss(&mut self, view: &View, delivered: &mut u64, again: Option<Span>) -> Reaction {
        let now = view.now;
        let mut again = again;
        if !self.negotiated.sack() {
            if view.advanced {
                self.loss.recovery.emulated_sacks = 0;
            }
            *delivered += self.loss.add_emulated_sack(&self.negotiated, view.duplicate);
        }
        let state = self.loss.recovery.state();
        if state == CaState::Disorder || state == CaState::Open && !self.config.transfer.loss.no_dsack_undo_in_open {
            self.undo_by_dsack();
        }
        if !self.loss.detector.rules().marks_on_entry {
            again = self.judge(view).again.or(again);
        }
        let tests = self.loss.recovery.undo.test_step > 0;
        if self.loss.board.lost_segments() == 0 || tests {
            let start = if tests { StartRecovery::No } else { self.starts_recovery(view) };
            if let StartRecovery::After(wait) = start {
                again = Some(wait);
            }
            if start != StartRecovery::Now {
                self.try_to_open(now, view.ece);
                return Reaction { resend: Resend::Hold, again };
            }
        }
        let probe_failed = self.path.probing.size > 0 && self.mtu_probe_failed(now);
        if !probe_failed {
            self.enter_recovery(view);
        }
        Reaction { resend: Resend::Lost, again }
    }

    /// A loss is proven. Some detectors mark what is lost only now.
    fn enter_recovery(&mut self, view: &View) {
        self.begin_recovery(view.now, view.ece);
        if self.loss.detector.rules().marks_on_entry {
            let view = View { begins: true, ..self.current(view) };
            self.loss.detector.mark(&mut self.loss.board, &view);
        } else {
            self.mark_last(view, false);
        }
    }

    fn mark_last(&mut self, view: &View, partial: bool) {
        let view = self.current(view);
        self.loss.detector.mark_last(&mut self.loss.board, &view, partial);
    }

    /// Returns the decision to begin recovery although nothing is marked (`tcp_time_to_recover`).
    /// RACK marks lost segments, and needs no other sign.
    fn starts_recovery(&mut self, view: &View) -> StartRecovery {
        let view = self.current(view);
        let start = self.loss.detector.starts_recovery(&view);
        if start == StartRecovery::No
            && let Some(before) = self.loss.detector.waits(&view)
        {
            // RFC 4653 section 3.2 steps T.1 and T.2: cwnd = min(FlightSize + SMSS,
            // FlightSizePrev), ssthresh = FlightSizePrev.
            let mss = u64::from(self.negotiated.mss());
            let (before, flight) = (before * mss, self.flight_size(view.now));
            let cwnd = (flight.in_flight + mss).min(before);
            self.cc.on_signal(&flight, Signal::Resume { cwnd, ssthresh: before });
        }
        start
    }

    /// The view of the ACK, with the current counts.
    fn current(&self, view: &View) -> View {
        let View { now, advanced, duplicate, newly_sacked, ece, .. } = *view;
        View { advanced, duplicate, newly_sacked, ece, ..self.view(now) }
    }

    pub(super) fn judge(&mut self, view: &View) -> Marked {
        if self.loss.board.is_empty() {
            return Marked::default();
        }
        let view = self.current(view);
        self.loss.detector.mark(&mut self.loss.board, &view)
    }

    /// `tcp_process_loss`: the timeout turns out spurious, is still being tested, is over, or goes
    /// on.
    fn repair_timeout(&mut self, progress: &Progress, view: &View, delivered: &mut u64) -> Resend {
        let point = self.loss.recovery.point;
        let recovered = self.sequence.una() >= point;
        let in_time = view.advanced || self.config.transfer.loss.any_ack_undoes_timeout;
        if in_time && self.undo_timeout(progress, false) {
            return Resend::Hold;
        }
        let beyond = self.sequence.nxt() > point;
        if self.loss.recovery.frto
            && let Some(resend) = self.test_timeout(progress, view)
        {
            return resend;
        }
        if recovered {
            self.undo_at_end(progress);
            return Resend::Hold;
        }
        if !self.negotiated.sack() {
            if beyond && view.duplicate {
                // The segment sent to test the timeout has arrived.
                *delivered += self.loss.add_emulated_sack(&self.negotiated, true);
            } else if view.advanced {
                self.loss.recovery.emulated_sacks = 0;
            }
        }
        self.moderate_window();
        Resend::Lost
    }

    /// F-RTO (RFC 5682 section 3.1): what follows, if the answer is there or the test goes on.
    fn test_timeout(&mut self, progress: &Progress, view: &View) -> Option<Resend> {
        let point = self.loss.recovery.point;
        // Step 3b: not everything was lost, since something sent once has arrived.
        let original = progress.original_end <= point && (self.negotiated.sack() || !progress.covers_resent);
        if original && self.undo_timeout(progress, true) {
            return Some(Resend::Hold);
        }
        if self.sequence.nxt() > point {
            // Step 3a: the loss was real.
            self.loss.recovery.frto &= !(view.newly_sacked || view.duplicate);
        } else if view.advanced && self.sequence.una() < point {
            // Step 2b: new data is sent, if there is any.
            self.loss.recovery.point = self.sequence.nxt();
            if self.has_sendable_data() {
                return Some(Resend::New);
            }
            self.loss.recovery.frto = false;
        }
        None
    }

    fn has_sendable_data(&self) -> bool {
        !self.sequence.is_fin_sent()
            && self.sequence.written() + 1 > self.sequence.nxt()
            && self.sequence.window_end() > self.sequence.nxt()
    }

    /// `tcp_try_to_open`: nothing is known to be lost. An echoed mark reduces the window.
    pub(super) fn try_to_open(&mut self, now: Time, ece: bool) {
        if self.loss.recovery.undo.test_step == 0 {
            self.loss.forget_retransmissions();
        }
        if ece && self.loss.recovery.state() < CaState::Cwr {
            self.start_reduction(now, Signal::Ecn);
            self.loss.enter_cwr(self.now);
        }
        if self.loss.recovery.state() != CaState::Cwr {
            self.loss.keep_open(&self.negotiated, &self.sequence, self.now);
            self.moderate_window();
        }
    }
}
