//! Tail loss probes: when no ACK arrives for two round trips, the last segment or a new one is sent
//! to elicit one, so that the loss of a tail is found without a timeout.
//!
//! # Source
//! RFC 8985 section 7. Linux `tcp_schedule_loss_probe` and `tcp_send_loss_probe` in
//! `net/ipv4/tcp_output.c`, `tcp_process_tlp_ack` in `tcp_input.c`, of 4.0 and 6.18.

use ackclock_cc::{EcnUse, Signal};
use ackclock_units::{Span, Time};

use crate::CaState;
use crate::loss::scoreboard::Progress;
use crate::loss::{AckContext, Loss};
use crate::send::Sender;
use crate::send::retransmission_timer::Pending;

/// The tail loss probe: there is at most one in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probe {
    /// SND.NXT when it was sent (`tlp_high_seq`); 0 if there is none.
    pub(super) high: u64,
    /// The probe repeats a segment.
    pub(super) resent: bool,
    /// The probe is to be sent.
    pub(super) due: bool,
    /// The probe is being sent: Nagle's rule and the congestion window do not count.
    pub(super) unbounded: bool,
}

impl Probe {
    /// Returns `true` if the probe is in flight.
    #[inline]
    pub(crate) fn is_in_flight(&self) -> bool {
        self.high > 0
    }

    /// Returns `true` if the probe is in flight and repeats a segment.
    pub(super) fn is_retransmission(&self) -> bool {
        self.high > 0 && self.resent
    }

    /// Returns `true` if `left..right` is the segment that the probe repeats.
    pub(super) fn is_in(&self, left: u64, right: u64, mss: u64) -> bool {
        self.high == right && right - left <= mss
    }

    /// Its answer is not waited for any more.
    pub(super) fn forget(&mut self) {
        self.high = 0;
    }

    /// Returns `true` if the probe is to be sent now.
    #[cfg(test)]
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Returns `true` if the probe is to be sent now, and clears the flag.
    #[inline]
    pub(crate) fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }

    /// Returns `true` if the probe is being sent: Nagle's rule and the congestion window do not
    /// count.
    #[inline]
    pub(crate) fn is_unbounded(&self) -> bool {
        self.unbounded
    }

    /// From now on new data is the probe, or no longer.
    pub(crate) fn set_unbounded(&mut self, unbounded: bool) {
        self.unbounded = unbounded;
    }
}

/// Room for a late ACK (`TCP_TIMEOUT_MIN_US`).
const SLACK: Span = Span::from_millis(2);
/// The longest that Linux 4.0 expects an ACK to be delayed (`TCP_DELACK_MAX`), and its shortest
/// probe timeout.
const LONGEST_DELAY: Span = Span::from_millis(200);
const LEAST: Span = Span::from_millis(10);

impl Loss {
    /// Returns `true` if an ACK moves the timer: it acknowledges something or reports a segment
    /// sent before the latest (re)transmission of the first segment (`FLAG_SET_XMIT_TIMER`).
    pub(crate) fn restarts_timer(&self, progress: &Progress) -> bool {
        progress.acked > 0
            || match (progress.first_sacked_at, self.board.front()) {
                (Some(sacked), Some(front)) => sacked < front.sent_at && !self.config.transfer.timer.reports_leave_it,
                _ => false,
            }
    }

    /// Returns `true` if every new data segment sent at one time, not only the first, affects the
    /// retransmission timer.
    #[inline]
    pub(crate) fn each_moves_timer(&self) -> bool {
        self.detector.rules().probe_after_timeout
    }
}

impl Sender {
    /// `tcp_process_tlp_ack` (RFC 8985 section 7.4): did the probe repair a loss?
    pub(super) fn on_ack_of_probe(&mut self, context: &AckContext) {
        let una = self.sequence.una();
        let probe = &mut self.loss.recovery.probe;
        if una < probe.high {
            return;
        }
        let advanced = una > context.una_before;
        if !probe.resent || context.duplicates.probe {
            probe.forget();
        } else if una > probe.high {
            // There was a loss, and the probe has repaired it: the window comes down once. Linux
            // does so by the state CWR, in which DCTCP and Prague reduce by what was marked
            // (`dctcp_ssthresh`, `prague_enter_cwr`).
            let scalable = self.observer.needs.ecn != EcnUse::Data;
            self.start_reduction(context.now, if scalable { Signal::Ecn } else { Signal::Loss });
            self.finish_reduction(context.now);
            self.loss.keep_open(&self.negotiated, &self.sequence, self.now);
        } else if !advanced && !context.not_duplicate && context.progress.sacked_segments == 0 {
            // A duplicate ACK: original and probe have arrived.
            probe.forget();
        }
    }

    /// `tcp_set_xmit_timer`: a probe if one may be due, else the retransmission timer.
    pub(super) fn set_transmit_timer(&mut self, now: Time) {
        if self.loss.detector.rules().probe_after_timeout {
            self.rearm_rto(now);
            self.count_from_first(now);
            self.schedule_probe(now, false);
        } else if !self.schedule_probe(now, true) {
            self.rearm_rto(now);
        }
    }

    /// Returns `true` if new data affects the retransmission timer, which runs if not.
    #[inline]
    pub(crate) fn follows_new_data(&self) -> bool {
        !self.timer.is_running() || self.config.tlp || self.timer.pending() == Pending::Reorder
    }

    /// New data was sent (`tcp_event_new_data_sent`, the end of `tcp_write_xmit`).
    #[inline(always)]
    pub(crate) fn new_data_sent(&mut self, now: Time) {
        if self.config.tlp || self.timer.pending() == Pending::Reorder {
            self.new_data_sent_with_timer(now);
        } else if !self.timer.is_running() {
            self.restart_retransmit_timer(now);
        }
    }

    #[inline(never)]
    fn new_data_sent_with_timer(&mut self, now: Time) {
        let timeout_first = self.loss.detector.rules().probe_after_timeout;
        // The probe takes the timer's place, whatever that was for.
        if !timeout_first && self.schedule_probe(now, false) {
            return;
        }
        // New data will bring reports of its own: an early retransmission is given up.
        let early = timeout_first && self.timer.pending() == Pending::Reorder;
        if !self.timer.is_running() || self.timer.pending() == Pending::Probe || early {
            self.rearm_rto(now);
        }
        if timeout_first {
            self.schedule_probe(now, false);
        }
    }

    /// `tcp_schedule_loss_probe`; `fresh` if the retransmission timer would start anew now.
    fn schedule_probe(&mut self, now: Time, fresh: bool) -> bool {
        if !self.config.tlp || !self.negotiated.sack() || self.loss.board.is_empty() {
            return false;
        }
        let wait = if self.loss.detector.rules().probe_after_timeout {
            let Some(wait) = self.probe_timeout_in_open() else { return false };
            wait
        } else {
            if !matches!(self.loss.recovery.state(), CaState::Open | CaState::Cwr) {
                return false;
            }
            match self.rtt.srtt() {
                None => self.config.initial_rto,
                // The ACK of a single segment may be delayed.
                Some(srtt) if self.loss.board.segments() == 1 => srtt * 2 + self.config.min_rto.least(),
                Some(srtt) => srtt * 2 + SLACK,
            }
        };
        let to_timeout = if fresh { self.rto() } else { self.until_timeout(now) };
        let wait = if to_timeout > Span::ZERO { wait.min(to_timeout) } else { wait };
        self.set_transmission_timer(now, Pending::Probe, wait);
        true
    }

    /// The wait for a probe after the timeout's; `None` if none may be due.
    #[inline(never)]
    fn probe_timeout_in_open(&self) -> Option<Span> {
        let srtt = self.rtt.srtt().filter(|_| self.loss.recovery.state() == CaState::Open)?;
        if self.timer.pending() != Pending::Rto || self.is_waiting_for_nothing() {
            return None;
        }
        let alone = self.loss.board.segments() == 1;
        let wait = if alone { (srtt * 2).max(srtt + srtt / 2 + LONGEST_DELAY) } else { srtt * 2 };
        Some(wait.max(LEAST))
    }

    /// Data waits and the window has room, so more will be sent.
    fn is_waiting_for_nothing(&self) -> bool {
        self.sequence.written() + 1 > self.sequence.nxt() && self.loss.pipe(&self.negotiated) < self.cwnd()
    }

    /// Time until a retransmission timer that started with the first segment would expire
    /// (`tcp_rto_delta_us`).
    #[inline]
    pub(super) fn until_timeout(&self, now: Time) -> Span {
        match self.loss.board.front() {
            Some(front) => (front.sent_at + self.rto()).since(now),
            None => self.rto(),
        }
    }

    /// `tcp_rearm_rto`: where the timer was used for something else, the time since the first
    /// segment was sent counts.
    pub(super) fn rearm_rto(&mut self, now: Time) {
        if self.loss.board.is_empty() || self.timer.pending() == Pending::Rto {
            self.restart_retransmit_timer(now);
            return;
        }
        let wait = self.until_timeout(now).max(Span::from_micros(1));
        self.set_transmission_timer(now, Pending::Rto, wait);
    }

    /// The probe timer expired: at most one probe at a time.
    pub(crate) fn on_probe_timer(&mut self, now: Time) {
        self.loss.recovery.probe.due = !self.loss.recovery.probe.is_in_flight() && !self.loss.board.is_empty();
        self.rearm_rto(now);
    }

    /// The probe is out; the retransmission timer starts anew.
    pub(crate) fn probe_is_out(&mut self, now: Time, resent: bool) {
        let probe = &mut self.loss.recovery.probe;
        (probe.high, probe.resent) = (self.sequence.nxt(), resent);
        self.stats.loss_probes += 1;
        self.restart_retransmit_timer(now);
    }
}
