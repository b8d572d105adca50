//! The contents of an ACK's SACK option: segments that arrived out of order, and duplicates (RFC
//! 2018, RFC 2883); and the lessons of the order of arrival for the loss detector.

use ackclock_packet::Segment;

use crate::CaState;
use crate::connection::negotiated::Negotiated;
use crate::loss::Loss;
use crate::loss::scoreboard::Progress;
use crate::loss::{AckContext, DuplicateReport};
use crate::send::Sender;
use crate::send::sequence::SendSequence;
use crate::seq::lift;

/// The reports before an ACK acknowledged anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportsBefore {
    /// One past the position of the highest segment SACKed; 0 if none is.
    reach: u64,
    /// SACKed segments.
    segments: u64,
}

impl Loss {
    /// A segment was reported below one that had been reported before.
    fn learn_from_sacks(&mut self, negotiated: &Negotiated, sequence: &SendSequence, progress: &Progress) {
        let low = progress.low_sacked;
        let high = self.board.highest_sacked().unwrap_or(sequence.una());
        if low < high {
            let segments = self.board.segments_between(low, high);
            let counts = self.detector.counts_reports();
            let reports = if counts { self.board.sacked_above(low) } else { 0 };
            self.detector.reordered(low, high, segments, reports, negotiated.mss());
        }
    }

    /// The reports before the ACK in hand acknowledges anything.
    #[inline]
    pub(crate) fn reports_before(&self) -> ReportsBefore {
        let reach = self.board.reported().map_or(0, |(_, end)| end);
        ReportsBefore { reach, segments: self.board.sacked_segments() }
    }

    /// The cumulative ACK shows in which order segments arrived.
    #[inline]
    pub(crate) fn learn_from_ack(
        &mut self,
        negotiated: &Negotiated,
        sequence: &SendSequence,
        context: &AckContext,
        before: ReportsBefore,
    ) {
        let progress = &context.progress;
        let (low, position) = progress.low_acked;
        if negotiated.sack() && progress.reported.is_some_and(|(highest, _)| low < highest) {
            // A hole has filled without retransmission.
            let high = self.board.highest_sacked().unwrap_or(sequence.una());
            let segments = before.reach.saturating_sub(position);
            self.detector.reordered(low, high, segments, before.segments, negotiated.mss());
        }
        if progress.covers_resent && sequence.una() > context.una_before {
            self.detector.resent_acknowledged(context.una_before, sequence.una(), before.segments);
        }
    }
}

impl Sender {
    /// SACK blocks that make sense, and duplicates reported in the first (RFC 2883 section 4).
    pub(crate) fn take_sack(&mut self, segment: &Segment, ack: u64, progress: &mut Progress) -> DuplicateReport {
        let mut blocks = [(0u64, 0u64); 4];
        let mut len = 0;
        let mut duplicates = DuplicateReport::default();
        let (isn, una) = (self.sequence.isn(), self.sequence.una());
        let lifted = |wire| lift(wire, isn, una).unwrap_or(0);
        let wire = segment.sack.as_slice();
        for (i, &(left, right)) in wire.iter().enumerate() {
            let (left, right) = (lifted(left), lifted(right));
            // Nothing before the first byte can be reported, nor what was not sent.
            if left == 0 || left >= right || right > self.sequence.nxt() {
                continue;
            }
            let within_second = || wire.get(1).is_some_and(|&(l, r)| lifted(l) <= left && right <= lifted(r));
            if i == 0 && (right <= ack || within_second()) {
                self.stats.dsacks += 1;
                duplicates = self.take_dsack(left, right, progress);
                continue;
            }
            if right > ack {
                blocks[len] = (left.max(ack), right);
                len += 1;
            }
        }
        self.loss.board.sack(&blocks[..len], progress);
        // The detector learns nothing after a timeout, when the retransmissions are not known well
        // (`tcp_sacktag_write_queue`).
        let tested = self.loss.recovery.undo.test_high > 0 && self.sequence.una() <= self.loss.recovery.undo.test_high;
        if (self.loss.recovery.state() != CaState::Loss || self.loss.recovery.undo.is_possible()) && !tested {
            self.loss.learn_from_sacks(&self.negotiated, &self.sequence, progress);
        }
        duplicates
    }

    /// `tcp_check_dsack`: segments reported twice, as far as our retransmissions explain them.
    fn take_dsack(&mut self, left: u64, right: u64, progress: &mut Progress) -> DuplicateReport {
        let mss = u64::from(self.negotiated.mss());
        if right - left > self.sequence.max_window() {
            return DuplicateReport::default();
        }
        let segments = (right - left).div_ceil(mss).max(1);
        let probe = self.loss.recovery.probe.is_in(left, right, mss);
        if !self.loss.recovery.undo.explains(segments, self.stats.retransmitted_packets) {
            // The network has doubled something.
            return DuplicateReport::default();
        }
        self.loss.detector.duplicated(left, right, probe);
        let marker = self.loss.recovery.undo.marker();
        let known = if right > self.sequence.una() {
            self.loss.board.duplicated(left, right, marker, progress)
        } else if right > marker {
            // Forgotten already: the count has to do.
            segments
        } else {
            0
        };
        self.loss.recovery.undo.duplicated(known, self.config.transfer.loss.signed_undo_count);
        DuplicateReport { segments, probe }
    }
}
