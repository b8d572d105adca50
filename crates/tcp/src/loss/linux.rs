//! Linux's engine: what an ACK means to the congestion state, for every detector but the plain one
//! of RFC 6675, whose engine is `rfc.rs`.
//!
//! The order is that of `tcp_ack`: the detector learns what was delivered, needless retransmissions
//! are recognized and undone, the detector marks what is lost, an episode begins or goes on, and the
//! window moves last. Counts are of segments, as in Linux; without SACK duplicate ACKs count as if
//! each reported a segment (`sacked_out`).
//!
//! Before a loss is proven - in Open, Disorder and CWR - every ACK that is not ordinary progress ends
//! in the same search for losses ([`Sender::look_for_loss`]), which enters Recovery when it finds
//! one. Recovery and Loss last until everything sent before them is acknowledged, or until they turn
//! out needless.
//!
//! A timeout may be tested before anything is declared lost (F-RTO, RFC 4138;
//! [`crate::LossRules::tests_before_losing`]). The first segment goes out again, after the first ACK
//! two new ones, and the second ACK decides. If the timeout was needless, the window still comes down
//! to the threshold, by rate halving; else the threshold of duplicates is 3 again.
//!
//! # Source
//! Linux `net/ipv4/tcp_input.c` of 2.6.32, 4.0, 6.1 and 6.18: [`crate::LossRules`] and
//! [`crate::DetectorRules`] name what differs. RFC 6582, RFC 8985, RFC 9937; undoing is in
//! `undo.rs`, probes in `tail_probe.rs`. The test of a timeout: `tcp_enter_frto`,
//! `tcp_process_frto` and `tcp_enter_frto_loss` of 2.6.32, `tcp_current_ssthresh` of its
//! `include/net/tcp.h`.
//!
//! # Departures
//! - A segment that is SACKed while a retransmission of it is in flight leaves both the count of
//!   retransmissions and what is in flight; Linux keeps the retransmission in the count until the
//!   ACK if the segment had not been declared lost.
//! - Linux 4.0 grows the window before it looks for losses, which is kept; where else 4.0 and 6.1
//!   differ in nothing but the order, it is 6.1's.
//! - Without SACK a timeout is not tested.
//! - A controller hears of a timeout when it expires, while the kernel tells it when the test has
//!   failed: CUBIC forgets its curve for one that turns out needless too.
//! - A retransmission of anything but the first segment rules out that a tested timeout is taken back
//!   from the timeout on, not from when the test fails.

use ackclock_cc::{Ack, EcnUse, Flight, Signal, Verdict, Window};
use ackclock_units::{Span, Time};

use crate::connection::negotiated::Negotiated;
use crate::loss::detector::{Marked, StartRecovery, View};
use crate::loss::recovery::Resend;
use crate::loss::scoreboard::{Progress, Whole};
use crate::loss::{AckContext, DuplicateReport, Loss};
use crate::send::Sender;
use crate::send::retransmission_timer::Pending;
use crate::{CaState, DetectorRules, LossRules, Prr};

/// The reaction to an ACK that is not ordinary progress.
#[derive(Clone, Copy, Debug)]
struct Reaction {
    resend: Resend,
    /// When the detector wants to look again.
    again: Option<Span>,
}

impl Reaction {
    /// Segments marked lost are not resent now.
    const HOLD: Reaction = Reaction { resend: Resend::Hold, again: None };
}

impl Loss {
    /// `tcp_ack_is_dubious`: it is not ordinary progress, or not everything was in order before.
    #[inline]
    fn is_dubious(&self, context: &AckContext) -> bool {
        let ordinary = context.not_duplicate || context.progress.acked > 0;
        !ordinary
            || context.progress.sacked_segments > 0
            || context.ece
            || context.duplicates.segments > 0
            || self.recovery.state() != CaState::Open
    }

    // A window reduction.

    /// `tcp_enter_cwr`, once the window comes down: congestion is proven, and nothing can be
    /// undone.
    fn enter_cwr(&mut self, now: Time) {
        self.recovery.undo.rule_out();
        self.enter(now, CaState::Cwr);
    }

    // The test of a timeout.

    /// Returns `true` if a timeout is tested before anything is declared lost (`tcp_use_frto`).
    fn tests_timeouts(&self, negotiated: &Negotiated) -> bool {
        self.config.transfer.loss.tests_before_losing
            && self.config.frto
            && negotiated.sack()
            && !self.recovery.whole_control
    }

    // Without SACK (`sacked_out`).

    /// `tcp_add_reno_sack`: a duplicate ACK shows that a segment has left the network. Returns how
    /// many are newly known to have.
    fn add_emulated_sack(&mut self, negotiated: &Negotiated, duplicate: bool) -> u64 {
        if negotiated.sack() || !duplicate {
            return 0;
        }
        let before = self.recovery.emulated_sacks;
        self.recovery.emulated_sacks += 1;
        self.check_for_reordering(0);
        self.recovery.emulated_sacks.saturating_sub(before)
    }

    /// `tcp_remove_reno_sacks`: of `acked` segments one was the hole, the others had caused
    /// duplicate ACKs. Returns how many are newly known to have arrived.
    fn remove_emulated_sacks(&mut self, acked: u64) -> u64 {
        let before = self.recovery.emulated_sacks;
        self.recovery.emulated_sacks = before.saturating_sub(acked - 1);
        self.check_for_reordering(acked);
        acked.saturating_sub(before).max(1)
    }

    /// `tcp_check_reno_reordering`: more duplicate ACKs than segments in flight can have caused.
    fn check_for_reordering(&mut self, acked: u64) {
        let outstanding = self.board.segments();
        let holes = self.board.lost_segments().max(1).min(outstanding);
        if self.recovery.emulated_sacks + holes > outstanding {
            self.recovery.emulated_sacks = outstanding - holes;
            self.detector.more_duplicates(outstanding + acked);
        }
    }
}

impl Sender {
    /// The congestion side of an ACK (`tcp_ack`). One without anything in flight says nothing of
    /// congestion, nor does the answer to a window probe.
    #[inline]
    pub(super) fn on_ack_linux(&mut self, context: &AckContext) {
        if (context.outstanding_before || context.duplicates.segments > 0) && !self.persist.is_in_flight() {
            self.process_ack(context);
        }
    }

    #[inline]
    fn process_ack(&mut self, context: &AckContext) {
        let AckContext { now, ref progress, .. } = *context;
        let mut delivered = progress.delivered_segments + context.duplicates.segments;
        if !self.negotiated.sack() && progress.acked_segments > 0 {
            delivered = self.loss.remove_emulated_sacks(progress.acked_segments);
        }
        // Without SACK, RACK learns nothing (`tcp_rack_advance` of `tcp_clean_rtx_queue`).
        if self.negotiated.sack() {
            self.loss.detector.delivered(progress);
        }
        if self.loss.recovery.probe.is_in_flight() {
            self.on_ack_of_probe(context);
        }
        self.tell_sample(now, progress);
        let DetectorRules { grows_first, grows_last, .. } = self.loss.detector.rules();
        let tested = grows_first && self.loss.recovery.undo.test_high > 0 && self.test_by_ack(context);
        let grown = grows_first && !self.loss.recovery.in_reduction() && !self.loss.recovery.whole_control && !tested;
        if grown {
            self.grow(context, delivered);
        }
        self.loss.recovery.resend = Resend::Hold;
        let timer_set = self.loss.is_dubious(context) && self.react(context, &mut delivered);
        if !timer_set && self.loss.restarts_timer(progress) {
            self.set_transmit_timer(now);
        }
        if self.loss.recovery.whole_control {
            self.pass_to_whole_control(context, delivered);
        } else if self.loss.recovery.in_reduction() {
            let lost = self.loss.board.losses() - context.losses_before;
            let advanced = self.sequence.una() > context.una_before;
            if delivered > 0 || advanced || !self.config.transfer.loss.halves_on_news_only {
                self.reduce_window_linux(delivered, advanced && lost == 0);
            }
        } else if grows_last && !grown {
            self.grow(context, delivered);
        }
    }

    /// [`Sender::on_ack_linux`] of an ACK of `whole` segments, where nothing is dubious.
    #[inline]
    pub(super) fn on_whole_ack_linux(&mut self, now: Time, whole: &Whole) {
        if self.loss.detector.rules().grows_first {
            self.on_whole_ack_growing_first(now, whole);
            return;
        }
        let acked = whole.units;
        if self.negotiated.sack() {
            self.loss.detector.delivered_whole((whole.last, whole.end), self.stamp(now));
        }
        self.loss.recovery.resend = Resend::Hold;
        self.set_transmit_timer(now);
        let bytes = self.grown_by(whole.segments.into(), acked);
        self.grow_for(now, Ack { acked, delivered: bytes, ..Ack::default() });
    }

    /// Processes such an ACK where the window grows first and may be reduced by that: the ordinary
    /// way, with the context of such an ACK.
    #[inline(never)]
    fn on_whole_ack_growing_first(&mut self, now: Time, whole: &Whole) {
        let context = AckContext {
            now,
            una_before: self.sequence.una() - whole.units,
            window_before: self.sequence.window(),
            outstanding_before: true,
            losses_before: self.loss.board.losses(),
            units_lost_before: self.loss.board.units_declared_lost(),
            is_old: false,
            has_data: false,
            not_duplicate: true,
            ece: false,
            duplicates: DuplicateReport::default(),
            progress: Progress::of_whole(now, self.order, whole),
        };
        self.process_ack(&context);
    }

    /// A dubious ACK: the state reacts. Returns whether a timer was set.
    #[inline(never)]
    fn react(&mut self, context: &AckContext, delivered: &mut u64) -> bool {
        let now = context.now;
        let advanced = self.sequence.una() > context.una_before;
        if advanced && self.loss.board.front().is_some_and(|front| front.sacked) {
            // tcp_check_sack_reneging: the segment after the ACK had been reported. The receiver
            // has half a round trip to reconsider.
            let wait = self.rtt.srtt().map_or(Span::ZERO, |srtt| srtt / 2).max(Span::from_millis(10));
            self.set_timer(now, Pending::Rto, wait);
            return true;
        }
        let ordinary = context.not_duplicate || context.progress.acked > 0;
        let counts = context.duplicates.segments == 0 || self.config.transfer.loss.dsack_is_duplicate;
        let duplicate = !ordinary && !advanced && counts;
        let newly_sacked = context.progress.sacked_segments > 0;
        let view = View { advanced, duplicate, newly_sacked, ece: context.ece, ..self.view(now) };
        let Reaction { resend, again } = self.alert(context, &view, delivered);
        self.loss.recovery.resend = resend;
        if let Some(wait) = again {
            self.set_timer(now, Pending::Reorder, wait.min(self.rto()));
        }
        again.is_some()
    }

    /// The controller sets the window in every state.
    fn pass_to_whole_control(&mut self, context: &AckContext, delivered: u64) {
        let AckContext { now, ece, ref progress, .. } = *context;
        let delivered =
            if self.negotiated.sack() { progress.delivered } else { delivered * u64::from(self.negotiated.mss()) };
        let lost = self.loss.board.units_declared_lost() - context.units_lost_before;
        self.rule_window(now, Ack { acked: progress.acked, delivered, ece, lost, ..Ack::default() });
    }

    /// `pkts_acked`, before the state reacts; until 4.0 only of what is acknowledged.
    fn tell_sample(&mut self, now: Time, progress: &Progress) {
        let counts = progress.acked > 0 || !self.loss.detector.rules().grows_first;
        if let Some(rtt) = self.latest_sample.filter(|_| counts) {
            let flight = self.flight(now);
            let cwnd = self.cwnd();
            self.cc.on_sample(&flight, rtt, cwnd);
        }
    }

    /// `tcp_cong_avoid` if `tcp_may_raise_cwnd`.
    #[inline]
    fn grow(&mut self, context: &AckContext, delivered: u64) {
        let AckContext { now, ece, ref progress, .. } = *context;
        let grows = progress.acked > 0 || (progress.sacked_segments > 0 && self.loss.detector.grows_on_sack());
        let reached = |window: Window| window.cwnd >= window.ssthresh;
        let marked = ece && !self.loss.detector.grows_on_mark() && reached(self.cc.window());
        if !grows || marked {
            return;
        }
        let bytes = if self.negotiated.sack() { progress.delivered.max(1) } else { progress.acked };
        let bytes = self.grown_by(delivered, bytes);
        let lost = self.loss.board.units_declared_lost() - context.units_lost_before;
        let ack = Ack { acked: progress.acked, delivered: bytes, sampled: true, ece, lost, ..Ack::default() };
        if self.config.transfer.loss.grows_within_burst {
            self.grow_within_burst(now, ack);
        } else {
            self.grow_for(now, ack);
        }
    }

    /// The growth for so many `segments` that have arrived, of which `bytes` are known: Linux's window
    /// is one of segments, and a short one counts whole (`tcp_cong_control`); other systems count
    /// bytes (RFC 5681 section 3.1).
    #[inline]
    fn grown_by(&self, segments: u64, bytes: u64) -> u64 {
        let whole = segments * u64::from(self.negotiated.mss());
        if self.config.transfer.counts_segments { whole } else { whole.min(bytes) }
    }

    /// The controller grows its window, or reduces it.
    #[inline]
    fn grow_for(&mut self, now: Time, mut ack: Ack) {
        self.add_samples(now, &mut ack);
        let flight = self.flight(now);
        self.grow_by(&flight, &ack);
    }

    /// Grows the window where it counts as used within a burst of its end: all but so many segments
    /// were in flight before the ACK (`tcp_is_cwnd_limited` without segmentation offload).
    #[inline(never)]
    fn grow_within_burst(&mut self, now: Time, mut ack: Ack) {
        self.add_samples(now, &mut ack);
        let mss = u64::from(self.negotiated.mss());
        let before = self.loss.segments_in_flight(&self.negotiated) + ack.delivered.div_ceil(mss);
        let cwnd_limited = self.cwnd() / mss <= before + self.loss.max_burst().unwrap_or(0);
        let flight = Flight { cwnd_limited, ..self.flight(now) };
        self.grow_by(&flight, &ack);
    }

    #[inline]
    fn grow_by(&mut self, flight: &Flight, ack: &Ack) {
        let cwnd = self.cwnd();
        // tcp_enter_cwr does nothing after a timeout.
        if self.cc.on_ack(flight, ack) == Verdict::Reduced && self.loss.recovery.state() < CaState::Cwr {
            self.shape_window(cwnd);
            self.loss.enter_cwr(self.now);
        }
    }

    /// The view for a detector. Detectors whose marks are the proof do not ask for the last four
    /// fields.
    fn view(&self, now: Time) -> View {
        let sack = self.negotiated.sack();
        let sacked = self.loss.sacked_segments(&self.negotiated);
        let view = View {
            now,
            state: self.loss.recovery.state(),
            sack,
            mss: self.negotiated.mss(),
            outstanding: self.loss.board.segments(),
            sacked,
            reach: if sack { self.loss.board.segments_to_highest() } else { sacked + 1 },
            srtt: self.rtt.srtt(),
            advanced: false,
            duplicate: false,
            newly_sacked: false,
            begins: false,
            limit: u64::MAX,
            first_hole: false,
            ece: false,
            can_send: false,
            to_timeout: Span::ZERO,
            rto: Span::ZERO,
            cwnd: 0,
        };
        if !self.loss.detector.rules().marks_on_entry {
            return view;
        }
        let LossRules { losses_up_to_point, first_hole_at_any_sign, .. } = self.config.transfer.loss;
        View {
            limit: if losses_up_to_point { self.loss.recovery.point } else { u64::MAX },
            first_hole: first_hole_at_any_sign,
            can_send: self.may_send_now(),
            to_timeout: self.until_timeout(now),
            rto: self.rto(),
            cwnd: self.cwnd() / u64::from(self.negotiated.mss()),
            ..view
        }
    }

    /// `tcp_may_send_now`.
    fn may_send_now(&self) -> bool {
        let available = (self.sequence.written() + 1).saturating_sub(self.sequence.nxt());
        let window = (self.sequence.window_end()).saturating_sub(self.sequence.nxt());
        let next = u64::from(self.negotiated.mss()).min(available);
        !self.sequence.is_fin_sent()
            && next > 0
            && next <= window
            && self.window_used() + self.loss.window_taken(&self.negotiated, next as u32) <= self.cwnd()
    }

    // The states.

    /// The state's reaction to a dubious ACK; `delivered` grows by the segments that a duplicate
    /// ACK stands for.
    fn alert(&mut self, context: &AckContext, view: &View, delivered: &mut u64) -> Reaction {
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
            if self.sequence.has_sendable_data() {
                return Some(Resend::New);
            }
            self.loss.recovery.frto = false;
        }
        None
    }

    /// `tcp_try_to_open`: nothing is known to be lost. An echoed mark reduces the window.
    fn try_to_open(&mut self, now: Time, ece: bool) {
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

    // A window reduction.

    /// `tcp_enter_recovery`.
    fn begin_recovery(&mut self, now: Time, ece: bool) {
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
    fn shape_window(&mut self, cwnd: u64) {
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
        let before = self.cc.window();
        self.cc.on_signal(&flight, Signal::RecoveryEnd);
        self.keep_undone_window(before);
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

    /// `tcp_end_cwnd_reduction` does not bring the window to the threshold in a recovery that was
    /// undone: it stays as it was `before`, unless the controller has a window of its own
    /// (CA_EVENT_COMPLETE_CWR).
    fn keep_undone_window(&mut self, before: Window) {
        let undone = self.loss.recovery.state() == CaState::Recovery && !self.loss.recovery.undo.is_possible();
        let lowered = Window { cwnd: before.ssthresh, ..before };
        if undone && self.config.prr != Prr::RateHalving && self.cc.window() == lowered {
            self.cc.take_over(before);
        }
    }

    /// One ACK of a reduction, which delivered so many segments (`tcp_cwnd_reduction`).
    fn reduce_window_linux(&mut self, delivered: u64, safe: bool) {
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
    fn remember_threshold(&mut self) {
        self.loss.recovery.undo.prior_ssthresh = self.current_threshold();
    }

    /// `tcp_cwnd_min`.
    fn least_of_reduction(&mut self) -> u64 {
        let ssthresh = self.loss.recovery.reduction.ssthresh();
        let whole = self.config.transfer.loss.controller_bounds_halving && !self.observer.needs.reno_halving;
        if whole { ssthresh } else { ssthresh / 2 }
    }

    // Timers.

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
            self.loss.recovery.resend = Resend::Again;
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

    // The test of a timeout.

    /// `tcp_enter_frto`: the first segment goes out again.
    fn begin_test(&mut self, now: Time) {
        let state = self.loss.recovery.state();
        let (una, nxt, point) = (self.sequence.una(), self.sequence.nxt(), self.loss.recovery.point);
        let mss = u64::from(self.negotiated.mss());
        let (again, repeats) = (self.loss.recovery.undo.test_step > 0, self.rtt.timeouts() > 0);
        let reduces =
            !again && state <= CaState::Disorder || una == point || (state == CaState::Loss || again) && !repeats;
        let cwnd = self.cwnd();
        if reduces {
            self.remember_threshold();
            if again {
                // The window was not reduced yet.
                let ssthresh = self.cc.window().ssthresh;
                self.cc.take_over(Window { cwnd: 2 * mss, ssthresh });
            }
        }
        let resent_before = self.loss.board.front().is_some_and(|front| front.ever_resent());
        self.loss.board.lose_front_by_timeout();
        let flight = self.flight_size(now);
        self.tell_losses(now);
        self.cc.on_signal(&flight, Signal::Timeout { repeated: !reduces, kept: mss });
        let most = (self.loss.segments_in_flight(&self.negotiated) + 1) * mss;
        let ssthresh = self.cc.window().ssthresh;
        self.cc.take_over(Window { cwnd: cwnd.min(most), ssthresh });
        self.forget_validation(now);
        let possible = !resent_before && self.loss.board.resent_segments() == 0;
        self.loss.recovery.undo.begin(if possible { una } else { 0 }, 0, true);
        self.loss.recovery.undo.set_restores_window(reduces || self.loss.recovery.undo.restores_window);
        self.loss.recovery.undo.test_step = 1;
        let repairs = again || matches!(state, CaState::Recovery | CaState::Loss);
        self.loss.recovery.undo.test_high = if repairs && point > una { point } else { nxt };
        self.loss.enter(now, CaState::Disorder);
        self.loss.recovery.point = nxt;
        self.loss.recovery.probe.forget();
        self.loss.recovery.frto = false;
        self.loss.recovery.resend = Resend::Lost;
        self.loss.recovery.force = true;
        self.rtt.back_off();
        self.set_timer(now, Pending::Rto, self.rto());
    }

    /// `tcp_process_frto`: an ACK while a timeout is tested. Returns whether the window is set by
    /// that.
    fn test_by_ack(&mut self, context: &AckContext) -> bool {
        let set = self.loss.recovery.undo.test_step > 0 && self.take_test(context);
        if self.sequence.una() > self.loss.recovery.undo.test_high {
            self.loss.recovery.undo.test_high = 0;
        }
        set
    }

    fn take_test(&mut self, context: &AckContext) -> bool {
        let progress = &context.progress;
        let (step, high) = (self.loss.recovery.undo.test_step, self.loss.recovery.undo.test_high);
        let (acked, sacked) = (progress.acked_segments > 0, progress.sacked_segments > 0);
        if step > 1 && progress.acked_resent {
            self.loss.recovery.undo.marker = 0;
        }
        if self.sequence.una() >= high {
            self.fail_test(if step == 1 { 2 } else { 3 });
            return true;
        }
        if step == 1 {
            if acked {
                self.set_test_window(2);
                self.loss.recovery.undo.test_step = 2;
                if !self.may_send_now() {
                    self.fail_test(2);
                }
            } else {
                // No new data before that.
                self.set_test_window(0);
            }
            return true;
        }
        let reported = self.loss.board.highest_sacked().unwrap_or(0);
        let originals = progress.original_end <= high && reported <= high;
        if !acked && !sacked || sacked && !originals {
            if acked || sacked || !context.not_duplicate {
                self.fail_test(3);
            }
            return true;
        }
        self.pass_test();
        false
    }

    /// Opens the window for `more` segments than are in flight; with 0, for no more than now.
    fn set_test_window(&mut self, more: u64) {
        let mss = u64::from(self.negotiated.mss());
        let most = (self.loss.segments_in_flight(&self.negotiated) + more) * mss;
        let Window { cwnd, ssthresh } = self.cc.window();
        let cwnd = if more > 0 { most } else { cwnd.min(most).max(mss) };
        self.cc.take_over(Window { cwnd, ssthresh });
    }

    /// The timeout was needless: the window comes down to the threshold all the same
    /// (`tcp_ratehalving_spur_to_response`, `tcp_frto_response` = 0).
    fn pass_test(&mut self) {
        self.loss.recovery.undo.test_step = 0;
        let mss = u64::from(self.negotiated.mss());
        let cwnd = self.cwnd().min((self.loss.segments_in_flight(&self.negotiated) + 1) * mss);
        self.shape_window(cwnd);
        self.loss.enter_cwr(self.now);
    }

    /// `tcp_enter_frto_loss`: everything is lost, and the window lets `allowed` segments go.
    fn fail_test(&mut self, allowed: u64) {
        self.loss.recovery.undo.test_step = 0;
        self.loss.board.mark_all_lost();
        self.tell_losses(self.now);
        self.loss.detector.forget_reordering();
        self.set_test_window(allowed);
        self.loss.enter(self.now, CaState::Loss);
        self.loss.recovery.point = self.sequence.nxt();
        self.loss.recovery.resend = Resend::Lost;
        self.ecn.window_reduced();
    }
}
