//! What a detector sees of an ACK and the segments in flight, and what it answers.

use ackclock_units::{Span, Time};

use crate::CaState;
use crate::loss::scoreboard::Scoreboard;

/// The sender's knowledge at a call, in segments (the names in brackets are Linux's).
#[derive(Clone, Copy, Debug)]
pub(in crate::loss) struct View {
    pub(in crate::loss) now: Time,
    pub(in crate::loss) state: CaState,
    pub(in crate::loss) sack: bool,
    pub(in crate::loss) mss: u32,
    /// Segments in flight or lost (`packets_out`).
    pub(in crate::loss) outstanding: u64,
    /// Reported, by SACK or by as many duplicate ACKs (`sacked_out`).
    pub(in crate::loss) sacked: u64,
    /// Up to the highest reported (`fackets_out`; `sacked_out + 1` without SACK).
    pub(in crate::loss) reach: u64,
    pub(in crate::loss) srtt: Option<Span>,
    /// The cumulative ACK advanced.
    pub(in crate::loss) advanced: bool,
    /// A duplicate ACK, or with SACK one that is not plain progress.
    pub(in crate::loss) duplicate: bool,
    /// Something was newly SACKed.
    pub(in crate::loss) newly_sacked: bool,
    /// The episode begins with this call.
    pub(in crate::loss) begins: bool,
    /// Segments sent from here on are not to be declared lost.
    pub(in crate::loss) limit: u64,
    /// The first hole is lost with any sign of a loss.
    pub(in crate::loss) first_hole: bool,
    /// The ACK carries the ECN echo.
    pub(in crate::loss) ece: bool,
    /// The application has data and both windows let it go out. This and the last three are known
    /// to detectors alone that mark on entry.
    pub(in crate::loss) can_send: bool,
    /// Time until the retransmission timer expires.
    pub(in crate::loss) to_timeout: Span,
    pub(in crate::loss) rto: Span,
    /// The congestion window.
    pub(in crate::loss) cwnd: u64,
}

/// The decision to begin recovery although no segment is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::loss) enum StartRecovery {
    /// Nothing is proven.
    No,
    /// A loss is proven.
    Now,
    /// Begins after this time if nothing else happens before (early retransmit).
    After(Span),
}

/// The findings of [`Detector::mark`], apart from the marks.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::loss) struct Marked {
    /// A retransmission was found lost.
    pub(in crate::loss) retransmission: bool,
    /// Judge again after this time.
    pub(in crate::loss) again: Option<Span>,
}

/// The duplicate threshold as Linux adapts it, and how often reordering was seen.
#[derive(Clone, Debug)]
pub(super) struct ReorderingExtent {
    pub(super) threshold: u32,
    pub(super) seen: u64,
    /// `sysctl_tcp_max_reordering`; before 3.18 the constant `TCP_MAX_REORDERING`.
    pub(super) most: u32,
}

/// Duplicate ACKs that prove a loss where the threshold is fixed, and where an adaptive one starts
/// (RFC 5681 section 3.2; Linux `sysctl_tcp_reordering`).
pub(crate) const DUP_THRESH: u32 = 3;

/// Without SACK the first segment is lost after `threshold` duplicate ACKs, and the next one with
/// every partial ACK (RFC 6582; `tcp_newreno_mark_lost`).
pub(super) fn mark_newreno(board: &mut Scoreboard, view: &View, threshold: u32) {
    let enough = view.state < CaState::Recovery && view.sacked >= u64::from(threshold);
    if enough || (view.state == CaState::Recovery && view.advanced) {
        board.lose_front();
    }
}

impl ReorderingExtent {
    pub(super) fn new(most: u32) -> ReorderingExtent {
        ReorderingExtent { threshold: DUP_THRESH, seen: 0, most: most.max(DUP_THRESH) }
    }

    pub(super) fn set(&mut self, segments: u64) {
        self.threshold = segments.min(u64::from(self.most)) as u32;
        self.seen += 1;
    }

    /// `tcp_check_sack_reordering`: `low` arrived after `high`, in bytes.
    pub(super) fn note(&mut self, low: u64, high: u64, mss: u32) {
        let Some(distance) = high.checked_sub(low).filter(|&distance| distance > 0) else { return };
        if distance > u64::from(self.threshold) * u64::from(mss) {
            self.threshold = distance.div_ceil(u64::from(mss.max(1))).min(u64::from(self.most)) as u32;
        }
        self.seen += 1;
    }

    /// `tcp_enter_loss`: many duplicates and still a timeout, so the threshold was too high.
    pub(super) fn timed_out(&mut self, view: &View) {
        if view.state <= CaState::Disorder && view.sacked >= u64::from(DUP_THRESH) {
            self.forget();
        }
    }

    pub(super) fn forget(&mut self) {
        self.threshold = self.threshold.min(DUP_THRESH);
    }
}
