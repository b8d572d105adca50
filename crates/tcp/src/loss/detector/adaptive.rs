//! Linux before RACK: a duplicate threshold that grows with the reordering that is seen.
//!
//! A segment is lost once `reordering` segments above it are SACKed; the threshold starts at 3 and
//! takes on the longest displacement of a segment that turned out not to be lost. Until reordering
//! is seen FACK counts the holes below the highest SACKed segment as well. A retransmission is
//! lost, with FACK, when data sent after it is SACKed. With fewer than four segments outstanding
//! early retransmit lowers the threshold, after a quarter of a round trip.
//!
//! # Source
//! Linux `net/ipv4/tcp_input.c` of 4.0: `tcp_update_reordering`, `tcp_time_to_recover`,
//! `tcp_pause_early_retransmit`, `tcp_update_scoreboard`, `tcp_mark_head_lost`,
//! `tcp_mark_lost_retrans`; RFC 5827. `tcp_recovery=0` of kernels from 4.4 to 6.16 is equivalent,
//! without FACK, lost retransmissions and early retransmit, and marks when all else of an ACK is
//! done ([`Adaptive::mark_last`]; `tcp_fastretrans_alert` of 6.1).
//!
//! # Departures
//! - The rule of `tcp_mark_head_lost` for a part of a buffer never applies: here every entry is one
//!   packet. Where one buffer is marked as a whole (without FACK, when recovery begins), all of its
//!   packets are.
//! - Thin streams (`tcp_thin_dupack`, off by default) are not treated.
//! - What is first in line for longer than the timeout is not lost by that alone
//!   (`tcp_head_timedout`, with FACK, until 3.10 or later).

use ackclock_units::Span;

use super::view::{DUP_THRESH, Marked, ReorderingExtent, StartRecovery, View};
use crate::loss::scoreboard::Scoreboard;
use crate::{AdaptiveRules, CaState, DetectorRules};

/// The least delay of an early retransmit (`tcp_pause_early_retransmit`).
const EARLY_DELAY: Span = Span::from_millis(2);

#[derive(Clone, Debug)]
pub(crate) struct Adaptive {
    rules: AdaptiveRules,
    pub(super) reordering: ReorderingExtent,
    /// FACK and early retransmit are in use: no reordering was seen.
    fack: bool,
    early: bool,
}

impl Adaptive {
    pub(super) fn new(rules: AdaptiveRules) -> Adaptive {
        let AdaptiveRules { max_reordering, fack, early_retransmit, .. } = rules;
        Adaptive { rules, reordering: ReorderingExtent::new(max_reordering), fack, early: early_retransmit }
    }

    /// `tcp_may_raise_cwnd`.
    pub(super) fn grows_on_sack(&self) -> bool {
        self.rules.high_reordering && self.reordering.threshold > DUP_THRESH
    }

    /// `tcp_may_raise_cwnd`, which came to ignore `FLAG_ECE` with 3.12.
    pub(super) fn grows_on_mark(&self) -> bool {
        self.rules.high_reordering
    }

    /// The effect of `tcp_enter_loss` on the threshold.
    pub(super) fn timed_out(&mut self, view: &View) {
        if self.rules.high_reordering {
            self.reordering.timed_out(view);
        } else {
            self.reordering.forget();
        }
    }

    /// `tcp_update_reordering`.
    pub(super) fn reordered(&mut self, segments: u64) {
        if segments > u64::from(self.reordering.threshold) {
            self.reordering.set(segments);
            self.fack = false;
        }
        self.early &= segments == 0;
    }

    /// `tcp_time_to_recover`.
    pub(super) fn starts_recovery(&self, view: &View) -> StartRecovery {
        let threshold = u64::from(self.reordering.threshold);
        // tcp_dupack_heuristics.
        let fack = self.fack && view.sack;
        let duplicates = if fack { view.reach } else { view.sacked + 1 };
        if duplicates > threshold {
            return StartRecovery::Now;
        }
        let most = (view.outstanding / 2).max(u64::from(DUP_THRESH));
        if self.has_tricks() && view.outstanding <= threshold && view.sacked >= most && !view.can_send {
            // Nothing more can be sent, and so no more duplicates can come.
            return StartRecovery::Now;
        }
        if self.early && view.sacked > 0 && view.outstanding > view.sacked && view.outstanding < 4 && !view.can_send {
            let Some(srtt) = view.srtt.filter(|_| !view.ece) else { return StartRecovery::Now };
            let delay = (srtt / 4).max(EARLY_DELAY);
            return if view.to_timeout > delay { StartRecovery::After(delay) } else { StartRecovery::Now };
        }
        StartRecovery::No
    }

    /// `tcp_update_scoreboard`, and `tcp_mark_lost_retrans` before it.
    pub(super) fn mark(&mut self, board: &mut Scoreboard, view: &View) -> Marked {
        let resent = board.resent_segments();
        let fack = self.fack && view.sack;
        if fack && view.state == CaState::Recovery && !view.begins {
            board.lose_overtaken_retransmissions();
        }
        let retransmission = board.resent_segments() < resent;
        let threshold = u64::from(self.reordering.threshold);
        let partial = view.advanced && view.state == CaState::Recovery && !view.begins;
        let judges = if partial {
            !view.sack || view.reach > threshold
        } else {
            view.duplicate || view.begins || (view.newly_sacked && view.reach > threshold)
        };
        if !judges {
            return Marked { retransmission, again: None };
        }
        if !view.sack {
            board.lose_front();
        } else if fack {
            board.lose_first(view.reach.saturating_sub(threshold).max(1).min(board.segments_below(view.limit)));
        } else if view.first_hole {
            let most = view.sacked.saturating_sub(threshold).max(u64::from(view.begins));
            board.lose_below_sacked(most, view.limit);
        } else if let Some(most) = view.sacked.checked_sub(threshold) {
            board.lose_below_sacked(most, u64::MAX);
        } else if view.begins {
            board.lose_front_unit();
        }
        Marked { retransmission, again: None }
    }

    /// `tcp_update_scoreboard` with RACK off, at the end of `tcp_fastretrans_alert`; `partial`
    /// after a partial ACK that has undone nothing.
    pub(super) fn mark_last(&self, board: &mut Scoreboard, view: &View, partial: bool) {
        let threshold = u64::from(self.reordering.threshold);
        let far = view.reach > threshold;
        let proven = if partial { far } else { view.duplicate || view.newly_sacked && far };
        match view.sacked.checked_sub(threshold) {
            _ if !proven || !view.sack => {}
            Some(most) => board.lose_below_sacked(most, u64::MAX),
            None => board.lose_front_unit(),
        }
    }

    /// The order in which an ACK is dealt with.
    #[inline]
    pub(super) fn order(&self) -> DetectorRules {
        self.rules.order
    }

    /// `tcp_can_forward_retransmit`.
    pub(super) fn forwards(&self) -> bool {
        self.has_tricks()
    }

    /// The rules that 4.x dropped with the arrival of RACK.
    fn has_tricks(&self) -> bool {
        self.rules.fack
    }
}
