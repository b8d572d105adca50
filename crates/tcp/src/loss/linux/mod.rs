//! Linux's engine: what an ACK means to the congestion state, for every detector but the plain one
//! of RFC 6675, whose engine is `rfc.rs`.
//!
//! The order is that of `tcp_ack`: the detector learns what was delivered, needless retransmissions
//! are recognized and undone, the detector marks what is lost, an episode begins or goes on
//! (`states.rs`), and the window moves last. Counts are of segments, as in Linux.
//!
//! # Source
//! Linux `net/ipv4/tcp_input.c` of 2.6.32, 4.0, 6.1 and 6.18: [`crate::LossRules`] and
//! [`crate::DetectorRules`] name what differs. RFC 6582, RFC 8985, RFC 9937; undoing is in
//! `undo.rs`, probes in `tail_probe.rs`.
//!
//! # Departures
//! - A segment that is SACKed while a retransmission of it is in flight leaves both the count of
//!   retransmissions and what is in flight; Linux keeps the retransmission in the count until the
//!   ACK if the segment had not been declared lost.
//! - Linux 4.0 grows the window before it looks for losses, which is kept; where else 4.0 and 6.1
//!   differ in nothing but the order, it is 6.1's.

mod emulated_sacks;
mod reduction;
mod states;
mod timeout;
mod timeout_test;

use ackclock_cc::{Ack, Flight, Verdict, Window};
use ackclock_units::{Span, Time};

use crate::loss::Loss;
use crate::loss::detector::View;
use crate::loss::recovery::Resend;
use crate::loss::scoreboard::{Progress, Whole};
use crate::loss::{AckContext, DuplicateReport};
use crate::send::Sender;
use crate::send::retransmission_timer::Pending;
use crate::{CaState, DetectorRules, LossRules};

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
    pub(crate) fn is_dubious(&self, context: &AckContext) -> bool {
        let ordinary = context.not_duplicate || context.progress.acked > 0;
        !ordinary
            || context.progress.sacked_segments > 0
            || context.ece
            || context.duplicates.segments > 0
            || self.recovery.state() != CaState::Open
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
        self.loss.detector.delivered(progress);
        if self.loss.recovery.probe.is_in_flight() {
            self.on_ack_of_probe(context);
        }
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
        self.loss.detector.delivered_whole((whole.last, whole.end), self.stamp(now));
        self.loss.recovery.resend = Resend::Hold;
        self.set_transmit_timer(now);
        let bytes = u64::from(whole.segments) * u64::from(self.negotiated.mss());
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
        // tcp_cong_control: a short segment counts as one.
        let bytes = delivered * u64::from(self.negotiated.mss());
        let lost = self.loss.board.units_declared_lost() - context.units_lost_before;
        let ack = Ack { acked: progress.acked, delivered: bytes, ece, lost, ..Ack::default() };
        if self.config.transfer.loss.grows_within_burst {
            self.grow_within_burst(now, ack);
        } else {
            self.grow_for(now, ack);
        }
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
    pub(super) fn may_send_now(&self) -> bool {
        let available = (self.sequence.written() + 1).saturating_sub(self.sequence.nxt());
        let window = (self.sequence.window_end()).saturating_sub(self.sequence.nxt());
        let next = u64::from(self.negotiated.mss()).min(available);
        !self.sequence.is_fin_sent()
            && next > 0
            && next <= window
            && self.window_used() + self.loss.window_taken(&self.negotiated, next as u32) <= self.cwnd()
    }
}
