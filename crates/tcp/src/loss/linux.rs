//! Episodes as Linux has them: what an ACK means to the congestion state, for every detector but the plain RFC 6675 one,
//! whose episodes are in `recovery.rs`.
//!
//! States and order are those of `tcp_ack` and `tcp_fastretrans_alert`: reports are taken in, needless retransmissions are
//! recognized and undone, the detector marks what is lost, an episode begins or goes on, and the window moves last. Counts
//! are of segments, as in Linux.
//!
//! # Source
//! Linux `net/ipv4/tcp_input.c` of 4.0, 6.1 and 6.18. RFC 6582, RFC 8985, RFC 9937; undoing is in `undo.rs`, probes in
//! `probe.rs`.
//!
//! # Departures
//! - A segment that is SACKed while a retransmission of it is in flight leaves both the count of retransmissions and what
//!   is in flight; Linux keeps the retransmission in the count until the ACK if the segment was not called lost.
//! - Linux 4.0 takes the ACK's growth before it looks for losses, which is kept; where else 4.0 and 6.1 differ in nothing
//!   but the order, it is 6.1's.

use ackclock_cc::{Ack, EcnUse, Signal, Verdict};
use ackclock_units::{Span, Time};

use crate::connection::timers::Pending;
use crate::loss::detector::{Proof, View};
use crate::loss::scoreboard::Progress;
use crate::{CaState, Endpoint, Prr, Stamp};

/// What goes out after an ACK (`REXMIT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Resend {
    /// What is lost, then new data.
    #[default]
    Lost,
    /// New data alone: what is marked lost may not be.
    Hold,
    /// New data to see whether the timeout was spurious; without any, what is lost (RFC 5682 section 2.1 step 2b).
    New,
}

/// Duplicates reported by one ACK (RFC 2883).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Duplicates {
    /// Segments, of those that our retransmissions explain.
    pub(crate) segments: u64,
    /// They are the tail loss probe.
    pub(crate) probe: bool,
}

/// An ACK, after the scoreboard has taken it in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) una_before: u64,
    /// Something was in flight before.
    pub(crate) outstanding_before: bool,
    /// It brings data or moves the window: no duplicate ACK.
    pub(crate) plain: bool,
    pub(crate) ece: bool,
    pub(crate) duplicates: Duplicates,
    pub(crate) losses_before: u64,
    pub(crate) units_lost_before: u64,
}

impl Endpoint {
    /// Whether episodes run as Linux has them.
    pub(crate) fn linux_episodes(&self) -> bool {
        self.linux_episodes
    }

    /// The time by which a segment that is sent now is ordered among others: what different ACKs release never has the same,
    /// even if they arrive at one time; what one ACK releases has (`tcp_mstamp_refresh`).
    pub fn stamp(&self, now: Time) -> Stamp {
        Stamp { at: now, order: if now == self.now { self.order } else { 0 } }
    }

    /// What a detector may know.
    pub(crate) fn view(&self, now: Time) -> View {
        let sacked = self.sacked_segments();
        View {
            now,
            state: self.recovery.state,
            sack: self.negotiated.sack(),
            mss: self.negotiated.mss(),
            outstanding: self.board.segments(),
            sacked,
            reach: if self.negotiated.sack() { self.board.segments_to_highest() } else { sacked + 1 },
            srtt: self.rtt.srtt(),
            advanced: false,
            duplicate: false,
            newly_sacked: false,
            begins: false,
            can_send: self.may_send_now(),
            ece: false,
            to_timeout: self.until_timeout(now),
            rto: self.rto(),
            cwnd: self.cwnd() / u64::from(self.negotiated.mss()),
        }
    }

    /// Segments that left the network without being acknowledged: SACKed, or without SACK as many as duplicate ACKs tell.
    pub(crate) fn sacked_segments(&self) -> u64 {
        if self.negotiated.sack() { self.board.sacked_segments() } else { self.recovery.reno_sacked }
    }

    /// `tcp_packets_in_flight`.
    pub(crate) fn segments_in_flight(&self) -> u64 {
        let left = self.sacked_segments() + self.board.lost_segments();
        (self.board.segments() + self.board.resent_segments()).saturating_sub(left)
    }

    /// `tcp_may_send_now`.
    fn may_send_now(&self) -> bool {
        let available = (self.send.written + 1).saturating_sub(self.send.nxt);
        let window = (self.send.una + self.send.wnd).saturating_sub(self.send.nxt);
        let next = u64::from(self.negotiated.mss()).min(available);
        !self.send.fin_sent && next > 0 && next <= window && self.window_used() + next <= self.cwnd()
    }

    /// The congestion side of an ACK (`tcp_ack`).
    pub(crate) fn on_ack_linux(&mut self, now: Time, progress: &Progress, facts: &Facts) {
        let advanced = self.send.una > facts.una_before;
        let mut delivered = progress.delivered_segments + facts.duplicates.segments;
        if !self.negotiated.sack() && progress.acked_segments > 0 {
            delivered = self.remove_reno_sacks(progress.acked_segments);
        }
        self.detector.delivered(progress);
        if self.recovery.probe.high > 0 {
            self.on_ack_of_probe(now, progress, facts);
        }
        let sacked = progress.sacked_segments > 0;
        let grown = self.detector.is_before_rack() && !self.in_reduction() && !self.recovery.left_alone;
        if grown {
            self.grow(now, progress, delivered, facts);
        }
        let ordinary = facts.plain || progress.acked > 0;
        let dubious =
            !ordinary || sacked || facts.ece || facts.duplicates.segments > 0 || self.recovery.state != CaState::Open;
        let mut again = None;
        let mut timer_set = false;
        self.recovery.resend = Resend::Hold;
        if dubious {
            let duplicate = !ordinary && !advanced && facts.duplicates.segments == 0;
            let view = View { advanced, duplicate, newly_sacked: sacked, ece: facts.ece, ..self.view(now) };
            if self.recovery.reneging(&self.board, advanced) {
                // tcp_check_sack_reneging: half a round trip for the receiver to think again.
                let wait = self.rtt.srtt().map_or(Span::ZERO, |srtt| srtt / 2).max(Span::from_millis(10));
                self.set_timer(now, Pending::Rto, wait);
                timer_set = true;
            } else {
                (self.recovery.resend, again) = self.alert(now, progress, view, &mut delivered);
            }
        }
        if let Some(wait) = again {
            self.set_timer(now, Pending::Reorder, wait.min(self.rto()));
        } else if !timer_set && self.restarts_timer(progress) {
            self.set_transmit_timer(now);
        }
        if self.recovery.left_alone {
            let delivered =
                if self.negotiated.sack() { progress.delivered } else { delivered * u64::from(self.negotiated.mss()) };
            let lost = self.board.units_judged_lost() - facts.units_lost_before;
            let ack = Ack { acked: progress.acked, delivered, ece: facts.ece, lost, ..Ack::default() };
            self.rule_window(now, ack);
        } else if self.in_reduction() {
            let lost = self.board.losses() - facts.losses_before;
            self.reduce_window_linux(delivered, advanced && lost == 0);
        } else if !grown {
            self.grow(now, progress, delivered, facts);
        }
    }

    pub(crate) fn in_reduction(&self) -> bool {
        matches!(self.recovery.state, CaState::Cwr | CaState::Recovery)
    }

    /// `tcp_cong_avoid` if `tcp_may_raise_cwnd`.
    fn grow(&mut self, now: Time, progress: &Progress, delivered: u64, facts: &Facts) {
        let grows = progress.acked > 0 || (progress.sacked_segments > 0 && self.detector.grows_on_sack());
        if !grows {
            return;
        }
        let bytes = delivered * u64::from(self.negotiated.mss());
        // Of short segments only what they carry.
        let bytes =
            if self.negotiated.sack() { bytes.min(progress.delivered.max(1)) } else { bytes.min(progress.acked) };
        let lost = self.board.units_judged_lost() - facts.units_lost_before;
        let mut ack = Ack { acked: progress.acked, delivered: bytes, ece: facts.ece, lost, ..Ack::default() };
        self.add_samples(now, &mut ack);
        let flight = self.flight(now);
        let cwnd = self.cwnd();
        // tcp_enter_cwr does nothing after a timeout.
        if self.cc.on_ack(&flight, &ack) == Verdict::Reduced && self.recovery.state < CaState::Cwr {
            self.shape_window(cwnd);
            self.enter_cwr();
        }
    }

    /// `tcp_fastretrans_alert`: what to resend, and when the detector wants to look again.
    fn alert(&mut self, now: Time, progress: &Progress, view: View, delivered: &mut u64) -> (Resend, Option<Span>) {
        let una = self.send.una;
        if view.ece {
            self.recovery.undo.allowed = false;
        }
        match self.recovery.state {
            CaState::Open => self.recovery.undo.first_resent_at = None,
            // CWR holds until something above the point is acknowledged, so that the receiver has had the CWR flag.
            CaState::Cwr if una > self.recovery.point => self.finish_reduction(now),
            CaState::Recovery if una >= self.recovery.point => {
                if !self.negotiated.sack() {
                    self.recovery.reno_sacked = 0;
                }
                if self.undo_at_end(progress) {
                    return (Resend::Hold, None);
                }
                self.finish_reduction(now);
            }
            _ => {}
        }
        let mut again = None;
        match self.recovery.state {
            CaState::Recovery => {
                if !view.advanced {
                    *delivered += self.add_reno_sack(view.duplicate);
                } else if self.undo_partially(progress, &view) {
                    return (Resend::Hold, None);
                }
                if self.undo_by_dsack() {
                    self.try_to_open(now, view.ece);
                    if self.detector.is_before_rack() {
                        return (Resend::Hold, None);
                    }
                }
                again = self.judge(now, &view).again;
                if self.recovery.state != CaState::Recovery {
                    if self.board.lost_segments() == 0 {
                        return (Resend::Hold, again);
                    }
                    self.begin_recovery(now, view.ece);
                }
                return (Resend::Lost, again);
            }
            CaState::Loss => {
                let resend = self.process_loss(progress, &view, delivered);
                let mut lost_again = false;
                if !self.detector.is_before_rack() {
                    let marked = self.judge(now, &view);
                    (again, lost_again) = (marked.again, marked.retransmission);
                }
                if self.recovery.state != CaState::Open && !lost_again {
                    return (resend, again);
                }
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {}
        }
        if !self.negotiated.sack() {
            if view.advanced {
                self.recovery.reno_sacked = 0;
            }
            *delivered += self.add_reno_sack(view.duplicate);
        }
        if self.recovery.state <= CaState::Disorder {
            self.undo_by_dsack();
        }
        if !self.detector.is_before_rack() {
            again = self.judge(now, &view).again.or(again);
        }
        if self.board.lost_segments() == 0 {
            match self.detector.proves_loss(&self.current(now, &view)) {
                Proof::Now => {}
                Proof::After(wait) => {
                    self.try_to_open(now, view.ece);
                    return (Resend::Hold, Some(wait));
                }
                Proof::None => {
                    self.end_wait(now, &view);
                    self.try_to_open(now, view.ece);
                    return (Resend::Hold, again);
                }
            }
        }
        if self.path.probing.size > 0 && self.mtu_probe_failed(now) {
            return (Resend::Lost, again);
        }
        self.begin_recovery(now, view.ece);
        if self.detector.is_before_rack() {
            let view = View { begins: true, ..self.current(now, &view) };
            self.detector.mark(&mut self.board, &view);
        }
        (Resend::Lost, again)
    }

    /// RFC 4653 section 3.2 steps T.1 and T.2: cwnd = min(FlightSize + SMSS, FlightSizePrev), ssthresh = FlightSizePrev.
    fn end_wait(&mut self, now: Time, view: &View) {
        if let Some(before) = self.detector.waits(&self.current(now, view)) {
            let mss = u64::from(self.negotiated.mss());
            let (before, flight) = (before * mss, self.flight_size(now));
            let cwnd = (flight.in_flight + mss).min(before);
            self.cc.on_signal(&flight, Signal::Resume { cwnd, ssthresh: before });
        }
    }

    /// The facts of the ACK with the counts of now.
    fn current(&self, now: Time, view: &View) -> View {
        let View { advanced, duplicate, newly_sacked, ece, .. } = *view;
        View { advanced, duplicate, newly_sacked, ece, ..self.view(now) }
    }

    fn judge(&mut self, now: Time, view: &View) -> crate::loss::detector::Marked {
        if self.board.is_empty() {
            return Default::default();
        }
        let view = self.current(now, view);
        self.detector.mark(&mut self.board, &view)
    }

    /// `tcp_enter_recovery`.
    fn begin_recovery(&mut self, now: Time, ece: bool) {
        self.forget_retransmissions();
        self.start_undo();
        self.recovery.undo.allowed = false;
        // Who is marked all the time has not halved its window for that.
        let marked = self.recovery.state == CaState::Cwr && self.observer.needs.ecn != EcnUse::Data;
        if !self.in_reduction() || marked {
            self.recovery.undo.allowed = !ece;
            self.start_reduction(now, Signal::Loss);
        }
        self.recovery.state = CaState::Recovery;
        self.stats.fast_recoveries += 1;
    }

    /// `tcp_init_cwnd_reduction` for a signal.
    pub(crate) fn start_reduction(&mut self, now: Time, signal: Signal) {
        self.tell_losses(now);
        let cwnd = self.cwnd();
        let mut flight = self.flight_size(now);
        if let Some(segments) = self.detector.outstanding_before() {
            flight.in_flight = segments * u64::from(self.negotiated.mss());
        }
        self.note_unvalidated(now);
        self.cc.on_signal(&flight, signal);
        self.bound_by_use();
        self.shape_window(cwnd);
    }

    /// `tcp_enter_cwr`, once the window comes down: congestion is proven, and nothing can be undone.
    fn enter_cwr(&mut self) {
        (self.recovery.undo.allowed, self.recovery.undo.marker) = (false, 0);
        self.recovery.state = CaState::Cwr;
    }

    /// The window is to come down from `cwnd` to the controller's threshold.
    fn shape_window(&mut self, cwnd: u64) {
        let mss = u64::from(self.negotiated.mss());
        self.recovery.point = self.send.nxt;
        self.recovery.probe.high = 0;
        self.recovery.start_prr(cwnd, self.cc.window().ssthresh, cwnd / mss);
        self.send.cwr_pending = self.ecn_enabled;
    }

    /// `tcp_end_cwnd_reduction`.
    pub(crate) fn finish_reduction(&mut self, now: Time) {
        let flight = self.flight(now);
        self.cc.on_recovery_end(&flight);
        self.end_validation(now);
        self.recovery.state = CaState::Open;
    }

    /// `tcp_try_to_open`.
    fn try_to_open(&mut self, now: Time, ece: bool) {
        self.forget_retransmissions();
        if ece && self.recovery.state < CaState::Cwr {
            self.start_reduction(now, Signal::Ecn);
            self.enter_cwr();
        }
        if self.recovery.state != CaState::Cwr {
            self.keep_open();
        }
    }

    /// `tcp_try_keep_open`.
    pub(crate) fn keep_open(&mut self) {
        let left = self.sacked_segments() + self.board.lost_segments();
        let state = if left > 0 || self.any_resent() { CaState::Disorder } else { CaState::Open };
        if self.recovery.state != state {
            self.recovery.state = state;
            self.recovery.point = self.send.nxt;
        }
    }

    /// `tcp_any_retrans_done`.
    pub(crate) fn any_resent(&self) -> bool {
        self.board.resent_segments() > 0 || self.board.front().is_some_and(|front| front.ever_resent())
    }

    /// `tcp_process_loss`.
    fn process_loss(&mut self, progress: &Progress, view: &View, delivered: &mut u64) -> Resend {
        let point = self.recovery.point;
        let recovered = self.send.una >= point;
        if view.advanced && self.undo_timeout(progress, false) {
            return Resend::Hold;
        }
        let beyond = self.send.nxt > point;
        if self.recovery.frto {
            // RFC 5682 section 3.1 step 3b: not everything was lost, since something sent once has arrived.
            let original = progress.original_end <= point && (self.negotiated.sack() || !progress.covers_resent);
            if original && self.undo_timeout(progress, true) {
                return Resend::Hold;
            }
            if beyond {
                // Step 3a: the loss was real.
                self.recovery.frto &= !(view.newly_sacked || view.duplicate);
            } else if view.advanced && !recovered {
                self.recovery.point = self.send.nxt;
                if self.has_sendable_data() {
                    return Resend::New;
                }
                self.recovery.frto = false;
            }
        }
        if recovered {
            self.undo_at_end(progress);
            return Resend::Hold;
        }
        if !self.negotiated.sack() {
            if beyond && view.duplicate {
                // What was sent in step 2b has arrived.
                *delivered += self.add_reno_sack(true);
            } else if view.advanced {
                self.recovery.reno_sacked = 0;
            }
        }
        Resend::Lost
    }

    fn has_sendable_data(&self) -> bool {
        !self.send.fin_sent && self.send.written + 1 > self.send.nxt && self.send.una + self.send.wnd > self.send.nxt
    }

    /// `tcp_add_reno_sack`: a duplicate ACK tells that a segment has left the network. Returns how many it tells of.
    fn add_reno_sack(&mut self, duplicate: bool) -> u64 {
        if self.negotiated.sack() || !duplicate {
            return 0;
        }
        let before = self.recovery.reno_sacked;
        self.recovery.reno_sacked += 1;
        self.limit_reno_sacks(0);
        self.recovery.reno_sacked.saturating_sub(before)
    }

    /// `tcp_remove_reno_sacks`: of `acked` segments one was the hole, the others had caused duplicate ACKs. Returns how many
    /// are news.
    fn remove_reno_sacks(&mut self, acked: u64) -> u64 {
        let news = acked.saturating_sub(self.recovery.reno_sacked).max(1);
        self.recovery.reno_sacked = self.recovery.reno_sacked.saturating_sub(acked - 1);
        self.limit_reno_sacks(acked);
        news
    }

    /// `tcp_check_reno_reordering`.
    fn limit_reno_sacks(&mut self, acked: u64) {
        let outstanding = self.board.segments();
        let holes = self.board.lost_segments().max(1).min(outstanding);
        if self.recovery.reno_sacked + holes > outstanding {
            self.recovery.reno_sacked = outstanding - holes;
            self.detector.more_duplicates(outstanding + acked);
        }
    }

    /// `tcp_cwnd_reduction`, in segments.
    pub(crate) fn reduce_window_linux(&mut self, delivered: u64, safe: bool) {
        let prr = self.config.prr;
        let mss = u64::from(self.negotiated.mss());
        let pipe = self.pipe();
        if prr == Prr::RateHalving {
            self.recovery.halve_rate(pipe, mss);
            return;
        }
        if delivered == 0 || prr == Prr::Off {
            return;
        }
        let in_flight = self.segments_in_flight();
        let bonus = safe || prr != Prr::Rfc9937;
        let send = self.recovery.prr_segments(delivered, in_flight, mss, bonus);
        self.recovery.set_cwnd((pipe + send * mss).max(mss));
    }

    /// The detector's timer expired: what has waited long enough is lost (`tcp_rack_reo_timeout`,
    /// `tcp_resume_early_retransmit`).
    pub(crate) fn on_detector_timer(&mut self, now: Time) {
        let losses = self.board.losses();
        let before_rack = self.detector.is_before_rack();
        if before_rack {
            if self.recovery.state > CaState::Disorder || self.board.is_empty() {
                self.rearm_rto(now);
                return;
            }
            self.begin_recovery(now, false);
        }
        let view = View { begins: before_rack, ..self.view(now) };
        let marked = self.detector.timer(&mut self.board, &view);
        self.tell_losses(now);
        let lost = self.board.losses() - losses;
        if lost > 0 {
            if self.recovery.state != CaState::Recovery {
                self.begin_recovery(now, false);
                self.reduce_window_linux(1, false);
            }
            self.recovery.resend = Resend::Lost;
        }
        if before_rack {
            // The first retransmission goes out whatever the window.
            self.recovery.force = self.board.lost_segments() > 0;
        }
        match marked.again {
            Some(wait) => self.set_timer(now, Pending::Reorder, wait.min(self.rto())),
            None => self.rearm_rto(now),
        }
    }

    /// `tcp_enter_loss`.
    pub(crate) fn on_timeout_linux(&mut self, now: Time) {
        let view = self.view(now);
        let began = view.state < CaState::Recovery;
        let repeats = self.rtt.timeouts() > 0;
        // One reduction per window of data.
        let reduces = view.state <= CaState::Disorder
            || self.send.una >= self.recovery.point
            || (view.state == CaState::Loss && !repeats);
        let flight = self.flight_size(now);
        self.detector.timed_out(&mut self.board, &view);
        self.recovery.reno_sacked = 0;
        let kept = self.segments_in_flight() * u64::from(self.negotiated.mss());
        self.tell_losses(now);
        self.cc.on_signal(&flight, Signal::Timeout { repeated: !reduces, kept });
        self.forget_validation(now);
        if reduces {
            self.start_undo();
            self.recovery.undo.allowed = true;
        }
        self.rtt.back_off();
        let recovery = &mut self.recovery;
        recovery.state = CaState::Loss;
        recovery.point = self.send.nxt;
        recovery.probe.high = 0;
        recovery.frto = self.config.frto && (began || repeats);
        recovery.resend = Resend::Lost;
        recovery.force = true;
        self.send.cwr_pending = self.ecn_enabled;
        self.set_timer(now, Pending::Rto, self.rto());
    }
}
