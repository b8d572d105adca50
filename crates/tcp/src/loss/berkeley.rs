//! Tahoe and Reno: the loss recovery of BSD before NewReno and SACK.
//!
//! The third ACK in a row that acknowledges nothing, carries nothing and leaves the window as it
//! was shows that the segment it asks for is lost. Tahoe then begins slow start from one segment
//! at SND.UNA, and sends everything again in order, as far as it is not acknowledged by then. Reno
//! sends the one segment again, with a window of the threshold and the three segments that have
//! arrived, which grows by a segment for each further duplicate. The first ACK of new data ends
//! that, however little it acknowledges: a second loss in the same window needs three duplicates
//! of its own, and often a timeout. After a timeout both begin slow start at SND.UNA.
//!
//! Segments sent again in order make the receiver repeat itself, if it has them already. Three such
//! duplicates are another fast retransmit, unless `bugfix` is set: then duplicates begin nothing
//! until all is acknowledged that had been sent when the last fast retransmit or timeout was.
//!
//! # Source
//! RFC 2001 and RFC 2581 section 3; `tcp_input.c` and `tcp_timer.c` of 4.3BSD-Tahoe and
//! 4.3BSD-Reno, as later kernels have kept them; of ns-2, `tcp/tcp.cc` (`dupack_action`,
//! `reset_rtx_timer`, `timeout`) and `tcp/tcp-reno.cc`, whose `bugFix_` is `bugfix` here: S. Floyd,
//! TCP and Successive Fast Retransmits, 1994, and RFC 2582 section 5. With limited transmit RFC
//! 3042, which is later, as ns-2's `singledup_`.
//!
//! # Departures
//! - After a fast retransmit Tahoe goes on from SND.UNA, as in ns-2 and as Fall and Floyd describe
//!   it; 4.3BSD-Tahoe puts SND.NXT back to where it was once the one segment is sent.
//! - SND.NXT is not moved back: it is the first segment that is declared lost and not sent again.
//!   Segments go out again as they were cut at first.
//! - The threshold is the controller's: half of the window by default, rounded down, two segments
//!   at least. What is in flight beyond the window by limited transmit does not count (RFC 5681
//!   section 3.2). A controller hears of Tahoe's fast retransmit as of a timeout, since that is
//!   what follows.
//! - The peer's window does not bound what is halved, unless the controller halves what is in
//!   flight (`halve_flight`): BSD and ns-2 take the smaller of both windows.
//! - An ACK with data, or with another window, ends a row of duplicates, but not fast recovery: of
//!   those that follow each still lets the window grow. In BSD three of them are another fast
//!   retransmit.
//! - What the window grows by with the ACK that ends fast recovery is the controller's: by bytes,
//!   an ACK of many segments counts in full.
//! - Reno's window is the threshold after fast recovery, however many duplicates there were; 4.3BSD
//!   leaves it inflated after exactly three (`t_dupacks > tcprexmtthresh`).
//! - Limited transmit is of new data alone, and not after a timeout, where ns-2 sends the next of
//!   what is to be sent again.
//! - A timeout that repeats sets the threshold again, as in BSD; RFC 5681 is later.
//! - A mark (ECN) reduces the window as with `freebsd.rs`; BSD of then knew none. A loss in the
//!   window of data that it was in leaves the threshold as it is, as in ns-2.

use ackclock_cc::{Ack, Flight, Signal};
use ackclock_units::Time;

use crate::loss::AckContext;
use crate::loss::Loss;
use crate::loss::detector::DUP_THRESH;
use crate::send::Sender;
use crate::send::sequence::SendSequence;
use crate::{CaState, LossDetector};

impl Loss {
    /// Returns `true` if a mark has reduced the window, whose data is not all acknowledged yet.
    fn is_reduced_by_mark(&self) -> bool {
        self.recovery.state() == CaState::Cwr && !self.recovery.by_controller
    }

    /// A fast retransmit, or a timeout: `bugfix` looks at what has been sent until now.
    fn note_episode(&mut self, sequence: &SendSequence) {
        self.recovery.point = sequence.nxt();
        self.recovery.rescue_above = sequence.nxt();
    }
}

impl Sender {
    /// Something is acknowledged.
    pub(super) fn on_progress_berkeley(&mut self, context: &AckContext) {
        let AckContext { now, ref progress, ece, .. } = *context;
        self.loss.recovery.dup_acks = 0;
        match self.loss.recovery.state() {
            CaState::Recovery => self.leave_fast_recovery(now),
            CaState::Cwr if self.sequence.una() >= self.loss.recovery.point => self.end_reduction(now),
            CaState::Cwr if !self.loss.recovery.by_controller => return,
            _ => {}
        }
        let flight = self.flight(now);
        let ack = Ack { acked: progress.acked, delivered: progress.acked, ece, ..Ack::default() };
        self.pass_in_flight(now, &flight, ack, progress.delivered);
    }

    /// A duplicate ACK.
    pub(super) fn on_duplicate_berkeley(&mut self, now: Time) {
        self.loss.recovery.dup_acks += 1;
        match self.loss.recovery.dup_acks {
            _ if self.loss.recovery.state() == CaState::Recovery => {
                let mss = u64::from(self.negotiated.mss());
                self.loss.recovery.reduction.inflate(mss, u64::MAX);
            }
            1 => self.loss.recovery.reduction.set_from(self.sequence.nxt()),
            DUP_THRESH => self.on_third_duplicate(now),
            _ => {}
        }
    }

    fn on_third_duplicate(&mut self, now: Time) {
        if self.path.probing.size > 0 && self.mtu_probe_failed(now) {
            self.loss.recovery.dup_acks = 0;
            return;
        }
        let fresh = self.sequence.una() > self.loss.recovery.rescue_above || self.loss.recovery.rescue_above == 0;
        match self.config.loss_detector {
            LossDetector::Tahoe(rules) if fresh || !rules.bugfix => self.begin_slow_start(now),
            LossDetector::Reno(rules) if fresh || !rules.bugfix => self.begin_inflated(now),
            _ => {}
        }
    }

    /// The flight within the window: limited transmit goes beyond it.
    fn flight_within(&self, now: Time) -> Flight {
        let flight = self.flight_size(now);
        Flight { in_flight: flight.in_flight.min(self.cc.window().cwnd), ..flight }
    }

    /// Tahoe's fast retransmit.
    fn begin_slow_start(&mut self, now: Time) {
        let flight = self.flight_within(now);
        self.loss.board.lose_all();
        self.stats.fast_recoveries += 1;
        self.go_back(now, &flight);
        self.restart_retransmit_timer(now);
    }

    /// Everything is lost, and goes out again by slow start.
    fn go_back(&mut self, now: Time, flight: &Flight) {
        self.tell_losses(now);
        // The threshold of a mark stays while its window is acknowledged.
        let repeated = self.loss.is_reduced_by_mark();
        self.cc.on_signal(flight, Signal::Timeout { repeated, kept: 0 });
        self.forget_validation(now);
        self.loss.enter(now, CaState::Loss);
        self.loss.note_episode(&self.sequence);
        self.loss.recovery.by_controller = false;
        self.loss.recovery.force = true;
        self.ecn.window_reduced();
    }

    /// Reno's fast retransmit and the start of fast recovery.
    fn begin_inflated(&mut self, now: Time) {
        let mss = u64::from(self.negotiated.mss());
        let flight = self.flight_within(now);
        // Data that a timeout has sent again is in flight like all else.
        self.loss.board.settle();
        if !self.loss.is_reduced_by_mark() {
            self.note_unvalidated(now);
            self.cc.on_signal(&flight, Signal::Loss);
            self.bound_by_use();
        }
        let ssthresh = self.cc.window().ssthresh;
        self.loss.board.mark_front_lost();
        self.tell_losses(now);
        self.loss.enter(now, CaState::Recovery);
        let nxt = self.sequence.nxt();
        self.loss.note_episode(&self.sequence);
        let recovery = &mut self.loss.recovery;
        recovery.by_controller = false;
        recovery.force = true;
        recovery.reduction.begin(ssthresh.saturating_add(u64::from(DUP_THRESH) * mss), ssthresh, nxt);
        self.ecn.window_reduced();
        self.stats.fast_recoveries += 1;
        self.restart_retransmit_timer(now);
    }

    /// The first ACK of new data: the window is the threshold, and there is no bound to a burst.
    fn leave_fast_recovery(&mut self, now: Time) {
        let flight = self.flight(now);
        let in_flight = flight.in_flight.max(self.cc.window().ssthresh);
        self.cc.on_signal(&Flight { in_flight, ..flight }, Signal::RecoveryEnd);
        self.end_validation(now);
        self.loss.recovery.force = false;
        // Data that a timeout had yet to resend still waits.
        let left = self.loss.board.next_lost().is_some();
        self.loss.enter(now, if left { CaState::Loss } else { CaState::Open });
        if !left {
            self.loss.board.settle();
        }
    }

    /// The retransmission timer expired.
    pub(super) fn on_timeout_berkeley(&mut self, now: Time) {
        let flight = self.flight_within(now);
        self.loss.board.mark_all_lost();
        self.loss.recovery.dup_acks = 0;
        self.go_back(now, &flight);
        self.rtt.back_off();
        self.timer.retransmit(now + self.rtt.rto(&self.config));
    }
}
