//! The engine of FreeBSD 9: duplicate ACKs are counted, and the window is inflated by them.
//!
//! An ACK is a duplicate if it acknowledges nothing, carries nothing and leaves the window as it
//! was, whatever it reports. The first two let a segment of new data go each. The third begins fast
//! recovery, with a window of one segment for the first retransmission. From then on whatever is
//! not reported below the highest report is a hole, and is sent again once, up to what had been
//! sent when the episode began. Retransmissions that are in flight count against the window, and
//! new data that was sent since the start. The window grows by a segment for each further
//! duplicate, up to the threshold, while `awnd` is below that: what was sent above the highest
//! report, and retransmissions. A partial ACK sets it to what counts against it and a segment, or
//! two if it acknowledges as much. Without SACK it is NewReno with an inflated window.
//!
//! A lost retransmission is found by a timeout, which forgets all reports, sends everything again
//! in order, and skips what is reported from then on. The threshold becomes half of the window as
//! it stands, which is small early in fast recovery. If an ACK arrives within half of a round trip,
//! all but the reports is as before the timeout.
//!
//! # Source
//! `sys/netinet/tcp_input.c` (`tcp_do_segment`, `cc_cong_signal`, `tcp_newreno_partial_ack`),
//! `tcp_sack.c`, `tcp_output.c` and `tcp_timer.c` (`tcp_timer_rexmt`) of releng/9.3. All but the
//! first have their last change before the release of 9.2 (r220105, r252835 and r252794; r260435).
//! The names in brackets are theirs.
//!
//! # Departures
//! - After a timeout `snd_nxt` is the first segment that is declared lost and not sent again. Where
//!   fast recovery begins before that is through, what is left of it is sent as holes are, and one
//!   segment without a report; the reference sends holes above `snd_nxt` twice then.
//! - An episode that a timeout is taken back into ends with the threshold as its window, however
//!   little is outstanding.
//! - From the fourth timeout in a row on the reference leaves the smoothed round trip out of its
//!   waits, but for a quarter; here they go on to double, and beyond 64 times (`tcp_backoff`).
//! - The ACK after the last segment of a timeout grows the window by one segment, not by two.
//! - Limited transmit counts whatever new data was sent since the first duplicate.
//! - An ACK with data that arrives in order ends a row of duplicates, and its reports count; header
//!   prediction of the reference looks at neither. One with a FIN is no duplicate.
//! - No credit towards growth is kept while the peer's window is the smaller one.
//! - A timeout tells the peer of a smaller window (CWR), a mark is not heeded while it is repaired,
//!   and the window grows by the ACK that brings a mark before it comes down.
//! - What is sent again is bounded by the congestion window alone.
//! - A partial ACK that lets nothing go is not answered with a bare ACK (`TF_ACKNOW`).
//! - Holes are retransmitted in the segments in which they were sent, and their number is not
//!   limited (`sack.maxholes`, 128).
//! - Reports are taken in from every block; the reference skips one that begins below the ACK.

use ackclock_cc::{Ack, Flight, Signal, Verdict, Window};
use ackclock_units::Time;

use crate::connection::negotiated::Negotiated;
use crate::loss::AckContext;
use crate::loss::Loss;
use crate::loss::detector::DUP_THRESH;
use crate::loss::scoreboard::{Sent, Whole};
use crate::send::Sender;
use crate::send::sequence::SendSequence;
use crate::stack::config::Episodes;
use crate::{CaState, CwndValidation, NeedlessTimeout};

impl Loss {
    /// `tcp_sack_partialack`
    fn on_partial_ack_with_sack(&mut self, negotiated: &Negotiated, sequence: &SendSequence, acked: u64) {
        self.board.lose_holes(self.recovery.point);
        let mss = u64::from(negotiated.mss());
        let segments = if acked / mss >= 2 { 2 } else { 1 };
        let new = sequence.nxt().saturating_sub(self.recovery.reduction.from());
        let cwnd = self.board.resent() + new + segments * mss;
        let ssthresh = self.recovery.reduction.ssthresh();
        self.recovery.reduction.set(cwnd.min(ssthresh));
    }

    /// `tcp_newreno_partial_ack`
    fn on_partial_ack(&mut self, negotiated: &Negotiated, acked: u64) {
        let mss = u64::from(negotiated.mss());
        let deflated = self.recovery.reduction.cwnd().saturating_sub(acked) + mss;
        self.recovery.reduction.set(deflated);
        self.board.mark_front_lost();
        self.recovery.force = true;
    }

    /// Where the sender stands after an ACK, unless an episode goes on.
    fn review_state(&mut self, now: Time) {
        let state = self.recovery.state();
        if state == CaState::Loss {
            // snd_nxt < snd_max
            if self.board.next_lost().is_some() {
                return;
            }
            self.board.settle();
        } else if state >= CaState::Cwr {
            return;
        }
        let disorder = self.board.sacked_segments() > 0 || self.recovery.dup_acks > 0;
        self.enter(now, if disorder { CaState::Disorder } else { CaState::Open });
    }
}

impl Sender {
    /// The congestion side of an ACK, with Tahoe and Reno too.
    pub(super) fn on_ack_bsd(&mut self, context: &AckContext) {
        if self.loss.recovery.whole_control {
            self.on_ack_rfc(context);
            return;
        }
        let recovering = self.loss.recovery.state() >= CaState::Cwr;
        let berkeley = self.loss.recovery.episodes == Episodes::Berkeley;
        if self.sequence.una() > context.una_before {
            if berkeley { self.on_progress_berkeley(context) } else { self.on_progress(context) }
        } else if self.counts_as_duplicate(context) {
            if berkeley { self.on_duplicate_berkeley(context.now) } else { self.on_duplicate(context.now) }
        } else {
            self.loss.recovery.dup_acks = 0;
            if !berkeley && self.negotiated.sack() && self.loss.recovery.state() == CaState::Recovery {
                self.loss.board.lose_holes(self.loss.recovery.point);
            }
        }
        // RFC 3168 section 6.1.2: once per window of data.
        let fresh = self.sequence.una() > self.loss.recovery.point || self.loss.recovery.point == 0;
        if context.ece && fresh && !recovering && self.loss.recovery.state() < CaState::Cwr {
            self.signal_reduction(context.now, Signal::Ecn, context.progress.delivered);
        }
        self.loss.review_state(context.now);
    }

    /// Nothing acknowledged, nor less than before, no data, the same window, and something in
    /// flight.
    fn counts_as_duplicate(&self, context: &AckContext) -> bool {
        !context.is_old
            && !context.has_data
            && self.sequence.window() == context.window_before
            && !self.loss.board.is_empty()
            && !self.persist.is_in_flight()
    }

    /// Something is acknowledged.
    fn on_progress(&mut self, context: &AckContext) {
        let AckContext { now, ref progress, ece, .. } = *context;
        self.loss.recovery.dup_acks = 0;
        // All that it acknowledges counts, reported before or not (BYTES_THIS_ACK).
        let mut ack = Ack { acked: progress.acked, delivered: progress.acked, ece, ..Ack::default() };
        let put_back =
            self.loss.recovery.state() == CaState::Loss && self.take_timeout_back(now, None, NeedlessTimeout::Soon);
        if put_back {
            self.put_state_back(now);
        }
        let done = self.sequence.una() >= self.loss.recovery.point;
        match self.loss.recovery.state() {
            CaState::Recovery => {
                if done && put_back {
                    // No cc_post_recovery: it stands before CC_RTO_ERR.
                    let cwnd = self.cwnd();
                    self.loss.enter(now, CaState::Open);
                    self.cc.impose(Window { cwnd, ..self.cc.window() });
                } else if done {
                    self.end_fast_recovery(now);
                } else if put_back {
                    self.loss.board.lose_holes(self.loss.recovery.point);
                } else if self.negotiated.sack() {
                    self.loss.on_partial_ack_with_sack(&self.negotiated, &self.sequence, progress.acked);
                } else {
                    self.loss.on_partial_ack(&self.negotiated, progress.acked);
                }
                // cc_ack_received: most controllers do not grow in recovery, nor by its last ACK.
                self.add_samples(now, &mut ack);
                if self.observer.needs.recovery_acks {
                    ack.in_recovery = true;
                    let flight = self.flight(now);
                    if let Verdict::Inflated(bytes) = self.cc.on_ack(&flight, &ack)
                        && !done
                    {
                        self.loss.recovery.reduction.inflate(bytes, u64::MAX);
                    }
                }
                return;
            }
            CaState::Cwr => {
                let by_controller = self.loss.recovery.by_controller;
                if done {
                    self.end_reduction(now);
                }
                // IN_CONGRECOVERY, until after cc_ack_received.
                if !by_controller {
                    return;
                }
            }
            _ => {}
        }
        let flight = self.flight_of_freebsd(now, context.window_before);
        self.pass_in_flight(now, &flight, ack, progress.delivered);
    }

    /// An ACK of whole segments, where nothing is unusual.
    pub(super) fn on_whole_ack_freebsd(&mut self, now: Time, whole: &Whole) {
        if self.loss.recovery.whole_control {
            self.on_whole_ack_rfc(now, whole);
            return;
        }
        self.loss.recovery.dup_acks = 0;
        let (acked, flight) = (whole.units, self.flight_of_freebsd(now, self.sequence.window()));
        self.pass_in_flight(now, &flight, Ack { acked, delivered: acked, ..Ack::default() }, acked);
    }

    /// The flight as the controller may see it; the window grows as long as the peer's before the
    /// ACK is no smaller (`CCF_CWND_LIMITED`).
    fn flight_of_freebsd(&self, now: Time, window: u64) -> Flight {
        let flight = self.flight(now);
        if self.config.cwnd_validation != CwndValidation::Peer {
            return flight;
        }
        Flight { cwnd_limited: self.cc.window().cwnd <= window, ..flight }
    }

    /// A duplicate ACK.
    fn on_duplicate(&mut self, now: Time) {
        self.loss.recovery.dup_acks += 1;
        let mss = u64::from(self.negotiated.mss());
        if self.loss.recovery.state() == CaState::Recovery {
            if !self.negotiated.sack() {
                self.loss.recovery.reduction.inflate(mss, u64::MAX);
                return;
            }
            self.loss.board.lose_holes(self.loss.recovery.point);
            let ssthresh = self.loss.recovery.reduction.ssthresh();
            let highest = self.loss.board.highest_sacked().unwrap_or(0).max(self.sequence.una());
            // Below the highest report after a timeout: the sum is compared without its sign.
            let nxt = self.loss.board.left_by_timeout().unwrap_or(self.sequence.nxt());
            let awnd = (nxt + self.loss.board.resent()).checked_sub(highest);
            if awnd.is_some_and(|awnd| awnd < ssthresh) {
                self.loss.recovery.reduction.inflate(mss, ssthresh);
            }
        } else if self.loss.recovery.dup_acks >= DUP_THRESH {
            // RFC 6582 section 3.2 step 2; with SACK it does not apply.
            let fresh = self.sequence.una() > self.loss.recovery.point || self.loss.recovery.point == 0;
            let probe = self.path.probing.size > 0 && self.mtu_probe_failed(now);
            if probe || !self.negotiated.sack() && !fresh {
                self.loss.recovery.dup_acks = 0;
            } else {
                self.begin_fast_recovery(now);
            }
        } else {
            // snd_limited counts new data alone: not what a timeout has left to be sent again.
            let left = self.loss.board.left_by_timeout();
            if left.is_some() || self.loss.recovery.dup_acks == 1 {
                self.loss.recovery.reduction.set_from(left.unwrap_or(self.sequence.nxt()));
            }
        }
    }

    /// The third duplicate ACK.
    fn begin_fast_recovery(&mut self, now: Time) {
        let mss = u64::from(self.negotiated.mss());
        // Data that a timeout has sent again is in flight like all else.
        self.loss.board.settle();
        // For a mark the window has come down already (IN_CONGRECOVERY); a controller that backed
        // off by itself decides what that means.
        if self.loss.recovery.state() != CaState::Cwr || self.loss.recovery.by_controller {
            let flight = self.flight_size(now);
            self.note_unvalidated(now);
            self.cc.on_signal(&flight, Signal::Loss);
            self.bound_by_use();
        }
        let ssthresh = self.cc.window().ssthresh;
        self.loss.enter(now, CaState::Recovery);
        let nxt = self.sequence.nxt();
        let sack = self.negotiated.sack();
        let recovery = &mut self.loss.recovery;
        // snd_limited
        let limited = nxt.saturating_sub(recovery.reduction.from()).div_ceil(mss).min(2);
        recovery.point = nxt;
        recovery.by_controller = false;
        let inflated = ssthresh.saturating_add((u64::from(recovery.dup_acks) - limited) * mss);
        recovery.reduction.begin(if sack { mss } else { inflated }, ssthresh, nxt);
        if sack {
            self.loss.board.lose_holes(nxt);
        } else {
            self.loss.board.mark_front_lost();
        }
        self.loss.recovery.force = self.loss.board.lost() > 0;
        self.tell_losses(now);
        self.ecn.window_reduced();
        self.stats.fast_recoveries += 1;
        self.restart_retransmit_timer(now);
    }

    /// `cc_post_recovery`
    fn end_fast_recovery(&mut self, now: Time) {
        let flight = self.flight_size(now);
        self.cc.on_signal(&flight, Signal::RecoveryEnd);
        let (mss, outstanding) = (u64::from(self.negotiated.mss()), flight.in_flight);
        let Window { cwnd, ssthresh } = self.cc.window();
        // A controller that bounds the burst: a segment more than is outstanding, above the threshold
        // too, and one segment if nothing is (RFC 6582 section 3.2 step 3 has two).
        if outstanding < ssthresh && cwnd <= outstanding.max(mss) + mss {
            self.cc.impose(Window { cwnd: outstanding + mss, ssthresh });
        }
        self.end_validation(now);
        self.loss.enter(now, CaState::Open);
        self.loss.recovery.force = false;
    }

    /// `CC_RTO_ERR`: the episode and the window are as before the timeout.
    fn put_state_back(&mut self, now: Time) {
        let recovery = &mut self.loss.recovery;
        let state = if recovery.before_timeout >= CaState::Cwr { recovery.before_timeout } else { CaState::Open };
        recovery.point = recovery.reduction.resume();
        let (cwnd, ssthresh) = (recovery.reduction.cwnd(), recovery.reduction.ssthresh());
        self.loss.enter(now, state);
        let cwnd = if state == CaState::Recovery { ssthresh } else { cwnd };
        self.cc.impose(Window { cwnd, ssthresh });
    }

    /// `tcp_timer_rexmt`
    pub(super) fn on_timeout_freebsd(&mut self, now: Time) {
        let flight = self.flight_size(now);
        let (cwnd, window) = (self.cwnd(), self.cc.window());
        self.doubt_timeout(now, NeedlessTimeout::Soon);
        let recovery = &mut self.loss.recovery;
        if self.rtt.backoff() == 0 {
            recovery.before_timeout = recovery.state();
            recovery.reduction.interrupt(cwnd, window.ssthresh, recovery.point);
        }
        self.loss.board.forget_reports();
        self.loss.board.mark_all_lost();
        self.tell_losses(now);
        // CC_RTO halves snd_cwnd as it stands, also within fast recovery, or the peer's window if
        // that is smaller; the threshold is set by each of them.
        let halved = cwnd.min(self.sequence.window()).max(self.negotiated.mss().into());
        if halved != window.cwnd {
            self.cc.impose(Window { cwnd: halved, ..window });
        }
        self.cc.on_signal(&flight, Signal::Timeout { repeated: false, kept: 0 });
        self.forget_validation(now);
        self.rtt.back_off();
        self.loss.enter(now, CaState::Loss);
        self.loss.recovery.point = self.sequence.nxt();
        self.loss.recovery.dup_acks = 0;
        self.loss.recovery.force = true;
        self.ecn.window_reduced();
        self.timer.retransmit(now + self.rtt.rto(&self.config));
    }

    /// The part of a lost segment for which there is room while `used` counts against the window:
    /// what is sent for a hole may be short.
    #[cold]
    pub(crate) fn part_of_hole(&mut self, lost: Sent, used: u64) -> Option<Sent> {
        let room = self.cwnd().saturating_sub(used);
        let applies =
            self.loss.bsd_episodes() && self.loss.recovery.state() == CaState::Recovery && self.negotiated.sack();
        (applies && room > 0 && room < u64::from(lost.payload())).then(|| self.loss.board.cut(lost, room as u32))
    }
}
