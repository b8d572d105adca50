//! A test of a timeout before anything is declared lost (F-RTO, RFC 4138;
//! [`crate::LossRules::tests_before_losing`]).
//!
//! The first segment goes out again, after the first ACK two new ones, and the second ACK decides.
//! If the timeout was needless, the window still comes down to the threshold, by rate halving; else
//! the threshold of duplicates is 3 again.
//!
//! # Source
//! Linux `net/ipv4/tcp_input.c` of 2.6.32: `tcp_enter_frto`, `tcp_process_frto`,
//! `tcp_enter_frto_loss`; `tcp_current_ssthresh` of `include/net/tcp.h`.
//!
//! # Departures
//! - Without SACK a timeout is not tested.
//! - A controller hears of a timeout when it expires, while the kernel tells it when the test has
//!   failed: CUBIC forgets its curve for one that turns out needless too.
//! - A retransmission of anything but the first segment rules out that a timeout is taken back from
//!   the timeout on, not from when the test fails.

use ackclock_cc::{Signal, Window};
use ackclock_units::Time;

use crate::CaState;
use crate::connection::negotiated::Negotiated;
use crate::loss::AckContext;
use crate::loss::Loss;
use crate::loss::recovery::Resend;
use crate::send::Sender;
use crate::send::retransmission_timer::Pending;

impl Loss {
    /// Returns `true` if a timeout is tested before anything is declared lost (`tcp_use_frto`).
    pub(crate) fn tests_timeouts(&self, negotiated: &Negotiated) -> bool {
        self.config.transfer.loss.tests_before_losing
            && self.config.frto
            && negotiated.sack()
            && !self.recovery.whole_control
    }
}

impl Sender {
    /// `tcp_enter_frto`: the first segment goes out again.
    pub(super) fn begin_test(&mut self, now: Time) {
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
    pub(super) fn test_by_ack(&mut self, context: &AckContext) -> bool {
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
