//! The engine of the RFCs: from the first sign of loss to the end of recovery.
//!
//! With SACK a loss is proven by what is reported above it (RFC 6675), without by three duplicate
//! ACKs (RFC 6582). Each episode reduces the window once, when it begins, and ends when everything
//! sent before it is acknowledged. A mark reduces the window the same way, without retransmissions.
//! After a timeout everything is lost and slow start begins anew.
//!
//! # Source
//! RFC 6675, RFC 6582, RFC 3042; RFC 3168 section 6.1.2 (ECN); RFC 6298 section 5 and RFC 5681
//! section 3.1 (timeouts). The window in between is in `prr.rs`; what takes a timeout of FreeBSD
//! back is in `freebsd.rs`.

use ackclock_cc::{Ack, EcnUse, Flight, Signal, Verdict};
use ackclock_units::Time;

use crate::connection::negotiated::Negotiated;
use crate::loss::AckContext;
use crate::loss::Loss;
use crate::loss::detector::DUP_THRESH;
use crate::loss::prr::AckDelivery;
use crate::loss::scoreboard::{Progress, Whole};
use crate::send::Sender;
use crate::{CaState, NeedlessTimeout, Prr};

impl Loss {
    /// FreeBSD's congestion recovery is the controller's affair: the window is where it is to be.
    fn controller_reduces(&self) -> bool {
        self.recovery.state() == CaState::Cwr && self.recovery.by_controller && self.config.prr == Prr::Off
    }

    /// Bytes newly known to have arrived. Without SACK, duplicate ACKs have reported segments
    /// before they are acknowledged.
    #[inline]
    fn newly_delivered(&self, negotiated: &Negotiated, progress: &Progress) -> u64 {
        if negotiated.sack() {
            return progress.delivered;
        }
        let known = self.recovery.emulated_sacks * u64::from(negotiated.mss());
        progress.acked.saturating_sub(known).max(progress.acked.min(u64::from(negotiated.mss())))
    }

    /// Counts duplicate ACKs, and without SACK the segments that they stand for.
    #[inline]
    fn count_duplicates(&mut self, negotiated: &Negotiated, progress: &Progress, duplicate: bool) {
        let recovery = &mut self.recovery;
        if progress.acked > 0 {
            recovery.dup_acks = 0;
            if !negotiated.sack() && recovery.emulated_sacks > 0 {
                // One acknowledged segment was the hole, the others had caused duplicate ACKs.
                let others = progress.acked_segments.saturating_sub(1);
                recovery.emulated_sacks = recovery.emulated_sacks.saturating_sub(others);
            }
        }
        if duplicate {
            recovery.dup_acks += 1;
            // After a timeout they may answer what is sent again needlessly.
            if !negotiated.sack() && recovery.state() != CaState::Loss {
                let most = self.board.segments().saturating_sub(1);
                recovery.emulated_sacks = (recovery.emulated_sacks + 1).min(most);
            }
        }
    }

    /// One ACK of a reduction; `safe` if it acknowledges something and shows no further loss.
    fn reduce_window_rfc(&mut self, negotiated: &Negotiated, progress: &Progress, safe: bool, duplicate: bool) {
        let rule = self.config.prr;
        let mss = u64::from(negotiated.mss());
        // Without SACK a duplicate ACK stands for one delivered segment, and a partial ACK for the
        // one it fills.
        let delivered = match (negotiated.sack(), duplicate) {
            (true, _) => progress.delivered,
            (false, true) => mss,
            (false, false) => progress.delivered.min(mss),
        };
        if rule == Prr::Off || delivered == 0 {
            return;
        }
        let ack = AckDelivery { delivered, in_flight: self.pipe(negotiated), resent: self.board.resent(), safe };
        self.recovery.reduction.on_delivery(rule, ack, mss);
    }
}

impl Sender {
    /// The congestion side of an ACK. Nothing is to be done where nothing is unusual and nothing
    /// was delivered.
    #[inline]
    pub(super) fn on_ack_rfc(&mut self, context: &AckContext) {
        let duplicate = self.is_duplicate_ack(context);
        let open = self.loss.recovery.state() == CaState::Open;
        if !open || context.progress.delivered > 0 || duplicate || context.ece {
            self.react_to_ack(context, duplicate);
        }
    }

    /// [`Sender::on_ack_rfc`] of an ACK of `whole` segments, where nothing is unusual.
    #[inline]
    pub(super) fn on_whole_ack_rfc(&mut self, now: Time, whole: &Whole) {
        let acked = whole.units;
        self.loss.recovery.dup_acks = 0;
        self.pass_to_controller(now, Ack { acked, delivered: acked, ..Ack::default() }, acked);
    }

    /// RFC 5681 section 2. With SACK a duplicate ACK is one that reports something new (RFC 6675
    /// section 2).
    #[inline]
    fn is_duplicate_ack(&self, context: &AckContext) -> bool {
        self.sequence.una() == context.una_before
            && !self.loss.board.is_empty()
            && !self.persist.is_in_flight()
            && if self.negotiated.sack() {
                context.progress.delivered > 0
            } else {
                // RFC 5681 section 2: the acknowledgment number is the greatest one received.
                !context.is_old && !context.has_data && self.sequence.window() == context.window_before
            }
    }

    #[inline]
    fn react_to_ack(&mut self, context: &AckContext, duplicate: bool) {
        let AckContext { now, ece, ref progress, .. } = *context;
        let delivered = self.loss.newly_delivered(&self.negotiated, progress);
        self.loss.count_duplicates(&self.negotiated, progress, duplicate);
        let needless = self.config.transfer.needless_timeout;
        if needless != NeedlessTimeout::Never
            && self.loss.recovery.state() == CaState::Loss
            && progress.acked > 0
            && self.take_timeout_back(now, progress.echo, needless)
        {
            self.loss.enter(now, CaState::Open);
            self.loss.recovery.emulated_sacks = 0;
        }
        let lost_before = self.loss.board.lost();
        if self.negotiated.sack() && progress.delivered > progress.acked || self.loss.recovery.state() != CaState::Open
        {
            self.loss.board.mark_lost(DUP_THRESH, self.negotiated.mss());
        }
        self.change_state(context);

        let lost = self.loss.board.units_declared_lost() - context.units_lost_before;
        let mut ack = Ack { acked: progress.acked, delivered, ece, lost, ..Ack::default() };
        if self.loss.recovery.whole_control {
            if duplicate && !self.negotiated.sack() {
                ack.delivered += u64::from(self.negotiated.mss());
            }
            self.rule_window(now, ack);
        } else if self.loss.recovery.in_reduction() && !self.loss.controller_reduces() {
            let no_further_loss = self.loss.board.lost() <= lost_before;
            self.loss.reduce_window_rfc(&self.negotiated, progress, progress.acked > 0 && no_further_loss, duplicate);
        } else if progress.acked > 0 {
            self.pass_to_controller(now, ack, progress.delivered);
        }
    }

    /// The controller grows its window, or reduces it; `delivered` bytes came with the ACK.
    #[inline]
    fn pass_to_controller(&mut self, now: Time, ack: Ack, delivered: u64) {
        let flight = self.flight(now);
        self.pass_in_flight(now, &flight, ack, delivered);
    }

    /// Passes an ACK on with the flight that the controller may see.
    #[inline]
    pub(super) fn pass_in_flight(&mut self, now: Time, flight: &Flight, mut ack: Ack, delivered: u64) {
        self.add_samples(now, &mut ack);
        let reduced = self.cc.on_ack(flight, &ack) == Verdict::Reduced;
        // After a timeout there is an episode already.
        if reduced && self.loss.recovery.state() != CaState::Loss {
            self.begin_reduction(CaState::Cwr, delivered);
            self.loss.recovery.by_controller = true;
        }
    }

    /// Ends the episode if everything sent before it is acknowledged, and begins one if there is a
    /// reason.
    #[inline]
    fn change_state(&mut self, context: &AckContext) {
        let AckContext { now, ece, ref progress, .. } = *context;
        let done = self.sequence.una() >= self.loss.recovery.point;
        match self.loss.recovery.state() {
            CaState::Open | CaState::Disorder => {}
            CaState::Cwr if done => self.end_reduction(now),
            CaState::Cwr => {}
            CaState::Recovery if done => self.end_reduction(now),
            CaState::Recovery => {
                if progress.acked > 0 && !self.negotiated.sack() {
                    // A partial ACK: the next segment is lost as well, and resent at once (RFC 6582
                    // section 3.2 step 3).
                    self.loss.board.mark_front_lost();
                    self.loss.recovery.force = true;
                }
                return;
            }
            CaState::Loss if done => {
                self.loss.enter(now, CaState::Open);
                self.loss.recovery.emulated_sacks = 0;
            }
            CaState::Loss => return,
        }
        self.begin_episode(now, ece, progress.delivered);
    }

    /// Begins recovery, or a reduction for a mark, if there is a reason; else there is disorder or
    /// there is not.
    #[inline(never)]
    fn begin_episode(&mut self, now: Time, ece: bool, delivered: u64) {
        let in_cwr = self.loss.recovery.state() == CaState::Cwr;
        let enough = self.loss.recovery.dup_acks >= DUP_THRESH;
        // RFC 6582 section 3.2 step 2: without SACK, duplicates of data sent before the last
        // episode's end prove nothing. Likewise an ECN echo of which the receiver may not have
        // learnt yet that it was answered: the CWR is in what was sent after that end.
        let fresh = self.sequence.una() > self.loss.recovery.point || self.loss.recovery.point == 0;
        if enough && (fresh || self.negotiated.sack()) && self.loss.board.lost() == 0 && !self.loss.board.is_empty() {
            self.loss.board.mark_front_lost();
        }
        if self.loss.board.lost() > 0 && self.path.probing.size > 0 && self.mtu_probe_failed(now) {
            self.loss.recovery.dup_acks = 0;
        } else if self.loss.board.lost() > 0 {
            self.begin_recovery_rfc(now, delivered);
        } else if ece && fresh && !in_cwr {
            // RFC 3168 section 6.1.2: once per window of data.
            self.signal_reduction(now, Signal::Ecn, delivered);
        } else if !in_cwr {
            let disorder = self.loss.board.sacked_segments() > 0 || self.loss.recovery.dup_acks > 0;
            self.loss.enter(now, if disorder { CaState::Disorder } else { CaState::Open });
            if !disorder {
                self.loss.recovery.emulated_sacks = 0;
            }
        }
    }

    /// A segment is lost.
    fn begin_recovery_rfc(&mut self, now: Time, delivered: u64) {
        self.tell_losses(now);
        if self.loss.recovery.state() == CaState::Cwr && self.observer.needs.ecn == EcnUse::Data {
            // The window is coming down already: one reduction per window of data.
            self.loss.enter(now, CaState::Recovery);
            self.loss.recovery.point = self.sequence.nxt();
        } else {
            self.signal_reduction(now, Signal::Loss, delivered);
        }
        self.loss.recovery.force = true;
        self.loss.recovery.rescue_above = 0;
        self.stats.fast_recoveries += 1;
    }

    /// The controller hears of a loss or a mark, and the window begins to come down.
    pub(super) fn signal_reduction(&mut self, now: Time, signal: Signal, delivered: u64) {
        let flight = self.flight_size(now);
        self.note_unvalidated(now);
        self.cc.on_signal(&flight, signal);
        self.bound_by_use();
        let state = if signal == Signal::Loss { CaState::Recovery } else { CaState::Cwr };
        self.begin_reduction(state, delivered);
    }

    /// The window is to come down to the slow start threshold that the controller has set;
    /// `delivered` bytes came with the ACK in hand.
    fn begin_reduction(&mut self, state: CaState, delivered: u64) {
        let window = self.cc.window();
        // RFC 9937 section 6: RecoverFS leaves out what earlier ACKs had SACKed, and includes what
        // this one delivers.
        let flight = self.loss.board.outstanding() - self.loss.board.sacked() + delivered;
        let cwnd = self.loss.board.pipe().max(u64::from(self.negotiated.mss()));
        self.loss.enter(self.now, state);
        let recovery = &mut self.loss.recovery;
        recovery.point = self.sequence.nxt();
        recovery.by_controller = false;
        recovery.reduction.begin(cwnd, window.ssthresh.min(window.cwnd), flight);
        // RFC 3168 section 6.1.2: CWR reports a reduction for any reason.
        self.ecn.window_reduced();
    }

    /// [`Sender::flight`] with FlightSize of RFC 5681 section 2 in place of `pipe`: nothing is
    /// declared lost.
    pub(crate) fn flight_size(&self, now: Time) -> Flight {
        Flight { in_flight: self.loss.board.outstanding(), ..self.flight(now) }
    }

    pub(super) fn end_reduction(&mut self, now: Time) {
        let mut flight = self.flight(now);
        if self.loss.recovery.state() == CaState::Cwr {
            // The bound to a burst is of fast recovery (RFC 6582 section 3.2 step 3; FreeBSD
            // `newreno_post_recovery`). For ECN it would be a second reduction in the same window
            // of data (RFC 3168 section 6.1.2).
            flight.in_flight = flight.in_flight.max(self.cc.window().ssthresh);
        }
        self.cc.on_signal(&flight, Signal::RecoveryEnd);
        self.end_validation(now);
        self.loss.enter(now, CaState::Open);
        self.loss.recovery.emulated_sacks = 0;
        self.loss.recovery.force = false;
    }

    /// The retransmission timer expired.
    pub(super) fn on_timeout_rfc(&mut self, now: Time) {
        let flight = self.flight_size(now);
        self.doubt_timeout(now, self.config.transfer.needless_timeout);
        self.loss.board.mark_all_lost();
        self.tell_losses(now);
        // RFC 5681 section 3.1: the threshold stays when the segment had been resent by timeout
        // before.
        self.cc.on_signal(&flight, Signal::Timeout { repeated: self.rtt.timeouts() > 0, kept: 0 });
        self.forget_validation(now);
        self.rtt.back_off();
        self.loss.enter(now, CaState::Loss);
        let recovery = &mut self.loss.recovery;
        recovery.point = self.sequence.nxt();
        recovery.dup_acks = 0;
        recovery.emulated_sacks = 0;
        // The first segment goes out whatever the window.
        recovery.force = true;
        self.ecn.window_reduced();
        self.timer.retransmit(now + self.rtt.rto(&self.config));
    }
}
