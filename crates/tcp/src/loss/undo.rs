//! Taking back a reduction that turns out needless.
//!
//! Retransmissions were needless if the receiver reports every one of them as a duplicate (RFC
//! 3708, by DSACK), if an ACK echoes a timestamp from before the first of them (the Eifel
//! algorithm, RFC 3522 and RFC 4015), or, after a timeout, if something arrives that was sent but
//! once (F-RTO, RFC 5682). The controller then restores the one state that it saved.
//!
//! # Source
//! Linux `net/ipv4/tcp_input.c` of 6.18: `tcp_init_undo`, `tcp_packet_delayed`, `tcp_may_undo`,
//! `tcp_try_undo_*`.

use ackclock_cc::{Signal, Window};
use ackclock_units::{Span, Time};

use crate::connection::negotiated::Negotiated;
use crate::loss::Loss;
use crate::loss::detector::View;
use crate::loss::scoreboard::Progress;
use crate::send::Sender;
use crate::send::sequence::SendSequence;
use crate::{CaState, NeedlessTimeout};

impl Loss {
    /// `tcp_init_undo`: retransmissions that are still in flight count.
    pub(crate) fn start_undo(&mut self, sequence: &SendSequence) {
        let probe = u64::from(self.recovery.probe.is_retransmission());
        let resent = self.board.resent_segments() + probe;
        self.recovery.undo.begin(sequence.una(), resent, self.config.transfer.loss.signed_undo_count);
    }

    /// `tcp_retrans_stamp_cleanup`.
    pub(crate) fn forget_retransmissions(&mut self) {
        if !self.any_resent() {
            self.recovery.undo.forget_retransmissions();
        }
    }

    /// `tcp_packet_delayed`: what is acknowledged was sent before the first retransmission.
    fn was_delayed(&self, negotiated: &Negotiated, sequence: &SendSequence, progress: &Progress) -> bool {
        match self.recovery.undo.first_resent_at() {
            Some(at) => {
                let tick = if self.config.transfer.loss.jiffies_in_echo { 4 } else { 1 };
                progress.echo.is_some_and(|echo| echo / tick < at.as_nanos() / 1_000_000 / tick)
            }
            // Nothing was resent; but without SACK that is forgotten when the episode ends.
            None => negotiated.sack() || sequence.una() < self.recovery.point,
        }
    }

    /// `tcp_may_undo`.
    pub(crate) fn may_undo(&self, negotiated: &Negotiated, sequence: &SendSequence, progress: &Progress) -> bool {
        let undo = &self.recovery.undo;
        self.config.undo
            && undo.is_possible()
            && (undo.none_pending() || self.was_delayed(negotiated, sequence, progress))
    }
}

impl Sender {
    /// `tcp_undo_cwnd_reduction`.
    fn undo(&mut self, unmark: bool, by_dsack: bool) {
        if unmark {
            self.loss.board.unmark_lost();
        }
        if self.loss.recovery.undo.restores_window {
            // The controller restores the window that it had.
            let flight = self.flight(self.now);
            self.cc.on_signal(&flight, Signal::Spurious);
            self.ecn.reduction_undone();
        }
        let by_threshold = self.config.transfer.loss.undo_by_threshold;
        if by_threshold {
            self.put_window_back();
        } else if !self.loss.recovery.undo.restores_window && self.loss.recovery.in_reduction() {
            // Without prior_ssthresh the window stays where the reduction has brought it.
            let Window { ssthresh, .. } = self.cc.window();
            self.cc.take_over(Window { cwnd: self.cwnd(), ssthresh });
        }
        self.moderate_window();
        if by_threshold {
            // tcp_complete_cwr has its say.
            self.loss.recovery.reduction.set(self.cc.window().cwnd);
        }
        self.loss.recovery.undo.marker = 0;
        self.loss.detector.undone(by_dsack);
        self.stats.undos += 1;
    }

    /// `tcp_undo_cwr`, after the controller has put its window back, if it has one: the
    /// threshold, or without one the window up to it.
    fn put_window_back(&mut self) {
        let prior = self.loss.recovery.undo.prior_ssthresh;
        let Window { cwnd, ssthresh } = self.cc.window();
        let window = match self.loss.recovery.undo.restores_window {
            true => Window { cwnd, ssthresh: ssthresh.max(prior) },
            false => Window { cwnd: self.cwnd().max(ssthresh), ssthresh },
        };
        self.cc.take_over(window);
    }

    /// `tcp_try_undo_recovery`: everything sent before the episode is acknowledged. Returns whether
    /// the state is held until more is.
    pub(crate) fn undo_at_end(&mut self, progress: &Progress) -> bool {
        if self.loss.may_undo(&self.negotiated, &self.sequence, progress) {
            self.undo(false, false);
        } else {
            self.loss.detector.finished();
        }
        if self.holds_state() {
            return true;
        }
        if self.loss.recovery.state() == CaState::Loss {
            self.loss.enter(self.now, CaState::Open);
        }
        false
    }

    /// `tcp_is_non_sack_preventing_reopen`: RFC 6582 section 3.2 step 2.
    fn holds_state(&mut self) -> bool {
        let holds = !self.negotiated.sack() && self.sequence.una() == self.loss.recovery.point;
        if holds {
            self.moderate_window();
            self.loss.forget_retransmissions();
        }
        holds
    }

    /// `tcp_try_undo_partial`, after a partial ACK. Returns whether nothing more is declared lost
    /// now.
    pub(super) fn undo_partially(&mut self, progress: &Progress, view: &View) -> bool {
        if !self.config.undo
            || !self.loss.recovery.undo.is_possible()
            || !self.loss.was_delayed(&self.negotiated, &self.sequence, progress)
        {
            return false;
        }
        // A delayed original filled the hole: reordering as far as the highest segment reported.
        let high = self.loss.board.highest_sacked().unwrap_or(self.sequence.una());
        let reach = view.reach + progress.acked_segments;
        self.loss.detector.reordered(self.sequence.una() - progress.acked, high, reach, 0, self.negotiated.mss());
        if self.loss.board.resent_segments() > 0 {
            return true;
        }
        self.loss.forget_retransmissions();
        self.undo(true, false);
        self.loss.keep_open(&self.negotiated, &self.sequence, self.now);
        self.loss.detector.rules().undo_ends_ack
    }

    /// `tcp_try_undo_dsack`.
    pub(super) fn undo_by_dsack(&mut self) -> bool {
        let needless = self.config.undo && self.loss.recovery.undo.all_duplicated();
        if needless {
            self.undo(false, true);
        }
        needless
    }

    /// `tcp_try_undo_loss`; `frto` if F-RTO has found the timeout spurious. Returns whether it was.
    pub(super) fn undo_timeout(&mut self, progress: &Progress, frto: bool) -> bool {
        if !frto && !self.loss.may_undo(&self.negotiated, &self.sequence, progress) {
            return false;
        }
        self.undo(true, false);
        self.rtt.progress();
        if !self.holds_state() && (frto || self.negotiated.sack()) {
            self.loss.enter(self.now, CaState::Open);
        }
        true
    }

    /// Notes the state with which the first ACK after the first timeout is compared.
    pub(super) fn doubt_timeout(&mut self, now: Time, rule: NeedlessTimeout) {
        // t_rxtshift ends with a sample.
        let first = self.rtt.backoff() == 0;
        let half = self.rtt.srtt().map_or(Span::ZERO, |srtt| srtt / 2);
        self.loss.recovery.reduction.may_be_needless(match rule {
            NeedlessTimeout::Never => return,
            _ if !first => Time::ZERO,
            NeedlessTimeout::Echo if self.negotiated.timestamps() => now,
            NeedlessTimeout::Echo | NeedlessTimeout::Soon => now + half,
        });
    }

    /// The first ACK after the first timeout: if it cannot be the answer to what was sent again,
    /// the timeout was needless (`CC_RTO_ERR`). Returns `true` if so.
    pub(super) fn take_timeout_back(&mut self, now: Time, echo: Option<u64>, rule: NeedlessTimeout) -> bool {
        let at = self.loss.recovery.reduction.take_needless();
        let needless = match rule {
            NeedlessTimeout::Echo if self.negotiated.timestamps() => {
                echo.is_some_and(|echo| echo < at.as_nanos() / 1_000_000)
            }
            _ => now < at,
        };
        if needless {
            let flight = self.flight(now);
            self.cc.on_signal(&flight, Signal::Spurious);
            self.ecn.reduction_undone();
            self.loss.board.unmark_lost();
            self.loss.board.settle();
            self.stats.undos += 1;
            self.loss.recovery.force = false;
        }
        needless
    }
}
