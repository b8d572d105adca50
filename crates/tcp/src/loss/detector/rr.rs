//! RR-TCP: as many duplicates as most of the recent late segments have caused prove nothing.
//!
//! The reports that arrive before a late segment are its reordering length. The threshold is one
//! more than a percentile of the recent lengths. Which percentile is learnt: a false fast
//! retransmit raises it; a timeout or an idle time, which a lower threshold would have avoided,
//! lowers it in proportion to its cost. While nothing is proven each report lets a segment of new
//! data go out, up to one congestion window more than fits into it.
//!
//! # Source
//! Zhang, Karp, Floyd, Peterson, "RR-TCP: A Reordering-Robust TCP with DSACK", ICSI TR-02-006
//! (2002) and ICNP 2003, as Johannessen (Oslo 2015, section 2.2.1) and A. Sum (notes on the
//! technical report) give them: the percentile (FA ratio), the step of 0.01, and the cost ratios by
//! which timeouts and idle times count (DSACK-TA).
//!
//! # Departures
//! The paper itself was not available.
//! - Its formulas of the costs are not in the sources that were: here a cost is what a window of W
//!   segments and round trips of R could have sent meanwhile. A false fast retransmit halves the
//!   window for a round trip: `W / 2`. A timeout loses its wait, `W RTO / R`, and slow start back
//!   to half of W, `W log2(W / 2) - W / 2`. Idle time t costs `W t / R`.
//! - Nor were the number of lengths remembered and the initial percentile ([`RrRules`]).
//! - A false fast retransmit is undone by the host, which restores the window at once where the
//!   paper lets slow start restore it. RTT samples are the host's as well (the paper's DSACK-ES
//!   measures retransmissions).
//! - Without SACK, which it requires, the threshold is 3.

use ackclock_units::{Time, maths};

use super::view::{DUP_THRESH, Marked, StartRecovery, View, mark_newreno};
use crate::loss::scoreboard::Scoreboard;
use crate::{CaState, RrRules};

/// Longer reordering counts as this long.
const LONGEST: usize = 1023;
/// Retransmissions of which a duplicate may still be reported.
const REMEMBERED: usize = 16;

#[derive(Clone, Debug)]
pub(crate) struct RrTcp {
    rules: RrRules,
    lengths: Lengths,
    /// The FA ratio.
    ratio: f64,
    threshold: u32,
    /// Retransmitted ranges that were acknowledged, and the reports that had come in before.
    resent: [(u64, u64, u64); REMEMBERED],
    last: usize,
    /// The false fast retransmit of this episode is counted.
    counted: bool,
    /// The sender has used up what it may send.
    idle_since: Option<Time>,
}

impl RrTcp {
    pub(super) fn new(rules: RrRules) -> RrTcp {
        RrTcp {
            rules,
            lengths: Lengths::new(rules.history),
            ratio: rules.initial_ratio,
            threshold: DUP_THRESH,
            resent: [(0, 0, 0); REMEMBERED],
            last: 0,
            counted: false,
            idle_since: None,
        }
    }

    pub(super) fn threshold(&self) -> u32 {
        self.threshold
    }

    pub(super) fn events(&self) -> u64 {
        self.lengths.events
    }

    /// A segment arrived after `reports` others that were sent later.
    pub(super) fn reordered(&mut self, reports: u64) {
        if reports > 0 {
            self.lengths.add(reports);
            self.set_threshold();
        }
    }

    /// `from..to` was acknowledged, and some of it had been retransmitted after `reports` reports.
    pub(super) fn resent_acknowledged(&mut self, from: u64, to: u64, reports: u64) {
        self.last = (self.last + 1) % REMEMBERED;
        self.resent[self.last] = (from, to, reports);
    }

    /// `left..right` was reported twice: the retransmission of it was false.
    pub(super) fn duplicated(&mut self, left: u64, right: u64) {
        let known = self.resent.iter_mut().find(|(from, to, _)| *from <= left && right <= *to);
        let Some((_, _, reports)) = known else { return };
        let reports = std::mem::take(reports);
        if !std::mem::replace(&mut self.counted, true) {
            self.ratio = (self.ratio + self.rules.step).min(1.0);
        }
        self.reordered(reports);
    }

    pub(super) fn starts_recovery(&mut self, view: &View) -> StartRecovery {
        if !view.sack {
            return if view.sacked >= u64::from(DUP_THRESH) { StartRecovery::Now } else { StartRecovery::No };
        }
        // With nothing more to send no more duplicates can come.
        let most = if view.can_send { u64::MAX } else { view.outstanding.saturating_sub(1) };
        let threshold = u64::from(self.threshold).min(most).max(DUP_THRESH.into());
        let proof = if view.sacked >= threshold { StartRecovery::Now } else { StartRecovery::No };
        if view.advanced || proof == StartRecovery::Now {
            if let Some(since) = self.idle_since.take() {
                let idle = view.now.since(since).as_secs_f64();
                self.lower(view, idle / round_trip(view) * window(view));
            }
        } else if view.sacked >= view.cwnd && !view.can_send {
            self.idle_since.get_or_insert(view.now);
        }
        proof
    }

    pub(super) fn mark(&mut self, board: &mut Scoreboard, view: &View) -> Marked {
        if view.begins {
            (self.counted, self.idle_since) = (false, None);
        }
        if !view.sack {
            if view.begins {
                board.lose_front();
            } else {
                mark_newreno(board, view, DUP_THRESH);
            }
        } else if view.begins || view.state == CaState::Recovery {
            if let Some(most) = view.sacked.checked_sub(u64::from(self.threshold)) {
                board.lose_below_sacked(most, u64::MAX);
            } else if view.begins {
                board.lose_front();
            }
        }
        Marked::default()
    }

    /// The retransmission timer expired. It is the threshold's fault if the usual one was passed.
    pub(super) fn timed_out(&mut self, view: &View) {
        self.idle_since = None;
        if view.state <= CaState::Disorder && view.sacked >= u64::from(DUP_THRESH) {
            let window = window(view);
            let slow_start = window * maths::log2(window / 2.0).max(0.0) - window / 2.0;
            self.lower(view, window * view.rto.as_secs_f64() / round_trip(view) + slow_start.max(0.0));
        }
    }

    /// Number of segments beyond the window that `sacked` reports allow.
    pub(super) fn limited_transmit(&self, sacked: u64, cwnd: u64) -> u64 {
        sacked.min(cwnd)
    }

    /// Something cost `cost` segments that a false fast retransmit would have avoided.
    fn lower(&mut self, view: &View, cost: f64) {
        let false_retransmit = window(view) / 2.0;
        self.ratio = (self.ratio - self.rules.step * cost / false_retransmit).max(0.0);
        self.set_threshold();
    }

    fn set_threshold(&mut self) {
        self.threshold = (self.lengths.percentile(self.ratio) + 1).max(DUP_THRESH);
    }
}

/// The congestion window in segments.
fn window(view: &View) -> f64 {
    view.cwnd.max(1) as f64
}

/// Seconds.
fn round_trip(view: &View) -> f64 {
    view.srtt.unwrap_or(view.rto).as_secs_f64().max(1e-6)
}

/// The last reordering lengths, counted.
#[derive(Clone, Debug)]
struct Lengths {
    last: Box<[u16]>,
    next: usize,
    events: u64,
    counts: Box<[u16; LONGEST + 1]>,
    longest: usize,
}

impl Lengths {
    fn new(history: u16) -> Lengths {
        let last = vec![0; usize::from(history.max(1))].into_boxed_slice();
        Lengths { last, next: 0, events: 0, counts: Box::new([0; LONGEST + 1]), longest: 0 }
    }

    fn add(&mut self, length: u64) {
        let length = length.min(LONGEST as u64) as u16;
        let oldest = std::mem::replace(&mut self.last[self.next], length);
        if self.events >= self.last.len() as u64 {
            self.counts[usize::from(oldest)] -= 1;
        }
        self.counts[usize::from(length)] += 1;
        self.longest = self.longest.max(length.into());
        self.events += 1;
        self.next = (self.next + 1) % self.last.len();
    }

    /// The least length that at least the share `ratio` of all do not exceed; 0 without any.
    fn percentile(&self, ratio: f64) -> u32 {
        let all = self.events.min(self.last.len() as u64);
        let enough = (ratio * all as f64).ceil() as u64;
        let mut count = 0;
        let is_enough = |&at: &usize| {
            count += u64::from(self.counts[at]);
            count >= enough
        };
        (0..=self.longest).find(is_enough).unwrap_or(self.longest) as u32
    }
}
